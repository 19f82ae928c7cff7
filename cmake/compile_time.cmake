# What keeps the build short.

# g++ collects its garbage when it has allocated this many KiB; its own choice costs an eighth of its time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("SHELL:--param ggc-min-heapsize=500000")
endif()

# For what runs once in a command: reading, checking and writing documents, the command line.
set(GCCL_COLD $<$<CONFIG:Release>:-Og>)

# For what runs often and gains nothing from -O3, which takes half as long again to compile. The engines: with -O3 a ring
# of 2048 ranks takes 17 % longer, a hierarchical all-reduce of 131,072 ranks 5 % (bench_model_ring). Routes and cost
# models: the same times to 2 % (gccl tune, test closed_form). The core: with -O3 plans by the model take 19 % longer
# (bench_planner); scenarios, gccl verify and calls of two ranks, the same times to 5 %. Nor do the bench's loops gain,
# whose time is the library's, and the tuner, which looks up what it has planned.
set(GCCL_WARM $<$<CONFIG:Release>:-O1>)

# gccl_join(target name pattern... [EXCEPT pattern...]): compiles those files of a target as one, under that name: they
# spend most of their compile time on the same headers. So names in anonymous namespaces differ within a group, and
# `::signal`, `::read` are written with their colons. GCCL_JOIN=OFF (as in the preset clang) compiles each file alone and
# so finds includes that are missing.
function(gccl_join target name)
  if(NOT GCCL_JOIN)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 join "" "" "EXCEPT")
  file(GLOB files ${join_UNPARSED_ARGUMENTS})
  if(join_EXCEPT)
    file(GLOB except ${join_EXCEPT})
    list(REMOVE_ITEM files ${except})
  endif()
  set_source_files_properties(${files} PROPERTIES UNITY_GROUP ${name})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # it takes the joined files for headers
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
