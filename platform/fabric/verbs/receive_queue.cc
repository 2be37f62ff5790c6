#include "platform/fabric/verbs/receive_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "platform/base/error.h"
#include "platform/fabric/verbs/endpoint.h"

namespace perdura::fabric::verbs {

ReceiveQueueState::ReceiveQueueState(VerbsEndpoint& endpoint, std::uint32_t depth)
    : endpoint_(endpoint), depth_(depth), index_(0), posted_(depth) {
  for (std::uint32_t slot = depth; slot-- > 0;) free_.push_back(slot);
  endpoint_.reserve_completions(depth);
  ibv_srq_init_attr wanted{};
  wanted.attr.max_wr = std::max(depth, 1U);
  wanted.attr.max_sge = kMaxPieces;
  queue_.reset(ibv_create_srq(endpoint_.device().domain(), &wanted));
  if (queue_ == nullptr) {
    const int error = errno;
    endpoint_.release_completions(depth);
    throw PlatformError(
        fmt::format("{} makes no shared receive queue of {} buffers: {}; it takes {} at most",
                    endpoint_.device().name(), depth, pmem::mapped::error_text(error),
                    endpoint_.device().attributes().max_srq_wr));
  }
  index_ = endpoint_.add_receive_queue(*this);
}

ReceiveQueueState::~ReceiveQueueState() {
  queue_.reset();
  endpoint_.remove_receive_queue(index_);
  endpoint_.release_completions(depth_);
}

void ReceiveQueueState::post(const LocalPieces& buffer, std::uint64_t id) {
  if (free_.empty()) {
    fmt::print(stderr, "perdura: more than {} buffers posted to a receive queue\n", depth_);
    std::abort();
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  posted_[slot].buffer = buffer;
  posted_[slot].id = id;
  hand_over(slot);
}

void ReceiveQueueState::hand_over(std::uint32_t slot) {
  Posted& posted = posted_[slot];
  std::array<ibv_sge, kMaxPieces> places{};
  int count = 0;
  for (const LocalBuffer& piece : posted.buffer.all()) {
    if (piece.length != 0) places[static_cast<std::size_t>(count++)] = endpoint_.locate(piece);
  }
  if (VerbsEndpoint::lands_in_persistent(posted.buffer) &&
      pmem::thread_write_meter().level() == pmem::WriteMeter::Level::compared) {
    VerbsEndpoint::copy_contents(posted.buffer, posted.before);
  }
  ibv_recv_wr request{};
  request.wr_id = receive_id(index_, slot);
  request.sg_list = places.data();
  request.num_sge = count;
  ibv_recv_wr* refused = nullptr;
  if (const int error = ibv_post_srq_recv(queue_.get(), &request, &refused); error != 0) {
    throw PlatformError(fmt::format("{} takes no receive buffer: {}", endpoint_.device().name(),
                                    pmem::mapped::error_text(error)));
  }
}

ReceiveQueueState::Posted ReceiveQueueState::take(std::uint32_t slot) {
  free_.push_back(slot);
  return {posted_[slot].buffer, posted_[slot].id, std::exchange(posted_[slot].before, {})};
}

void ReceiveQueueState::repost(std::uint32_t slot) {
  if (abandoned_) return;
  hand_over(slot);
}

}  // namespace perdura::fabric::verbs
