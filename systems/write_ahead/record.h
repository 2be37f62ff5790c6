// A record of the log: a checksum, and the key and value of a put.
//
//   typical    | crc 4 | key | value |       if key and value have exactly the typical sizes
//   extended   | crc 4 | key length 4 | value length 4 | key | value |
//
// Nothing in a record tells its form, its slot, or whether it is still valid; the seed of the
// checksum does. It is computed from the form and from the lap, which is the number of times that
// the log has wrapped around (modulo 2^31). Different seeds always give different checksums for the
// same bytes. So a record that an earlier lap left in a slot never verifies, and need not be
// erased.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "platform/base/units.h"
#include "services/kv/kv.h"

namespace perdura::systems::write_ahead {

inline constexpr Bytes kTypicalHeader = 4;
inline constexpr Bytes kExtendedHeader = 12;

// The size of a slot of the log.
constexpr Bytes log_slot_size(Bytes max_key_size, Bytes max_value_size) {
  return round_up(kExtendedHeader + max_key_size + max_value_size, kCacheLine);
}

struct Record {
  kv::Key key;
  kv::Value value;
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

  // Writes everything except the checksum; returns the size of the record.
  Bytes write(std::span<std::byte> into, kv::Key key, kv::Value value) const;
  // Adds the checksum to a record that write() has written.
  void seal(std::span<std::byte> record, bool typical, std::uint64_t lap) const;

  // The record at the beginning of a slot, if it is complete and of this lap.
  std::optional<Record> verify(std::span<const std::byte> slot, std::uint64_t lap) const;
  // The same if the sizes are known.
  std::optional<Record> verify(std::span<const std::byte> slot, std::uint64_t lap, Bytes key_length,
                               Bytes value_length) const;
  // The same for one form.
  std::optional<Record> verify_typical(std::span<const std::byte> slot, std::uint64_t lap) const;
  std::optional<Record> verify_extended(std::span<const std::byte> slot, std::uint64_t lap) const;

 private:
  Bytes key_size_;
  Bytes value_size_;
};

}  // namespace perdura::systems::write_ahead
