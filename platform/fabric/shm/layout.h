// The memory that the processes of a job share: the layout of the files in the job directory.
//
//   control           one for the job: run states, doorbells, barriers
//   node-N            one for each node: its lock (held for as long as its process lives) and the
//                     directory of its registered memory
//   node-N.port-P     one for each endpoint: where peers put connection requests, messages and news
//   node-N.dram-K     a DRAM region
//
// All structures are crash-tolerant: a process that is killed between any two instructions leaves
// them usable for the others. Everything is initially zero.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "platform/base/units.h"
#include "platform/fabric/dirty_ranges.h"
#include "platform/fabric/types.h"
#include "platform/runtime/doorbell.h"
#include "platform/runtime/host_clock.h"

namespace perdura::fabric::shm {

using runtime::Doorbell;
using Word = std::atomic<std::uint64_t>;
using HalfWord = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free && HalfWord::is_always_lock_free);

inline constexpr std::uint64_t kLayoutVersion = 0x50455244'55524107;  // "PERDURA", 7

// --- control -----------------------------------------------------------------------------------

inline constexpr std::uint32_t kMaxNodes = 1024;
inline constexpr std::uint32_t kMaxThreads = 1024;
inline constexpr std::uint32_t kMaxBarriers = 16384;

struct NodeStatus {
  HalfWord joined;      // a process has been this node
  HalfWord ended_runs;  // runs whose threads on this node have all ended
  HalfWord whole_runs;  // runs whose threads on all nodes have ended, as this node has seen
  HalfWord failed;      // a task threw; nobody need wait for this node
};

struct DoorbellSlot {
  Doorbell bell;
  alignas(kCacheLine) Word owner;  // generation of the node whose thread uses it; 0 is free
};

struct BarrierState {
  alignas(kCacheLine) HalfWord participants;
  HalfWord arrived;
  HalfWord phase;  // how many times the barrier has been passed
  // The doorbells that the last thread to arrive rings, one bit each. There is one set for even and
  // one for odd phases, since the first thread may be waiting for the next phase while the last one
  // is still ringing.
  alignas(kCacheLine) std::array<std::array<Word, kMaxThreads / 64>, 2> waiting;
};

struct Control {
  Word version;              // stored last
  runtime::HostClock clock;  // the job's clock; constant once the version has been stored
  Word node_count;
  Word last_generation;
  alignas(kCacheLine) Doorbell run_changed;
  std::array<NodeStatus, kMaxNodes> nodes;
  std::array<DoorbellSlot, kMaxThreads> doorbells;
  std::array<BarrierState, kMaxBarriers> barriers;
};

// --- a node --------------------------------------------------------------------------------------

// A key consists of the number of a directory entry and a count of the entry's reuses, so that a
// revoked key is not mistaken for its successor.
inline constexpr std::uint32_t kRegionBits = 13;
inline constexpr std::uint32_t kMaxRegions = 1 << kRegionBits;
constexpr std::uint32_t region_entry(std::uint32_t key) { return key & (kMaxRegions - 1); }

// The part of a registration of extents that peers need to append to it.
struct SharedAppends {
  Word size_word;     // 1 + the place of the size in the region; 0: peers may not append
  Word appending;     // the life of the node whose thread appends; 0: none does
  Word asked;         // up to where an APPEND needed extents; 0: none has since they were changed
  HalfWord doorbell;  // the doorbell of the thread that gets the range faults
};

// The ranges of a registration of extents that were changed since it was committed
// (dirty_ranges.h), if peers may commit it. Its words are changed by whoever holds the lock.
struct SharedDirty {
  struct Range {
    Word begin;
    Word end;
  };
  Word holder;  // the life of the node whose thread changes the ranges; 0: none does
  Word count;
  std::array<Range, kDirtyRanges> ranges;
};

struct RegionEntry {
  alignas(kCacheLine) HalfWord key;  // 0 while the entry is free or revoked; stored last
  HalfWord access;
  HalfWord medium;
  Word offset;  // where the registered range begins in the file
  Word length;
  Word extents;  // the table of a registration of extents (extent_tables.h); 0: it is one range
  alignas(kCacheLine) SharedAppends appends;
  alignas(kCacheLine) SharedDirty dirty;
  static constexpr std::size_t kMaxPath = 384;
  alignas(kCacheLine) std::array<std::byte, kMaxPath> path;  // the file's path; ends with a zero
};
static_assert(sizeof(RegionEntry) == 768);

struct SharedExtent {
  Word at;
  Word offset;
  Word length;
};

// A table of extents in the room that a node has for them, at a multiple of the cache line.
struct SharedExtents {
  Word count;
  std::array<SharedExtent, 1> extents;  // actually `count` of them
};
inline constexpr Bytes kExtentRoom = 64 * MiB;  // sparse: only what is used takes memory

struct NodeSegment {
  Word version;
  Word generation;  // differs for every process that ever was this node
  std::array<RegionEntry, kMaxRegions> regions;
  alignas(kCacheLine) std::array<std::byte, kExtentRoom> extents;
};

// Identifies a life of a node, such as the one that is in the middle of an operation. The node's
// number is not enough: after its process has died another process may be that node, and will never
// finish what the first one began.
constexpr std::uint64_t life_of(std::uint64_t generation, NodeId node) {
  return generation << 16 | (std::uint64_t{node} + 1);
}
constexpr NodeId node_of_life(std::uint64_t life) {
  return static_cast<NodeId>((life & 0xFFFF) - 1);
}
constexpr std::uint64_t generation_of_life(std::uint64_t life) { return life >> 16; }

// --- an endpoint ---------------------------------------------------------------------------------

inline constexpr std::uint32_t kMaxConnections = 4096;
// An endpoint polls the rings of this many connections directly; for the others, senders set a bit.
// The bit costs two more transfers of a cache line, polling a ring a few instructions.
inline constexpr std::uint32_t kWatchedRings = 8;
inline constexpr std::uint32_t kMailboxSlots = 128;
inline constexpr Bytes kSegmentSize = 512 * MiB;  // sparse: only what is used takes memory

// A posted receive buffer. Senders claim buffers in the order of their tickets by putting their
// owner number beside the ticket; the receiver thus knows who holds a buffer, even if the sender
// dies.
struct PostedPiece {
  Word key_length;  // key << 32 | length
  Word offset;      // within the memory of that key
};
struct PostedBuffer {
  alignas(kCacheLine) Word state;  // ticket << 16 | owner; owner 0: not claimed yet
  Word pieces_used;
  std::array<PostedPiece, kMaxPieces> pieces;
};
static_assert(sizeof(PostedBuffer) == kCacheLine);
constexpr std::uint64_t ticket_of(std::uint64_t state) { return state >> 16; }
constexpr std::uint64_t owner_of(std::uint64_t state) { return state & 0xFFFF; }

struct ReceiveQueueHeader {
  // Every buffer with a smaller ticket has been claimed: where a sender whose own position is stale
  // searches next.
  alignas(kCacheLine) Word hint;
  std::array<PostedBuffer, 1> buffers;  // actually a power of two of them
};

// A message that arrived. A connection has a ring of them, written by its peer only; it cannot
// overflow, because every message holds a receive buffer and the ring has as many slots.
struct Message {
  Word sequence;  // 1, 2, 3, …; stored last
  std::uint64_t ticket;
  std::uint32_t length;
  std::uint32_t immediate;
  std::uint32_t has_immediate;
  Status status;  // anything but success: it did not fit, and the connection has ended
};
static_assert(sizeof(Message) == 32);

enum class SlotState : std::uint32_t {
  free,
  connecting,  // the request is with the peer
  rejected,    // answered by the peer
  cancelled,   // given up; the peer, when it answers, will find that out
  closed,      // ended or broken
  accepted,    // answered by the peer
  open,
};
// True while the peer may put messages into a slot's ring and use its node's memory.
constexpr bool is_connected(SlotState state) { return state >= SlotState::accepted; }

// One end of a connection, in the segment of the endpoint that it belongs to.
struct ConnectionSlot {
  alignas(kCacheLine) std::atomic<SlotState> state;
  // Set by the peer when it will not access this slot, its ring or the buffers that it claimed any
  // more.
  HalfWord detached;
  // Set by the peer to its life while one of its operations modifies memory of this slot's node.
  Word changing;
  std::uint32_t ring_is_watched;

  // Written by the owner before it asks for, or answers with, a connection.
  std::uint64_t ring;  // offset of its messages in the segment
  std::uint64_t ring_slots;
  std::uint64_t receive_queue;  // offset in the segment; 0 if there is none
  std::uint64_t receive_slots;

  // The answer, written by the peer that accepts.
  alignas(kCacheLine) std::uint32_t peer_slot;
  std::uint32_t private_length;
  std::array<std::byte, kMaxPrivateData> private_data;
};

struct ConnectMail {
  // (node + 1) << 8 | phase, so that a letter that a process left incomplete by dying can be
  // removed.
  static constexpr std::uint64_t kWriting = 1;
  static constexpr std::uint64_t kPosted = 2;
  alignas(kCacheLine) Word state;
  std::uint64_t order;       // letters are taken in this order
  std::uint64_t generation;  // the generation of the sender's node
  std::uint32_t node;
  std::uint32_t port;
  std::uint32_t slot;
  std::uint32_t private_length;
  std::array<std::byte, kMaxPrivateData> private_data;
};

struct EndpointSegment {
  Word version;
  Word generation;  // the generation of the endpoint's node
  HalfWord doorbell;
  HalfWord listening;
  HalfWord closed;

  // A flag that peers set and the owner clears: some connection has news other than messages, or
  // there is mail.
  alignas(kCacheLine) HalfWord attention;
  // A bit for every connection with new messages whose ring is not watched.
  alignas(kCacheLine) std::array<Word, kMaxConnections / 64> activity;

  alignas(kCacheLine) Word mail_order;
  std::array<ConnectMail, kMailboxSlots> mailbox;
  std::array<ConnectionSlot, kMaxConnections> connections;
  // Rings and receive queues follow, up to kSegmentSize.
};

}  // namespace perdura::fabric::shm
