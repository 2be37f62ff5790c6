#include "platform/fabric/verbs/queue_pair.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "platform/base/error.h"
#include "platform/fabric/verbs/endpoint.h"
#include "platform/fabric/verbs/meaning.h"

namespace perdura::fabric::verbs {

namespace {

Handle<ibv_qp> make_pair(VerbsEndpoint& endpoint, ReceiveQueueState* receives,
                         std::uint32_t depth) {
  const Device& device = endpoint.device();
  auto pair = create_queue_pair(device, endpoint.completions(),
                                receives == nullptr ? nullptr : receives->get(), depth,
                                device.capabilities().max_inline);
  if (pair == nullptr) {
    throw PlatformError(fmt::format(
        "{} makes no queue pair of {} operations: {}; it has {} queue pairs of up to {}",
        device.name(), depth, pmem::mapped::error_text(errno), device.attributes().max_qp,
        device.attributes().max_qp_wr));
  }
  return pair;
}

std::shared_ptr<ReceiveQueueState> state_of(ReceiveQueue* queue) {
  return queue == nullptr ? nullptr : static_cast<VerbsReceiveQueue*>(queue)->state();
}

}  // namespace

VerbsQueuePair::VerbsQueuePair(VerbsEndpoint& endpoint, std::uint32_t id,
                               const QueuePairOptions& options)
    : endpoint_(endpoint),
      id_(id),
      options_(options),
      depth_(std::max(options.send_depth, 1U)),
      receive_queue_(state_of(options.receive_queue)),
      pair_(make_pair(endpoint, receive_queue_.get(), depth_)),
      send_queue_(pair_.get(), endpoint.device().send_operations() != 0),
      bring_up_(make_bring_up(endpoint, id, pair_.get())) {
  if (options_.reported_as == nullptr) options_.reported_as = this;
  endpoint_.add(*this, depth_);
}

VerbsQueuePair::~VerbsQueuePair() {
  if (options_.completions != nullptr) options_.completions->forget(*options_.reported_as);
  // The application has dropped this end, so it gets no completions.
  options_.completions = nullptr;
  break_off(Status::flushed);
  endpoint_.poll_completions();  // returns the receive buffers of this end to their queue
  bring_up_.reset();
  pair_.reset();
  give_up();
  endpoint_.remove(*this, depth_);
}

// --- operations, from posting to completion ---------------------------------------------

void VerbsQueuePair::post(RdmaOperation& operation) { submit(operation.request(), &operation); }

void VerbsQueuePair::post_unsignaled(const WorkRequest& request) { submit(request, nullptr); }

void VerbsQueuePair::abandon(RdmaOperation& operation) {
  auto* const request = static_cast<SendRequest*>(operation.transport_state);
  if (request == nullptr) return;  // it could not be posted
  request->operation = nullptr;
  request->abandoned = true;
}

void VerbsQueuePair::submit(const WorkRequest& request, RdmaOperation* operation) {
  if (!connected_) {
    if (operation != nullptr) operation->complete(Status::flushed);
    return;
  }
  SendRequest* const entry = endpoint_.pool().take();
  entry->operation = operation;
  entry->request = request;
  entry->owns_data = request.flags.inlined && request.local.length() <= kMaxInline;
  if (entry->owns_data) {
    std::byte* to = entry->data.data();
    for (const LocalBuffer& piece : request.local.all()) {
      if (piece.length == 0) continue;
      const ibv_sge from = endpoint_.locate(piece);
      std::memcpy(to, reinterpret_cast<const void*>(from.addr), from.length);
      to += from.length;
    }
  }
  if (operation != nullptr) operation->transport_state = entry;
  waiting_.push_back(entry);
  if (waiting_.size() >= kBatch) {
    start_waiting();
  } else {
    endpoint_.note(*this);
  }
}

void VerbsQueuePair::start_waiting() {
  if (!ready_) return;
  while (connected_ && !waiting_.empty() && in_flight_.size() < depth_) {
    SendRequest* const next = waiting_.front();
    if (next->abandoned) {
      waiting_.pop_front();
      endpoint_.pool().give_back(next);
      continue;
    }
    Status failure = Status::success;
    const Readiness readiness = examine(*next, failure);
    if (readiness == Readiness::not_yet) break;
    if (readiness == Readiness::never) {
      if (!wait_until_alone()) break;
      waiting_.pop_front();
      finish(next, failure);
      break_off(Status::flushed);
      return;
    }
    if (counting_) break;
    if (replaces_persistent(*next) && !next->counted) {
      if (pmem::thread_write_meter().level() == pmem::WriteMeter::Level::compared &&
          allows(next->range.access, Access::remote_read)) {
        read_old_contents(*next);
        break;
      }
      old_contents_.assign(next->request.local.length() + kWord, std::byte{0});
      count_replacement(*next);
    }
    waiting_.pop_front();
    hand_over(next, posting_of(*next));
  }
  ring();
}

// An unsignaled work request is known to be complete only when a later one completes. If there is
// no later one, an empty WRITE is posted for the purpose.
bool VerbsQueuePair::wait_until_alone() {
  if (in_flight_.empty()) return true;
  if (in_flight_[in_flight_.size() - 1]->signaled) return false;
  SendRequest* const marker = endpoint_.pool().take();
  marker->role = SendRequest::Role::marker;
  marker->request = {.opcode = Opcode::write};
  hand_over(marker, {.opcode = Opcode::write});
  return false;
}

void VerbsQueuePair::hand_over(SendRequest* request, Posting posting) {
  // After half a queue of unsignaled operations the next one is signaled, so that the queue does
  // not fill up.
  const bool wanted =
      request->operation != nullptr || request->role != SendRequest::Role::operation;
  request->signaled = wanted || ++unsignaled_ >= std::max(depth_ / 2, 1U);
  if (request->signaled) unsignaled_ = 0;
  request->number = next_number_++;
  posting.id = send_id(id_, request->number);
  posting.signaled = request->signaled;
  // The operations of the accounting itself are not counted.
  if (request->role == SendRequest::Role::operation) traffic_->count(request->request);
  if (send_queue_.full()) ring();
  send_queue_.add(posting);
  in_flight_.push_back(request);
}

void VerbsQueuePair::ring() {
  const int error = send_queue_.ring();
  if (error == 0) return;
  fmt::print(stderr, "perdura: {} takes no operations of node {} to node {}, port {}: {}\n",
             endpoint_.device().name(), endpoint_.address().node, peer_.node, peer_.port,
             pmem::mapped::error_text(error));
  break_off(Status::unsupported);
  give_up();
}

void VerbsQueuePair::finish(SendRequest* request, Status status) {
  if (request->role == SendRequest::Role::old_contents) {
    counting_ = false;
    if (status == Status::success && !waiting_.empty()) count_replacement(*waiting_.front());
  } else if (request->role == SendRequest::Role::operation) {
    if (status == Status::success) count_completed(*request);
    if (request->operation != nullptr) {
      const Opcode opcode = request->request.opcode;
      const bool atomic = opcode == Opcode::compare_and_swap || opcode == Opcode::fetch_and_add;
      request->operation->complete(
          status, atomic && status == Status::success ? request->result : std::uint64_t{0});
    }
  }
  endpoint_.pool().give_back(request);
}

// Soft-iWARP may report the completion of a WRITE before that of a READ that was posted earlier.
// Operations must end in order, so a completion that has overtaken others is kept until they have
// completed.
void VerbsQueuePair::completed(const ibv_wc& completion) {
  if (in_flight_.empty()) return;
  const std::uint32_t before =
      static_cast<std::uint32_t>(completion.wr_id) - in_flight_.front()->number;
  if (before >= in_flight_.size()) return;  // the operation was given up
  for (std::uint32_t i = 0; i < before; ++i) {
    if (!in_flight_[i]->signaled) continue;
    in_flight_[before]->overtook = true;
    in_flight_[before]->early = completion;
    ++overtaking_;
    return;
  }
  settle(completion, before);
  while (overtaking_ != 0) {
    std::uint32_t next = 0;
    while (!in_flight_[next]->signaled && !in_flight_[next]->overtook) ++next;
    if (!in_flight_[next]->overtook) break;
    --overtaking_;
    settle(ibv_wc(in_flight_[next]->early), next);
  }
  if (connected_ && !waiting_.empty()) endpoint_.note(*this);
}

// Ends the `before` unsignaled operations ahead of a completion, and then the operation that it
// reports.
void VerbsQueuePair::settle(const ibv_wc& completion, std::uint32_t before) {
  for (; before > 0; --before) finish(in_flight_.take_front(), Status::success);
  SendRequest* const oldest = in_flight_.take_front();
  const Opcode opcode = oldest->request.opcode;
  const CompletionMeaning meaning = meaning_of(completion.status, opcode);
  if (meaning.status == Status::success) {
    finish(oldest, Status::success);
    return;
  }
  if (meaning.status != Status::flushed) report(completion, opcode, meaning.words);
  const Status reason = std::exchange(oldest_, Status::flushed);
  finish(oldest, meaning.status == Status::flushed ? reason : meaning.status);
  break_off(Status::flushed);
}

void VerbsQueuePair::report(const ibv_wc& completion, Opcode opcode, std::string_view words) {
  if (!connected_) return;
  fmt::print(stderr,
             "perdura: {} of node {} to node {}, port {}, failed on {}: {} (vendor {:#x})\n",
             to_string(opcode), endpoint_.address().node, peer_.node, peer_.port,
             endpoint_.device().name(), words, completion.vendor_err);
}

// --- receiving -------------------------------------------------------------------------

void VerbsQueuePair::received(const ibv_wc& completion, ReceiveQueueState& queue,
                              std::uint32_t slot) {
  if (completion.status == IBV_WC_SUCCESS) peer_is_ready();
  const bool too_long = completion.status == IBV_WC_LOC_LEN_ERR;
  if (options_.completions == nullptr || ended_ ||
      (completion.status != IBV_WC_SUCCESS && !too_long)) {
    queue.repost(slot);
    if (completion.status != IBV_WC_SUCCESS) break_off(Status::flushed);
    return;
  }
  const ReceiveQueueState::Posted posted = queue.take(slot);
  const bool immediate = (completion.wc_flags & IBV_WC_WITH_IMM) != 0;
  const bool placed = !too_long && completion.opcode == IBV_WC_RECV;
  const std::uint32_t length = placed ? completion.byte_len : 0;
  const LocalBuffer& first = posted.buffer.first();
  ReceiveCompletion received{options_.reported_as,
                             too_long ? Status::message_too_long : Status::success,
                             std::nullopt,
                             first.first(std::min(length, first.length)),
                             posted.id,
                             length};
  if (immediate && !too_long) received.immediate = ntohl(completion.imm_data);
  VerbsEndpoint::count_placed(posted.buffer, length, posted.before);
  options_.completions->push(received);
  if (too_long) break_off(Status::flushed);
}

// --- the end of a connection -----------------------------------------------------------

void VerbsQueuePair::break_off(Status oldest) {
  if (!connected_) return;
  connected_ = false;
  oldest_ = oldest;
  if (opened_) endpoint_.tell(MessageKind::disconnected, peer_, id_, peer_id_);
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  // In the error state the device flushes the outstanding operations; until it has, it uses their
  // buffers.
  if (pair_ != nullptr) ibv_modify_qp(pair_.get(), &error, IBV_QP_STATE);
  while (!waiting_.empty()) {
    const bool first = in_flight_.empty();
    finish(waiting_.take_front(),
           first ? std::exchange(oldest_, Status::flushed) : Status::flushed);
  }
  endpoint_.ends(*this);
}

void VerbsQueuePair::announce_end() {
  if (std::exchange(ended_, true) || options_.completions == nullptr) return;
  options_.completions->push({options_.reported_as, Status::disconnected, std::nullopt, {}, 0});
}

void VerbsQueuePair::give_up() {
  overtaking_ = 0;
  while (!in_flight_.empty()) {
    finish(in_flight_.take_front(), std::exchange(oldest_, Status::flushed));
  }
}

void VerbsQueuePair::born_broken(Address peer) {
  peer_ = peer;
  endpoint_.ends(*this);
}

void VerbsQueuePair::peer_has_ended() {
  if (!bring_up_->tells_end()) break_off(Status::retry_exceeded);
}

void VerbsQueuePair::peer_is_ready() {
  if (ready_) return;
  ready_ = true;
  if (!waiting_.empty()) endpoint_.note(*this);
}

}  // namespace perdura::fabric::verbs
