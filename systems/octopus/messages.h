// The messages between clients and the server: self-identified metadata RPCs (section 3.3 of the
// paper). A client WRITEs a request with an immediate into one of its slots in the server's message
// pool; the immediate names the client and the slot. The server WRITEs the answer, with the number of
// the slot as immediate, into the client's memory.
#pragma once

#include <cstdint>

#include "platform/fabric/fabric.h"
#include "platform/fabric/needs.h"

namespace perdura::systems::octopus {

inline constexpr fabric::DeviceNeeds kDeviceNeeds{.write_with_immediate = true};
inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::uint32_t kMostClients = 1 << 16;
inline constexpr std::uint32_t kMostSlots = 1 << 10;
inline constexpr std::size_t kLongestPath = 255;

// The private data of a connection.
struct Hello {
  std::uint32_t version = 0;
  std::uint32_t answers_key = 0;  // remote key of the client's answer slots, kAnswerRoom each
  std::uint32_t slots = 0;        // that it has
};
struct Welcome {
  std::uint32_t version = 0;
  std::uint32_t client = 0;
  std::uint32_t slots = 0;     // that it may use: its own, or as many as the server has for it
  std::uint32_t pool_key = 0;  // remote key of the message pool
  std::uint32_t data_key = 0;  // remote key of all extents
  std::uint64_t pool_offset = 0;
};
static_assert(sizeof(Welcome) <= fabric::kMaxPrivateData);

constexpr std::uint32_t immediate_of(std::uint32_t client, std::uint32_t slot) {
  return client << 16 | slot;
}
constexpr std::uint32_t client_of(std::uint32_t immediate) { return immediate >> 16; }
constexpr std::uint32_t slot_of(std::uint32_t immediate) { return immediate & 0xffff; }

enum class RequestKind : std::uint32_t {
  create,            // a file
  make_directory,    // and the other operations on names
  unlink,            // not of directories
  remove_directory,  // an empty one
  stat,
  list,       // entries of a directory from number `offset` on
  read,       // asks for the address of a range, cut at the end of the file
  write,      // asks for the address of a range, to which the file is extended
  append,     // the same for a range at its end
  set_times,  // to `now`
  sync,       // forces what has been written
};
inline constexpr std::uint32_t kRequestKinds = 11;

struct Request {
  RequestKind kind{};
  std::uint32_t path_length = 0;  // the path follows
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t now = 0;  // nanoseconds
};
static_assert(sizeof(Request) == 32);
inline constexpr Bytes kRequestRoom = 320;
static_assert(sizeof(Request) + kLongestPath <= kRequestRoom);

struct Answer {
  std::int32_t error = 0;  // std::errc; 0: done
  std::uint32_t is_directory = 0;
  std::uint64_t size = 0;
  std::uint64_t modified = 0;
  // For read, write and append: where the range is in the registered extents. For list: the entry
  // with which to go on, or 0 at the end.
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // bytes of the range, or of the names that follow the answer
};
static_assert(sizeof(Answer) == 40);
inline constexpr Bytes kAnswerRoom = 4 * KiB;

// The name of an entry in an answer to `list`: its length, whether it is a directory, its bytes.
inline constexpr Bytes kListedHeader = 2;
static_assert(sizeof(Answer) + kListedHeader + kLongestPath <= kAnswerRoom);

}  // namespace perdura::systems::octopus
