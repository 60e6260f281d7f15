# The compression libraries of src/codec/, linked statically: the plugin needs nothing but libc, and takes nothing from
# a program that has other versions of them. Debian and Ubuntu build these archives so that they fit into a shared
# library; `--exclude-libs` (cmake/TidelaneRooms.cmake) keeps their symbols inside.
#
#   tidelane_codecs   libdeflate and zlib

add_library(tidelane_codecs INTERFACE)
function(tidelane_codec library header package)
  find_path(TIDELANE_${library}_INCLUDE_DIR ${header})
  find_library(TIDELANE_${library}_ARCHIVE ${CMAKE_STATIC_LIBRARY_PREFIX}${library}${CMAKE_STATIC_LIBRARY_SUFFIX})
  mark_as_advanced(TIDELANE_${library}_INCLUDE_DIR TIDELANE_${library}_ARCHIVE)
  if(NOT TIDELANE_${library}_INCLUDE_DIR OR NOT TIDELANE_${library}_ARCHIVE)
    message(FATAL_ERROR "No static ${library} found. `make build` installs it; on Debian it is the package ${package}.")
  endif()
  target_include_directories(tidelane_codecs SYSTEM INTERFACE "${TIDELANE_${library}_INCLUDE_DIR}")
  target_link_libraries(tidelane_codecs INTERFACE "${TIDELANE_${library}_ARCHIVE}")
endfunction()
tidelane_codec(deflate libdeflate.h libdeflate-dev)
tidelane_codec(z zlib.h zlib1g-dev)

# ISA-L has no archive there: its declarations are enough, the library is loaded when a setting asks for it.
find_path(TIDELANE_isal_INCLUDE_DIR isa-l/igzip_lib.h)
mark_as_advanced(TIDELANE_isal_INCLUDE_DIR)
if(NOT TIDELANE_isal_INCLUDE_DIR)
  message(FATAL_ERROR "No isa-l/igzip_lib.h found. `make build` installs it; on Debian it is the package libisal-dev.")
endif()
target_include_directories(tidelane_codecs SYSTEM INTERFACE "${TIDELANE_isal_INCLUDE_DIR}")
target_link_libraries(tidelane_codecs INTERFACE ${CMAKE_DL_LIBS})
