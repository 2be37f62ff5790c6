#include "platform/pmem/mapped/parts.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "platform/base/error.h"

namespace perdura::pmem::mapped {

namespace {

// DAX requires this alignment for huge pages, and a DAX device for any.
constexpr Bytes kAlignment = 2 * MiB;

[[noreturn]] void fail(const std::string& name, Extent extent) {
  throw PlatformError(fmt::format("cannot map {} bytes at {} of region '{}': {}", extent.length,
                                  extent.offset, name, error_text(errno)));
}

}  // namespace

std::shared_ptr<Mapping> map_parts(int fd, Extent region, const std::vector<Extent>& parts,
                                   const std::string& name) {
  const Bytes size = round_up(region.length, kAlignment);
  const Bytes reserved = size + kAlignment;
  void* const memory =
      ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail(name, {0, region.length});
  auto* const first = static_cast<std::byte*>(memory);
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const Bytes before = round_up(address, kAlignment) - address;
  if (before != 0) ::munmap(first, before);
  ::munmap(first + before + size, kAlignment - before);
  auto mapping = std::make_shared<Mapping>(first + before, region.length, size);
  for (const Extent part : parts) {
    const auto map = [&](int flags) {
      return ::mmap(mapping->data() + part.offset, part.length, PROT_READ | PROT_WRITE,
                    MAP_FIXED | flags, fd, static_cast<off_t>(region.offset + part.offset));
    };
    // Without DAX there is no MAP_SYNC.
    if (map(MAP_SHARED_VALIDATE | MAP_SYNC) == MAP_FAILED && map(MAP_SHARED) == MAP_FAILED) {
      fail(name, part);
    }
  }
  return mapping;
}

}  // namespace perdura::pmem::mapped
