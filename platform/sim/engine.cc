#include "platform/sim/engine.h"

namespace perdura::sim {

void Engine::push_heap(Entry entry) {
  std::size_t hole = heap_.size();
  heap_.push_back(entry);
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / kArity;
    if (!entry.before(heap_[parent])) break;
    heap_[hole] = heap_[parent];
    hole = parent;
  }
  heap_[hole] = entry;
}

Engine::Entry Engine::pop_heap() {
  const Entry first = heap_.front();
  const Entry last = heap_.back();
  heap_.pop_back();
  const std::size_t size = heap_.size();
  if (size == 0) return first;
  std::size_t hole = 0;
  for (;;) {
    const std::size_t begin = hole * kArity + 1;
    if (begin >= size) break;
    const std::size_t end = begin + kArity < size ? begin + kArity : size;
    std::size_t smallest = begin;
    for (std::size_t child = begin + 1; child < end; ++child) {
      if (heap_[child].before(heap_[smallest])) smallest = child;
    }
    if (!heap_[smallest].before(last)) break;
    heap_[hole] = heap_[smallest];
    hole = smallest;
  }
  heap_[hole] = last;
  return first;
}

void Engine::push_now(Event& event) {
  if (ring_count_ == ring_.size()) {
    std::vector<Event*> larger(ring_.size() * 2);
    for (std::size_t i = 0; i < ring_count_; ++i) {
      larger[i] = ring_[(ring_head_ + i) & (ring_.size() - 1)];
    }
    ring_ = std::move(larger);
    ring_head_ = 0;
  }
  ring_[(ring_head_ + ring_count_) & (ring_.size() - 1)] = &event;
  ++ring_count_;
}

bool Engine::step() {
  // What the heap holds for this instant was scheduled before the instant began, so it comes first.
  const bool heap_is_due = !heap_.empty() && heap_.front().time == now_;
  if (ring_count_ > 0 && !heap_is_due) {
    Event* event = ring_[ring_head_];
    ring_head_ = (ring_head_ + 1) & (ring_.size() - 1);
    --ring_count_;
    ++fired_;
    event->fire();
    return true;
  }
  if (heap_.empty()) return false;
  const Entry entry = pop_heap();
  now_ = entry.time;
  ++fired_;
  entry.event->fire();
  return true;
}

}  // namespace perdura::sim
