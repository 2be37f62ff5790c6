// The requester's side of remote persistence: makes updates of a remote region persistent by any
// method (methods/taxonomy.methods), on any platform.
//
//   auto persister = co_await RemotePersister::connect(thread, responder, 0, setup);
//   const auto done = co_await persister->update({.a = {offset, bytes}});
//
// When update() has succeeded, the requester may rely on the update if the method is right for the
// responder's configuration (methods/proof.h, Tables 2 and 3 of "Correct, Fast Remote
// Persistence"). A method that is wrong runs just the same, but updates may be lost.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "methods/handshake.h"
#include "methods/message.h"
#include "methods/setup.h"
#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"

namespace perdura::methods {

enum class UpdateError : std::uint8_t {
  disconnected,  // the responder is gone; the update may or may not have taken effect
  too_large,     // longer than the agreed maximum
  outside,       // not within the region
  misaligned,    // WRITE_WITH_IMM, ATOMIC WRITE and CAS name places in units of 8 bytes; the latter
                 // two write exactly 8
  changed,       // the link does not have the expected value, and was not changed
  not_durable,   // a reader's link is marked, and the method's readers wait: read it again
  has_mark,      // a new link has the bit of the mark set (methods/link.h)
};
std::string_view to_string(UpdateError error);

// A range of the remote region, and its new contents.
struct RemoteUpdate {
  Bytes offset = 0;
  std::span<const std::byte> data{};
};

struct UpdateRequest {
  RemoteUpdate a{};
  RemoteUpdate b{};  // unused by single updates; for methods that publish: the link, without a mark
  std::uint64_t expected = 0;  // the link's current value, as read; for methods that publish by CAS
};

// Thrown if nothing answers at the responder's address.
struct NoAnswer : PlatformError {
  using PlatformError::PlatformError;
};

// Thrown if the responder refuses the session now, but may accept it later.
struct RefusedForNow : PlatformError {
  RefusedForNow(const std::string& what, Rejection::Reason its_reason)
      : PlatformError(what), reason(its_reason) {}
  Rejection::Reason reason;  // busy, ending, or none if it disappeared before it could say
};

// Belongs to one thread, and makes one update at a time.
class RemotePersister {
 public:
  // Connects as session number `session`, which must be below the responder's number of sessions.
  // Throws UsageError if the method cannot run here, SetupDiffers or another OptionsDiffer if the
  // responder has other options, and NoAnswer, RefusedForNow or another PlatformError.
  static Task<std::unique_ptr<RemotePersister>> connect(Thread& thread, fabric::Address responder,
                                                        std::uint32_t session, PersisterSetup setup,
                                                        Role role = Role::writer);
  ~RemotePersister();

  // May be called by writers only.
  Task<tl::expected<void, UpdateError>> update(UpdateRequest request);
  // For readers (Role::reader) of a method that publishes: reads the link at this offset, and does
  // what the method's readers must do before they rely on it. Returns the link without its mark;
  // the link and the block to which it points are durable.
  Task<tl::expected<std::uint64_t, UpdateError>> read_link(Bytes offset);

  // A buffer as long as the largest "a". Data of "a" that the caller builds in it is not copied
  // before it is sent.
  std::span<std::byte> room();

  // Reads bytes of the remote region, at most as many as the largest "a" has. Takes one round trip,
  // and guarantees nothing about persistence.
  Task<tl::expected<void, UpdateError>> read(Bytes offset, std::span<std::byte> into);

  // True once the responder has asked the requester to disconnect, or the connection is broken:
  // this object is useless after the update in flight. May be called between updates, and by a task
  // that waits for room in the region.
  bool is_over();

  Bytes region_size() const { return welcome_.region_size; }
  const PersisterSetup& setup() const { return setup_; }

 private:
  // A step of the method, prepared for execution.
  struct Action {
    pmem::StepKind kind = pmem::StepKind::completion;
    UpdateSet updates = 0;
    bool fenced = false;
    bool awaited = false;      // a completion step waits for it
    bool sets_link = false;    // the CAS on which the success of the update depends
    bool unmarks = false;      // it sets the link without its mark
    Bytes message_offset = 0;  // where the message of a SEND is composed
  };

  RemotePersister(Thread& thread, const PersisterSetup& setup, Role role);
  void plan(const std::vector<pmem::Step>& steps);
  Task<> open(fabric::Address responder, std::uint32_t session);
  void take(const fabric::ReceiveCompletion& message);

  tl::expected<void, UpdateError> check(const UpdateRequest& request) const;
  Task<tl::expected<void, UpdateError>> execute(UpdateRequest request);
  void stage(const UpdateRequest& request);
  fabric::WorkRequest prepare(const Action& action, const UpdateRequest& request);
  fabric::WorkRequest prepare_send(const Action& action, const UpdateRequest& request);
  fabric::LocalBuffer staged(const UpdateRequest& request, std::size_t update) const;
  fabric::LocalBuffer scratch(std::uint32_t length) const;
  bool publishes() const { return setup_.method.update == Update::publish; }
  std::uint64_t link_of(const Action& action, const UpdateRequest& request) const;
  fabric::LocalBuffer link_buffer(bool unmarked) const;

  Thread& thread_;
  PersisterSetup setup_;
  Role role_;
  std::vector<Action> actions_;
  bool eight_byte_units_ = false;
  bool word_b_ = false;  // "b" is one word
  std::uint32_t max_inline_;

  Bytes area_size_ = 0;  // room for composing one message
  Bytes scratch_offset_ = 0;
  // For methods that publish, three words: the link as it first appears, the link without a mark,
  // and the link that a reader has read.
  Bytes links_offset_ = 0;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  rpc::ReceiveBuffers acks_;
  rpc::Calls<Acknowledgment> calls_;
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;

  Welcome welcome_;
  std::uint64_t sequence_ = 0;
  bool over_ = false;
  // The address of the last operation that changed memory, which FLUSH and READ name.
  fabric::RemoteAddress last_place_;
  Bytes last_length_ = 0;
};

}  // namespace perdura::methods
