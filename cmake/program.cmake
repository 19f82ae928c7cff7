# The program, `gccl`, and the plug-ins that it loads when a command needs them: so it starts at once, and `gccl launch`
# needs neither SimGrid nor MPI. SimGrid's library defines MPI's functions too: the two plug-ins never meet in a process.
#   gccl_executable     the program alone
#   gccl_simulator      with the simgrid engine, where there is SimGrid: what ./quickstart builds
#   gccl_program        with all plug-ins
include(cmake/plugin_abi.cmake)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR} OUTPUT_VARIABLE libraries)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_DATADIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR} OUTPUT_VARIABLE data)

# What the program and the commands in plug-ins have in common. Nothing here runs often.
set(sources authorities catalogue child_output cluster_argument command command_help engines installation interrupt output plugin
            resumed started)
list(TRANSFORM sources REPLACE "(.+)" "cli/\\1.cpp")
add_library(gccl_cli STATIC ${sources})
target_link_libraries(gccl_cli PUBLIC gccl_sim gccl_net fmt::fmt ${CMAKE_DL_LIBS})
target_compile_definitions(gccl_cli PRIVATE GCCL_PLUGINS_FROM_BIN="${libraries}/gccl" GCCL_DATA_FROM_BIN="${data}/gccl")
target_compile_options(gccl_cli PRIVATE ${GCCL_COLD})
gccl_plugin_abi(gccl_cli)
gccl_join(gccl_cli cli ${sources})

file(GLOB program CONFIGURE_DEPENDS cli/*.cpp cli/explain/*.cpp cli/launch/*.cpp cli/real/*.cpp)
list(FILTER program EXCLUDE REGEX "/(plugin_[a-z_]*|real/(rank|link_news)).cpp$")
list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/)
list(REMOVE_ITEM program ${sources})
list(APPEND program ${PROJECT_SOURCE_DIR}/cli/bench/bench.cpp ${PROJECT_SOURCE_DIR}/cli/bench/options.cpp)
add_executable(gccl_executable ${program})
set_target_properties(gccl_executable PROPERTIES OUTPUT_NAME gccl RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_link_libraries(gccl_executable PRIVATE gccl_cli)
target_link_options(gccl_executable PRIVATE -Wl,--as-needed)  # of gccl_net it uses what needs no cryptography
target_compile_options(gccl_executable PRIVATE ${GCCL_COLD})
gccl_join(gccl_executable program ${program})

# gccl_plugin(name library...): cli/plugin_NAME.cpp as lib/gccl/libgccl_NAME.so, with all that it needs.
set(gccl_plugins "")
function(gccl_plugin name)
  add_library(gccl_${name} MODULE cli/plugin_${name}.cpp cli/plugin_version.cpp)
  target_compile_definitions(gccl_${name} PRIVATE GCCL_VERSION_TEXT="${PROJECT_VERSION}")
  set_target_properties(gccl_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/gccl)
  target_link_libraries(gccl_${name} PRIVATE ${ARGN})
  target_link_options(gccl_${name} PRIVATE -Wl,--exclude-libs,ALL,--as-needed)
  if(NOT GCCL_SANITIZE)
    target_link_options(gccl_${name} PRIVATE -Wl,-z,defs)  # what is missing is seen here, not when it is loaded
  endif()
  gccl_plugin_abi(gccl_${name})
  set(gccl_plugins ${gccl_plugins} gccl_${name} PARENT_SCOPE)
endfunction()

add_library(gccl_bench_loop STATIC cli/bench/run.cpp cli/bench/data.cpp cli/bench/job.cpp cli/bench/job_team.cpp
            cli/calibrate/run.cpp cli/calibrate/measure.cpp cli/real/rank.cpp cli/real/link_news.cpp)
target_link_libraries(gccl_bench_loop PUBLIC gccl_analysis_documents gccl_cli gccl_runtime)
target_compile_options(gccl_bench_loop PRIVATE ${GCCL_WARM})
gccl_join(gccl_bench_loop bench_loop cli/bench/run.cpp cli/bench/data.cpp cli/bench/job.cpp cli/bench/job_team.cpp
          cli/calibrate/run.cpp cli/calibrate/measure.cpp)
gccl_plugin(bench_native gccl_bench_loop)
if(TARGET gccl_backend_mpi)
  gccl_plugin(bench_mpi gccl_bench_loop MPI::MPI_CXX)
endif()
file(GLOB commands CONFIGURE_DEPENDS cli/analysis/*.cpp)
list(APPEND commands ${PROJECT_SOURCE_DIR}/cli/calibrate/calibrate.cpp ${PROJECT_SOURCE_DIR}/cli/calibrate/options.cpp)
gccl_plugin(analysis gccl_analysis_documents gccl_cli)
target_sources(gccl_analysis PRIVATE ${commands})
target_compile_options(gccl_analysis PRIVATE ${GCCL_COLD})
gccl_join(gccl_analysis analysis ${commands} cli/plugin_analysis.cpp)
if(TARGET PkgConfig::NLOPT)
  gccl_plugin(optimiser PkgConfig::NLOPT)
endif()
add_custom_target(gccl_simulator DEPENDS gccl_executable)
if(TARGET gccl_simgrid)
  gccl_plugin(simgrid_engine gccl_simgrid)
  add_dependencies(gccl_simulator gccl_simgrid_engine)
endif()
if(TARGET gccl_backend_mpi)
  list(APPEND gccl_plugins gccl_backend_mpi)
endif()
add_custom_target(gccl_program ALL DEPENDS gccl_executable gccl_pages ${gccl_plugins})
if(TARGET gccl_pmpi)
  add_dependencies(gccl_program gccl_pmpi)  # gccl pmpi preloads it
endif()

# Shipped files are found by name from the build folder as from an installation: share/gccl beside the program.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/gccl/schemas)
file(GLOB schemas CONFIGURE_DEPENDS libgccl/*/*.schema.json sim/*/*.schema.json)
foreach(shipped topologies scenarios workloads cost-models ${schemas})
  cmake_path(ABSOLUTE_PATH shipped BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  cmake_path(GET shipped FILENAME name)
  if(name MATCHES "schema.json$")
    set(name schemas/${name})
  endif()
  file(CREATE_LINK ${shipped} ${PROJECT_BINARY_DIR}/share/gccl/${name} SYMBOLIC)
endforeach()

# Made from the option tables of the program and its plug-in.
set(pages "")
foreach(page "man:man/man1/gccl.1" "bash:bash-completion/completions/gccl" "zsh:zsh/site-functions/_gccl"
             "fish:fish/vendor_completions.d/gccl.fish")
  string(REPLACE ":" ";" page ${page})
  list(GET page 0 what)
  list(GET page 1 file)
  cmake_path(GET file PARENT_PATH folder)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/${folder})
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/share/${file} DEPENDS gccl_executable gccl_analysis VERBATIM
                     COMMAND gccl_executable completion ${what} > ${PROJECT_BINARY_DIR}/share/${file})
  list(APPEND pages ${PROJECT_BINARY_DIR}/share/${file})
  install(FILES ${PROJECT_BINARY_DIR}/share/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
endforeach()
add_custom_target(gccl_pages DEPENDS ${pages})
