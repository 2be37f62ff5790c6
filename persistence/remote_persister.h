// The requester's side of remote persistence: makes updates of a remote region persistent, by any
// method (persistence/taxonomy.methods), on any platform.
//
//   auto persister = co_await RemotePersister::connect(thread, responder, 0, setup);
//   const auto done = co_await persister->update({.a = {offset, bytes}});
//
// When update() has succeeded, the requester may rely on the update if the method is right for the
// responder's configuration (persistence/proof.h, Tables 2 and 3 of "Correct, Fast Remote
// Persistence"). With one that is wrong it is as fast or slow as it is, and may be lost.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "persistence/handshake.h"
#include "persistence/message.h"
#include "persistence/setup.h"
#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"

namespace perdura::persistence {

enum class UpdateError : std::uint8_t {
  disconnected,  // the responder is gone; whether the update took effect is unknown
  too_large,     // longer than was agreed on
  outside,       // of the region
  misaligned,    // WRITE_WITH_IMM and ATOMIC WRITE name places in units of 8 bytes; the latter
                 // writes exactly 8
};
std::string_view to_string(UpdateError error);

// A piece of the remote region, and what it is to hold.
struct RemoteUpdate {
  Bytes offset = 0;
  std::span<const std::byte> data{};
};

struct UpdateRequest {
  RemoteUpdate a;
  RemoteUpdate b{};  // only of ordered methods
};

// There is nobody at the responder's address.
struct NoAnswer : PlatformError {
  using PlatformError::PlatformError;
};

// The responder is there and refuses the session, which it may not do later.
struct RefusedForNow : PlatformError {
  RefusedForNow(const std::string& what, Rejection::Reason its_reason)
      : PlatformError(what), reason(its_reason) {}
  Rejection::Reason reason;  // busy, ending, or none if it went before it could say
};

// Belongs to a thread. One update at a time.
class RemotePersister {
 public:
  // Connects as a session, of which the responder has so many, numbered from 0. Throws UsageError
  // if the method cannot run here, SetupDiffers or another OptionsDiffer if the responder's options
  // are others, NoAnswer, RefusedForNow or another PlatformError.
  static Task<std::unique_ptr<RemotePersister>> connect(Thread& thread, fabric::Address responder,
                                                        std::uint32_t session,
                                                        PersisterSetup setup);
  ~RemotePersister();

  Task<tl::expected<void, UpdateError>> update(UpdateRequest request);

  // Data of "a" that is built here is not copied before it is sent. As long as the largest "a".
  std::span<std::byte> room();

  // Reads the remote region; up to as many bytes as the largest "a". Other than update() it takes a
  // round trip, and no notice of persistence.
  Task<tl::expected<void, UpdateError>> read(Bytes offset, std::span<std::byte> into);

  // True once the responder has asked to be let go of, or the connection is broken: after the
  // update that is under way this object is of no more use. May be asked between updates, and from
  // within a task that waits for room in the region.
  bool is_over();

  Bytes region_size() const { return welcome_.region_size; }
  const PersisterSetup& setup() const { return setup_; }

 private:
  // A step of the method, as it is done.
  struct Action {
    pmem::StepKind kind = pmem::StepKind::completion;
    UpdateSet updates = 0;
    bool fenced = false;
    bool awaited = false;      // a completion step waits for it
    Bytes message_offset = 0;  // of a SEND: where its message is put together
  };

  RemotePersister(Thread& thread, const PersisterSetup& setup);
  void plan();
  Task<> open(fabric::Address responder, std::uint32_t session);
  void take(const fabric::ReceiveCompletion& message);

  tl::expected<void, UpdateError> check(const UpdateRequest& request) const;
  void stage(const UpdateRequest& request);
  fabric::WorkRequest prepare(const Action& action, const UpdateRequest& request);
  fabric::WorkRequest prepare_send(const Action& action, const UpdateRequest& request);
  fabric::LocalBuffer staged(const UpdateRequest& request, std::size_t update) const;
  fabric::LocalBuffer scratch(std::uint32_t length) const;

  Thread& thread_;
  PersisterSetup setup_;
  std::vector<Action> actions_;
  bool eight_byte_units_ = false;
  bool atomic_b_ = false;
  std::uint32_t max_inline_;

  Bytes area_size_ = 0;  // of a message
  Bytes scratch_offset_ = 0;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  rpc::ReceiveBuffers acks_;
  rpc::Calls<Acknowledgment> calls_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;

  Welcome welcome_;
  std::uint64_t sequence_ = 0;
  bool over_ = false;
  // Where the last operation that changed something did so: what FLUSH and READ name.
  fabric::RemoteAddress last_place_;
  Bytes last_length_ = 0;
};

}  // namespace perdura::persistence
