# Finds the HDF5 whose headers the plugin is compiled against and whose library the tests link.
#
# The plugin itself is never linked to libhdf5: it resolves what it needs from the library that loads it.
# Looked for under TIDELANE_HDF5_ROOT (variable, then environment), then in the usual system places.
#
#   tidelane_hdf5_headers   include path only (plugin, faces)
#   tidelane_hdf5           include path and library (tests, benches)
#
# With TIDELANE_OWN_DECLARATIONS the plugin needs none: it is compiled with src/h5/declarations.h (docs/decisions/0015-wheel.md).

option(TIDELANE_OWN_DECLARATIONS "Compile the plugin without HDF5's headers" OFF)
if(TIDELANE_OWN_DECLARATIONS)
  add_library(tidelane_hdf5_headers INTERFACE)
  target_compile_definitions(tidelane_hdf5_headers INTERFACE TIDELANE_OWN_DECLARATIONS=1)
  return()
endif()

if(NOT TIDELANE_HDF5_ROOT)
  set(_tidelane_root "$ENV{TIDELANE_HDF5_ROOT}")
  if(NOT _tidelane_root)
    set(_tidelane_root "$ENV{HDF5_ROOT}")
  endif()
  set(TIDELANE_HDF5_ROOT "${_tidelane_root}" CACHE PATH "Prefix of an HDF5 >= 1.14.1" FORCE)
endif()

# A changed root must not keep what was found under the old one.
if(NOT "${TIDELANE_HDF5_ROOT}" STREQUAL "${TIDELANE_HDF5_ROOT_FOUND}")
  unset(TIDELANE_HDF5_INCLUDE_DIR CACHE)
  unset(TIDELANE_HDF5_LIBRARY CACHE)
  set(TIDELANE_HDF5_ROOT_FOUND "${TIDELANE_HDF5_ROOT}" CACHE INTERNAL "")
endif()

set(_tidelane_arch "${CMAKE_LIBRARY_ARCHITECTURE}")
if(TIDELANE_HDF5_ROOT)
  set(_tidelane_only NO_DEFAULT_PATH)
endif()
find_path(TIDELANE_HDF5_INCLUDE_DIR hdf5.h
  HINTS "${TIDELANE_HDF5_ROOT}"
  PATH_SUFFIXES include include/hdf5/serial hdf5/serial ${_tidelane_only})
find_library(TIDELANE_HDF5_LIBRARY NAMES hdf5 hdf5_serial
  HINTS "${TIDELANE_HDF5_ROOT}"
  PATH_SUFFIXES lib lib64 lib/${_tidelane_arch} lib/${_tidelane_arch}/hdf5/serial hdf5/serial
  ${_tidelane_only})

if(NOT TIDELANE_HDF5_INCLUDE_DIR OR NOT TIDELANE_HDF5_LIBRARY)
  message(FATAL_ERROR "No HDF5 found${TIDELANE_HDF5_ROOT:+ under ${TIDELANE_HDF5_ROOT}}. "
    "Run `make build`, which finds or builds one, or pass -DTIDELANE_HDF5_ROOT=<prefix>.")
endif()

file(STRINGS "${TIDELANE_HDF5_INCLUDE_DIR}/H5public.h" _tidelane_h5vers
  REGEX "^#define H5_VERS_(MAJOR|MINOR|RELEASE) +[0-9]+")
string(REGEX REPLACE "[^;]*(MAJOR|MINOR|RELEASE) +([0-9]+)[^;]*" "\\2" _tidelane_h5vers "${_tidelane_h5vers}")
string(REPLACE ";" "." TIDELANE_HDF5_VERSION "${_tidelane_h5vers}")
if(TIDELANE_HDF5_VERSION VERSION_LESS 1.14.1)
  message(FATAL_ERROR "HDF5 ${TIDELANE_HDF5_VERSION} in ${TIDELANE_HDF5_INCLUDE_DIR} is too old: 1.14.1 or newer is needed.")
endif()
message(STATUS "HDF5 ${TIDELANE_HDF5_VERSION}: ${TIDELANE_HDF5_LIBRARY}")

add_library(tidelane_hdf5_headers INTERFACE)
target_include_directories(tidelane_hdf5_headers SYSTEM INTERFACE "${TIDELANE_HDF5_INCLUDE_DIR}")
add_library(tidelane_hdf5 INTERFACE)
target_link_libraries(tidelane_hdf5 INTERFACE tidelane_hdf5_headers "${TIDELANE_HDF5_LIBRARY}")
if(TIDELANE_HDF5_VERSION VERSION_GREATER_EQUAL 2)
  # It gave H5Dread_chunk another argument: programs are written for 1.14's interface, which it has still.
  target_compile_definitions(tidelane_hdf5 INTERFACE H5_USE_114_API)
endif()
