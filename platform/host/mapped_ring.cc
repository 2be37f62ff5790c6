#include "platform/host/mapped_ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "platform/pmem/instructions.h"

namespace perdura {

namespace {

// The lines of a slot are in the cache of the consumer, which has read or awaits them. All are
// fetched at the same time, so that the stores do not wait for one after the other.
template <class Slot>
void prefetch_for_writing(const Slot& slot, Bytes length) {
  constexpr Bytes kMost = 16 * kCacheLine;  // as many as a processor fetches at the same time
  const auto* const first = reinterpret_cast<const std::byte*>(&slot);
  for (Bytes at = 0; at < std::min(sizeof slot + length, kMost); at += kCacheLine) {
    pmem::prefetch_for_writing(first + at);
  }
}

}  // namespace

Bytes MappedRing::size(RingShape shape) {
  return sizeof(RingHeader) + shape.slots * round_up(sizeof(Slot) + shape.message_size, kCacheLine);
}

MappedRing::MappedRing(std::byte* memory, RingShape shape, std::shared_ptr<void> keeper,
                       std::function<void(RingEnd&)> wake)
    : shape_(shape),
      slot_size_(round_up(sizeof(Slot) + shape.message_size, kCacheLine)),
      memory_(memory),
      keeper_(std::move(keeper)),
      wake_(std::move(wake)) {}

MappedRing::Slot& MappedRing::slot(std::uint64_t message) const {
  return *reinterpret_cast<Slot*>(memory_ + sizeof(RingHeader) +
                                  message % shape_.slots * slot_size_);
}

MappedProducer::MappedProducer(MappedRing ring) : ring_(std::move(ring)) {
  // Its predecessor may have pushed messages that have not been popped.
  next_ = popped_ = ring_.header().popped.load();
  slot_ = &ring_.slot(next_);
  while (has_space() && MappedRing::holds(*slot_, next_)) advance();
}

bool MappedProducer::try_push(std::span<const std::byte> message) {
  check_ring_message(ring_.shape(), message.size());
  if (!has_space()) return false;
  MappedRing::Slot& slot = *slot_;
  prefetch_for_writing(slot, message.size());
  slot.length.store(message.size(), std::memory_order_relaxed);
  if (!message.empty()) std::memcpy(MappedRing::content(slot), message.data(), message.size());
  advance();
  slot.number.exchange(next_, std::memory_order_seq_cst);
  ring_.wake(ring_.header().consumer);
  return true;
}

bool MappedProducer::has_space() {
  if (next_ - popped_ < ring_.shape().slots) return true;
  popped_ = ring_.header().popped.load(std::memory_order_seq_cst);
  return next_ - popped_ < ring_.shape().slots;
}

std::optional<Bytes> MappedConsumer::try_pop(std::span<std::byte> into) {
  check_ring_room(ring_.shape(), into.size());
  if (!has_message()) return std::nullopt;
  MappedRing::Slot& slot = *slot_;
  // Loaded only once and limited: the other process may not be trustworthy.
  const Bytes length =
      std::min<Bytes>(slot.length.load(std::memory_order_relaxed), ring_.shape().message_size);
  if (length > 0) std::memcpy(into.data(), MappedRing::content(slot), length);
  slot_ = &ring_.slot(++next_);
  ring_.header().popped.exchange(next_, std::memory_order_seq_cst);
  ring_.wake(ring_.header().producer);
  return length;
}

}  // namespace perdura
