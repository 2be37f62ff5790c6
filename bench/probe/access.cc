#include "bench/probe/access.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "platform/pmem/instructions.h"

namespace perdura::bench {

std::string_view to_string(Pattern pattern) {
  return pattern == Pattern::sequential ? "sequential" : "random";
}

std::string_view to_string(Access access) {
  switch (access) {
    case Access::load:
      return "load";
    case Access::ntstore:
      return "ntstore";
    case Access::store:
      return "store";
    case Access::store_clwb:
      return "store+clwb";
  }
  return "load";
}

void write_chain(pmem::Region& region, Bytes length, Pattern pattern) {
  const std::uint64_t lines = length / kCacheLine;
  for (std::uint64_t line = 0; line < lines; ++line) {
    const Bytes next = Offsets::following(pattern, line, lines) * kCacheLine;
    std::memcpy(region.data() + line * kCacheLine, &next, kWord);
  }
}

Bytes follow_chain(const pmem::Region& region, Bytes at, std::uint64_t loads) {
  for (; loads > 0; --loads) at = region.load(at);
  return at;
}

Bytes follow_cold_chain(const pmem::Region& region, Bytes at, std::uint64_t loads) {
  for (; loads > 0; --loads) at = region.load_from_memory(at);
  return at;
}

void evict(pmem::Region& region, Bytes length) {
  if (region.model() != nullptr) return;
  // CLFLUSH is used, since CLWB may leave the line in the cache.
  pmem::flush_lines_with(pmem::FlushInstruction::clflush, region.data(), length);
  pmem::drain();
}

namespace {

// The source is small, so that stores come from the nearest cache however long the access is.
constexpr Bytes kSource = 16 * KiB;
constexpr std::array<std::byte, kSource> make_source() {
  std::array<std::byte, kSource> source{};
  for (std::size_t i = 0; i < kSource; ++i) source[i] = static_cast<std::byte>(i * 37 + i / 256);
  return source;
}
alignas(kCacheLine) constexpr std::array<std::byte, kSource> source = make_source();

template <class Write>
void in_pieces(Bytes offset, Bytes size, const Write& write) {
  for (Bytes done = 0; done < size; done += kSource) {
    write(offset + done, std::span(source).first(std::min(kSource, size - done)));
  }
}

}  // namespace

std::uint64_t access_part(pmem::Region& region, Access access, Bytes offset, Bytes size) {
  switch (access) {
    case Access::load:
      return region.scan(offset, size);
    case Access::ntstore:
      region.fill_streaming(offset, size);
      return 0;
    case Access::store:
      in_pieces(offset, size,
                [&](Bytes at, std::span<const std::byte> bytes) { region.write(at, bytes); });
      return 0;
    case Access::store_clwb:
      in_pieces(offset, size, [&](Bytes at, std::span<const std::byte> bytes) {
        region.write(at, bytes);
        region.flush(at, bytes.size());
      });
      return 0;
  }
  return 0;
}

void end_access(pmem::Region& region, Access access) {
  if (access == Access::ntstore || access == Access::store_clwb) region.drain();
}

std::uint64_t access_memory(pmem::Region& region, Access access, Bytes offset, Bytes size) {
  const std::uint64_t sum = access_part(region, access, offset, size);
  end_access(region, access);
  return sum;
}

}  // namespace perdura::bench
