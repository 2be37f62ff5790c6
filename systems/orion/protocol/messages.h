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
#include "services/fs/locks.h"
#include "systems/orion/protocol/layout.h"

namespace perdura::systems::orion {

inline constexpr std::uint32_t kProtocolVersion = 1;

// --- connections

enum class Peer : std::uint32_t { session, store, pair };

// Identifies a session: the mount that it belongs to, and its thread's port, with the number of the
// thread's attempts to connect before. The MDS numbers mounts; no two have the same number, whenever
// they are.
struct SessionId {
  std::uint64_t mount = 0;
  std::uint64_t port = 0;
  auto operator<=>(const SessionId&) const = default;
};
constexpr std::uint64_t port_of_session(std::uint64_t port, std::uint64_t attempts) {
  return attempts << 32 | port;
}
// The network thread of the MDS that has the session.
constexpr std::uint32_t network_thread_of(const SessionId& session, std::uint32_t threads) {
  return static_cast<std::uint32_t>(session.port) % threads;
}

struct Hello {
  std::uint32_t version = 0;
  Peer peer{};
  // The store's group; of one of a pair, 1: it wants to be the mirror.
  std::uint32_t group = 0;
  // To a store: the session's number at the MDS. Of a store to the MDS: its node. Where processes join and leave (the
  // platform `verbs`), the connection does not tell: it has a number that the acceptor has drawn.
  std::uint32_t number = 0;
  SessionId id{};  // with mount 0, the MDS chooses a number for a new mount
  // Sent by a session: the epoch of the members that it knows. By a store: the last epoch in which it
  // was up to date.
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;  // to a store: that of the session's last WRITE with an immediate
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

// The answer of a store to a session or to another store.
struct StoreWelcome {
  std::uint32_t version = 0;
  std::uint32_t pages_key = 0;
  std::uint64_t pages = 0;
  std::uint32_t journal_key = 0;
  std::uint32_t journal_records = 0;
};

// The answer of the MDS to a store.
struct MdsWelcome {
  std::uint32_t version = 0;
  std::uint32_t store = 0;     // the store's number
  std::uint32_t acks_key = 0;  // where its acknowledgments go: kAcks slots
  std::uint32_t in_use_key =
      0;  // where the MDS puts a bit for each page of the group that is in use
};

// The answer of the MDS, or of its mirror, to the other one (Peer::pair). It refuses the connection,
// which serves for nothing else.
struct PairAnswer {
  std::uint32_t version = 0;
  std::uint32_t is_mds = 0;       // 1: it is the MDS, or may be about to be
  std::uint32_t is_complete = 0;  // 1: as a mirror, it has all that was acknowledged
  std::uint32_t is_mirror = 0;    // 1: it can receive as the mirror
  std::uint32_t is_new = 0;       // 1: it is the mirror, and has never received anything
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
  borrow,      // pages that are allocated to a file and unwritten, to write to them in place
  end_borrow,  // the pages that the payload names, which were not written
  statistics,
  leave,  // ends all sessions of the mount
  lock,   // sets an advisory lock, or asks for one that forbids it; the payload is a LockArguments
};
inline constexpr std::uint8_t kLastRequest = static_cast<std::uint8_t>(Request::lock);

// Flags of a message.
inline constexpr std::uint8_t kSpeculative = 1;  // no answer, whatever the inode's tail is
inline constexpr std::uint8_t kByReference = 2;  // the payload is in the client's memory
// Each store that was to get the pages got them by WRITEs with immediates.
inline constexpr std::uint8_t kByImmediates = 4;

struct MessageHeader {
  Request request{};
  std::uint8_t flags = 0;
  std::uint16_t call = 0;
  std::uint32_t length = 0;  // length of the message, without a payload by reference
  std::uint64_t inode = 0;
  std::uint64_t generation = 0;
  std::uint64_t tail = 0;  // commit, update: the tail word of the log that the entries follow
  std::uint64_t epoch =
      0;  // commit, update: the epoch in which all pages of the entries were written
  // Acknowledgments that it waits for: so many words, which follow the entries of a commit, and the
  // message of an update.
  std::uint32_t forces = 0;
  // How often the operation has been refused before, because others came first. From kMostRefusals on,
  // the inode is reserved for the session when it is refused once more (mds/reservations.h).
  std::uint32_t refusals = 0;
};
static_assert(sizeof(MessageHeader) == 48);
inline constexpr std::uint32_t kMostRefusals = 2;
// A session may borrow so many pages at a time.
inline constexpr std::uint64_t kMostBorrowed = 4096;
// A store has forced everything that the session has written to it by WRITEs with immediates, up to a
// number of them. Its upper part counts the session's connections to the store: what came over an
// earlier one may be lost.
inline constexpr int kConnectionShift = 40;
struct Force {
  std::uint32_t store = 0;
  std::uint64_t sequence = 0;
};
constexpr std::uint64_t word_of(const Force& force) {
  return std::uint64_t{force.store} << 56 | force.sequence;
}
constexpr Force force_of(std::uint64_t word) {
  return {static_cast<std::uint32_t>(word >> 56), word & ((std::uint64_t{1} << 56) - 1)};
}
inline constexpr std::uint32_t kMostForces = kMostStores;
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

struct LockArguments {
  fs::FileLock lock;
  std::uint64_t only_asks = 0;
};
static_assert(std::is_trivially_copyable_v<LockArguments>);

// The answer of the MDS.
struct Reply {
  std::uint32_t call = 0;
  std::int32_t error = 0;   // std::errc, kStale or kOtherMembers
  std::uint64_t tail = 0;   // commit, update: the tail word after it, or the one that it has
  std::uint64_t value = 0;  // take_chunk: the GPA of the chunk's first page; hold: the generation
  // take_chunk: pages of the chunk; lock: 1 if another one forbids it; hold: 1 unless it was held
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  fs::Attributes attributes{};
  fs::Statistics statistics{};
  // take_chunk: a bit for each page that is free; lock: the one that forbids it, an fs::FileLock.
  std::uint64_t free[8]{};
};
static_assert(std::is_trivially_copyable_v<Reply>);
static_assert(sizeof(fs::FileLock) <= sizeof(Reply::free));
inline constexpr std::int32_t kStale = -1;         // the log's tail was another one
inline constexpr std::int32_t kOtherMembers = -2;  // the pages were written in another epoch
inline constexpr std::uint32_t kMostChunkPages = 512;
// The largest payload that a client may keep in its memory for the MDS to READ.
inline constexpr Bytes kLargestPayload = 256 * KiB;

// --- between the MDS and a store

// How a store acknowledges a page (section 4.3.3): a small WRITE to the next slot of kAcks, with the
// page's number as immediate.
struct Ack {
  SessionId id{};
  std::uint32_t session = 0;  // number at the MDS
  std::uint32_t reserved = 0;
  std::uint64_t sequence = 0;
};
static_assert(sizeof(Ack) == 32);
inline constexpr std::uint32_t kAcks = 1024;

// The kinds of messages that the MDS and a store SEND to each other.
enum class News : std::uint32_t {
  // From the MDS, each answered by the same message:
  fence,  // a session has ended, so the store lets it write no more: when all stores have said so, the
          // MDS may give its pages to others
  epoch,  // an epoch begins
  probe,  // nothing; a store that does not answer for a while has failed
  // From a store that is not up to date, and the answers:
  catch_up,   // it wants to catch up. Answered when clients write to it, too
  caught_up,  // it has everything. It is up to date when it is told of the next epoch
};
enum class StoreState : std::uint32_t { out, joins, up_to_date };

struct StoreNews {
  News news{};
  StoreState state{};  // epoch: the store's state
  SessionId session{};
  std::uint64_t epoch = 0;
  // The answer to catch_up: refused if it is to ask again later.
  std::uint32_t refused = 0;
  std::uint32_t everything = 0;  // it needs all pages in use; else those that a peer has journaled
  std::uint32_t peer = 0;        // the node of a store that is up to date
  std::uint32_t reserved = 0;
};
static_assert(sizeof(StoreNews) <= kCacheLine);

// --- requests to a store

// Forces pages that the sender wrote into persistent memory; the answer has the same call.
struct ForceRequest {
  std::uint32_t call = 0;
  std::uint32_t count = 0;  // pages
  std::uint64_t page = 0;   // the first one
};
struct Forced {
  std::uint32_t call = 0;
  std::uint32_t refused = 0;
};

}  // namespace perdura::systems::orion
