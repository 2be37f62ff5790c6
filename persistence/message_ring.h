// The receive buffers of a responder, and what makes them fit to be replayed when they are in
// persistent memory (section 3.2 of "Correct, Fast Remote Persistence"). The region:
//
//   0     magic | version, sessions | buffers, buffer size | crc     written last, when it is made
//   64    of each session, a cache line: generation * 2 + replayed | applied
//         of each session, its ring of buffers
//
// Message number s of a session lands in buffer s mod n: the buffers of a connection are posted,
// and so used, in order, and one is posted again only when its message has been applied durably.
//
// What recovery replays, and why that is harmless. Without more, it would not be: while n messages
// are in the ring, the older ones have been applied, and one of them, replayed, would undo a later
// one whose buffer did not survive whole. So the ring has a mark, `applied`:
//
//   - Messages up to the mark have been applied durably; they are not replayed. The mark is made
//     durable before any of their buffers is posted again, so those after it are all in the ring.
//   - Messages after the mark are replayed in order up to the first that is not whole. All that the
//     requester relies on are whole, for it waits for each before it sends the next. If the
//     responder had begun to apply some of them, replaying does the same again, in the same order.
//     What it had begun to apply of one that did not survive is an update that nobody relies on; of
//     two updates it has made "a" durable before it began with "b".
//   - A message that came over an earlier connection is never replayed: its checksum began with
//     another generation. When a session is connected, all that had arrived has been applied and
//     the mark says so; only then the generation changes.
//   - If it is the responder's acknowledgment that the requester waits for, after the responder has
//     copied the data, a buffer says nothing: it may have been lost with a cache while a later
//     update was made durable, or the other way round. Such connections are not replayed.
//
// Replaying is idempotent: the mark moves only when all has been applied durably, so a failure
// during recovery begins it anew.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "persistence/setup.h"
#include "platform/platform.h"

namespace perdura::persistence {

class MessageRing {
 public:
  // Opens or makes the receive buffers that belong to the region `target`. Throws UsageError if
  // there are buffers of another shape.
  MessageRing(Node& node, const std::string& target, const PersisterSetup& setup);

  pmem::Region& region() { return *region_; }
  std::uint32_t buffers() const { return buffers_; }
  Bytes buffer_size() const { return buffer_size_; }
  // Whether the region outlives a failure.
  bool is_persistent() const { return region_->medium() == pmem::Medium::pm; }

  // In the region.
  Bytes buffer_offset(std::uint32_t session, std::uint64_t sequence) const {
    return first_buffer_ + (Bytes{session} * buffers_ + sequence % buffers_) * buffer_size_;
  }
  Bytes session_offset(std::uint32_t session) const { return buffer_offset(session, 0); }

  std::uint64_t applied(std::uint32_t session) const;
  // Durable when it returns.
  void set_applied(std::uint32_t session, std::uint64_t sequence);

  // A new connection of a session, all of whose messages have been applied; durable when it
  // returns. Returns its generation.
  std::uint32_t begin_generation(std::uint32_t session, bool replayed);

  // To be called before anything else uses the target after a failure: applies, durably, what
  // requesters may rely on. Returns how many messages were replayed.
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

}  // namespace perdura::persistence
