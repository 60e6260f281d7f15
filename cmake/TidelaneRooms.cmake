# Turns the rooms of src/ into objects and plugins.

find_package(nlohmann_json REQUIRED)

# One object library per room, <name>.<room>, of its *.cc without tests and benches. The core ranks (0 to 7) are
# compiled without any HDF5 include path.
function(tidelane_room_libraries name)
  foreach(rank IN LISTS TIDELANE_CORE_RANKS TIDELANE_FACE_RANKS)
    foreach(room IN LISTS TIDELANE_RANK_${rank})
      file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${room}/*.cc")
      list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
      if(NOT sources)
        continue()
      endif()
      add_library(${name}.${room} OBJECT ${sources})
      target_link_libraries(${name}.${room} PUBLIC tidelane_options nlohmann_json::nlohmann_json)
      if(room STREQUAL codec)
        target_link_libraries(${name}.${room} PUBLIC tidelane_codecs)
      endif()
      if(rank IN_LIST TIDELANE_FACE_RANKS)
        target_link_libraries(${name}.${room} PUBLIC tidelane_hdf5_headers)
      endif()
      tidelane_precompile(${name} ${name}.${room})
    endforeach()
  endforeach()
endfunction()

# tidelane_broken_plugin(<target> DIRECTORY <dir>): the plugin with rules that can be switched off. Only what mentions the switches
# is compiled once more, into the place of its twin; no header does but extent/test_hooks.h (scripts/check/ranks.py), so that all
# other objects are the same.
function(tidelane_broken_plugin target)
  cmake_parse_arguments(arg "" "DIRECTORY" "" ${ARGN})
  set(objects "")
  foreach(rank IN LISTS TIDELANE_CORE_RANKS TIDELANE_FACE_RANKS)
    foreach(room IN LISTS TIDELANE_RANK_${rank})
      if(NOT TARGET tidelane.${room})
        continue()
      endif()
      get_target_property(sources tidelane.${room} SOURCES)
      list(FILTER sources INCLUDE REGEX "\\.cc$")
      set(broken "")
      set(names "")
      foreach(source IN LISTS sources)
        file(STRINGS "${source}" switches REGEX "test_hooks\\.h\"|TIDELANE_BREAK")
        if(switches)
          get_filename_component(name "${source}" NAME)
          list(APPEND broken "${source}")
          list(APPEND names "${name}")
        endif()
      endforeach()
      set(whole "$<TARGET_OBJECTS:tidelane.${room}>")
      if(broken)
        add_library(${target}.${room} OBJECT ${broken})
        target_link_libraries(${target}.${room} PUBLIC tidelane_options nlohmann_json::nlohmann_json)
        target_compile_definitions(${target}.${room} PUBLIC TIDELANE_BREAK=1)
        if(rank IN_LIST TIDELANE_FACE_RANKS)
          target_link_libraries(${target}.${room} PUBLIC tidelane_hdf5_headers)
        endif()
        string(REPLACE "." "\\." pattern "${names}")
        list(JOIN pattern "|" pattern)
        set(whole "$<FILTER:${whole},EXCLUDE,/(${pattern})\\.o$>" "$<TARGET_OBJECTS:${target}.${room}>")
      endif()
      list(APPEND objects ${whole})
    endforeach()
  endforeach()
  add_library(${target} MODULE ${objects})
  target_link_libraries(${target} PRIVATE tidelane_options tidelane_codecs)
  tidelane_as_plugin(${target} "${arg_DIRECTORY}")
endfunction()

# tidelane_link_rooms(<target> <name> <rank> [rooms...]): the rooms below <rank>, and the named ones. A test
# that needs more than its rank allows does not link.
function(tidelane_link_rooms target name rank)
  set(rooms ${ARGN})
  foreach(lower RANGE 10)
    if(lower LESS rank)
      list(APPEND rooms ${TIDELANE_RANK_${lower}})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE tidelane_options)
  foreach(room IN LISTS rooms)
    if(TARGET ${name}.${room})
      target_link_libraries(${target} PRIVATE ${name}.${room})
    endif()
  endforeach()
endfunction()

# How a plugin is linked: nothing exported but its entry points, nothing taken from the host's C++ runtime,
# never unloaded (threads and library callbacks outlive H5close), nothing left undefined.
function(tidelane_link_as_plugin target)
  target_link_options(${target} PRIVATE
    -Wl,-z,nodelete -Wl,--exclude-libs,ALL
    "-Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/plugin.map")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${CMAKE_SOURCE_DIR}/cmake/plugin.map")
  if(NOT TIDELANE_SANITIZE)  # a sanitizer's runtime comes from the program
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--no-undefined)
  endif()
endfunction()

function(tidelane_as_plugin target directory)
  set_target_properties(${target} PROPERTIES
    LINKER_LANGUAGE CXX OUTPUT_NAME tidelane LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/${directory}")
  tidelane_link_as_plugin(${target})
endfunction()

# tidelane_plugin(<target> ROOMS <name> DIRECTORY <dir>): libtidelane.so under <dir>, of all rooms of <name>.
function(tidelane_plugin target)
  cmake_parse_arguments(arg "" "ROOMS;DIRECTORY" "" ${ARGN})
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/${target}.cc" CONTENT "// A library target needs a source of its own.\n")
  add_library(${target} MODULE "${CMAKE_BINARY_DIR}/${target}.cc")
  tidelane_link_rooms(${target} ${arg_ROOMS} 11)
  tidelane_as_plugin(${target} "${arg_DIRECTORY}")
endfunction()

# libtidelane_async.so: the connector name `async`, which forwards to libtidelane.so beside it.
function(tidelane_async_shim)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/vol/async_shim/*.cc")
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$")
  if(NOT sources)
    return()
  endif()
  add_library(tidelane_async MODULE ${sources})
  target_link_libraries(tidelane_async PRIVATE tidelane_options tidelane_hdf5_headers)
  set_target_properties(tidelane_async PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/tidelane")
  tidelane_link_as_plugin(tidelane_async)
endfunction()
