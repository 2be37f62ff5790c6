# What a user may choose at configure time, and the flags that every target shares.
option(PERDURA_BUILD_TESTS "Build the tests" ON)
set(PERDURA_SANITIZE "" CACHE STRING "Sanitizers: empty, address (with undefined) or thread")
set_property(CACHE PERDURA_SANITIZE PROPERTY STRINGS "" address thread)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror)
# The persistence instructions are chosen at run time; everything else stays baseline x86-64.
add_compile_options(-fno-omit-frame-pointer)

if(PERDURA_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
elseif(PERDURA_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
elseif(NOT PERDURA_SANITIZE STREQUAL "")
  message(FATAL_ERROR "PERDURA_SANITIZE is '${PERDURA_SANITIZE}'; choose address, thread or leave it empty")
endif()

# Same results in a debug and in a release build: no contraction of floating-point expressions.
add_compile_options(-ffp-contract=off)

find_program(PERDURA_CCACHE ccache)
if(PERDURA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PERDURA_CCACHE})
endif()
