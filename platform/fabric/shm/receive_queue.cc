#include "platform/fabric/shm/receive_queue.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>

#include "platform/pmem/instructions.h"

namespace perdura::fabric::shm {
namespace {

Bytes size_of_queue(std::uint64_t slots) {
  return offsetof(ReceiveQueueHeader, buffers) + slots * sizeof(PostedBuffer);
}

}  // namespace

ReceiveQueueState::ReceiveQueueState(OwnSegment& segment, NodeMemory& memory, std::uint32_t depth)
    : segment_(segment),
      memory_(memory),
      depth_(depth),
      offset_(segment.allocate(size_of_queue(std::bit_ceil(std::max(depth, 1U))))),
      buffers_(segment.at<ReceiveQueueHeader>(offset_)->buffers.data()),
      local_(std::bit_ceil(std::max(depth, 1U))) {}

ReceiveQueueState::~ReceiveQueueState() { segment_.release(offset_, size_of_queue(slots())); }

std::uint32_t ReceiveQueueState::key_of(const LocalBuffer& piece) {
  if (piece.region == nullptr) return 0;
  pmem::Region& region = *piece.region;
  if (piece.offset > region.size() || piece.length > region.size() - piece.offset) {
    fmt::print(stderr, "perdura: a receive buffer is outside its region {}\n", region.name());
    std::abort();
  }
  if (&region != last_region_ || !memory_.is_valid(last_key_)) {
    last_key_ = memory_.buffer_key(region);
    last_region_ = &region;
  }
  return last_key_;
}

void ReceiveQueueState::post(const LocalPieces& buffer, std::uint64_t id) {
  if (outstanding_ == depth_) {
    fmt::print(stderr, "perdura: more than {} buffers posted to a receive queue\n", depth_);
    std::abort();
  }
  Posted posted{0, buffer, id, {}};
  std::size_t used = 0;
  for (const LocalBuffer& piece : buffer.all()) posted.keys[used++] = key_of(piece);
  enqueue(posted);
}

void ReceiveQueueState::enqueue(Posted posted) {
  ++outstanding_;
  const std::uint64_t ticket = next_ticket_++;
  PostedBuffer& slot = shared(ticket);
  Posted& mine = local_[ticket & (local_.size() - 1)];
  if (mine.ticket != 0) [[unlikely]] {
    stragglers_.push_back({mine, owner_of(slot.state.load(std::memory_order_relaxed))});
  }
  posted.ticket = ticket;
  mine = posted;
  std::size_t used = 0;
  for (const LocalBuffer& piece : posted.buffer.all()) {
    slot.pieces[used].key_length.store(std::uint64_t{posted.keys[used]} << 32 | piece.length,
                                       std::memory_order_relaxed);
    slot.pieces[used].offset.store(piece.offset, std::memory_order_relaxed);
    ++used;
  }
  slot.pieces_used.store(used, std::memory_order_relaxed);
  slot.state.store(ticket << 16, std::memory_order_release);
}

std::optional<ReceiveQueueState::Consumed> ReceiveQueueState::consume(std::uint64_t ticket) {
  Posted& mine = local_[ticket & (local_.size() - 1)];
  Posted found;
  if (mine.ticket == ticket) [[likely]] {
    found = mine;
    mine.ticket = 0;
  } else {
    const auto straggler =
        std::find_if(stragglers_.begin(), stragglers_.end(),
                     [ticket](const Straggler& s) { return s.posted.ticket == ticket; });
    if (straggler == stragglers_.end()) return std::nullopt;
    found = straggler->posted;
    stragglers_.erase(straggler);
  }
  --outstanding_;
  return Consumed{found.buffer, found.id};
}

void ReceiveQueueState::recover(std::uint64_t owner) {
  if (abandoned_) return;
  std::vector<Posted> lost;
  for (Posted& mine : local_) {
    if (mine.ticket == 0) continue;
    const std::uint64_t state = shared(mine.ticket).state.load(std::memory_order_acquire);
    if (owner_of(state) != owner) continue;
    lost.push_back(mine);
    mine.ticket = 0;
  }
  std::erase_if(stragglers_, [&](const Straggler& straggler) {
    if (straggler.owner != owner) return false;
    lost.push_back(straggler.posted);
    return true;
  });
  outstanding_ -= static_cast<std::uint32_t>(lost.size());
  // A buffer's region may have been deregistered meanwhile; the next sender that claims the buffer
  // then finds its key invalid.
  for (const Posted& posted : lost) enqueue(posted);
}

namespace {

BufferClaims::Piece piece_in(const PostedPiece& posted) {
  const std::uint64_t key_length = posted.key_length.load(std::memory_order_relaxed);
  return {static_cast<std::uint32_t>(key_length >> 32), static_cast<std::uint32_t>(key_length),
          posted.offset.load(std::memory_order_relaxed)};
}

}  // namespace

std::optional<BufferClaims::Piece> BufferClaims::upcoming() const {
  if (!is_alone_) return std::nullopt;
  return piece_in(queue_->buffers.data()[next_ & (slots_ - 1)].pieces[0]);
}

std::optional<BufferClaims::Claim> BufferClaims::claim() {
  if (queue_ == nullptr) return std::nullopt;
  bool skipped = false;
  for (;;) {
    PostedBuffer& slot = queue_->buffers.data()[next_ & (slots_ - 1)];
    std::uint64_t state = slot.state.load(std::memory_order_acquire);
    if (ticket_of(state) < next_) return std::nullopt;
    if (ticket_of(state) == next_ && owner_of(state) == 0) {
      Claim claim;
      claim.pieces_used =
          std::min<std::uint64_t>(slot.pieces_used.load(std::memory_order_relaxed), kMaxPieces);
      for (std::size_t i = 0; i < claim.pieces_used; ++i) {
        claim.pieces[i] = piece_in(slot.pieces[i]);
      }
      // The owner overwrites only claimed slots. So if the slot can be claimed now, the words that
      // were read from it belong together.
      if (slot.state.compare_exchange_strong(state, state | owner_, std::memory_order_acq_rel)) {
        claim.ticket = next_++;
        // Then claiming the next slot need not wait for a line that the receiver wrote last.
        pmem::prefetch_for_writing(&queue_->buffers.data()[next_ & (slots_ - 1)]);
        is_alone_ = !skipped;
        if (skipped) queue_->hint.store(next_, std::memory_order_relaxed);
        return claim;
      }
      continue;
    }
    // Other senders use the queue, too. All tickets that are older than this slot's ticket by the
    // length of the ring have been claimed.
    skipped = true;
    next_ = std::max(next_ + 1, queue_->hint.load(std::memory_order_relaxed));
    if (ticket_of(state) > slots_) next_ = std::max(next_, ticket_of(state) - slots_ + 1);
  }
}

}  // namespace perdura::fabric::shm
