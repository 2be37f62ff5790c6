// The messages between the parts of Orion: log commits and RPCs of clients (section 4.2.1), and what
// is sent to data stores.
//
// A client's message to the MDS is a header, then for a commit the log entries, for any other request
// its arguments, up to two names and a payload:
//
//   commit            | MessageHeader | entries, whole cache lines ...            |
//   other requests    | MessageHeader | Arguments | name | other name | payload   |
//
// A payload that does not fit into a receive buffer stays with the client; the message says where,
// and the MDS READs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "platform/fabric/types.h"
#include "services/fs/fs.h"

namespace perdura::systems::orion {

inline constexpr std::uint32_t kProtocolVersion = 1;

// --- connections

enum class Peer : std::uint32_t { session, store };

// Identifies a session: the mount that it belongs to, and its thread's port. The MDS numbers mounts;
// no two have the same number, whenever they are.
struct SessionId {
  std::uint64_t mount = 0;
  std::uint64_t port = 0;
  auto operator<=>(const SessionId&) const = default;
};

struct Hello {
  std::uint32_t version = 0;
  Peer peer{};
  std::uint32_t group = 0;  // the store's group
  std::uint32_t reserved = 0;
  SessionId session{};  // with mount 0, the MDS chooses a number for a new mount
};
static_assert(sizeof(Hello) <= fabric::kMaxPrivateData);

// The answer of the MDS to a session.
struct Welcome {
  std::uint32_t version = 0;
  std::uint32_t session = 0;
  std::uint32_t volume_key = 0;  // key of the region with inodes and logs
  std::uint32_t words_key = 0;   // key of the published words
  std::uint64_t size = 0;        // size of the region
  std::uint64_t inodes = 0;
  std::uint64_t pages = 0;  // pages in each group
  std::uint64_t mount = 0;  // the session's mount, or a new one
  std::uint32_t log_page_bytes = 0;
  std::uint16_t groups = 0;
  std::uint16_t chunk_pages = 0;
};
static_assert(sizeof(Welcome) <= fabric::kMaxPrivateData);

// The answer of a store to a session, and of the MDS to a store.
struct StoreWelcome {
  std::uint32_t version = 0;
  std::uint32_t pages_key = 0;
  std::uint64_t pages = 0;
};

// --- requests to the MDS

enum class Request : std::uint8_t {
  commit,  // appends entries to one inode's log, by a network thread
  update,  // the same by an RPC, with the entries as payload
  create,
  create_unnamed,
  link,
  unlink,
  remove_directory,
  rename,
  change,  // changes attributes, one of them extended
  set_extended,
  remove_extended,
  hold,
  release,
  take_chunk,
  statistics,
  leave,  // ends all sessions of the mount
};
inline constexpr std::uint8_t kLastRequest = static_cast<std::uint8_t>(Request::leave);

// Flags of a message.
inline constexpr std::uint8_t kSpeculative = 1;  // no answer, whatever the inode's tail is
inline constexpr std::uint8_t kByReference = 2;  // the payload is in the client's memory

struct MessageHeader {
  Request request{};
  std::uint8_t flags = 0;
  std::uint16_t call = 0;
  std::uint32_t length = 0;  // length of the message, without a payload by reference
  std::uint64_t inode = 0;
  std::uint64_t generation = 0;
  std::uint64_t tail = 0;    // commit, update: the tail word of the log that the entries follow
  std::uint32_t forces = 0;  // acknowledgments of stores that the commit waits for
  std::uint32_t reserved = 0;
};
static_assert(sizeof(MessageHeader) == 40);
// A commit has at most two cache lines of entries (section 4.2.1).
inline constexpr std::size_t kMostCommitted = 2 * kCacheLine;

// The parts of a change of attributes that are given: a bit set (Arguments::present).
enum class ChangePart : std::uint8_t {
  permissions = 1,
  uid = 2,
  gid = 4,
  accessed = 8,
  modified = 16,
  changed = 32,
  extended = 64,        // an extended attribute, whose name follows
  extended_value = 128  // its value follows; otherwise it is removed
};

struct Arguments {
  std::uint64_t other = 0;  // another inode, a count, or a group
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t device = 0;
  std::uint16_t name_length = 0;
  std::uint16_t other_length = 0;
  std::uint32_t payload_length = 0;
  std::uint32_t payload_key = 0;
  std::uint8_t how = 0;        // an fs::RenameMode or fs::AttributeMode
  std::uint8_t present = 0;    // change: the parts that are given
  std::uint16_t extended = 0;  // create: number of attributes in the payload
  std::uint64_t payload_offset = 0;
  std::int64_t accessed_seconds = 0;
  std::int64_t modified_seconds = 0;
  std::uint32_t accessed_nanoseconds = 0;
  std::uint32_t modified_nanoseconds = 0;
};
static_assert(sizeof(Arguments) == 88);
static_assert(std::is_trivially_copyable_v<fs::Attributes>);

// The answer of the MDS.
struct Reply {
  std::uint32_t call = 0;
  std::int32_t error = 0;   // std::errc; kStale: the log's tail was another one
  std::uint64_t tail = 0;   // commit, update: the tail word after it, or the one that it has
  std::uint64_t value = 0;  // take_chunk: the GPA of the chunk's first page
  std::uint32_t count = 0;  // take_chunk: pages of the chunk
  std::uint32_t reserved = 0;
  fs::Attributes attributes{};
  fs::Statistics statistics{};
  std::uint64_t free[8]{};  // take_chunk: a bit for each page that is free
};
static_assert(std::is_trivially_copyable_v<Reply>);
inline constexpr std::int32_t kStale = -1;
inline constexpr std::uint32_t kMostChunkPages = 512;
// The largest payload that a client may keep in its memory for the MDS to READ.
inline constexpr Bytes kLargestPayload = 256 * KiB;

// --- between the MDS and a store

// A session has ended, so a store lets it write no more: the MDS may give its pages to others as soon
// as all stores have said so. The answer is the same message.
struct Fence {
  SessionId session{};
};

// --- requests to a store

// Forces pages that the sender wrote into persistent memory; the answer has the same call.
struct Force {
  std::uint32_t call = 0;
  std::uint32_t count = 0;  // pages
  std::uint64_t page = 0;   // the first one
};
struct Forced {
  std::uint32_t call = 0;
  std::uint32_t refused = 0;
};

}  // namespace perdura::systems::orion
