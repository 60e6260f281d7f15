# Language level, warnings, sanitizers and the switches of the build.

option(TIDELANE_BUILD_TESTS "Build unit, conformance and stress tests" ON)
option(TIDELANE_BUILD_BENCH "Build the programs under bench/" ON)
option(TIDELANE_BUILD_BROKEN "Build the plugin with switchable faults for negative controls" ON)
option(TIDELANE_WERROR "Warnings are errors (on in CI, off for users with newer compilers)" OFF)
set(TIDELANE_SANITIZE "" CACHE STRING "address,undefined or one of them, or thread")
set_property(CACHE TIDELANE_SANITIZE PROPERTY STRINGS "" address,undefined address undefined thread)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# What every target of ours is compiled with.
add_library(tidelane_options INTERFACE)
target_include_directories(tidelane_options INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_compile_definitions(tidelane_options INTERFACE _FILE_OFFSET_BITS=64)
target_link_libraries(tidelane_options INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
target_compile_options(tidelane_options INTERFACE
  -Wall -Wextra -Wshadow -Wcast-align -Wformat=2 -Wvla
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${TIDELANE_WERROR}>:-Werror>)

# tidelane_precompile(<group> <target> [headers...]): the standard library's headers, which are a third of what compiling takes,
# compiled once for all targets of a group: those must have the same options. Sources include what they use all the same.
option(TIDELANE_PRECOMPILE "Compile the standard library's headers once" ON)
function(tidelane_precompile group target)
  if(NOT TIDELANE_PRECOMPILE)
    return()
  endif()
  get_property(owner GLOBAL PROPERTY tidelane_precompiled_${group})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    return()
  endif()
  set(headers "")
  foreach(name ${ARGN} algorithm atomic chrono condition_variable cstdint cstring functional map memory mutex optional string
      thread utility vector)
    list(APPEND headers "$<$<COMPILE_LANGUAGE:CXX>:<${name}$<ANGLE-R>>")
  endforeach()
  target_precompile_headers(${target} PRIVATE ${headers})
  set_property(GLOBAL PROPERTY tidelane_precompiled_${group} ${target})
endfunction()

if(TIDELANE_SANITIZE)
  set(_sanitize -fsanitize=${TIDELANE_SANITIZE} -fno-omit-frame-pointer)
  if(TIDELANE_SANITIZE MATCHES "undefined")
    list(APPEND _sanitize -fno-sanitize-recover=all)
  endif()
  target_compile_options(tidelane_options INTERFACE ${_sanitize})
  target_link_options(tidelane_options INTERFACE ${_sanitize})
endif()
