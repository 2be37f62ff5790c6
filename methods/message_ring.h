// The receive buffers of a responder. If they are in persistent memory, their contents can be
// replayed after a failure (section 3.2 of "Correct, Fast Remote Persistence"). The layout of the
// region:
//
//   0     magic | version, sessions | buffers, buffer size | crc     written last
//   64    for each session, a cache line: generation * 2 + replayed | applied
//         for each session, its ring of buffers
//
// Message number s of a session lands in buffer s mod n. The buffers of a connection are posted,
// and therefore used, in order, and a buffer is reposted only after its message has been applied
// durably.
//
// Which messages recovery replays, and why that is safe. Replaying everything in the ring would not
// be: the older of its n messages have been applied already, and replaying one of them would undo a
// later message whose buffer did not survive completely. So the ring has a mark, `applied`:
//
//   - Messages up to the mark have been applied durably and are not replayed. The mark is made
//     durable before any of their buffers is reposted, so all messages after the mark are in the
//     ring.
//   - Messages after the mark are replayed in order, up to the first that is incomplete. Every
//     message on which the requester relies is complete, since the requester waits for each one
//     before it sends the next. If the responder had begun to apply some of them, replaying repeats
//     that in the same order. If it had begun to apply a message that did not survive, that is an
//     update on which nobody relies; of two updates, the responder has made "a" durable before it
//     began with "b".
//   - A message of an earlier connection is never replayed, since the seed of its checksum is
//     another generation. When a session is connected, all that had arrived has been applied, and
//     the mark says so; only then does the generation change.
//   - If the requester waits for an acknowledgment that the responder sends after it has copied the
//     data, the buffers prove nothing: one may have been lost with a cache while a later update
//     became durable, or the reverse. Messages of such connections are not replayed.
//
// Replaying is idempotent: the mark moves only after everything has been applied durably, so
// recovery can start over after a failure during recovery.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "methods/setup.h"
#include "platform/platform.h"

namespace perdura::methods {

class MessageRing {
 public:
  // Opens or creates the receive buffers that belong to the region `target`. Throws UsageError if
  // there are buffers of another shape.
  MessageRing(Node& node, const std::string& target, const PersisterSetup& setup);

  pmem::Region& region() { return *region_; }
  std::uint32_t buffers() const { return buffers_; }
  Bytes buffer_size() const { return buffer_size_; }
  // True if the region survives a power failure.
  bool is_persistent() const { return region_->medium() == pmem::Medium::pm; }

  // The offset of a message's buffer in the region.
  Bytes buffer_offset(std::uint32_t session, std::uint64_t sequence) const {
    return first_buffer_ + (Bytes{session} * buffers_ + sequence % buffers_) * buffer_size_;
  }
  Bytes session_offset(std::uint32_t session) const { return buffer_offset(session, 0); }

  std::uint64_t applied(std::uint32_t session) const;
  // Moves the mark; durable when it returns.
  void set_applied(std::uint32_t session, std::uint64_t sequence);

  // Begins a new connection of a session. Precondition: all messages of the session have been
  // applied. Returns the new generation, which is durable.
  std::uint32_t begin_generation(std::uint32_t session, bool replayed);

  // Must be called after a failure before anything else uses the target. Durably applies everything
  // on which requesters may rely. Returns the number of messages that it replayed.
  std::uint64_t recover(pmem::Region& target);

 private:
  Bytes state_offset(std::uint32_t session) const { return (1 + Bytes{session}) * kCacheLine; }
  void create(Node& node, const std::string& name, pmem::Medium medium);
  void check_shape(const std::string& name) const;
  std::uint64_t recover(std::uint32_t session, pmem::Region& target);

  std::uint32_t sessions_;
  std::uint32_t buffers_;
  Bytes buffer_size_;
  Bytes first_buffer_;
  std::unique_ptr<pmem::Region> region_;
};

}  // namespace perdura::methods
