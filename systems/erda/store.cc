#include "systems/erda/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "platform/base/error.h"

namespace perdura::systems::erda {

namespace {
// True if a client can see data that may still be lost: unless a completed WRITE is durable,
// written data becomes visible before it is durable.
bool sees_what_may_be_lost(const std::optional<methods::Method>& put_method) {
  return put_method && put_method->requester().size() > 2;  // more than a WRITE and its completion
}
}  // namespace

Store::Store(Node& node, const std::string& name, const kv::KvConfig& config,
             hopscotch::DisplacementCounter displacements)
    : layout_(shape_for(config)),
      format_(config.key_size, config.value_size),
      pool_(open_pool(node, name, layout_.shape())),
      table_(*pool_, layout_.table_offset(), layout_.table(), displacements),
      space_(*pool_, layout_, read_parameters(config).number<std::uint64_t>("cleaning_threshold")),
      persist_before_update_(read_parameters(config).flag("persist_before_update") ||
                             sees_what_may_be_lost(config.put_method)),
      unverified_before_(layout_.shape().heads),
      remains_before_(layout_.shape().heads) {
  recover();
}

std::unique_ptr<pmem::Region> Store::open_pool(Node& node, const std::string& name,
                                               const Superblock& shape) {
  const PoolLayout layout(shape);
  std::unique_ptr<pmem::Region> pool = node.open_region(name);
  if (pool == nullptr) {
    pool = node.create_region(name, layout.size(), pmem::Medium::pm);
  } else if (pool->size() < sizeof(Superblock)) {
    throw UsageError(fmt::format("pool '{}' is damaged: it has {} bytes; remove it to start anew",
                                 name, pool->size()));
  }
  const auto found = pool->read_object<Superblock>(0);
  if (found.magic == 0) {
    // The pool is new, or a crash came before the superblock's magic, which is stored last.
    pool->write(kWord, std::as_bytes(std::span(&shape, 1)).subspan(kWord));
    pool->persist(0, sizeof shape);
    pool->store(0, shape.magic);
    pool->persist(0, kWord);
    return pool;
  }
  if (found.magic != Superblock::kMagic || found.crc != found.computed_crc()) {
    throw UsageError(
        fmt::format("pool '{}' is damaged or not Erda's: its superblock does not verify; remove it "
                    "to start anew",
                    name));
  }
  if (std::memcmp(&found, &shape, sizeof shape) != 0 || pool->size() < layout.size()) {
    throw UsageError(fmt::format(
        "pool '{}' was made with another configuration (key size {}, value size {}, {} buckets, {} "
        "regions of {} bytes); use the same one, or remove the pool",
        name, found.key_size, found.value_size, found.buckets, found.regions, found.region_bytes));
  }
  // A process that died leaves visible data that may not be durable (docs/restart.md). The objects,
  // which may take gigabytes, are excluded: an update makes the object durable that it replaces.
  pool->persist(0, layout.region_offset(0));
  return pool;
}

// --- versions ------------------------------------------------------------------------------------

std::optional<ObjectFormat::Object> Store::read(const Log& log, Position position,
                                                Scratch& scratch) {
  if (!position) return std::nullopt;
  const Bytes offset = log.offset_of(position);
  const Bytes room =
      layout_.shape().segment_bytes - position.bytes() % layout_.shape().segment_bytes;
  const Bytes first = std::min(format_.typical_size(), room);
  pool_->read(offset, std::span(scratch).first(first));
  const Bytes size = format_.size_of(scratch);
  if (size > room) return std::nullopt;
  if (size > first) pool_->read(offset + first, std::span(scratch).subspan(first, size - first));
  return format_.decode(std::span<const std::byte>(scratch).first(size), log.life_of(position));
}

std::optional<ObjectFormat::Object> Store::read_newest(const hopscotch::TableEntry& entry,
                                                       Scratch& scratch) {
  const VersionWord word(entry.word);
  const std::uint8_t head = entry.tag;
  switch (space_.phase(head)) {
    case Phase::normal:
    case Phase::merging: {
      const Log& log = space_.region_1(head);
      const auto newest = read(log, word.newest(), scratch);
      if (newest || word.has_copy()) return newest;
      return read(log, word.previous(), scratch);
    }
    case Phase::replicating:
      // A copy after the reserved part was written by a client during replication. For any other
      // key the version in Region 1 counts, which may not have been replicated yet.
      if (word.has_copy() && word.copy() >= space_.reserved_end(head)) {
        return read(space_.region_2(head), word.copy(), scratch);
      }
      return read(space_.region_1(head), word.newest(), scratch);
    case Phase::switching:
      return read(space_.region_1(head), word.has_copy() ? word.copy() : word.newest(), scratch);
  }
  return std::nullopt;
}

bool Store::has_value(const hopscotch::TableEntry& entry, Scratch& scratch) {
  const auto newest = read_newest(entry, scratch);
  return newest && !newest->deleted;
}

void Store::restore(const hopscotch::TableEntry& entry) {
  const VersionWord word(entry.word);
  if (!word.previous() || word.has_copy()) {
    table_.clear(entry.bucket);
    return;
  }
  set_word(entry, word.restored());
}

// --- writing -------------------------------------------------------------------------------------

Store::Begun Store::begin_version(bool erase, const hopscotch::StoredKey& key,
                                  const std::optional<hopscotch::TableEntry>& entry,
                                  Bytes object_size, Scratch& scratch) {
  if (object_size + kWord > layout_.shape().segment_bytes) return {Outcome::too_large, {}};
  if (erase && (!entry || !has_value(*entry, scratch))) return {Outcome::not_found, {}};
  const std::uint8_t head = layout_.head_of(key);
  // A failed attempt must not allocate log space, or each one would leave something to clean.
  kv::Result<hopscotch::Bucket> bucket{};
  if (!entry && !(bucket = table_.reserve(key))) return {Outcome::out_of_space, {}};
  const std::optional<Position> position = space_.reserve_in_1(head, object_size);
  if (!position) {
    if (!entry) table_.release(*bucket);
    return {Outcome::out_of_space, {}};
  }
  if (*position < remains_before_[head - 1]) erase_remains(space_.region_1(head), *position);
  if (entry) {
    // The version that this update drops from the entry may be the last one that is surely durable,
    // so the newest one is made durable first.
    const VersionWord before(entry->word);
    if (persist_before_update_) persist(space_.region_1(head), before.newest(), scratch);
    set_word(*entry, before.updated(*position));
  } else {
    table_.fill(*bucket, key, head, VersionWord::created(*position).raw(), kVersionLayout);
  }
  return {Outcome::ok, *position};
}

Outcome Store::write_version(bool erase, const hopscotch::StoredKey& key,
                             const std::optional<hopscotch::TableEntry>& entry,
                             std::span<std::byte> object, Scratch& scratch) {
  if (object.size() + kWord > layout_.shape().segment_bytes) return Outcome::too_large;
  if (erase && (!entry || !has_value(*entry, scratch))) return Outcome::not_found;
  const std::uint8_t head = layout_.head_of(key);
  const Phase phase = space_.phase(head);
  const bool to_region_2 = phase == Phase::replicating;
  kv::Result<hopscotch::Bucket> bucket{};
  if (!entry && !(bucket = table_.reserve(key))) return Outcome::out_of_space;
  const std::optional<Position> position = to_region_2 ? space_.reserve_in_2(head, object.size())
                                                       : space_.reserve_in_1(head, object.size());
  if (!position) {
    if (!entry) table_.release(*bucket);
    return Outcome::out_of_space;
  }
  write_object(to_region_2 ? space_.region_2(head) : space_.region_1(head), *position, object, 0);
  if (!entry) {
    const VersionWord word =
        to_region_2 ? VersionWord::created_in_region_2(*position) : VersionWord::created(*position);
    table_.fill(*bucket, key, head, word.raw(), kVersionLayout);
    return Outcome::ok;
  }
  const VersionWord before(entry->word);
  switch (phase) {
    case Phase::normal:
      set_word(*entry, before.updated(*position));
      break;
    case Phase::merging:
      set_word(*entry, before.replaced(*position));
      break;
    case Phase::replicating:
      set_word(*entry, before.with_copy(*position));
      break;
    case Phase::switching:
      set_word(*entry,
               before.has_copy() ? before.switched_to(*position) : before.replaced(*position));
      break;
  }
  return Outcome::ok;
}

void Store::persist_written(std::uint8_t head, Position position, Bytes size) {
  pool_->persist(space_.region_1(head).offset_of(position),
                 std::min(size, layout_.shape().segment_bytes));
}

void Store::erase_remains(const Log& log, Position position) {
  pool_->store(log.offset_of(position), 0);
  pool_->persist(log.offset_of(position), kWord);
}

void Store::persist(const Log& log, Position position, Scratch& scratch) {
  if (!read(log, position, scratch)) return;
  pool_->persist(log.offset_of(position), format_.size_of(scratch));
}

void Store::write_object(const Log& log, Position position, std::span<std::byte> object,
                         std::uint32_t sealed_for) {
  ObjectFormat::reseal(object, sealed_for, log.life_of(position));
  pool_->write_streaming(log.offset_of(position), object);
  pool_->drain();
}

// --- log cleaning (section 4.4) ------------------------------------------------------------------

std::optional<hopscotch::TableEntry> Store::entry_of(std::uint8_t head, const Log& log,
                                                     Position position, Scratch& scratch) {
  const Bytes offset = log.offset_of(position);
  const Bytes room =
      layout_.shape().segment_bytes - position.bytes() % layout_.shape().segment_bytes;
  const Bytes first = std::min(kLongHeader + layout_.shape().key_size, room);
  std::fill_n(scratch.begin(), kLongHeader, std::byte{});
  pool_->read(offset, std::span(scratch).first(first));
  const std::optional<Bytes> end = format_.key_end(scratch, room);
  if (!end) return std::nullopt;
  if (*end > first) pool_->read(offset + first, std::span(scratch).subspan(first, *end - first));
  const auto entry = table_.find(layout_.table().stored(format_.key_in(scratch)));
  return entry && entry->tag == head ? entry : std::nullopt;
}

bool Store::merge_object(std::uint8_t head, Position position, Scratch& scratch) {
  Log& from = space_.region_1(head);
  const auto entry = entry_of(head, from, position, scratch);
  if (!entry || VersionWord(entry->word).newest() != position ||
      VersionWord(entry->word).has_copy()) {
    return true;  // a stale version
  }
  const auto object = read(from, position, scratch);
  if (!object) {
    // The writer died long ago. The scan goes backward, so the previous version, if there is one,
    // is still to come.
    restore(*entry);
    return true;
  }
  if (object->deleted) {
    table_.clear(entry->bucket);
    return true;
  }
  const Bytes size = format_.size_of(scratch);
  const std::optional<Position> to = space_.reserve_for_cleaner(head, size);
  if (!to) return false;
  // The copy replaces the previous version in the entry. If the power fails before Region 2 counts,
  // only the newest version in Region 1 is left, which a client wrote and which nothing has made
  // durable yet.
  pool_->flush(from.offset_of(position), size);
  write_object(space_.region_2(head), *to, std::span(scratch).first(size), from.life_of(position));
  set_word(*entry, VersionWord(entry->word).with_copy(*to));
  return true;
}

std::vector<Position> Store::restore_unwritten(std::uint8_t head, Scratch& scratch) {
  std::vector<Position> left;
  // The server has restored the entry of every writer that was lost since the last recovery.
  if (!unverified_before_[head - 1]) return left;
  for_each_of(head, [&](const hopscotch::TableEntry& entry) {
    const VersionWord word(entry.word);
    if (word.has_copy() || !unverified(head, word.newest())) return;
    // An entry without a copy would point into Region 2 once that replaces Region 1.
    if (!read(space_.region_1(head), word.previous(), scratch)) {
      table_.clear(entry.bucket);
      return;
    }
    restore(entry);
    left.push_back(word.previous());
  });
  return left;
}

Position Store::replicate_object(std::uint8_t head, Position position, Position to,
                                 Scratch& scratch) {
  Log& from = space_.region_1(head);
  Log& log = space_.region_2(head);
  const auto entry = entry_of(head, from, position, scratch);
  if (!entry || VersionWord(entry->word).newest() != position ||
      VersionWord(entry->word).has_copy()) {
    return to;  // stale, or a client has written a newer version to Region 2
  }
  const auto object = read(from, position, scratch);
  if (!object || object->deleted) {
    table_.clear(entry->bucket);
    return to;
  }
  const Bytes size = format_.size_of(scratch);
  const Position copied_to = *log.position_from(to, size);
  write_object(log, copied_to, std::span(scratch).first(size), from.life_of(position));
  log.note(copied_to, size);
  set_word(*entry, VersionWord(entry->word).with_copy(copied_to));
  return position_behind(copied_to, scratch);
}

void Store::switch_object(std::uint8_t head, Position position, Scratch& scratch) {
  const auto entry = entry_of(head, space_.region_1(head), position, scratch);
  if (entry && VersionWord(entry->word).copy() == position) {
    set_word(*entry, VersionWord(entry->word).switched());
  }
}

void Store::abandon_cleaning(std::uint8_t head) {
  for_each_of(head, [&](const hopscotch::TableEntry& entry) {
    const VersionWord word(entry.word);
    if (word.has_copy()) set_word(entry, word.without_copy());
  });
  space_.end_cleaning(head);
}

void Store::end_cleaning(std::uint8_t head) {
  space_.end_cleaning(head);
  unverified_before_[head - 1] = {};
  remains_before_[head - 1] = {};
}

}  // namespace perdura::systems::erda
