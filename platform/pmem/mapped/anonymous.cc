#include "platform/pmem/mapped/anonymous.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "platform/base/error.h"

namespace perdura::pmem::mapped {
namespace {

constexpr Bytes kHugePage = 2 * MiB;

// The bytes in huge pages of the mapping that contains `address`.
Bytes huge_bytes(const std::byte* address) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      here = begin <= at && at < end;
    }
    Bytes kib = 0;
    if (here && std::sscanf(line.c_str(), "AnonHugePages: %lu kB", &kib) == 1) return kib * KiB;
  }
  return 0;
}

}  // namespace

std::shared_ptr<Mapping> map_anonymous(std::string_view what, Bytes size, Pages pages) {
  const bool huge = pages == Pages::huge;
  const Bytes wanted = huge ? round_up(size, kHugePage) : size;
  const Bytes tried = huge ? wanted + kHugePage : wanted;  // room to align its start to a huge page
  void* const memory =
      ::mmap(nullptr, tried, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw PlatformError(fmt::format("{}: no memory of {} bytes: {}; use less, or free some", what,
                                    size, error_text(errno)));
  }
  auto* base = static_cast<std::byte*>(memory);
  if (huge) {
    const Bytes before = round_up(reinterpret_cast<std::uintptr_t>(base), kHugePage) -
                         reinterpret_cast<std::uintptr_t>(base);
    if (before != 0) ::munmap(base, before);
    base += before;
    ::munmap(base + wanted, kHugePage - before);
  }
  auto mapping = std::make_shared<Mapping>(base, size, wanted);
  if (pages != Pages::any) ::madvise(base, wanted, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  if (!huge) return mapping;
  std::memset(base, 0, wanted);
  if (huge_bytes(base) < wanted) {
    throw PlatformError(fmt::format(
        "{}: no huge pages: the kernel gives none on request; write 'madvise' to "
        "/sys/kernel/mm/transparent_hugepage/enabled (needs root), and see that memory is free",
        what));
  }
  return mapping;
}

}  // namespace perdura::pmem::mapped
