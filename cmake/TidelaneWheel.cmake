# For `pip install .` (scikit-build-core sets SKBUILD): says in one line what pip cannot bring, and installs what the
# wheel holds beside python/tidelane.
#
#   wheel_contents   the target that builds it
#
# -DTIDELANE_PREBUILT=<folder with the plugins> packs those instead of compiling them: for tests of the package.

set(TIDELANE_PREBUILT "" CACHE PATH "Plugins to pack into the wheel instead of compiling them")

# What make's set-up would install, by what each package provides (scripts/setup/packages.sh).
function(tidelane_wheel_needs)
  set(missing "")
  foreach(pair "nlohmann/json.hpp|nlohmann-json3-dev" "libdeflate.h|libdeflate-dev" "zlib.h|zlib1g-dev"
               "isa-l/igzip_lib.h|libisal-dev" "CLI/CLI.hpp|libcli11-dev")
    string(REPLACE "|" ";" pair "${pair}")
    list(GET pair 0 header)
    list(GET pair 1 package)
    find_path(TIDELANE_WHEEL_${package} "${header}")
    mark_as_advanced(TIDELANE_WHEEL_${package})
    if(NOT TIDELANE_WHEEL_${package})
      list(APPEND missing ${package})
    endif()
  endforeach()
  if(missing)
    list(JOIN missing " " missing)
    message(FATAL_ERROR "pip cannot bring these. Run this, then pip again:   sudo apt-get install -y --no-install-recommends ${missing}")
  endif()
endfunction()

function(tidelane_wheel)
  add_custom_target(wheel_contents)
  if(TIDELANE_PREBUILT)
    install(FILES "${TIDELANE_PREBUILT}/libtidelane.so" "${TIDELANE_PREBUILT}/libtidelane_async.so"
      DESTINATION tidelane/plugin COMPONENT wheel)
    install(PROGRAMS "${TIDELANE_PREBUILT}/../../tool/tidelane" DESTINATION tidelane/plugin COMPONENT wheel)
    return()
  endif()
  add_dependencies(wheel_contents tidelane tidelane_async tidelane_tool)
  install(TARGETS tidelane tidelane_async LIBRARY DESTINATION tidelane/plugin COMPONENT wheel)
  install(TARGETS tidelane_tool RUNTIME DESTINATION tidelane/plugin COMPONENT wheel)  # it looks for plugins beside itself
endfunction()
