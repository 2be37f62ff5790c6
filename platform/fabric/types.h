// The vocabulary of the fabric, in the terms of the InfiniBand specification and libibverbs.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "platform/base/units.h"

namespace perdura::pmem {
class Region;
}

namespace perdura::fabric {

enum class Opcode : std::uint8_t {
  read,
  write,
  write_with_immediate,
  send,
  compare_and_swap,
  fetch_and_add,
  flush,         // memory placement extensions
  atomic_write,  // memory placement extensions
  append,        // FileMR: a WRITE at the current end of a registration
  commit,        // FileMR: a FLUSH for persistence of all that was written through a registration
};

// How an operation ended. Any status but success puts the queue pair into the error state:
// operations that are outstanding or posted later end as `flushed`, and may or may not have taken
// effect.
enum class Status : std::uint8_t {
  success,
  remote_access_error,  // wrong key, outside the region, or a right is missing
  receiver_not_ready,   // no receive buffer was posted, or an append found no memory, through all
                        // retries
  message_too_long,     // longer than the receive buffer
  retry_exceeded,       // the peer does not answer
  flushed,              // the queue pair was in error or is being closed
  unsupported,          // the device or region does not do this operation
  disconnected,         // in a receive completion: the peer closed the connection or is gone
};
std::string_view to_string(Status status);
std::string_view to_string(Opcode opcode);

// The rights that remote peers have to a registered region; a bit set.
enum class Access : std::uint8_t {
  local = 0,
  remote_read = 1,
  remote_write = 2,
  remote_atomic = 4,
  remote_flush = 8,
  remote_all = 15,
};
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<int>(a) | static_cast<int>(b));
}
constexpr bool allows(Access granted, Access needed) {
  return (static_cast<int>(granted) & static_cast<int>(needed)) == static_cast<int>(needed);
}

// The right that an operation needs to the memory that it names; a SEND names none.
constexpr Access right_for(Opcode opcode) {
  switch (opcode) {
    case Opcode::read:
      return Access::remote_read;
    case Opcode::write:
    case Opcode::write_with_immediate:
    case Opcode::atomic_write:
    case Opcode::append:
      return Access::remote_write;
    case Opcode::compare_and_swap:
    case Opcode::fetch_and_add:
      return Access::remote_atomic;
    case Opcode::flush:
    case Opcode::commit:
      return Access::remote_flush;
    case Opcode::send:
      break;
  }
  return Access::local;
}

struct RemoteKey {
  std::uint32_t value = 0;
  friend bool operator==(RemoteKey, RemoteKey) = default;
};

// A place in a region that a peer registered; offsets count from the start of what was registered.
struct RemoteAddress {
  RemoteKey key;
  Bytes offset = 0;
};
constexpr RemoteAddress operator+(RemoteAddress a, Bytes n) { return {a.key, a.offset + n}; }

// A piece of registered local memory: where an operation takes its data from or puts it.
struct LocalBuffer {
  pmem::Region* region = nullptr;
  Bytes offset = 0;
  std::uint32_t length = 0;

  // The bytes, for memory that only this thread and its own operations use.
  std::span<std::byte> bytes() const;
  LocalBuffer first(std::uint32_t n) const { return {region, offset, n}; }
  LocalBuffer slice(Bytes from, std::uint32_t n) const { return {region, offset + from, n}; }
};

// Where an operation takes its data from, or puts it: up to kMaxPieces buffers, one after the
// other, which need have nothing to do with each other. WRITE and SEND gather them, READ and the
// buffers of a receive queue scatter into them. One buffer is the usual case and converts by
// itself.
//
//   co_await peer.write({header, payload}, there);
//
// All RDMA devices support three, which is also what a posted receive buffer on `shm` has room for.
inline constexpr std::size_t kMaxPieces = 3;
class LocalPieces {
 public:
  LocalPieces() = default;
  LocalPieces(const LocalBuffer& only) : pieces_{only}, count_(1), length_(only.length) {}
  template <std::same_as<LocalBuffer>... More>
  requires(sizeof...(More) != 0 && sizeof...(More) < kMaxPieces)
      LocalPieces(const LocalBuffer& first, const More&... more)
      : pieces_{first, more...}, count_(1 + sizeof...(More)) {
    const std::uint64_t sum = (std::uint64_t{first.length} + ... + more.length);
    length_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, kMost));
  }

  // The length of all pieces together; more than any message may have (Capabilities::max_message)
  // counts as 2^32 - 1.
  std::uint32_t length() const { return length_; }
  std::span<const LocalBuffer> all() const { return {pieces_.data(), count_}; }
  const LocalBuffer& first() const { return pieces_[0]; }
  bool is_one() const { return count_ <= 1; }

 private:
  static constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  std::array<LocalBuffer, kMaxPieces> pieces_{};
  std::uint32_t count_ = 0;
  std::uint32_t length_ = 0;
};

// A part of a registration of extents (Endpoint::register_extents): it maps the `length` bytes that
// peers address from `at` on to the bytes of the region from `offset` on. Sizes and offsets need no
// alignment.
struct Extent {
  Bytes at = 0;
  Bytes offset = 0;
  Bytes length = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

using NodeId = std::uint32_t;
using Port = std::uint16_t;

// A thread of a node that accepts connections.
struct Address {
  NodeId node = 0;
  Port port = 0;
  friend bool operator==(Address, Address) = default;
};

// The guarantee of a FLUSH (memory placement extensions).
enum class Placement : std::uint8_t { global_visibility, persistence };

// Bits, since operations live in the frames of coroutines, of which only small ones are pooled.
struct OperationFlags {
  bool fenced : 1 = false;   // not started before all earlier READs and atomics have completed
  bool inlined : 1 = false;  // data, of at most max_inline bytes, is copied at the post
  // A WRITE or APPEND ends with a commit of its registration (QueuePair::commit), and needs the
  // right to it, too. Any other operation with this flag ends as `unsupported`.
  bool commit : 1 = false;
};

struct Completion {
  Status status = Status::success;
  Opcode opcode = Opcode::read;
  // The value that a compare_and_swap or fetch_and_add found, or the size that an append found,
  // which is where its data begins.
  std::uint64_t old_value = 0;
  explicit operator bool() const { return status == Status::success; }
};

// The capabilities of the device at one end of a connection.
struct Capabilities {
  bool flush = false;              // FLUSH for global visibility
  bool flush_persistence = false;  // FLUSH for persistence
  bool atomic_write = false;
  std::uint32_t max_inline = 0;
  std::uint32_t max_message = 0;
  bool commits = false;  // QueuePair::commit, and the flag
  // The next two are missing in iWARP, registrations of extents and APPEND on all real devices.
  bool write_with_immediate = true;
  bool atomics = true;             // compare_and_swap and fetch_and_add
  bool extents = true;             // registrations of extents (Endpoint::register_extents)
  bool appends = true;             // APPEND to such registrations (Endpoint::allow_appends)
  bool acknowledged = true;        // a WRITE or SEND completes when the peer's device has it
  bool waits_for_receiver = true;  // it waits for a receive buffer; else the connection breaks
};

inline constexpr std::uint32_t kMaxPrivateData = 56;  // as in the RDMA connection manager

}  // namespace perdura::fabric
