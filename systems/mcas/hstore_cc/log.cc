#include "systems/mcas/hstore_cc/log.h"

#include <algorithm>

#include "systems/mcas/storage/damage.h"

namespace perdura::systems::mcas::hstore_cc {

namespace {

using hstore::TableChange;

// The first word: the change and the number of items.
//
//      63              16 15  13 12      7 6        1 0
//      | items           | kind | before  | distance | unused |
class Head {
 public:
  explicit constexpr Head(std::uint64_t word) : word_(word) {}
  static constexpr Head of(const TableChange& change) {
    return Head(change.items << kItems | static_cast<std::uint64_t>(change.kind) << kKind |
                std::uint64_t{change.before} << kBefore |
                std::uint64_t{change.distance} << kDistance);
  }

  constexpr std::uint64_t word() const { return word_; }
  constexpr std::uint64_t items() const { return word_ >> kItems; }
  constexpr TableChange::Kind kind() const {
    return static_cast<TableChange::Kind>(word_ >> kKind & 7);
  }
  constexpr std::uint32_t before() const { return word_ >> kBefore & 63; }
  constexpr std::uint32_t distance() const { return word_ >> kDistance & 63; }

 private:
  static constexpr std::uint32_t kItems = 16;
  static constexpr std::uint32_t kKind = 13;
  static constexpr std::uint32_t kBefore = 7;
  static constexpr std::uint32_t kDistance = 1;

  std::uint64_t word_;
};

struct Record {
  std::uint64_t head = 0;
  std::uint64_t home = 0;
  hstore::Objects objects;
  std::array<std::uint64_t, 2> unused{};
};
static_assert(sizeof(Record) == kCacheLine);

}  // namespace

template <class Visit>
void Log::for_each_area(Visit visit) const {
  regions_.for_each([&](const RegionDescriptor& region) {
    if (region.identifier == pool_) visit(region.range());
  });
}

void Log::create(Bytes offset, std::span<const ByteRange> objects) {
  offset_ = offset;
  memory_.region().store(pool_number(), map_.add_pool());
  memory_.region().write_object(offset, Record{});
  memory_.flush({offset, size()});
  for (const ByteRange& object : objects) map_.use(object);
  memory_.drain();
}

// Stores to one line become durable in their order. So there is no record while it is being
// written, and the number of items is correct at any time.
void Log::begin(const TableChange& change) {
  memory_.region().store(offset_, Head::of({.items = change.items}).word());
  const Record record{Head::of(change).word(), change.home, change.objects, {}};
  memory_.region().write(offset_ + kWord, std::as_bytes(std::span(&record, 1)).subspan(kWord));
  memory_.region().store(offset_, record.head);
  memory_.persist({offset_, sizeof record});
  for (const ByteRange& object : change.allocated()) {
    if (object != ByteRange{}) map_.use(object);
  }
}

void Log::finish(const TableChange& change) {
  // The table's stores of inserts and updates are durable already, but entries that were freed are
  // not.
  bool drains =
      change.kind != TableChange::Kind::insert && change.kind != TableChange::Kind::update;
  for (const ByteRange& object : change.freed()) {
    if (object == ByteRange{}) continue;
    map_.free(object);
    drains = true;
  }
  if (drains) memory_.drain();
}

TableChange Log::recover(Bytes offset) {
  offset_ = offset;
  // If the process died, the record may be visible but not durable (docs/restart.md). Then its
  // change has stored nothing in the table yet.
  const std::uint64_t number = memory_.region().load(pool_number());
  // The map is the shard's own memory, but the number is in the pool's. With a wrong number the
  // pool would mark its memory as that of another pool.
  if (map_.pool_of({offset, size()}) != number) {
    throw DamagedPool("its heap has the number of another pool");
  }
  map_.open_pool(number);
  const auto record = memory_.region().read_object<Record>(offset_);
  const Head head(record.head);
  return {.kind = head.kind(),
          .home = record.home,
          .distance = head.distance(),
          .before = head.before(),
          .items = head.items(),
          .objects = record.objects};
}

void Log::settle(const TableChange& last, bool happened, Heap& heap) {
  const std::span<const ByteRange> free = happened ? last.freed() : last.allocated();
  for (const ByteRange& object : free) {
    if (object != ByteRange{}) map_.free_again(object);
  }
  memory_.drain();
  for_each_area([&](ByteRange area) { map_.read(area, heap); });
}

std::string Log::audit(const std::vector<ByteRange>& objects) const {
  Bytes used = 0;
  for_each_area([&](ByteRange area) { used += map_.used_bytes(area); });
  for (const ByteRange& object : objects) {
    if (!map_.is_used(object)) return "an object of the heap is durably free";
    used -= map_.bytes_of(object);
  }
  return used == 0 ? "" : "memory of the heap is durably in use for nothing";
}

}  // namespace perdura::systems::mcas::hstore_cc
