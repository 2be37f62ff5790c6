// Drives a store without a network: does what the servers and the clients of the two baselines do.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "systems/write_ahead/store.h"
#include "tests/systems/hopscotch/crash_memory.h"

namespace perdura::systems::write_ahead::test {

using perdura::test::CrashMemory;
using perdura::test::Image;

using perdura::test::as_key;

// Keys of three lengths, one of them too long for an entry.
inline std::string key_number(std::uint64_t number) {
  std::string key = "key" + std::to_string(number);
  key.resize(number % 5 == 0 ? 30 : number % 5 == 1 ? 9 : 16, '-');
  return key;
}

// With records and objects within a line, or over several.
inline Shape small_shape(std::uint64_t log_slots = 8, Bytes value_size = 24) {
  kv::KvConfig config;
  config.key_size = 16;
  config.value_size = value_size;
  config.max_value_size = value_size + 8;
  config.records = 12;
  config.parameters = {
      {"log_slots", log_slots}, {"max_key_size", 30}, {"long_keys", 4}, {"neighborhood", 4}};
  return {config, Parameters::of(config, "a-system", 2)};
}

// The pool of a crashed store, and a store that recovers it.
struct Recovered {
  explicit Recovered(const Shape& shape, Image image)
      : memory(std::make_shared<CrashMemory>(std::move(image))), store(pool(shape), shape) {}
  Pool pool(const Shape&) {
    return {std::make_unique<pmem::Region>("pool", pmem::Medium::pm, memory->visible.data(),
                                           memory->visible.size(), memory, nullptr),
            false};
  }
  std::shared_ptr<CrashMemory> memory;
  Store store;
};

inline std::optional<std::string> value_of(Store& store, const std::string& key) {
  std::string value(store.shape().max_value_size, '\0');
  const kv::Result<Bytes> length = store.get(as_key(key), std::as_writable_bytes(std::span(value)));
  if (!length) return std::nullopt;
  value.resize(*length);
  return value;
}

// A client's record, in the slot of a position.
inline Bytes write_record(Store& store, Position p, const std::string& key,
                          const std::string& value) {
  std::vector<std::byte> record(store.shape().log_slot_size());
  const Bytes size = store.format().write(record, as_key(key), as_key(value));
  store.format().seal(std::span(record).first(size),
                      store.format().typical(key.size(), value.size()), store.log().lap(p));
  store.pool().write(store.log().offset(p), std::span(record).first(size));
  return size;
}

// A put of Redo Logging, up to its acknowledgment. False: the store is full.
inline bool put_redo(Store& store, const std::string& key, const std::string& value) {
  Log& log = store.log();
  while (log.tail() - log.applied() > log.quarter()) store.apply_next();
  if (log.full()) log.reclaim();
  const Position p = log.tail();
  const Bytes size = write_record(store, p, key, value);
  const std::optional<Record> record = store.arrived(p, size);
  EXPECT_TRUE(record);
  const kv::Result<std::optional<Room>> room = store.room_for(record->key);
  if (!room) {
    store.invalidate(p);
    log.skip();
    return false;
  }
  store.persist(p, size);
  log.append(record->key, static_cast<std::uint32_t>(record->value.size()),
             LogEntry::State::verified, 0)
      .room = *room;
  return true;
}

// The reservation of a put of Read After Write; nothing if the store is full.
inline std::optional<Position> reserve_slot(Store& store, const std::string& key,
                                            const std::string& value, std::uint32_t owner) {
  Log& log = store.log();
  const kv::Result<std::optional<Room>> room = store.room_for(as_key(key));
  if (!room) return std::nullopt;
  const Position p = log.tail();
  log.append(as_key(key), static_cast<std::uint32_t>(value.size()), LogEntry::State::reserved,
             owner)
      .room = *room;
  return p;
}

}  // namespace perdura::systems::write_ahead::test
