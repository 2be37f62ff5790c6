// The log of RemoteLog (section 4.1 of "Correct, Fast Remote Persistence"): a ring of slots in a
// persistent region of the server, which a client appends to by remote updates.
//
//   0      magic | slots | largest record      written last, when the log is created
//   64     head: number of records applied
//   72     the same, stored once the head is durable; the client reads this word. If it reused a
//          slot because of a head that a power failure takes back, the log would end there
//   128    tail: number of records appended    the update "b" of methods with two updates; else 0
//   256    the slots; record number i, from 1, is in slot (i - 1) mod slots
//
// A record is a header and its payload. With single updates, records carry checksums, and the tail
// is found where a checksum or a record's number does not match. With two updates, the tail word
// tells where it is, and records have no checksums. To a method that publishes it is the link, and
// may bear the mark "not yet durable" (methods/link.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "methods/link.h"
#include "methods/setup.h"
#include "platform/base/units.h"
#include "platform/fabric/types.h"
#include "platform/pmem/region.h"

namespace perdura::systems::remote_log {

struct RecordHeader {
  std::uint32_t crc = 0;  // over all bytes after it; 0 with two updates
  std::uint32_t length = 0;
  std::uint64_t number = 0;
};
static_assert(sizeof(RecordHeader) == 16);

inline constexpr Bytes kHeadOffset = 64;
inline constexpr Bytes kPublishedHeadOffset = 72;
inline constexpr Bytes kTailOffset = 128;
inline constexpr Bytes kSlotsOffset = 256;

// The options of a log. Client and server must agree on them.
struct LogOptions {
  methods::Method method;
  bool read_for_flush = false;  // a READ emulates FLUSH for visibility
  // The emulation is that of the paper, which measures what a device with FLUSH would take. An
  // ordered update by ATOMIC WRITE is then not correct (methods::with_read_timed_as_flush).
  bool timed_as_flush = false;
  std::uint64_t slots = 4096;         // number of records that the log holds
  std::uint32_t largest_record = 64;  // size of the largest payload, in bytes
  std::uint32_t receive_buffers = 64;
  pmem::Medium receive_medium = pmem::Medium::dram;

  // The same options for a device: READ emulates FLUSH if the device has no FLUSH.
  LogOptions on(const fabric::Capabilities& device) const;
  // The name of the method, with " (read)" if READ emulates its FLUSH.
  std::string method_name() const;
  bool has_tail() const { return method.update != methods::Update::single; }
  // The number of records according to a tail word.
  std::uint64_t tail_in(std::uint64_t word) const {
    return method.marks() ? methods::without_mark(word) : word;
  }
  Bytes slot_size() const { return round_up(sizeof(RecordHeader) + largest_record, kCacheLine); }
  Bytes slot_offset(std::uint64_t number) const {
    return kSlotsOffset + (number - 1) % slots * slot_size();
  }
  Bytes region_size() const { return kSlotsOffset + slots * slot_size(); }
  methods::PersisterSetup setup() const;
};

// The known options of an existing log, or of the other side.
struct KnownOptions {
  std::optional<std::uint64_t> slots{};
  std::optional<std::uint32_t> largest_record{};
  std::optional<bool> has_tail{};
  std::string method{};  // the method's name; empty if unknown
};
struct LogDiffers : methods::OptionsDiffer {
  LogDiffers(const std::string& what, KnownOptions its)
      : methods::OptionsDiffer(what), known(std::move(its)) {}
  KnownOptions known;
};

// Completes a record whose payload is already in place, after the header; returns the record's
// size.
std::size_t write_header(std::span<std::byte> record, std::uint64_t number, std::size_t payload,
                         bool checked);
// The length of the payload if the bytes are record number `number`. `checked`: verify the
// checksum.
std::optional<std::uint32_t> length_of(std::span<const std::byte> record, std::uint64_t number,
                                       bool checked);

}  // namespace perdura::systems::remote_log
