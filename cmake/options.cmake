# The options that a user may set at configure time, and the flags that all targets share.
option(PERDURA_BUILD_TESTS "Build the tests" ON)
set(PERDURA_SANITIZE "" CACHE STRING "Sanitizers: empty, address (with undefined) or thread")
set_property(CACHE PERDURA_SANITIZE PROPERTY STRINGS "" address thread)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror)
# g++ 12 warns wrongly about a copy of 2^64 - 1 bytes in concatenations of std::string (its bug 105329).
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-array-bounds -Wno-stringop-overflow -Wno-restrict)
endif()
# The persistence instructions are chosen at run time; everything else stays baseline x86-64.
add_compile_options(-fno-omit-frame-pointer)

if(PERDURA_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
elseif(PERDURA_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  # ThreadSanitizer does not understand fences, and g++ warns about each. The fences for shared memory order bytes that
  # other processes write, which it does not see either.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-Wno-tsan)
  endif()
  add_link_options(-fsanitize=thread)
elseif(NOT PERDURA_SANITIZE STREQUAL "")
  message(FATAL_ERROR "PERDURA_SANITIZE is '${PERDURA_SANITIZE}'; choose address, thread or leave it empty")
endif()
# Sanitizers report functions and lines, for which line tables are enough. The documentation of AddressSanitizer
# recommends -O1 or higher.
if(NOT PERDURA_SANITIZE STREQUAL "")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG")
  # With sanitizers g++ 12 warns wrongly about std::regex (its bug 105562) and std::optional.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

# The shared library holds most of the objects. Calls within a program or library need no indirection: its functions are
# never interposed.
add_compile_options(-fPIC -fno-semantic-interposition)

# Adds line tables to targets whose lines appear in explanations of losses (explore/explanation). They change no
# instruction.
function(perdura_named_by_line target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-g1>)
endfunction()

# For installed programs and libraries: compressed, these tables make them a third larger. Compression takes half of the
# linker's time, so tests do without it.
function(perdura_compress_lines target)
  target_link_options(${target} PRIVATE $<$<CONFIG:Release>:-Wl,--compress-debug-sections=zlib>)
endfunction()

# Without contraction of floating-point expressions, debug and release builds give the same results.
add_compile_options(-ffp-contract=off)

find_program(PERDURA_CCACHE ccache)
if(PERDURA_CCACHE)
  # ccache takes a source's dependencies from the compiler's list, since preprocessing would read all headers again. It
  # reads that list after the compiler has ended, so it must detect a file that was changed meanwhile by its time: with
  # include_file_mtime it stored objects of the old text under the new one.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
    CCACHE_SLOPPINESS=time_macros ${PERDURA_CCACHE})
endif()

# For code that runs once per command, per file or per page, never per operation: full optimization takes more than half
# of its compile time and gains nothing. g++ compiles fastest at -Og, as fast as at -O0 and a fifth to a third faster
# than at -O1. Tests are compiled so, too: they spend their time in the product's code. Measured and measuring code is
# fully optimized.
set(perdura_rarely_executed_options $<$<CONFIG:Release>:-Og>)
function(perdura_rarely_executed)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE ${perdura_rarely_executed_options})
  endforeach()
endfunction()

# Adds rarely executed sources to a library. All sources of a target have the same optimization level, so these are a
# target of their own, whose objects the library contains.
function(perdura_rarely_executed_sources library)
  get_target_property(libraries ${library} LINK_LIBRARIES)
  add_library(${library}_rarely_executed OBJECT ${ARGN})
  target_link_libraries(${library}_rarely_executed PRIVATE ${libraries})
  target_include_directories(${library}_rarely_executed PRIVATE $<TARGET_PROPERTY:${library},INCLUDE_DIRECTORIES>)
  target_compile_definitions(${library}_rarely_executed PRIVATE $<TARGET_PROPERTY:${library},COMPILE_DEFINITIONS>)
  perdura_rarely_executed(${library}_rarely_executed)
  target_sources(${library} PRIVATE $<TARGET_OBJECTS:${library}_rarely_executed>)
endfunction()
