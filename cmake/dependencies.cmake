# Everything comes from the distribution's packages; the build downloads nothing.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tl-expected REQUIRED)
pkg_check_modules(TOMLPLUSPLUS REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
# Regular expressions without exponential time.
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
# Its compile flags are those of its own build, not for its users.
set_property(TARGET PkgConfig::RE2 PROPERTY INTERFACE_COMPILE_OPTIONS "")
pkg_check_modules(NUMA REQUIRED IMPORTED_TARGET numa)
# Restricts the system calls of untrusted code.
pkg_check_modules(SECCOMP REQUIRED IMPORTED_TARGET libseccomp)
find_package(MPI REQUIRED COMPONENTS CXX)

# Header-only libraries.
find_path(MUSTACHE_INCLUDE_DIR kainjow/mustache.hpp REQUIRED)
add_library(perdura_mustache INTERFACE)
target_include_directories(perdura_mustache SYSTEM INTERFACE ${MUSTACHE_INCLUDE_DIR})
# Boost.Math and Boost.MultiIndex.
find_package(Boost REQUIRED)

find_path(CSV_INCLUDE_DIR csv.h REQUIRED)
find_library(CSV_LIBRARY csv REQUIRED)
add_library(perdura_csv INTERFACE)
target_include_directories(perdura_csv INTERFACE ${CSV_INCLUDE_DIR})
target_link_libraries(perdura_csv INTERFACE ${CSV_LIBRARY})

if(PERDURA_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
find_package(benchmark)

# Explorations create and destroy thousands of small clusters: the C library's allocator takes up to a third of their
# time. Sanitizers have allocators of their own.
if(NOT PERDURA_SANITIZE)
  find_package(mimalloc QUIET)
endif()
# Only for programs, not for libraries: programs that link our libraries keep their own allocator.
#
# mimalloc is written in C and cannot throw: when it gets no memory, its `operator new` silently aborts the process. So
# the C++ library comes first, whose `operator new` takes memory from mimalloc's malloc() and throws std::bad_alloc.
function(perdura_use_fast_allocator program)
  if(mimalloc_FOUND)
    target_link_libraries(${program} PRIVATE stdc++ mimalloc)
    target_link_options(${program} PRIVATE LINKER:--no-as-needed)
  endif()
endfunction()

# An application for replicated memory.
find_path(LMDB_INCLUDE_DIR lmdb.h)
find_library(LMDB_LIBRARY lmdb)

# Persistent memory on DAX.
pkg_check_modules(PMEM2 IMPORTED_TARGET libpmem2)
# A log in a local file, to compare others with.
pkg_check_modules(PMEMLOG IMPORTED_TARGET libpmemlog)
# For the platform verbs, and to ask RDMA devices for their features.
pkg_check_modules(IBVERBS IMPORTED_TARGET libibverbs)
# For connections of verbs on iWARP.
pkg_check_modules(RDMACM IMPORTED_TARGET librdmacm)
# For mounting file systems.
pkg_check_modules(FUSE IMPORTED_TARGET fuse3)
