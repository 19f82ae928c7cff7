# gccl_embed(target header file...): makes each file's text a std::string_view in namespace gccl::embedded, named after
# the file with '_' for everything but letters and digits. `header` declares them. The text follows the file at build
# time. When run as a script (-P), writes one such definition.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${INPUT}" text)
  # One literal for each file: compilers need not take literals of more than 64 KiB.
  file(WRITE "${OUTPUT}" "#include \"${HEADER}\"\n\nnamespace gccl::embedded {\n\n"
       "const std::string_view ${SYMBOL} = R\"embedded(${text})embedded\";\n\n}  // namespace gccl::embedded\n")
  return()
endif()

function(gccl_embed target header)
  foreach(file IN LISTS ARGN)
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} symbol)
    set(output ${PROJECT_BINARY_DIR}/embedded/${symbol}.cpp)
    add_custom_command(OUTPUT ${output} DEPENDS ${PROJECT_SOURCE_DIR}/${file} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                       COMMAND ${CMAKE_COMMAND} -DINPUT=${PROJECT_SOURCE_DIR}/${file} -DOUTPUT=${output}
                               -DSYMBOL=${symbol} -DHEADER=${header} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                       COMMENT "Embedding ${file}" VERBATIM)
    target_sources(${target} PRIVATE ${output})
    set_source_files_properties(${output} PROPERTIES UNITY_GROUP embedded)
  endforeach()
endfunction()
