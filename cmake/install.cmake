# The target perdura_installed builds everything that is installed. Only the function below installs targets, so none
# can be installed without being built (tests/scripts/installed_targets_test.sh). `cmake --install` builds nothing
# itself, and fails at the first missing file.
add_custom_target(perdura_installed)

# Takes the arguments of install(TARGETS ...), without the word TARGETS.
function(perdura_install_targets)
  install(TARGETS ${ARGV})
  foreach(target ${ARGV})
    # The targets are followed by words such as EXPORT.
    if(NOT TARGET ${target})
      return()
    endif()
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL INTERFACE_LIBRARY)
      add_dependencies(perdura_installed ${target})
    endif()
  endforeach()
endfunction()
