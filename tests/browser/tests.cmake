# Opens reports and other pages in headless Chromium. Skipped where there is none.
add_executable(test_browser browser/report_in_browser.cpp browser/sweep_in_browser.cpp)
target_link_libraries(test_browser PRIVATE gccl_sim)
target_compile_definitions(test_browser PRIVATE GCCL_PROBE="${CMAKE_CURRENT_LIST_DIR}/probe.js"
                           GCCL_PROGRAM="$<TARGET_FILE:gccl_executable>")
add_dependencies(test_browser gccl_program)
add_test(NAME browser COMMAND test_browser)
set_tests_properties(browser PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
