#include "platform/pmem/mapped/region_directory.h"

#include <fmt/format.h>
#include <isa-l/crc64.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "platform/base/error.h"

namespace perdura::pmem::mapped {

struct RegionDirectory::Header {
  std::uint64_t seal = 0;
  std::uint64_t magic = 0;
  std::uint64_t version = 0;
  std::uint64_t device_size = 0;
  std::uint64_t alignment = 0;
};

struct RegionDirectory::RegionRecord {
  std::uint64_t seal = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::array<char, kMaxName + 1> name{};  // zero-terminated

  std::string_view text() const { return {name.data(), ::strnlen(name.data(), kMaxName)}; }
};

namespace {

constexpr std::uint64_t kMagic = 0x0041'5255'4452'4550;  // "PERDURA" in memory order
constexpr std::uint64_t kVersion = 1;

constexpr Bytes place_of(std::size_t entry) { return (entry + 1) * RegionDirectory::kEntrySize; }

// The part of an object that its seal covers: everything but the seal itself and the bytes after
// the name, which remain from an earlier entry.
template <class T>
std::span<const std::byte> sealed_part(const T& object) {
  const auto all = std::as_bytes(std::span(&object, 1));
  if constexpr (requires { object.name; }) {
    const Bytes name = object.text().size() + 1;
    return all.subspan(kWord, 2 * kWord + (name + kWord - 1) / kWord * kWord);
  }
  return all.subspan(kWord);
}

template <class T>
std::uint64_t seal_of(const T& object) {
  const auto bytes = sealed_part(object);
  const std::uint64_t checksum =
      crc64_ecma_refl(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return checksum == 0 ? 1 : checksum;
}

template <class T>
void write_unsealed(Region& memory, Bytes at, const T& object) {
  const auto bytes = sealed_part(object);
  memory.write(at + kWord, bytes);
  memory.persist(at + kWord, bytes.size());
}

}  // namespace

RegionDirectory::RegionDirectory(Region& memory, DeviceGeometry device, std::string path)
    : memory_(memory), device_(device), path_(std::move(path)) {
  static_assert(sizeof(RegionRecord) == kEntrySize);
  static_assert(sizeof(Header) <= kCacheLine && sizeof(Header) % kWord == 0);
  const Header found = header();
  if (found.seal == 0) {
    make();
    return;
  }
  if (found.magic != kMagic) refuse("holds something that is not a directory of regions");
  if (found.seal != seal_of(found)) refuse("holds a damaged directory of regions");
  if (found.version != kVersion) {
    refuse(
        fmt::format("holds a directory of regions of version {}, not {}", found.version, kVersion));
  }
  if (found.device_size != device_.size || found.alignment != device_.alignment) {
    refuse(
        fmt::format("holds regions of a device of {} bytes with alignment {}, but is one of {} "
                    "with {}",
                    found.device_size, found.alignment, device_.size, device_.alignment));
  }
}

void RegionDirectory::refuse(std::string_view what) const {
  throw UsageError(fmt::format(
      "{} {}; to give all of the device to perdura, clear it with daxio --zero --output "
      "{} (package pmdk-tools)",
      path_, what, path_));
}

RegionDirectory::Header RegionDirectory::header() const { return memory_.read_object<Header>(0); }

// Only an incomplete header may be overwritten; any other content of the device is not ours.
void RegionDirectory::make() {
  Header wanted{0, kMagic, kVersion, device_.size, device_.alignment};
  wanted.seal = seal_of(wanted);
  std::array<std::uint64_t, sizeof(Header) / kWord> words{};
  std::memcpy(words.data(), &wanted, sizeof(Header));
  for (Bytes at = 0; at < kSize; at += kWord) {
    const std::uint64_t word = memory_.load(at);
    const bool part_of_header = at < sizeof(Header) && word == words[at / kWord];
    if (word != 0 && !part_of_header) refuse("holds something that is not a directory of regions");
  }
  write_unsealed(memory_, 0, wanted);
  commit(0, wanted.seal);
}

void RegionDirectory::commit(Bytes at, std::uint64_t seal) {
  memory_.store(at, seal);
  memory_.persist(at, kWord);
}

// An entry is free if its seal is 0, whatever the rest contains.
RegionDirectory::RegionRecord RegionDirectory::entry(std::size_t index) const {
  if (memory_.load(place_of(index)) == 0) return {};
  const auto found = memory_.read_object<RegionRecord>(place_of(index));
  if (found.seal != seal_of(found)) {
    refuse(fmt::format("holds a damaged entry, number {}, in its directory of regions", index));
  }
  return found;
}

std::vector<NamedExtent> RegionDirectory::regions() const {
  std::vector<NamedExtent> all;
  for (std::size_t i = 0; i < kEntries; ++i) {
    if (const RegionRecord found = entry(i); found.seal != 0) {
      all.push_back({std::string(found.text()), {found.offset, found.size}});
    }
  }
  return all;
}

std::optional<Extent> RegionDirectory::find(std::string_view name) const {
  const auto all = regions();
  const auto found = std::find_if(
      all.begin(), all.end(), [name](const NamedExtent& region) { return region.name == name; });
  if (found == all.end()) return std::nullopt;
  return found->extent;
}

void RegionDirectory::add(const NamedExtent& region) {
  for (std::size_t i = 0; i < kEntries; ++i) {
    if (memory_.load(place_of(i)) != 0) continue;
    RegionRecord made{0, region.extent.offset, region.extent.length, {}};
    std::copy(region.name.begin(), region.name.end(), made.name.begin());
    write_unsealed(memory_, place_of(i), made);
    commit(place_of(i), seal_of(made));
    return;
  }
  throw UsageError(
      fmt::format("{} holds {} regions, as many as its directory has room for; remove "
                  "some, or use a DAX file system",
                  path_, kEntries));
}

bool RegionDirectory::remove(std::string_view name) {
  for (std::size_t i = 0; i < kEntries; ++i) {
    const RegionRecord found = entry(i);
    if (found.seal == 0 || found.text() != name) continue;
    commit(place_of(i), 0);
    return true;
  }
  return false;
}

}  // namespace perdura::pmem::mapped
