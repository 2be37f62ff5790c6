// The log of FileMR in a server's persistent region, and what its two sides tell each other.
//
//   0      magic | room: bytes for records | largest payload
//   64     two copies of the head: number and place of the last record that was applied, and a
//          checksum; the newer one counts, so that one that was half written does no harm
//   128    size: the number of bytes that were ever appended, which the device moves (APPEND)
//   256    the room
//
// To its client the log is a file that only grows: record after record, each a RecordHeader and a
// payload, filled up to whole words. Byte i of the file is in byte i mod room of the room, as long
// as the file is mapped there. When records have been applied, the part of the file with them is
// unmapped, and the room that it had is mapped at the end of the file.
//
// Records carry their numbers and checksums, so that the server finds the last one after a failure
// without having to trust the size.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "methods/method.h"
#include "platform/fabric/types.h"
#include "platform/pmem/region.h"

namespace perdura::systems::filemr_log {

inline constexpr Bytes kHeadsOffset = 64;
inline constexpr Bytes kSizeOffset = 128;
inline constexpr Bytes kRoomOffset = 256;

// How a record is made durable after its APPEND.
enum class Persistence : std::uint8_t {
  none,     // the APPEND is enough
  flush,    // FLUSH, or READ where the devices have none
  message,  // the server's CPU is asked to write it back
  commit,   // the APPEND itself ends with a commit
};
// The steps of a method for a WRITE that follow the WRITE, which the APPEND replaces.
Persistence persistence_of(const methods::Method& method);

// Throws UsageError if the device cannot make records durable in this way.
void check_device(Persistence persistence, const fabric::Capabilities& device);

struct Options {
  Bytes room = 0;                     // for records, in bytes
  std::uint32_t largest_payload = 0;  // in bytes
  Persistence persistence = Persistence::none;
};

// The bytes of the file that a record with this payload takes.
Bytes record_size(Bytes payload);

// The number of the last of the first records of a log, and where the next one begins in the file.
struct Position {
  std::uint64_t number = 0;
  Bytes end = 0;
};

// The client's greeting, and the server's answer.
struct Hello {
  Bytes room = 0;
  std::uint32_t largest_payload = 0;
  Persistence persistence = Persistence::none;
};
struct Welcome {
  fabric::RemoteKey file;
  fabric::RemoteKey size;  // the word with the size, which is always there to be read and flushed
  Position tail;
};
enum class Reason : std::uint32_t { options = 1, busy };
struct Rejection {
  Reason reason = Reason::busy;
  Hello server;
};
// A request to make the file durable from one place to another, and the answer.
struct PersistRequest {
  Bytes from = 0;
  Bytes to = 0;
};
using Persisted = std::uint64_t;  // the place up to which it is

}  // namespace perdura::systems::filemr_log
