// The log of RemoteLog (section 4.1 of "Correct, Fast Remote Persistence"): a ring of slots in a
// persistent region of the server, which a client appends to by remote updates.
//
//   0      magic | slots | largest record      written last, when the log is made
//   64     head: how many records the server has applied; it publishes this
//   128    tail: how many records there are    the update "b" of ordered methods; else 0
//   256    the slots; record number i, from 1, is in slot (i - 1) mod slots
//
// A record is a header and its payload. By a single update it carries a checksum, and the tail is
// where that, or the number, is wrong. By ordered updates the tail says where it is, and there is
// no checksum.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "persistence/setup.h"
#include "platform/base/units.h"
#include "platform/fabric/types.h"
#include "platform/pmem/region.h"

namespace perdura::bench {

struct RecordHeader {
  std::uint32_t crc = 0;  // over all after it; 0 by ordered updates
  std::uint32_t length = 0;
  std::uint64_t number = 0;
};
static_assert(sizeof(RecordHeader) == 16);

inline constexpr Bytes kHeadOffset = 64;
inline constexpr Bytes kTailOffset = 128;
inline constexpr Bytes kSlotsOffset = 256;

// How client and server keep a log; both must say the same.
struct LogOptions {
  persistence::Method method;
  bool read_for_flush = false;        // FLUSH for visibility is done by READ
  std::uint64_t slots = 4096;         // records that the log holds
  std::uint32_t largest_record = 64;  // bytes of payload
  std::uint32_t receive_buffers = 64;
  pmem::Medium receive_medium = pmem::Medium::dram;

  // As far as a device lacks FLUSH, READ takes its place.
  LogOptions on(const fabric::Capabilities& device) const;
  // The method's name, with " (read)" if READ takes the place of its FLUSH.
  std::string method_name() const;
  bool has_tail() const { return method.update == persistence::Update::ordered; }
  Bytes slot_size() const { return round_up(sizeof(RecordHeader) + largest_record, kCacheLine); }
  Bytes slot_offset(std::uint64_t number) const {
    return kSlotsOffset + (number - 1) % slots * slot_size();
  }
  Bytes region_size() const { return kSlotsOffset + slots * slot_size(); }
  persistence::PersisterSetup setup() const;
};

// What is known of the options of another log, or of the other side.
struct KnownOptions {
  std::optional<std::uint64_t> slots{};
  std::optional<std::uint32_t> largest_record{};
  std::optional<bool> has_tail{};
  std::string method{};  // its name; empty if it is not known
};
struct LogDiffers : persistence::OptionsDiffer {
  LogDiffers(const std::string& what, KnownOptions its)
      : persistence::OptionsDiffer(what), known(std::move(its)) {}
  KnownOptions known;
};

// Puts a record together behind its payload, which begins after the header; returns its size.
std::size_t write_header(std::span<std::byte> record, std::uint64_t number, std::size_t payload,
                         bool checked);
// The payload's length, if these bytes are record number `number`; `checked` asks for the checksum.
std::optional<std::uint32_t> length_of(std::span<const std::byte> record, std::uint64_t number,
                                       bool checked);

}  // namespace perdura::bench
