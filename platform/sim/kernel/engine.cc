#include "platform/sim/kernel/engine.h"

#include <algorithm>

namespace perdura::sim {

Engine::Engine()
    : heap_(64, kNever),
      line_(64, kNever),
      line_mask_(line_.size() - 1),
      ring_(64),
      ring_mask_(ring_.size() - 1) {}

// The hole that the first entry leaves sinks to a leaf, and the last entry fills it. The last entry
// was a leaf, so it hardly ever rises again; and the way down does not depend on it.
void Engine::pop_heap() {
  ScheduledEvent* const heap = heap_.data();
  const ScheduledEvent last = heap[--heap_size_];
  heap[heap_size_] = kNever;
  const std::size_t size = heap_size_;
  if (size == 0) return;
  std::size_t hole = 0;
  for (std::size_t child = 1; child < size; child = hole * kArity + 1) {
    static_assert(kArity == 4);
    const std::size_t left = child + std::size_t{heap[child + 1].before(heap[child])};
    const std::size_t right = child + 2 + std::size_t{heap[child + 3].before(heap[child + 2])};
    const std::size_t choice = 0 - std::size_t{heap[right].before(heap[left])};
    const std::size_t smallest = left ^ ((left ^ right) & choice);
    heap[hole] = heap[smallest];
    hole = smallest;
  }
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / kArity;
    if (!last.before(heap[parent])) break;
    heap[hole] = heap[parent];
    hole = parent;
  }
  heap[hole] = last;
}

void Engine::grow_heap() { heap_.resize(heap_.size() * 2, kNever); }

// Moves the horizon beyond the first of the later entries. Each move examines all of them, so the
// horizon moves so far that a good part of them is taken.
void Engine::move_horizon() {
  const auto first = std::min_element(
      later_.begin(), later_.end(),
      [](const ScheduledEvent& a, const ScheduledEvent& b) { return a.before(b); });
  horizon_ = std::max(first->time, now_) + near_;
  const auto due =
      std::partition(later_.begin(), later_.end(),
                     [this](const ScheduledEvent& entry) { return entry.time >= horizon_; });
  constexpr std::ptrdiff_t kGoodPart = 16;
  if ((later_.end() - due) * kGoodPart < due - later_.begin()) near_ *= 2;
  for (auto entry = due; entry != later_.end(); ++entry) push_heap(*entry);
  later_.erase(due, later_.end());
  if (later_.empty()) near_ = kNear;
}

std::size_t Engine::pending() {
  const auto known = static_cast<std::ptrdiff_t>(pending_.size());
  for (; ring_count_ > 0; --ring_count_) {
    pending_.push_back({sequence_++, now_, ring_[ring_head_]});
    ring_head_ = (ring_head_ + 1) & ring_mask_;
  }
  while (heap_size_ > 0) {
    pending_.push_back(heap_[0]);
    pop_heap();
  }
  while (line_count_ > 0) {
    pending_.push_back(line_[line_head_]);
    pop_line();
  }
  pending_.insert(pending_.end(), later_.begin(), later_.end());
  later_.clear();
  std::sort(pending_.begin() + known, pending_.end(),
            [](const ScheduledEvent& a, const ScheduledEvent& b) { return a.before(b); });
  return pending_.size();
}

void Engine::fire_pending(std::size_t number, Picoseconds step) {
  const auto chosen = pending_.begin() + static_cast<std::ptrdiff_t>(number);
  const ScheduledEvent entry = *chosen;
  pending_.erase(chosen);
  advance(step);
  now_ = std::max(now_, entry.time);
  ++fired_;
  entry.event->fire();
}

void Engine::grow_line() {
  std::vector<ScheduledEvent> larger(line_.size() * 2, kNever);
  for (std::size_t i = 0; i < line_count_; ++i) larger[i] = line_[(line_head_ + i) & line_mask_];
  line_ = std::move(larger);
  line_mask_ = line_.size() - 1;
  line_head_ = 0;
}

void Engine::grow_ring() {
  std::vector<Event*> larger(ring_.size() * 2);
  for (std::size_t i = 0; i < ring_count_; ++i) {
    larger[i] = ring_[(ring_head_ + i) & ring_mask_];
  }
  ring_ = std::move(larger);
  ring_mask_ = ring_.size() - 1;
  ring_head_ = 0;
}

}  // namespace perdura::sim
