# What is installed is what one build makes: the target perdura_installed. Targets are installed by this function alone,
# so none can be installed and not be built by it (tests/scripts/installed_targets_test.sh). `cmake --install` builds
# nothing by itself, and fails at the first file that is missing.
add_custom_target(perdura_installed)

# The arguments of install(TARGETS ...), without the word TARGETS.
function(perdura_install_targets)
  install(TARGETS ${ARGV})
  foreach(target ${ARGV})
    # Behind the targets come words such as EXPORT.
    if(NOT TARGET ${target})
      return()
    endif()
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL INTERFACE_LIBRARY)
      add_dependencies(perdura_installed ${target})
    endif()
  endforeach()
endfunction()
