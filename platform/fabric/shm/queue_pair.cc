#include "platform/fabric/shm/queue_pair.h"

#include <algorithm>
#include <cstring>

#include "platform/fabric/shm/endpoint.h"
#include "platform/pmem/word_copy.h"

namespace perdura::fabric::shm {
namespace {

bool is_posted(Opcode opcode) {
  return opcode == Opcode::write || opcode == Opcode::write_with_immediate ||
         opcode == Opcode::send || opcode == Opcode::append;
}

// True if a fenced operation waits for this one.
bool holds_up_fence(const WorkRequest& request) {
  return !is_posted(request.opcode) || request.flags.commit;
}

}  // namespace

ShmQueuePair::ShmQueuePair(ShmEndpoint& endpoint, std::uint32_t slot,
                           const QueuePairOptions& options, RemoteEnd remote)
    : endpoint_(endpoint),
      slot_(slot),
      options_(options),
      remote_(std::move(remote)),
      traffic_(endpoint.traffic_.open(remote_.address.node)) {
  if (options_.reported_as == nullptr) options_.reported_as = this;
  auto& local = endpoint_.slots_[slot_];
  const ConnectionSlot& mine = endpoint_.segment_.shared().connections[slot_];
  local.queue_pair = this;
  receive_queue_ = local.receive_queue;
  if (mine.ring != 0) {
    in_ = endpoint_.segment_.at<Message>(mine.ring);
    in_mask_ = mine.ring_slots - 1;
    if (mine.ring_is_watched != 0) endpoint_.watched_.push_back(this);
  }
  if (remote_.segment == nullptr) {
    detached_ = true;
    break_off(Status::retry_exceeded);
    return;
  }
  EndpointSegment& peer = remote_.segment->shared();
  const ConnectionSlot& theirs = remote_slot();
  if (theirs.ring != 0) {
    out_ = remote_.segment->at<Message>(theirs.ring);
    out_mask_ = theirs.ring_slots - 1;
    out_is_watched_ = theirs.ring_is_watched != 0;
    claims_ = BufferClaims(remote_.segment->at<ReceiveQueueHeader>(theirs.receive_queue),
                           theirs.receive_slots, remote_.slot + 1);
  }
  peer_activity_ = &peer.activity[remote_.slot / 64];
  peer_activity_bit_ = std::uint64_t{1} << (remote_.slot % 64);
  peer_doorbell_ = &endpoint_.job_.doorbell(peer.doorbell);
}

ShmQueuePair::~ShmQueuePair() {
  if (options_.completions != nullptr) options_.completions->forget(*options_.reported_as);
  // The application has dropped this end, so it gets no completions.
  options_.completions = nullptr;
  break_off(Status::flushed);
  EntryList mine = endpoint_.completing_.extract(this);
  while (!mine.empty()) complete(mine.pop());
  std::erase(endpoint_.watched_, this);
  endpoint_.leave_slot(slot_);
}

ConnectionSlot& ShmQueuePair::remote_slot() const {
  return remote_.segment->shared().connections[remote_.slot];
}

// --- operations, from posting to completion ---------------------------------------------

void ShmQueuePair::post(RdmaOperation& operation) {
  // The common case: no operation is ahead of this one, so it is executed and completed at once.
  if (outstanding_ == 0 && connected_ && endpoint_.options_.network_latency.count() == 0)
      [[likely]] {
    const WorkRequest& request = operation.request();
    const Outcome outcome = execute(request, payload_of(request));
    if (outcome.status == Status::success && endpoint_.may_complete_at_once()) [[likely]] {
      operation.complete(Status::success, outcome.old_value);
      return;
    }
    finish(admit(make_entry(request, &operation)), outcome);
    return;
  }
  submit(make_entry(operation.request(), &operation));
}

void ShmQueuePair::post_unsignaled(const WorkRequest& request) {
  if (!connected_) return;
  if (outstanding_ == 0 && endpoint_.options_.network_latency.count() == 0) {
    const Outcome outcome = execute(request, payload_of(request));
    if (outcome.status == Status::success) return;
    finish(admit(make_entry(request, nullptr)), outcome);
    return;
  }
  submit(make_entry(request, nullptr));
}

void ShmQueuePair::abandon(RdmaOperation& operation) {
  auto* entry = static_cast<SendEntry*>(operation.transport_state);
  if (entry == nullptr) return;  // it could not be posted
  entry->operation = nullptr;
  entry->abandoned = true;
}

SendEntry* ShmQueuePair::make_entry(const WorkRequest& request, RdmaOperation* operation) {
  SendEntry* entry = endpoint_.pool_.take();
  entry->queue_pair = this;
  entry->operation = operation;
  entry->abandoned = false;
  entry->request = request;
  entry->status = Status::success;
  entry->old_value = 0;
  entry->owns_data = request.flags.inlined && request.local.length() <= kMaxInline;
  if (entry->owns_data) {
    std::byte* to = entry->data.data();
    for (const LocalBuffer& piece : request.local.all()) {
      const std::span<const std::byte> bytes = checked_bytes(piece);
      pmem::copy_from_shared({to, bytes.size()}, bytes.data());
      to += bytes.size();
    }
  }
  if (operation != nullptr) operation->transport_state = entry;
  return entry;
}

void ShmQueuePair::submit(SendEntry* entry) {
  if (!connected_) {
    finish(admit(entry), {Status::flushed, 0});
    return;
  }
  if (waiting_.empty() && may_start(entry->request)) {
    start(entry);
  } else {
    waiting_.push(entry);
  }
}

bool ShmQueuePair::may_start(const WorkRequest& request) const {
  return outstanding_ < std::max(options_.send_depth, 1U) &&
         !(request.flags.fenced && non_posted_ != 0);
}

// From here until complete() the operation counts as outstanding.
SendEntry* ShmQueuePair::admit(SendEntry* entry) {
  ++outstanding_;
  if (holds_up_fence(entry->request)) ++non_posted_;
  return entry;
}

void ShmQueuePair::start(SendEntry* entry) {
  admit(entry);
  const Picoseconds latency = endpoint_.options_.network_latency;
  if (latency.count() == 0) {
    arrive(entry);
    return;
  }
  entry->due = endpoint_.executor_.now() + latency;
  endpoint_.arriving_.push(entry);
}

void ShmQueuePair::start_waiting() {
  while (!waiting_.empty() && may_start(waiting_.front()->request)) start(waiting_.pop());
}

void ShmQueuePair::arrive(SendEntry* entry) {
  if (!stalled_.empty()) {
    stalled_.push(entry);
    return;
  }
  if (entry->abandoned) {
    finish(entry, {Status::flushed, 0});
    return;
  }
  const WorkRequest& request = entry->request;
  const Payload payload = entry->owns_data
                              ? Payload(std::span(entry->data).first(request.local.length()))
                              : payload_of(request);
  finish(entry, connected_ ? execute(request, payload) : Outcome{Status::flushed, 0});
}

// An operation that has been executed completes when its completion has crossed the network, or it
// stalls for lack of a receive buffer.
void ShmQueuePair::finish(SendEntry* entry, Outcome outcome) {
  if (outcome.status == Status::receiver_not_ready && connected_) {
    stall(entry);
    return;
  }
  entry->status = outcome.status;
  entry->old_value = outcome.old_value;
  const Picoseconds latency = endpoint_.options_.network_latency;
  entry->due = latency.count() == 0 ? Time{} : endpoint_.executor_.now() + latency;
  endpoint_.completing_.push(entry);
  if (outcome.status != Status::success && !entry->abandoned) break_off(Status::flushed);
}

void ShmQueuePair::complete(SendEntry* entry) {
  --outstanding_;
  if (holds_up_fence(entry->request)) --non_posted_;
  if (entry->operation != nullptr) entry->operation->complete(entry->status, entry->old_value);
  endpoint_.pool_.give_back(entry);
  if (connected_) start_waiting();
}

void ShmQueuePair::stall(SendEntry* entry) {
  stalled_.push(entry);
  retries_ = 0;
  retry_at_ = endpoint_.executor_.now() + endpoint_.options_.rnr_timer;
  endpoint_.stalled_.push_back(this);
}

void ShmQueuePair::retry(Time now) {
  std::erase(endpoint_.stalled_, this);
  EntryList again = stalled_;
  stalled_ = {};
  const int before = retries_;
  SendEntry* first = again.front();
  while (!again.empty()) {
    SendEntry* entry = again.pop();
    const bool was_stalled = !stalled_.empty();
    arrive(entry);
    if (entry != first || was_stalled || stalled_.empty()) continue;
    // The oldest message still finds no receive buffer, which counts as one more retry.
    retries_ = before + 1;
    retry_at_ = now + endpoint_.options_.rnr_timer;
    const int allowed = endpoint_.options_.rnr_retries;
    if (allowed == kRetryForever || retries_ < allowed) continue;
    while (!again.empty()) stalled_.push(again.pop());
    break_off(Status::receiver_not_ready);
    return;
  }
}

// --- the end of a connection -----------------------------------------------------------

void ShmQueuePair::break_off(Status oldest) {
  if (!connected_) return;
  drain();  // messages that arrived before the end are still delivered
  if (!connected_) return;
  connected_ = false;
  endpoint_.segment_.shared().connections[slot_].state.store(SlotState::closed,
                                                             std::memory_order_seq_cst);
  detach_from_peer();

  std::erase(endpoint_.stalled_, this);
  EntryList under_way = stalled_;
  stalled_ = {};
  EntryList arriving = endpoint_.arriving_.extract(this);
  while (!arriving.empty()) under_way.push(arriving.pop());
  while (!waiting_.empty()) under_way.push(admit(waiting_.pop()));
  while (!under_way.empty()) {
    finish(under_way.pop(), {oldest, 0});
    oldest = Status::flushed;
  }
  if (options_.completions != nullptr) {
    options_.completions->push({options_.reported_as, Status::disconnected, std::nullopt, {}, 0});
  }
}

// From here on this side does not touch the peer's memory, so the peer may reuse the ring and the
// buffers that it kept for the connection.
void ShmQueuePair::detach_from_peer() {
  if (std::exchange(detached_, true)) return;
  remote_slot().detached.store(1, std::memory_order_seq_cst);
  endpoint_.notify(remote_.segment->shared());
}

void ShmQueuePair::check_peer() {
  if (!connected_) return;
  if (is_connected(remote_slot().state.load(std::memory_order_acquire)) &&
      !remote_.memory->node().dead()) {
    return;
  }
  break_off(Status::retry_exceeded);
}

// --- receiving -------------------------------------------------------------------------

void ShmQueuePair::drain() {
  // Without a completion queue messages stay in the ring; their buffers are recovered once the peer
  // has detached.
  if (in_ == nullptr || options_.completions == nullptr) return;
  bool failed = false;
  for (;;) {
    const Message& message = in_[(in_next_ - 1) & in_mask_];
    if (message.sequence.load(std::memory_order_acquire) != in_next_) break;
    ++in_next_;
    const auto consumed = receive_queue_->consume(message.ticket);
    if (!consumed) continue;
    // The task that waits for this message will read it soon, and its first line is still in the
    // sender's cache.
    const LocalBuffer& first = consumed->buffer.first();
    if (first.region != nullptr && message.length != 0) {
      __builtin_prefetch(first.region->data() + first.offset);
    }
    ReceiveCompletion completion{
        options_.reported_as, Status::success,
        std::nullopt,         first.first(std::min(message.length, first.length)),
        consumed->id,         message.length};
    if (message.has_immediate != 0) completion.immediate = message.immediate;
    completion.status = message.status;
    failed |= message.status != Status::success;
    options_.completions->push(completion);
  }
  // A receive buffer was too short; a responder's queue pair then goes into the error state.
  if (failed) break_off(Status::flushed);
}

}  // namespace perdura::fabric::shm
