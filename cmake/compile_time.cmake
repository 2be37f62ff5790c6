# These functions keep compiling short.
#
# The compiler reads headers of the standard library and of stable libraries once for all sources of a kind: they take
# most of the time of compiling this tree. Of the project's headers, only those that nearly all sources of the kind
# include are precompiled, so a change of any other recompiles only the sources that include it.
set(perdura_common_headers
  <algorithm> <array> <atomic> <bit> <cmath> <coroutine> <cstdint> <cstring> <deque> <filesystem> <functional>
  <map> <memory> <optional> <set> <span> <string> <string_view> <vector>
  <fmt/format.h>)
# Headers that the layers include in addition.
set(perdura_product_headers ${perdura_common_headers} ${PROJECT_SOURCE_DIR}/platform/platform.h)
# Headers that tests include in addition.
set(perdura_test_headers
  ${perdura_common_headers}
  <chrono> <fstream> <mutex> <numeric> <random> <sstream> <thread>
  <gtest/gtest.h>
  ${PROJECT_SOURCE_DIR}/platform/sim/sim_platform.h)

# Sources that are compiled together share the compilation of common headers and of the JSON and GoogleTest templates
# that they use. A group has sources of one folder, the groups are of equal size, and small enough that a change of one
# source is rebuilt within ten seconds.
set(perdura_sources_together 4)
set(perdura_tests_together 10)
function(perdura_compile_together target most)
  get_target_property(sources ${target} SOURCES)
  get_target_property(directory ${target} SOURCE_DIR)
  set(folders)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${directory} NORMALIZE)
    get_source_file_property(group ${source} TARGET_DIRECTORY ${target} UNITY_GROUP)
    if(source MATCHES "\\.cc$" AND NOT group)
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(MAKE_C_IDENTIFIER ${folder} folder)
      list(APPEND folders ${folder})
      list(APPEND in_${folder} ${source})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    list(LENGTH in_${folder} count)
    math(EXPR groups "(${count} + ${most} - 1) / ${most}")
    set(index 0)
    foreach(source ${in_${folder}})
      math(EXPR number "${index} * ${groups} / ${count}")
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder}_${number})
      math(EXPR index "${index} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # g++ takes each source of a group for a header, where a class in an anonymous namespace would be a mistake.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# One target compiles the headers; all others of its kind use the result.
function(perdura_precompile name headers)
  set(source ${PROJECT_BINARY_DIR}/${name}.cc)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "")
  endif()
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} PRIVATE ${headers})
endfunction()

function(perdura_targets_below directory result)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(folder ${folders})
    perdura_targets_below(${folder} below)
    list(APPEND targets ${below})
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

function(perdura_use_precompiled directory)
  perdura_targets_below(${directory} targets)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(sources ${target} SOURCES)
    if(NOT type MATCHES "LIBRARY|EXECUTABLE" OR NOT sources MATCHES "[.]cc(;|$)")
      continue()
    endif()
    get_target_property(libraries ${target} LINK_LIBRARIES)
    get_target_property(options ${target} COMPILE_OPTIONS)
    if(libraries MATCHES "GTest::")
      target_precompile_headers(${target} REUSE_FROM perdura_test_precompiled)
    elseif(options MATCHES "-Og")
      # These are rarely executed sources, and those that tests share.
      target_precompile_headers(${target} REUSE_FROM perdura_rarely_executed_precompiled)
    else()
      target_precompile_headers(${target} REUSE_FROM perdura_product_precompiled)
    endif()
    if(libraries MATCHES "GTest::")
      perdura_compile_together(${target} ${perdura_tests_together})
    else()
      perdura_compile_together(${target} ${perdura_sources_together})
    endif()
    # The compiler accepts precompiled headers only with the macros that they were compiled with.
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
    # With this the compiler collects garbage less often: it stays below a gigabyte of memory, and is a tenth faster.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)
  endforeach()
endfunction()

perdura_precompile(perdura_product_precompiled "${perdura_product_headers}" fmt::fmt Threads::Threads)
perdura_precompile(perdura_rarely_executed_precompiled "${perdura_common_headers}" fmt::fmt Threads::Threads)
# The compiler accepts headers precompiled with line tables for sources without them, but not the reverse.
perdura_named_by_line(perdura_product_precompiled)
perdura_named_by_line(perdura_rarely_executed_precompiled)
# Headers and sources must have the same optimization level: otherwise g++ 12 crashes.
perdura_rarely_executed(perdura_rarely_executed_precompiled)
if(PERDURA_BUILD_TESTS)
  perdura_precompile(perdura_test_precompiled "${perdura_test_headers}" fmt::fmt Threads::Threads GTest::gtest)
  perdura_rarely_executed(perdura_test_precompiled)
endif()
get_property(folders DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTY SUBDIRECTORIES)
foreach(folder ${folders})
  perdura_use_precompiled(${folder})
endforeach()
