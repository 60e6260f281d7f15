# Tests and benches. Every test has a time limit and a label: unit, conformance, stress, client.

find_package(GTest REQUIRED)
include(GoogleTest)
find_package(benchmark QUIET)

set(TIDELANE_PLUGIN_DIR "${CMAKE_BINARY_DIR}/lib/tidelane")
set(TIDELANE_BROKEN_DIR "${CMAKE_BINARY_DIR}/lib/tidelane-broken")

# What every test runs under. Reports stop the test: a sanitizer that only prints is not a check. The leak check crashes
# at exit where lanes (threads of a library that was loaded later) have used thread-local variables, unless the address
# sanitizer leaves __tls_get_addr alone; leaks are found all the same.
set(TIDELANE_ASAN_OPTIONS "abort_on_error=0:detect_stack_use_after_return=1:strict_string_checks=1:intercept_tls_get_addr=0")
set(TIDELANE_TEST_ENVIRONMENT
  "TIDELANE_TEST_SOURCE_DIR=${CMAKE_SOURCE_DIR}"
  "XDG_STATE_HOME=/dev/null"  # no history: a test neither knows of others nor writes into the home
  "ASAN_OPTIONS=${TIDELANE_ASAN_OPTIONS}"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
  # Children of a fork start lanes of their own.
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan.supp")

# Clients and drivers are programs that nobody instrumented: a sanitized plugin finds its runtime only if that is there first. Leaks
# are not theirs to answer for (Python and shells leak at exit).
set(TIDELANE_CLIENT_ENVIRONMENT)
if(TIDELANE_SANITIZE MATCHES "address")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libasan.so
    OUTPUT_VARIABLE asan_runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.so
    OUTPUT_VARIABLE cxx_runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(TIDELANE_CLIENT_ENVIRONMENT "LD_PRELOAD=${asan_runtime} ${cxx_runtime}" "ASAN_OPTIONS=${TIDELANE_ASAN_OPTIONS}:detect_leaks=0")
endif()

add_custom_target(tidelane_core_tests)   # unit tests of the core ranks: what the thread sanitizer runs
add_custom_target(tidelane_unit_tests)   # all unit tests
add_custom_target(tidelane_benches)      # built on demand

# A program of tests. Compiled often and run briefly, so less optimised than what it tests.
function(tidelane_test_program target)
  add_executable(${target} ${ARGN})
  target_compile_options(${target} PRIVATE -O1)
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gtest_main nlohmann_json::nlohmann_json)
  tidelane_precompile(tests ${target} gtest/gtest.h)
endfunction()

# tidelane_driver(<target> SOURCES ... [DEFINITIONS ...] [LIBRARIES ...]): a program that drives the plugin from outside. It holds nothing of
# what is checked, so the address sanitizer's build takes the release build's, which finds the runtime because that is loaded
# first (TIDELANE_CLIENT_ENVIRONMENT): every buffer of the heap that the plugin is handed is checked, and half of what that
# build would compile is not compiled again. The thread sanitizer has to see the program's own synchronisation.
set(TIDELANE_DRIVERS_BUILD "${CMAKE_SOURCE_DIR}/build/release" CACHE PATH "Whose drivers the address sanitizer's tests run")
function(tidelane_driver target)
  cmake_parse_arguments(arg "" "" "SOURCES;DEFINITIONS;LIBRARIES" ${ARGN})
  if(TIDELANE_SANITIZE MATCHES "address")
    add_executable(${target} IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${TIDELANE_DRIVERS_BUILD}/bin/${target}")
    add_custom_target(tidelane_driver_${target} ALL USES_TERMINAL COMMENT "driver ${target} of ${TIDELANE_DRIVERS_BUILD}"
      COMMAND "${CMAKE_COMMAND}" --build "${TIDELANE_DRIVERS_BUILD}" --target ${target})
    return()
  endif()
  tidelane_test_program(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}/tests")
  target_link_libraries(${target} PRIVATE tidelane_options tidelane_hdf5 ${CMAKE_DL_LIBS} ${arg_LIBRARIES})
  target_compile_definitions(${target} PRIVATE TIDELANE_DRIVER_PLUGINS="${TIDELANE_PLUGIN_DIR}" ${arg_DEFINITIONS})
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)  # storage_gate.cc: its calls must be found first
endfunction()

# Negative controls of a room: its sources with rules that can be switched off (extent/test_hooks.h), and those of its *_test.cc that are
# named, in a binary of their own. tidelane_broken_unit_tests(<room> <rank> <sources...>)
function(tidelane_broken_unit_tests room rank)
  set(target ${room}_broken_test)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${room}/*.cc")
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  list(TRANSFORM ARGN PREPEND "${CMAKE_SOURCE_DIR}/src/${room}/")
  add_executable(${target} ${sources} ${ARGN})
  target_compile_definitions(${target} PRIVATE TIDELANE_BREAK=1)
  target_link_libraries(${target} PRIVATE GTest::gtest GTest::gtest_main nlohmann_json::nlohmann_json)
  tidelane_link_rooms(${target} tidelane ${rank})
  add_dependencies(tidelane_unit_tests ${target})
  gtest_discover_tests(${target} TEST_PREFIX "${room}.broken." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
    PROPERTIES LABELS unit TIMEOUT 120)
endfunction()

# One binary per room from its *_test.cc, each case a ctest test labelled `unit` (and `core` below h5/).
function(tidelane_unit_tests room rank)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${room}/*_test.cc")
  if(NOT sources)
    return()
  endif()
  set(target ${room}_test)
  tidelane_test_program(${target} ${sources})
  tidelane_link_rooms(${target} tidelane ${rank} ${room})
  set(labels unit)
  if(rank IN_LIST TIDELANE_CORE_RANKS)
    list(APPEND labels core)
    add_dependencies(tidelane_core_tests ${target})
  else()
    target_link_libraries(${target} PRIVATE tidelane_hdf5)
  endif()
  add_dependencies(tidelane_unit_tests ${target})
  gtest_discover_tests(${target} TEST_PREFIX "${room}." TEST_LIST ${target}_cases
    DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES)
  # gtest_discover_tests' own PROPERTIES cannot hold lists, so ctest sets these from a file of ours.
  set(properties "${CMAKE_BINARY_DIR}/${target}_properties.cmake")
  file(CONFIGURE OUTPUT "${properties}" @ONLY CONTENT [==[
foreach(case IN LISTS @target@_cases)
  set_tests_properties("${case}" PROPERTIES LABELS "@labels@" TIMEOUT 120 ENVIRONMENT "@TIDELANE_TEST_ENVIRONMENT@")
endforeach()
]==])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${properties}")
endfunction()

# Each *_bench.cc of a room becomes a program of that name, with google-benchmark where it is installed.
function(tidelane_benches room rank)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${room}/*_bench.cc")
  if(TIDELANE_SANITIZE)
    return()
  endif()
  foreach(source IN LISTS sources)
    get_filename_component(target "${source}" NAME_WE)
    add_executable(${target} EXCLUDE_FROM_ALL ${source})
    tidelane_link_rooms(${target} tidelane ${rank} ${room})
    if(benchmark_FOUND)
      target_link_libraries(${target} PRIVATE benchmark::benchmark benchmark::benchmark_main)
    endif()
    if(rank IN_LIST TIDELANE_FACE_RANKS)
      target_link_libraries(${target} PRIVATE tidelane_hdf5)
    endif()
    add_dependencies(tidelane_benches ${target})
  endforeach()
endfunction()

# tidelane_test(<name> COMMAND ... LABELS ... [TIMEOUT s] [ENVIRONMENT ...] [COST n]): for tests/*/CMakeLists.txt.
# The command runs in an empty folder of its own with TIDELANE_TEST_PLUGIN_DIR, TIDELANE_TEST_BROKEN_DIR and TIDELANE_HDF5_ROOT set.
function(tidelane_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;COST" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_LABELS)
    message(FATAL_ERROR "tidelane_test(${name}): give LABELS")
  endif()
  set(folder "${CMAKE_BINARY_DIR}/tests/${name}")
  file(MAKE_DIRECTORY "${folder}")
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${folder}")
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "${TIDELANE_TEST_ENVIRONMENT};TIDELANE_TEST_PLUGIN_DIR=${TIDELANE_PLUGIN_DIR};TIDELANE_TEST_BROKEN_DIR=${TIDELANE_BROKEN_DIR};TIDELANE_HDF5_ROOT=${TIDELANE_HDF5_ROOT};${arg_ENVIRONMENT}")
  if(client IN_LIST arg_LABELS OR stress IN_LIST arg_LABELS)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "${TIDELANE_CLIENT_ENVIRONMENT}")
  endif()
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
endfunction()

# The plugin files keep their promises: what they export, what they need, what stays undefined.
function(tidelane_plugin_tests)
  if(TIDELANE_SANITIZE)
    return()
  endif()
  foreach(target tidelane tidelane_async)
    if(TARGET ${target})
      tidelane_test(${target}.binary LABELS unit TIMEOUT 30
        COMMAND "${CMAKE_SOURCE_DIR}/scripts/check/plugin.sh" "$<TARGET_FILE:${target}>")
    endif()
  endforeach()
endfunction()
