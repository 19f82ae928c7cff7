# Removes the files of an installation's manifest, and the folders that are empty then. $DESTDIR as when installing.
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "${MANIFEST} does not exist: nothing was installed from this build folder")
endif()
file(STRINGS "${MANIFEST}" files ENCODING UTF-8)  # without which a name ends where it is no ASCII
set(folders "")
set(removed 0)
foreach(file IN LISTS files)
  set(file "$ENV{DESTDIR}${file}")
  if(EXISTS "${file}" OR IS_SYMLINK "${file}")
    file(REMOVE "${file}")
    math(EXPR removed "${removed} + 1")
  endif()
  # Folders of our own only: those that others share stay.
  cmake_path(GET file PARENT_PATH folder)
  while(folder MATCHES "/gccl(-0)?(/|$)")
    list(APPEND folders "${folder}")
    cmake_path(GET folder PARENT_PATH folder)
  endwhile()
endforeach()
list(REMOVE_DUPLICATES folders)
list(SORT folders ORDER DESCENDING)  # those inside first
foreach(folder IN LISTS folders)
  execute_process(COMMAND rmdir -- "${folder}" ERROR_QUIET)  # not where somebody else's file is left
endforeach()
message(STATUS "Removed ${removed} files")
