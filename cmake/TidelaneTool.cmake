# The program `tidelane` (src/tools/): it needs libc alone, finds the plugin beside itself, and comes with a man page and
# shells' completions that it prints itself. Not linked to HDF5.

include(GNUInstallDirs)
find_path(TIDELANE_CLI11_INCLUDE_DIR CLI/CLI.hpp)
mark_as_advanced(TIDELANE_CLI11_INCLUDE_DIR)
if(NOT TIDELANE_CLI11_INCLUDE_DIR)
  message(FATAL_ERROR "No CLI/CLI.hpp found. `make build` installs it; on Debian it is the package libcli11-dev.")
endif()

# For `tidelane query --arrow`, without which the program is whole otherwise.
find_path(TIDELANE_FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h)
mark_as_advanced(TIDELANE_FLATBUFFERS_INCLUDE_DIR)
if(NOT TIDELANE_FLATBUFFERS_INCLUDE_DIR)
  message(STATUS "No flatbuffers/flatbuffers.h: `tidelane query` has no --arrow (on Debian: libflatbuffers-dev)")
endif()

# tidelane_tool(<rooms' name>)
function(tidelane_tool name)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/tools/*.cc")
  file(GLOB assets CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/tools/page/page.*")
  set(embedded "${CMAKE_BINARY_DIR}/page_assets.cc")
  add_custom_command(OUTPUT "${embedded}"
    COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${CMAKE_SOURCE_DIR}/src/tools/page" "-DOUTPUT=${embedded}"
      -P "${CMAKE_SOURCE_DIR}/cmake/EmbedPage.cmake"
    DEPENDS ${assets} "${CMAKE_SOURCE_DIR}/cmake/EmbedPage.cmake" VERBATIM)
  add_executable(tidelane_tool ${sources} "${embedded}")
  tidelane_link_rooms(tidelane_tool ${name} 5 tier)
  target_link_libraries(tidelane_tool PRIVATE nlohmann_json::nlohmann_json)
  target_include_directories(tidelane_tool SYSTEM PRIVATE "${TIDELANE_CLI11_INCLUDE_DIR}")
  if(TIDELANE_FLATBUFFERS_INCLUDE_DIR)
    set_property(SOURCE "${CMAKE_SOURCE_DIR}/src/tools/arrow_messages.cc" APPEND PROPERTY
      COMPILE_DEFINITIONS TIDELANE_FLATBUFFERS)
    target_include_directories(tidelane_tool SYSTEM PRIVATE "${TIDELANE_FLATBUFFERS_INCLUDE_DIR}")
  endif()
  # A folder of its own, which build/env.sh puts on PATH.
  set_target_properties(tidelane_tool PROPERTIES OUTPUT_NAME tidelane RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tool")
  if(TIDELANE_SANITIZE)  # driven by scripts that nobody instrumented: built there by hand only
    set_target_properties(tidelane_tool PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  target_link_options(tidelane_tool PRIVATE -static-libstdc++ -static-libgcc)
  tidelane_tool_pages()
endfunction()

# The program tidelane-mover (src/mover/), beside the plugin, which starts it. tidelane_mover(<rooms' name>)
function(tidelane_mover name)
  add_executable(tidelane_mover "${CMAKE_SOURCE_DIR}/src/mover/main.cc")
  tidelane_link_rooms(tidelane_mover ${name} 5 tier)
  set_target_properties(tidelane_mover PROPERTIES OUTPUT_NAME tidelane-mover
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/tidelane")
  if(NOT TIDELANE_SANITIZE)
    target_link_options(tidelane_mover PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

function(tidelane_tool_pages)
  set(folder "${CMAKE_BINARY_DIR}/share")
  set(made)
  foreach(page "manual;tidelane.1" "completion;bash;tidelane" "completion;zsh;_tidelane" "completion;fish;tidelane.fish")
    list(POP_BACK page file)
    list(APPEND made "${folder}/${file}")
    add_custom_command(OUTPUT "${folder}/${file}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
      COMMAND tidelane_tool ${page} > "${folder}/${file}" DEPENDS tidelane_tool VERBATIM)
  endforeach()
  add_custom_target(tidelane_pages ALL DEPENDS ${made})
  install(TARGETS tidelane_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(FILES "${folder}/tidelane.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES "${folder}/tidelane" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${folder}/_tidelane" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${folder}/tidelane.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endfunction()
