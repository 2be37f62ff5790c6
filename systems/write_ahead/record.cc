#include "systems/write_ahead/record.h"

#include <cstring>

#include "platform/runtime/work.h"

namespace perdura::systems::write_ahead {

namespace {

struct Lengths {
  std::uint32_t key = 0;
  std::uint32_t value = 0;
};
static_assert(sizeof(Lengths) == kExtendedHeader - kTypicalHeader);

std::uint32_t seed(std::uint64_t lap, bool typical) {
  return static_cast<std::uint32_t>(lap * 2 + (typical ? 0 : 1)) ^ 0x57414C31;
}

std::uint32_t stored_crc(std::span<const std::byte> record) {
  std::uint32_t crc;
  std::memcpy(&crc, record.data(), sizeof crc);
  return crc;
}

}  // namespace

Bytes RecordFormat::write(std::span<std::byte> into, kv::Key key, kv::Value value) const {
  const Bytes header = header_size(key.size(), value.size());
  if (header == kExtendedHeader) {
    const Lengths lengths{static_cast<std::uint32_t>(key.size()),
                          static_cast<std::uint32_t>(value.size())};
    std::memcpy(into.data() + kTypicalHeader, &lengths, sizeof lengths);
  }
  copy_bytes(into.subspan(header, key.size()), key);
  copy_bytes(into.subspan(header + key.size(), value.size()), value);
  return header + key.size() + value.size();
}

void RecordFormat::seal(std::span<std::byte> record, bool typical, std::uint64_t lap) const {
  const std::uint32_t crc = crc32(seed(lap, typical), record.subspan(sizeof(std::uint32_t)));
  std::memcpy(record.data(), &crc, sizeof crc);
}

std::optional<Record> RecordFormat::verify(std::span<const std::byte> slot,
                                           std::uint64_t lap) const {
  if (const std::optional<Record> record = verify_typical(slot, lap)) return record;
  return verify_extended(slot, lap);
}

std::optional<Record> RecordFormat::verify(std::span<const std::byte> slot, std::uint64_t lap,
                                           Bytes key_length, Bytes value_length) const {
  if (typical(key_length, value_length)) return verify_typical(slot, lap);
  const std::optional<Record> record = verify_extended(slot, lap);
  if (!record || record->key.size() != key_length || record->value.size() != value_length) {
    return std::nullopt;
  }
  return record;
}

std::optional<Record> RecordFormat::verify_typical(std::span<const std::byte> slot,
                                                   std::uint64_t lap) const {
  const Bytes size = kTypicalHeader + key_size_ + value_size_;
  if (slot.size() < size) return std::nullopt;
  const auto content = slot.subspan(kTypicalHeader, key_size_ + value_size_);
  if (crc32(seed(lap, true), content) != stored_crc(slot)) return std::nullopt;
  return Record{content.first(key_size_), content.subspan(key_size_)};
}

std::optional<Record> RecordFormat::verify_extended(std::span<const std::byte> slot,
                                                    std::uint64_t lap) const {
  if (slot.size() < kExtendedHeader) return std::nullopt;
  Lengths lengths;
  std::memcpy(&lengths, slot.data() + kTypicalHeader, sizeof lengths);
  const Bytes room = slot.size() - kExtendedHeader;
  if (lengths.key > room || lengths.value > room - lengths.key) return std::nullopt;
  const Bytes content = Bytes{lengths.key} + lengths.value;
  if (crc32(seed(lap, false), slot.subspan(kTypicalHeader, sizeof lengths + content)) !=
      stored_crc(slot)) {
    return std::nullopt;
  }
  return Record{slot.subspan(kExtendedHeader, lengths.key),
                slot.subspan(kExtendedHeader + lengths.key, lengths.value)};
}

}  // namespace perdura::systems::write_ahead
