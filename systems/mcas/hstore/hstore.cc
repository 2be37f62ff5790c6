#include "systems/mcas/hstore/hstore.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "platform/runtime/work.h"

namespace perdura::systems::mcas::hstore {

Hstore::Hstore(Memory memory, RegionAllocator& regions, std::uint64_t pool, const Shape& shape)
    : memory_(memory), regions_(regions), pool_(pool), shape_(shape), heap_(shape.heap) {}

// --- opening -------------------------------------------------------------------------------------

std::optional<Bytes> Hstore::create() {
  const std::optional<Place> root = allocate(sizeof(TableRoot));
  const std::optional<Place> segment = allocate(shape_.table.entries_of(0) * sizeof(Entry));
  if (!root || !segment) return std::nullopt;
  root_ = *root;
  table_.emplace(memory_, root_.offset, shape_.table);
  table_->create(segment->offset);
  segments_opened_ = table_->segments();
  return root_.offset;
}

Hstore::Recovered Hstore::recover(Bytes root) {
  root_ = {root, sizeof(TableRoot)};
  regions_.for_each([this](const RegionDescriptor& region) {
    if (region.identifier != pool_) return;
    // A process that died leaves what is visible, not what is durable (docs/restart.md).
    memory_.flush(region.place());
    heap_.add_area(region.place());
  });
  memory_.drain();
  table_.emplace(memory_, root_.offset, shape_.table);
  table_->recover();
  segments_opened_ = table_->segments();
  for_each_object([this](Place object) { heap_.take(object); });
  return {table_->stale_hops(), table_->stale_entries()};
}

// --- memory --------------------------------------------------------------------------------------

std::optional<Place> Hstore::allocate(Bytes length) {
  if (const std::optional<Place> found = heap_.allocate(length)) return found;
  const std::optional<Place> area =
      regions_.allocate(std::max(shape_.heap.region_size, shape_.heap.slot_size(length)), pool_);
  if (!area) return std::nullopt;
  ++regions_added_;
  heap_.add_area(*area);
  return heap_.allocate(length);
}

std::optional<Hstore::Kept> Hstore::keep(std::span<const std::byte> bytes) {
  Kept kept;
  if (bytes.size() <= kLongestInField) {
    if (!bytes.empty()) std::memcpy(kept.field.words.data(), bytes.data(), bytes.size());
    kept.length = static_cast<std::uint32_t>(bytes.size());
    return kept;
  }
  kept.place = allocate(bytes.size());
  if (!kept.place) return std::nullopt;
  kept.field = Field::at(*kept.place);
  kept.length = State::kElsewhere;
  memory_.region().write(kept.place->offset, bytes);
  memory_.flush(*kept.place);
  return kept;
}

Place Hstore::place_of(Bytes field, std::uint32_t length) const {
  if (length != State::kElsewhere) return {field, length};
  return memory_.region().read_object<Field>(field).place();
}
Place Hstore::key_of(const Item& item) const {
  return place_of(item.key_offset(), item.state.key_length());
}
Place Hstore::value_of(const Item& item) const {
  return place_of(item.value_offset(), item.state.value_length());
}

template <class Visit>
void Hstore::for_each_object(Visit visit) const {
  visit(root_);
  for (std::uint32_t i = 0; i < table_->segments(); ++i) visit(table_->segment(i));
  table_->for_each([&](const Item& item) {
    if (item.state.key_length() == State::kElsewhere) visit(key_of(item));
    if (item.state.value_length() == State::kElsewhere) visit(value_of(item));
  });
}

// --- operations ----------------------------------------------------------------------------------

std::optional<Item> Hstore::find(Key key, std::uint64_t hash) const {
  return table_->find(hash, [&](const Item& item) { return has_key(item, key); });
}

bool Hstore::has_key(const Item& item, Key key) const {
  const Place place = key_of(item);
  if (place.length != key.size()) return false;
  key_.resize(key.size());
  memory_.region().read_unchanging(place.offset, key_);
  return equal_bytes(key_, key);
}

std::optional<Place> Hstore::get(Key key) const {
  const std::optional<Item> item = find(key, hash64(key));
  if (!item) return std::nullopt;
  return value_of(*item);
}

PutOutcome Hstore::put(Key key, Value value) {
  const std::uint64_t hash = hash64(key);
  const std::optional<Item> item = find(key, hash);
  return item ? overwrite(*item, value) : create(key, value, hash);
}

PutOutcome Hstore::create(Key key, Value value, std::uint64_t hash) {
  const std::optional<EntryNumber> entry = table_->make_room(hash);
  if (!entry) return begin_to_grow() ? PutOutcome::must_grow : PutOutcome::out_of_space;
  const std::optional<Kept> kept_key = keep(key);
  if (!kept_key) return PutOutcome::out_of_space;
  const std::optional<Kept> kept_value = keep(value);
  if (!kept_value) {
    if (kept_key->place) heap_.free(*kept_key->place);
    return PutOutcome::out_of_space;
  }
  table_->insert(*entry, hash, kept_key->field, kept_key->length, kept_value->field,
                 kept_value->length, kept_key->place || kept_value->place);
  return PutOutcome::done;
}

PutOutcome Hstore::overwrite(const Item& item, Value value) {
  const std::optional<Kept> kept = keep(value);
  if (!kept) return PutOutcome::out_of_space;
  if (kept->place) memory_.drain();
  const Place before = value_of(item);
  table_->update(item, kept->field, kept->length);
  if (item.state.value_length() == State::kElsewhere) heap_.free(before);
  return PutOutcome::done;
}

bool Hstore::erase(Key key) {
  const std::optional<Item> item = find(key, hash64(key));
  if (!item) return false;
  const Place key_place = key_of(*item);
  const Place value_place = value_of(*item);
  table_->erase(*item);
  if (item->state.key_length() == State::kElsewhere) heap_.free(key_place);
  if (item->state.value_length() == State::kElsewhere) heap_.free(value_place);
  return true;
}

bool Hstore::begin_to_grow() {
  if (table_->segments() == shape_.most_segments) return false;
  const std::optional<Place> segment =
      allocate(shape_.table.entries_of(table_->segments()) * sizeof(Entry));
  if (segment) table_->begin_to_grow(segment->offset);
  return segment.has_value();
}

void Hstore::iterate(const std::function<void(Key, Place)>& visit) const {
  table_->for_each([&](const Item& item) {
    const Place place = key_of(item);
    key_.resize(place.length);
    memory_.region().read_unchanging(place.offset, key_);
    visit(key_, value_of(item));
  });
}

// --- what is there -------------------------------------------------------------------------------

EngineStatistics Hstore::statistics() const {
  return {.capacity = regions_.capacity(),
          .free = regions_.free_bytes() + heap_.free_bytes(),
          .items = table_->items(),
          .segments_added = table_->segments() - segments_opened_,
          .moved_items = table_->moves(),
          .regions_added = regions_added_,
          .heap_regions_returned = heap_.returned()};
}

std::string Hstore::audit() const {
  if (const std::string problem = table_->audit(); !problem.empty()) return problem;
  std::vector<Place> objects;
  for_each_object([&](Place object) { objects.push_back(object); });
  if (const std::string problem = heap_.audit(std::move(objects)); !problem.empty()) {
    return problem;
  }
  std::string problem;
  std::set<std::string> keys;
  iterate([&](Key key, Place) {
    if (!keys.emplace(reinterpret_cast<const char*>(key.data()), key.size()).second) {
      problem = "a key is there twice";
    }
  });
  for (const std::string& key : keys) {
    if (!get(std::as_bytes(std::span(key)))) problem = "there is an item that no search finds";
  }
  return problem;
}

}  // namespace perdura::systems::mcas::hstore
