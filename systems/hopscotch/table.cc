#include "systems/hopscotch/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "platform/runtime/work.h"

namespace perdura::systems::hopscotch {

Table::Table(pmem::Region& region, Bytes offset, const Geometry& geometry,
             DisplacementCounter counter, VacantWords vacant)
    : region_(region),
      offset_(offset),
      geometry_(geometry),
      counter_(counter),
      vacant_(std::move(vacant)),
      neighborhood_(geometry.neighborhood_length()),
      scratch_(geometry.stride()),
      zeros_(geometry.slot_size()) {}

std::optional<TableEntry> Table::find(const StoredKey& key) const {
  const Bucket home = geometry_.home(key);
  region_.read(at(home), neighborhood_);
  const std::optional<NeighborhoodEntry> found =
      find_in(neighborhood_, geometry_, key, vacant_.bits);
  if (!found) return std::nullopt;
  return TableEntry{found->word, found->tag, key.format, home + found->index};
}

kv::Result<Bucket> Table::insert(const StoredKey& key, std::uint8_t tag, std::uint64_t word,
                                 const pmem::WordLayout& layout) {
  const kv::Result<Bucket> bucket = reserve(key);
  if (bucket) fill(*bucket, key, tag, word, layout);
  return bucket;
}

kv::Result<Bucket> Table::reserve(const StoredKey& key) {
  const Bucket home = geometry_.home(key);
  std::optional<Bucket> bucket = empty_bucket(home);
  if (!bucket) {
    const std::vector<Move> moves = plan_moves(home);
    if (moves.empty()) return tl::unexpected(kv::Error::out_of_space);
    count_displacement();
    for (const Move& step : moves) move(step);
    count_displacement();
    bucket = moves.back().from;
  }
  reserved_.insert(*bucket);
  return *bucket;
}

void Table::fill(Bucket reserved, const StoredKey& key, std::uint8_t tag, std::uint64_t word,
                 const pmem::WordLayout& layout) {
  write_key(reserved, tag, key.format, key.bytes());
  set_word(reserved, word, layout);
  reserved_.erase(reserved);
}

void Table::set_word(Bucket bucket, std::uint64_t word, const pmem::WordLayout& layout) {
  region_.store(at(bucket) + kWordOffset, word, layout);
  region_.persist(at(bucket) + kWordOffset, kWord);
}

void Table::clear(Bucket bucket, std::uint64_t vacant_word) {
  const Bytes used = geometry_.used(read_entry(bucket, scratch_).format);
  set_word(bucket, vacant_word);
  const std::span<const std::byte> zeros(zeros_);
  write_changed(at(bucket) + kTagOffset, zeros.first(1));
  write_changed(at(bucket) + kFormatOffset, zeros.first(1));
  region_.write(at(bucket) + kKeyOffset, zeros.first(used));
  region_.persist(at(bucket) + kTagOffset, kKeyOffset - kTagOffset + used);
}

std::optional<Bucket> Table::empty_bucket(Bucket home) const {
  for (Bucket bucket = home; bucket < home + geometry_.neighborhood; ++bucket) {
    if (available(bucket)) return bucket;
  }
  return std::nullopt;
}

// The movements of entries that free a bucket in a full neighborhood, in the order of execution;
// the last one frees it. Empty if there are none. Hopscotch hashing moves the empty bucket towards
// the home step by step; a breadth-first search finds the shortest sequence of movements and,
// whatever the order of inserts was, finds one if there is any. Recovery relies on that when it
// inserts acknowledged keys again.
std::vector<Table::Move> Table::plan_moves(Bucket home) const {
  struct Step {
    Bucket bucket;
    std::size_t from;  // index of the step whose entry may move to this bucket
  };
  constexpr std::size_t kStart = ~std::size_t{0};
  std::vector<Step> steps;
  std::unordered_set<Bucket> seen;
  for (Bucket bucket = home; bucket < home + geometry_.neighborhood; ++bucket) {
    if (reserved_.contains(bucket)) continue;
    steps.push_back({bucket, kStart});
    seen.insert(bucket);
  }
  std::vector<std::byte> bytes(geometry_.stride());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const EntryHead head = read_entry(steps[i].bucket, bytes);
    const Bucket first = geometry_.home(stored_bytes(head, bytes));
    for (Bucket bucket = first; bucket < first + geometry_.neighborhood; ++bucket) {
      if (reserved_.contains(bucket) || !seen.insert(bucket).second) continue;
      steps.push_back({bucket, i});
      if (!is_vacant(word_of(bucket))) continue;
      std::vector<Move> moves;
      for (std::size_t s = steps.size() - 1; steps[s].from != kStart; s = steps[s].from) {
        moves.push_back({steps[steps[s].from].bucket, steps[s].bucket});
      }
      return moves;
    }
  }
  return {};
}

void Table::move(Move step) {
  ++movements_;
  std::vector<std::byte> bytes(geometry_.stride());
  const EntryHead head = read_entry(step.from, bytes);
  write_key(step.to, head.tag, head.format, stored_bytes(head, bytes));
  set_word(step.to, head.word);
  set_word(step.from, 0);
}

EntryHead Table::read_entry(Bucket bucket, std::span<std::byte> into) const {
  region_.read(at(bucket), into);
  EntryHead head;
  std::memcpy(&head.word, into.data() + kWordOffset, sizeof head.word);
  head.tag = static_cast<std::uint8_t>(into[kTagOffset]);
  head.format = static_cast<std::uint8_t>(into[kFormatOffset]);
  return head;
}

void Table::write_key(Bucket bucket, std::uint8_t tag, std::uint8_t format,
                      std::span<const std::byte> stored) {
  announce_reuse(bucket);
  const auto tag_byte = static_cast<std::byte>(tag);
  const auto format_byte = static_cast<std::byte>(format);
  write_changed(at(bucket) + kTagOffset, std::span(&tag_byte, 1));
  write_changed(at(bucket) + kFormatOffset, std::span(&format_byte, 1));
  write_changed(at(bucket) + kKeyOffset, stored);
  region_.persist(at(bucket) + kTagOffset, kKeyOffset - kTagOffset + stored.size());
}

void Table::announce_reuse(Bucket bucket) {
  if (!vacant_.before_reuse) return;
  const std::uint64_t word = word_of(bucket);
  if (word != 0) vacant_.before_reuse(word);
}

void Table::write_changed(Bytes offset, std::span<const std::byte> bytes) {
  const std::span<std::byte> before = std::span(scratch_).first(bytes.size());
  region_.read(offset, before);
  if (!equal_bytes(before, bytes)) region_.write(offset, bytes);
}

void Table::count_displacement() {
  if (counter_.region == nullptr) return;
  counter_.region->store(counter_.offset, counter_.region->load(counter_.offset) + 1);
}

std::uint64_t Table::recover() {
  std::uint64_t copies = 0;
  std::vector<std::byte> other(geometry_.stride());
  for_each([&](const TableEntry& entry, std::span<const std::byte> key) {
    const Bucket end = geometry_.home(key) + geometry_.neighborhood;
    for (Bucket bucket = entry.bucket + 1; bucket < end; ++bucket) {
      if (is_vacant(word_of(bucket))) continue;
      const EntryHead second = read_entry(bucket, other);
      if (second.format != entry.format || !equal_bytes(stored_bytes(second, other), key)) continue;
      clear(bucket);
      ++copies;
    }
  });
  removed_copies_ += copies;
  return copies;
}

std::string Table::audit() const {
  std::string problem;
  for_each([&](const TableEntry& entry, std::span<const std::byte> key) {
    StoredKey stored{entry.format, key, {}};
    if (entry.format == kDigestFormat) std::copy_n(key.begin(), kDigestSize, stored.digest.begin());
    const std::optional<TableEntry> found = find(stored);
    if (!found) {
      problem = fmt::format("the key in bucket {} is outside of its neighborhood", entry.bucket);
    } else if (found->bucket != entry.bucket) {
      problem = fmt::format("buckets {} and {} hold the same key", found->bucket, entry.bucket);
    }
  });
  return problem;
}

}  // namespace perdura::systems::hopscotch
