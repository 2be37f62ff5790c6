#include "systems/mcas/hstore/hstore.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "platform/runtime/work.h"

namespace perdura::systems::mcas::hstore {

namespace {

// Bytes of a key that are compared at a time, so that a long key needs no copy of its length.
constexpr Bytes kComparedAtOnce = MiB;

}  // namespace

Hstore::Hstore(Memory memory, RegionAllocator& regions, std::uint64_t pool, const Shape& shape,
               std::unique_ptr<ChangeLog> log)
    : memory_(memory), shape_(shape), log_(std::move(log)), heap_(regions, pool, shape.heap) {}

// --- opening -------------------------------------------------------------------------------------

std::optional<Bytes> Hstore::create() {
  const std::optional<ByteRange> root = heap_.allocate(root_size());
  const std::optional<ByteRange> segment =
      heap_.allocate(shape_.table.entries_of(0) * sizeof(HstoreEntry));
  if (!root || !segment) return std::nullopt;
  root_ = *root;
  if (log_) log_->create(root_.offset + sizeof(TableRoot), std::array{*root, *segment});
  table_.emplace(memory_, root_.offset, shape_.table, log_.get());
  table_->create(segment->offset);
  segments_opened_ = table_->segments();
  return root_.offset;
}

Engine::Recovered Hstore::recover(Bytes root) {
  root_ = {root, root_size()};
  table_.emplace(memory_, root_.offset, shape_.table, log_.get(), bounds());
  log_ ? recover_by_log() : reconstitute();
  segments_opened_ = table_->segments();
  return {table_->stale_hops(), table_->stale_entries()};
}

void Hstore::reconstitute() {
  // A process that died leaves what is visible, not what is durable (docs/restart.md).
  heap_.recover([this](ByteRange area) { memory_.flush(area); });
  memory_.drain();
  table_->recover();
  for_each_object([this](ByteRange object) { heap_.heap().take(object); });
}

TableBounds Hstore::bounds() const {
  return {shape_.most_segments, [this](ByteRange segment) { return heap_.contains(segment); }};
}

// The record is in the pool's memory, which may be damaged; the heap map that it would change is
// outside of it.
void Hstore::check_change(const TableChange& change) const {
  if (change.kind == TableChange::Kind::none) return;  // the other fields may be torn
  if (change.kind > TableChange::Kind::grow) throw DamagedPool("its last change is of no kind");
  for (const ByteRange& object : change.objects) {
    if (object == ByteRange{}) continue;
    const bool possible = heap_.contains(object) &&
                          heap_.contains({object.offset, shape_.heap.slot_size(object.length)});
    if (!possible) throw DamagedPool("its last change is of memory that the pool does not have");
  }
}

void Hstore::recover_by_log() {
  heap_.recover([](ByteRange) {});
  const TableChange last = log_->recover(root_.offset + sizeof(TableRoot));
  check_change(last);
  const bool happened = table_->settle(last);
  log_->settle(last, happened, heap_.heap());
}

// --- memory --------------------------------------------------------------------------------------

std::optional<Hstore::Kept> Hstore::keep(std::span<const std::byte> bytes) {
  if (bytes.size() <= kLongestInField) {
    Kept kept;
    if (!bytes.empty()) std::memcpy(kept.field.words.data(), bytes.data(), bytes.size());
    kept.length = static_cast<std::uint32_t>(bytes.size());
    return kept;
  }
  const std::optional<ByteRange> range = heap_.allocate(bytes.size());
  if (!range) return std::nullopt;
  memory_.region().write(range->offset, bytes);
  memory_.flush(*range);
  return Kept::at(*range);
}

ByteRange Hstore::range_of(Bytes field, std::uint32_t length) const {
  if (length != State::kElsewhere) {
    if (length > kLongestInField) throw DamagedPool("an item has a field of an impossible length");
    return {field, length};
  }
  const ByteRange range = memory_.region().read_object<Field>(field).range();
  if (!heap_.contains(range)) {
    throw DamagedPool("an item refers to memory that the pool does not have");
  }
  return range;
}
ByteRange Hstore::key_of(const Item& item) const {
  const ByteRange key = range_of(item.key_offset(), item.state.key_length());
  if (key.length > shape_.longest_key) throw DamagedPool("an item has a key that is too long");
  return key;
}
ByteRange Hstore::value_of(const Item& item) const {
  return range_of(item.value_offset(), item.state.value_length());
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
  const ByteRange range = key_of(item);
  if (range.length != key.size()) return false;
  for (Bytes done = 0; done < key.size(); done += kComparedAtOnce) {
    const Key part = key.subspan(done, std::min<Bytes>(kComparedAtOnce, key.size() - done));
    key_.resize(part.size());
    memory_.region().read_unchanging(range.offset + done, key_);
    if (!equal_bytes(key_, part)) return false;
  }
  return true;
}

std::optional<ByteRange> Hstore::get(Key key) const {
  const std::optional<Item> item = find(key, hash64(key));
  if (!item) return std::nullopt;
  return value_of(*item);
}

std::uint64_t Hstore::prefetch(Key key) const {
  const std::uint64_t hash = hash64(key);
  table_->prefetch_home(hash);
  return hash;
}

PutOutcome Hstore::put_flushed(Key key, Value value) {
  return put_kept(key, [&] { return keep(value); });
}

PutOutcome Hstore::drained(PutOutcome outcome) const {
  if (outcome != PutOutcome::flushed) return outcome;
  memory_.drain();
  return PutOutcome::done;
}

PutOutcome Hstore::put_reserved(Key key, ByteRange value) {
  const PutOutcome outcome = drained(put_kept(key, [&] { return std::optional(Kept::at(value)); }));
  if (outcome == PutOutcome::done) heap_.own(value);
  return outcome;
}

template <class KeepValue>
PutOutcome Hstore::put_kept(Key key, KeepValue keep_value) {
  const std::uint64_t hash = hash64(key);
  const std::optional<Item> item = find(key, hash);
  if (!item) return create(key, hash, keep_value);
  const std::optional<Kept> value = keep_value();
  return value ? overwrite(*item, *value) : PutOutcome::out_of_space;
}

template <class KeepValue>
PutOutcome Hstore::create(Key key, std::uint64_t hash, KeepValue keep_value) {
  const std::optional<EntryNumber> entry = table_->make_room(hash);
  if (!entry) return begin_to_grow() ? PutOutcome::must_grow : PutOutcome::out_of_space;
  const std::optional<Kept> kept_key = keep(key);
  if (!kept_key) return PutOutcome::out_of_space;
  const std::optional<Kept> value = keep_value();
  if (!value) {
    if (kept_key->range) heap_.free(*kept_key->range);
    return PutOutcome::out_of_space;
  }
  table_->insert(*entry, hash, kept_key->field, kept_key->length, value->field, value->length,
                 {kept_key->range.value_or(ByteRange{}), value->range.value_or(ByteRange{})});
  return put_in_table();
}

ByteRange Hstore::object_at(std::uint32_t length, ByteRange range) const {
  if (length != State::kElsewhere) return {};
  if (!heap_.is_object(range)) throw DamagedPool("an item refers to memory that is not in use");
  return range;
}

// An object that is freed twice could be allocated twice.
bool Hstore::are_apart(const Objects& objects) const {
  const auto [a, b] = objects;
  if (a == ByteRange{} || b == ByteRange{}) return true;
  return a.offset + shape_.heap.slot_size(a.length) <= b.offset ||
         b.offset + shape_.heap.slot_size(b.length) <= a.offset;
}

PutOutcome Hstore::overwrite(const Item& item, const Kept& value) {
  const ByteRange before = object_at(item.state.value_length(), value_of(item));
  table_->update(item, value.field, value.length, {value.range.value_or(ByteRange{}), before});
  if (before == ByteRange{}) return put_in_table();
  // The old value may be overwritten only when nothing durable refers to it.
  const PutOutcome outcome = drained(put_in_table());
  heap_.free(before);
  return outcome;
}

bool Hstore::erase(Key key) {
  const std::optional<Item> item = find(key, hash64(key));
  if (!item) return false;
  const Objects objects{object_at(item->state.key_length(), key_of(*item)),
                        object_at(item->state.value_length(), value_of(*item))};
  if (!are_apart(objects)) throw DamagedPool("a key and its value are the same memory");
  table_->erase(*item, objects);
  for (const ByteRange& object : objects) free(object);
  return true;
}

bool Hstore::begin_to_grow() {
  if (table_->segments() == shape_.most_segments) return false;
  const std::optional<ByteRange> segment =
      heap_.allocate(shape_.table.entries_of(table_->segments()) * sizeof(HstoreEntry));
  if (segment) table_->begin_to_grow(*segment);
  return segment.has_value();
}

void Hstore::iterate(const std::function<void(Key, ByteRange)>& visit) const {
  table_->for_each([&](const Item& item) {
    const ByteRange range = key_of(item);
    key_.resize(range.length);
    memory_.region().read_unchanging(range.offset, key_);
    visit(key_, value_of(item));
  });
}

// --- statistics and audit ------------------------------------------------------------------------

EngineStatistics Hstore::statistics() const {
  EngineStatistics result = heap_.statistics();
  result.items = table_->items();
  result.segments_added = table_->segments() - segments_opened_;
  result.moved_items = table_->moves();
  return result;
}

std::string Hstore::audit() const {
  if (const std::string problem = table_->audit(); !problem.empty()) return problem;
  std::vector<ByteRange> objects;
  for_each_object([&](ByteRange object) { objects.push_back(object); });
  if (log_) {
    if (const std::string problem = log_->audit(objects); !problem.empty()) return problem;
  }
  if (const std::string problem = heap_.audit(std::move(objects)); !problem.empty()) {
    return problem;
  }
  std::string problem;
  std::set<std::string> keys;
  iterate([&](Key key, ByteRange) {
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
