// A record of the log: a checksum and what a put stores.
//
//   typical    | crc 4 | key | value |                       key and value of exactly the typical
//   sizes extended   | crc 4 | key length 4 | value length 4 | key | value |
//
// Nothing in a record says which form it has, to which slot it belongs or whether it is still
// valid: the checksum's seed does. It is made of the form and of the lap, that is, how often the
// log has gone around (modulo 2^31). Two seeds give the same bytes different checksums, always, so
// a record that an earlier lap left in a slot never verifies, and need not be erased.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "platform/base/units.h"
#include "services/kv/kv.h"

namespace perdura::systems::write_ahead {

inline constexpr Bytes kTypicalHeader = 4;
inline constexpr Bytes kExtendedHeader = 12;

// Of a slot of the log.
constexpr Bytes log_slot_size(Bytes max_key_size, Bytes max_value_size) {
  return round_up(kExtendedHeader + max_key_size + max_value_size, kCacheLine);
}

struct Record {
  Key key;
  Value value;
};

class RecordFormat {
 public:
  RecordFormat(Bytes key_size, Bytes value_size) : key_size_(key_size), value_size_(value_size) {}

  bool typical(Bytes key_length, Bytes value_length) const {
    return key_length == key_size_ && value_length == value_size_;
  }
  Bytes header_size(Bytes key_length, Bytes value_length) const {
    return typical(key_length, value_length) ? kTypicalHeader : kExtendedHeader;
  }
  Bytes size(Bytes key_length, Bytes value_length) const {
    return header_size(key_length, value_length) + key_length + value_length;
  }

  // Writes everything but the checksum; returns the record's size.
  Bytes write(std::span<std::byte> into, Key key, Value value) const;
  // Fills in the checksum of a record that write() has written.
  void seal(std::span<std::byte> record, bool typical, std::uint64_t lap) const;

  // The record at the beginning of a slot, if it is complete and belongs to this lap.
  std::optional<Record> verify(std::span<const std::byte> slot, std::uint64_t lap) const;
  // The same where the sizes are known.
  std::optional<Record> verify(std::span<const std::byte> slot, std::uint64_t lap, Bytes key_length,
                               Bytes value_length) const;
  // The same for one of the forms.
  std::optional<Record> verify_typical(std::span<const std::byte> slot, std::uint64_t lap) const;
  std::optional<Record> verify_extended(std::span<const std::byte> slot, std::uint64_t lap) const;

 private:
  Bytes key_size_;
  Bytes value_size_;
};

}  // namespace perdura::systems::write_ahead
