# For `pip install .` (scikit-build-core sets SKBUILD): gets what PyPI has not, or says it in one line, and installs what the
# wheel holds beside python/tidelane.
#
#   wheel_contents   the target that builds it
#
# -DTIDELANE_PREBUILT=<folder with the plugins> packs those instead of compiling them: for tests of the package.
# -DTIDELANE_WHEEL_PACKAGES=own takes nothing of the machine but the compiler; =system takes all of it.

set(TIDELANE_PREBUILT "" CACHE PATH "Plugins to pack into the wheel instead of compiling them")
set(TIDELANE_WHEEL_PACKAGES "missing" CACHE STRING "Which of the packages the wheel's build fetches: own (all), missing, system (none)")

# Before project(): CMake's own words for a machine without a compiler are thirty lines.
function(tidelane_wheel_compiler)
  if(CMAKE_CXX_COMPILER)
    return()
  endif()
  find_program(TIDELANE_WHEEL_CXX NAMES $ENV{CXX} c++ g++ clang++)
  mark_as_advanced(TIDELANE_WHEEL_CXX)
  if(NOT TIDELANE_WHEEL_CXX)
    message(FATAL_ERROR "Tidelane is compiled here, and there is no C++ compiler. Run this, then pip again:   sudo apt-get install -y g++")
  endif()
endfunction()

# What make's set-up would install, by what each package provides (scripts/setup/packages.sh).
function(tidelane_wheel_needs)
  set(missing "")
  foreach(pair "nlohmann/json.hpp|nlohmann-json3-dev" "libdeflate.h|libdeflate-dev" "zlib.h|zlib1g-dev"
               "isa-l/igzip_lib.h|libisal-dev" "CLI/CLI.hpp|libcli11-dev" "flatbuffers/flatbuffers.h|libflatbuffers-dev")
    string(REPLACE "|" ";" pair "${pair}")
    list(GET pair 0 header)
    list(GET pair 1 package)
    find_path(TIDELANE_WHEEL_${package} "${header}")
    mark_as_advanced(TIDELANE_WHEEL_${package})
    if(NOT TIDELANE_WHEEL_${package} OR TIDELANE_WHEEL_PACKAGES STREQUAL "own")
      list(APPEND missing ${package})
    endif()
  endforeach()
  if(missing AND NOT TIDELANE_WHEEL_PACKAGES STREQUAL "system")
    tidelane_wheel_fetch(missing)
    set(CMAKE_PREFIX_PATH "${CMAKE_PREFIX_PATH}" PARENT_SCOPE)
  endif()
  list(REMOVE_ITEM missing libflatbuffers-dev)  # without it an option of the program is not there, and says so
  if(missing)
    list(JOIN missing " " missing)
    message(FATAL_ERROR "PyPI has not: ${missing} (Debian's names), and they could not be fetched. Run this, then pip again:   "
      "sudo apt-get install -y --no-install-recommends ${missing}")
  endif()
endfunction()

# Unpacks them into the build folder, where find_path and the like look from now on; empties `packages` if that worked.
function(tidelane_wheel_fetch packages)
  list(JOIN ${packages} " " names)
  set(folder "${CMAKE_BINARY_DIR}/packages")
  message(STATUS "Fetching for this build, and installing nothing: ${names}")
  execute_process(COMMAND "${CMAKE_SOURCE_DIR}/scripts/setup/unpack.sh" "${folder}" ${${packages}}
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(STATUS "That failed (${failed}):\n${output}")
    return()
  endif()
  set(CMAKE_PREFIX_PATH "${folder}/usr;${CMAKE_PREFIX_PATH}" PARENT_SCOPE)
  set(${packages} "" PARENT_SCOPE)
endfunction()

function(tidelane_wheel)
  add_custom_target(wheel_contents)
  if(TIDELANE_PREBUILT)
    install(FILES "${TIDELANE_PREBUILT}/libtidelane.so" "${TIDELANE_PREBUILT}/libtidelane_async.so"
      DESTINATION tidelane/plugin COMPONENT wheel)
    install(PROGRAMS "${TIDELANE_PREBUILT}/../../tool/tidelane" "${TIDELANE_PREBUILT}/tidelane-mover" DESTINATION tidelane/plugin COMPONENT wheel)
    return()
  endif()
  add_dependencies(wheel_contents tidelane tidelane_async tidelane_tool tidelane_mover)
  install(TARGETS tidelane tidelane_async LIBRARY DESTINATION tidelane/plugin COMPONENT wheel)
  install(TARGETS tidelane_tool tidelane_mover RUNTIME DESTINATION tidelane/plugin COMPONENT wheel)  # it looks for plugins beside itself
endfunction()
