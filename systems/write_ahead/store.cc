#include "systems/write_ahead/store.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::write_ahead {

Store::Store(Node& node, const std::string& name, std::string_view system, const Shape& shape)
    : Store(open_pool(node, name, system, shape), shape) {}

Store::Store(Pool pool, const Shape& shape)
    : pool_(std::move(pool.region)),
      shape_(shape),
      format_(shape.key_size, shape.value_size),
      table_(*pool_, shape.table_offset(), shape.table(), {},
             {kDeletedBit, [this](std::uint64_t word) { keep_deleted(word); }}),
      log_(*pool_, shape),
      scratch_(shape.log_slot_size()) {
  std::vector<bool> used(shape_.objects());
  if (!pool.created) {
    table_.recover();
    find_objects(used);
  }
  for (std::uint64_t object = shape_.objects(); object-- > 0;) {
    const auto number = static_cast<std::uint32_t>(object);
    if (!used[object]) free_objects(number).push_back(number);
  }
  if (!pool.created) replay_log();
}

// --- reading -------------------------------------------------------------------------------------

kv::Result<Bytes> Store::get(kv::Key key, std::span<std::byte> into) {
  for (Position p = log_.newest(key); p != kNoPosition && p >= log_.applied(); p = log_.older(p)) {
    if (!verify(p)) continue;
    const Bytes length = log_.at(p).value_length;
    const Bytes value = format_.header_size(key.size(), length) + key.size();
    pool_->read(log_.offset(p) + value, into.first(length));
    return length;
  }
  const std::optional<hopscotch::TableEntry> entry = table_.find(key);
  if (!entry) return tl::unexpected(kv::Error::not_found);
  const ObjectAddress object = ObjectAddress::from(entry->word);
  if (entry->format == hopscotch::kDigestFormat && !holds_key(object, key)) {
    return tl::unexpected(kv::Error::not_found);
  }
  pool_->read(shape_.object_offset(object.object) + object.key_length,
              into.first(object.value_length));
  return object.value_length;
}

// The table stores only a digest of a long key, so the key in the object decides.
bool Store::holds_key(const ObjectAddress& object, kv::Key key) {
  if (object.key_length != key.size()) return false;
  pool_->read(shape_.object_offset(object.object), scratch(key.size()));
  return equal_bytes(scratch(key.size()), key);
}

// --- putting -------------------------------------------------------------------------------------

kv::Result<std::optional<Room>> Store::room_for(kv::Key key) {
  for (Position p = log_.newest(key); p != kNoPosition && p >= log_.applied(); p = log_.older(p)) {
    if (log_.at(p).state == LogEntry::State::verified) return std::nullopt;
  }
  if (table_.find(key)) return std::nullopt;
  std::vector<std::uint32_t>& objects = free_objects(key);
  if (objects.empty()) return tl::unexpected(kv::Error::out_of_space);
  const kv::Result<hopscotch::Bucket> bucket = table_.reserve(key);
  if (!bucket) return tl::unexpected(bucket.error());
  const Room room{*bucket, objects.back()};
  objects.pop_back();
  return room;
}

bool Store::verify(Position p) {
  LogEntry& entry = log_.at(p);
  if (entry.state != LogEntry::State::reserved) return entry.state == LogEntry::State::verified;
  const Bytes length = format_.size(entry.key_length, entry.value_length);
  read_slot(p, length);
  const std::optional<Record> record =
      format_.verify(scratch(length), log_.lap(p), entry.key_length, entry.value_length);
  if (!record || !equal_bytes(record->key, log_.key(p))) return false;
  pool_->persist(log_.offset(p), length);
  entry.state = LogEntry::State::verified;
  return true;
}

std::optional<Record> Store::arrived(Position p, Bytes length) {
  read_slot(p, length);
  const Bytes typical = format_.size(shape_.key_size, shape_.value_size);
  const std::optional<Record> record = length == typical
                                           ? format_.verify(scratch(length), log_.lap(p))
                                           : format_.verify_extended(scratch(length), log_.lap(p));
  return record && fits(*record) ? record : std::nullopt;
}

void Store::invalidate(Position p) {
  std::array<std::byte, kTypicalHeader> crc;
  pool_->read(log_.offset(p), crc);
  for (std::byte& byte : crc) byte = ~byte;
  pool_->write(log_.offset(p), crc);
  persist(p, crc.size());
}

bool Store::apply_next() {
  if (!log_.pending()) return false;
  const Position p = log_.applied();
  LogEntry& entry = log_.at(p);
  if (entry.state == LogEntry::State::reserved) return false;
  if (entry.state == LogEntry::State::verified) {
    const Bytes header = format_.header_size(entry.key_length, entry.value_length);
    read_slot(p, header + entry.key_length + entry.value_length);
    const Record record{scratch_bytes(header, entry.key_length),
                        scratch_bytes(header + entry.key_length, entry.value_length)};
    apply(record, entry.room);
  }
  log_.advance();
  if (entry.room) {
    // The record was dropped. Recovery might still find it complete and would then need its space,
    // so the space is freed only after the replay start has passed the record.
    log_.reclaim();
    release(entry.room);
  }
  return true;
}

// Key and value are adjacent in the record, as they are in the object.
void Store::apply(const Record& record, std::optional<Room>& room) {
  const std::span<const std::byte> object_bytes(record.key.data(),
                                                record.key.size() + record.value.size());
  const std::optional<hopscotch::TableEntry> entry = table_.find(record.key);
  ObjectAddress address{0, static_cast<std::uint16_t>(record.key.size()),
                        static_cast<std::uint32_t>(record.value.size())};
  address.object = entry ? ObjectAddress::from(entry->word).object : room.value().object;
  const Bytes offset = shape_.object_offset(address.object);
  pool_->write(offset, object_bytes);
  pool_->persist(offset, object_bytes.size());
  if (!entry) {
    table_.fill(room->bucket, record.key, 0, address.word());
    room.reset();
    return;
  }
  if (entry->word != address.word()) table_.set_word(entry->bucket, address.word());
  release(room);
}

void Store::release(std::optional<Room>& room) {
  if (!room) return;
  table_.release(room->bucket);
  free_objects(room->object).push_back(room->object);
  room.reset();
}

// --- deleting ------------------------------------------------------------------------------------

std::optional<kv::Result<void>> Store::erase(kv::Key key) {
  const Position newest = log_.newest(key);
  while (newest != kNoPosition && log_.applied() <= newest) {
    verify(log_.applied());
    if (!apply_next()) return std::nullopt;
  }
  const std::optional<hopscotch::TableEntry> entry = table_.find(key);
  if (!entry) return tl::unexpected(kv::Error::not_found);
  const ObjectAddress object = ObjectAddress::from(entry->word);
  const bool replayable = newest != kNoPosition && newest >= log_.replay_start();
  table_.clear(entry->bucket, replayable ? kDeletedBit | log_.applied() : 0);
  free_objects(object.object).push_back(object.object);
  return kv::Result<void>{};
}

void Store::keep_deleted(std::uint64_t word) {
  if ((word & ~kDeletedBit) > log_.replay_start()) log_.reclaim();
}

// --- recovery ------------------------------------------------------------------------------------

// Marks the objects to which the table refers as used.
void Store::find_objects(std::vector<bool>& used) {
  table_.for_each([&](const hopscotch::TableEntry& entry, std::span<const std::byte>) {
    const ObjectAddress address = ObjectAddress::from(entry.word);
    const bool sound = address.object < shape_.objects() && !used[address.object] &&
                       address.key_length <= shape_.max_key_size &&
                       address.value_length <= shape_.max_value_size;
    if (!sound) {
      throw UsageError(
          fmt::format("the hash table of pool '{}' is damaged; remove the pool", pool_->name()));
    }
    used[address.object] = true;
  });
}

// Applies every record that verifies, in order, within one lap from the replay start. Applying is
// idempotent, so records that had been applied before do no harm. Notes of deletes may advance the
// replay start.
void Store::replay_log() {
  Position start = log_.replay_start();
  table_.for_each_vacant_word(
      [&](std::uint64_t word) { start = std::max(start, word & ~kDeletedBit); });
  if (start != log_.replay_start()) log_.move_replay_start(start);
  for (Position p = start; p < start + log_.slots(); ++p) replay(p);
  log_.restart();
}

void Store::replay(Position p) {
  read_slot(p, shape_.log_slot_size());
  const std::optional<Record> record = format_.verify(scratch_, log_.lap(p));
  if (!record || !fits(*record)) return;
  // Space was reserved for every acknowledged record, so one without space was not acknowledged.
  kv::Result<std::optional<Room>> room = room_for(record->key);
  if (!room) return;
  apply(*record, *room);
  ++replayed_;
}

std::string Store::audit() const {
  if (log_.pending()) return "the log holds records that recovery has not applied";
  std::vector<std::uint32_t> uses(shape_.objects());
  for (const auto* free : {&free_objects_, &free_long_objects_}) {
    for (const std::uint32_t object : *free) ++uses[object];
  }
  table_.for_each([&](const hopscotch::TableEntry& entry, std::span<const std::byte>) {
    ++uses[ObjectAddress::from(entry.word).object];
  });
  for (std::uint64_t object = 0; object < uses.size(); ++object) {
    if (uses[object] == 1) continue;
    return fmt::format("object {} is {}", object,
                       uses[object] == 0 ? "neither free nor that of a key" : "used twice");
  }
  return table_.audit();
}

}  // namespace perdura::systems::write_ahead
