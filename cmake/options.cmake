# What a user may choose at configure time, and the flags that every target shares.
option(PERDURA_BUILD_TESTS "Build the tests" ON)
set(PERDURA_SANITIZE "" CACHE STRING "Sanitizers: empty, address (with undefined) or thread")
set_property(CACHE PERDURA_SANITIZE PROPERTY STRINGS "" address thread)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror)
# g++ 12 warns wrongly of a copy of 2^64 - 1 bytes in concatenations of std::string (its bug 105329).
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
  # It does not see what fences order, and g++ warns of each. Those of shared memory order bytes that other processes
  # write, which it does not see either.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-Wno-tsan)
  endif()
  add_link_options(-fsanitize=thread)
elseif(NOT PERDURA_SANITIZE STREQUAL "")
  message(FATAL_ERROR "PERDURA_SANITIZE is '${PERDURA_SANITIZE}'; choose address, thread or leave it empty")
endif()
# What a sanitizer finds is named by function and line, for which tables of lines are enough. The documentation of
# AddressSanitizer asks for -O1 or more.
if(NOT PERDURA_SANITIZE STREQUAL "")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -DNDEBUG")
  # With what they add g++ 12 warns wrongly of std::regex (its bug 105562) and of std::optional.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()

# The shared library holds most of the objects, and headers are precompiled once for these and all others. Calls within
# a program or library need no detour: nobody replaces its functions.
add_compile_options(-fPIC -fno-semantic-interposition)

# For what explanations of losses name the lines of (explore/explanation): tables of lines alone. They change no
# instruction.
function(perdura_named_by_line target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-g1>)
endfunction()

# For programs and libraries that are installed: those tables, compressed, make them a third longer. Compressing takes
# half of the linker's time, which tests have no use for.
function(perdura_compress_lines target)
  target_link_options(${target} PRIVATE $<$<CONFIG:Release>:-Wl,--compress-debug-sections=zlib>)
endfunction()

# Same results in a debug and in a release build: no contraction of floating-point expressions.
add_compile_options(-ffp-contract=off)

find_program(PERDURA_CCACHE ccache)
if(PERDURA_CCACHE)
  # Precompiled headers are cached only if ccache need not look at their macros; and what a source depends on is taken
  # from the compiler's list, since preprocessing it once more would read all headers again. That list is read when the
  # compiler has ended, so ccache must see from a file's time that it was changed meanwhile: with include_file_mtime it
  # kept objects of the old text under the new one.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${PERDURA_CCACHE})
endif()

# What is executed once per command, per file or per page, never per operation: optimizing it fully takes more than
# half of its compile time and gains nothing. Of all levels g++ compiles fastest at -Og, as fast as at -O0 and a fifth to
# a third faster than at -O1. Tests are compiled so, too: they spend their time in the product's code. What is measured,
# and what measures, is optimized in full.
set(perdura_rarely_executed_options $<$<CONFIG:Release>:-Og>)
function(perdura_rarely_executed)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE ${perdura_rarely_executed_options})
  endforeach()
endfunction()

# Sources of a library that are rarely executed. All sources of a target are compiled at one level of optimization, so
# they are a target of their own, whose objects the library has.
function(perdura_rarely_executed_sources library)
  get_target_property(libraries ${library} LINK_LIBRARIES)
  add_library(${library}_rarely_executed OBJECT ${ARGN})
  target_link_libraries(${library}_rarely_executed PRIVATE ${libraries})
  target_include_directories(${library}_rarely_executed PRIVATE $<TARGET_PROPERTY:${library},INCLUDE_DIRECTORIES>)
  target_compile_definitions(${library}_rarely_executed PRIVATE $<TARGET_PROPERTY:${library},COMPILE_DEFINITIONS>)
  perdura_rarely_executed(${library}_rarely_executed)
  target_sources(${library} PRIVATE $<TARGET_OBJECTS:${library}_rarely_executed>)
endfunction()
