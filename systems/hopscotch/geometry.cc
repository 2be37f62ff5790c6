#include "systems/hopscotch/geometry.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "platform/runtime/work.h"

namespace perdura::systems::hopscotch {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kFirstDigestSeed = 0x8F14E45FCEEA167A;
constexpr std::uint64_t kSecondDigestSeed = 0xC9F0F895FB98AB91;

// The probability that a Poisson variable with this mean is at least `count`.
double poisson_tail(double mean, int count) {
  double term = std::exp(-mean);
  for (int i = 1; i <= count; ++i) term *= mean / i;
  double tail = 0;
  for (int i = count; term > 1e-30 && i < count + 256; ++i) {
    tail += term;
    term *= mean / (i + 1);
  }
  return tail;
}

// The expected number of runs of consecutive homes, starting at a given bucket, that hold more keys
// than there are buckets in their neighborhoods. By Hall's theorem all keys can be placed if and
// only if there is no such run.
double crowded_runs_per_bucket(double load, std::uint32_t neighborhood) {
  double sum = 0;
  for (int length = 1; length <= 128; ++length) {
    sum += poisson_tail(load * length, length + static_cast<int>(neighborhood));
  }
  return sum;
}

}  // namespace

namespace {

std::uint64_t buckets_for(std::uint64_t records, std::uint32_t neighborhood) {
  constexpr double kCrowdedRuns = 1e-3;
  std::uint64_t buckets = std::max<std::uint64_t>(2 * records, 1);
  for (;;) {
    const auto count = static_cast<double>(buckets);
    const double load = static_cast<double>(records) / count;
    if (count * crowded_runs_per_bucket(load, neighborhood) < kCrowdedRuns) return buckets;
    buckets += buckets / 8 + 1;
  }
}

}  // namespace

// All sessions and stores of a run need the same geometry, and computing it takes longer than many
// operations. So each thread caches the last result.
Geometry Geometry::for_records(std::uint64_t records, Bytes key_size, std::uint32_t neighborhood) {
  struct Answer {
    std::uint64_t records;
    std::uint32_t neighborhood;
    std::uint64_t buckets;
  };
  thread_local Answer last{0, 0, 0};
  if (last.buckets == 0 || last.records != records || last.neighborhood != neighborhood) {
    last = {records, neighborhood, buckets_for(records, neighborhood)};
  }
  return Geometry{key_size, neighborhood, last.buckets};
}

StoredKey Geometry::stored(kv::Key key) const {
  if (key.size() == key_size) return {kTypicalFormat, key, {}};
  if (!key.empty() && key.size() <= slot_size() && key.size() < kDigestFormat) {
    return {static_cast<std::uint8_t>(key.size()), key, {}};
  }
  StoredKey stored_key{kDigestFormat, key, {}};
  const std::array<std::uint64_t, 2> halves = {hash64(key, kFirstDigestSeed),
                                               hash64(key, kSecondDigestSeed)};
  static_assert(sizeof halves == kDigestSize);
  std::memcpy(stored_key.digest.data(), halves.data(), kDigestSize);
  return stored_key;
}

Bytes Geometry::used(std::uint8_t format) const {
  if (format == kTypicalFormat) return key_size;
  if (format == kDigestFormat) return kDigestSize;
  return std::min<Bytes>(format, slot_size());
}

Bucket Geometry::home(std::span<const std::byte> stored_bytes) const {
  return static_cast<Bucket>((static_cast<Wide>(hash64(stored_bytes)) * buckets) >> 64);
}

std::optional<NeighborhoodEntry> find_in(std::span<const std::byte> neighborhood,
                                         const Geometry& geometry, const StoredKey& key,
                                         std::uint64_t vacant_bits) {
  const std::span<const std::byte> wanted = key.bytes();
  for (std::uint32_t i = 0; i < geometry.neighborhood; ++i) {
    const auto entry = neighborhood.subspan(geometry.offset_of(i), geometry.stride());
    EntryHead head;
    std::memcpy(&head.word, entry.data() + kWordOffset, sizeof head.word);
    if (head.word == 0 || (head.word & vacant_bits) != 0) continue;
    head.tag = static_cast<std::uint8_t>(entry[kTagOffset]);
    head.format = static_cast<std::uint8_t>(entry[kFormatOffset]);
    if (head.format != key.format) continue;
    if (equal_bytes(entry.subspan(kKeyOffset, wanted.size()), wanted)) {
      return NeighborhoodEntry{head.word, head.tag, i};
    }
  }
  return std::nullopt;
}

}  // namespace perdura::systems::hopscotch
