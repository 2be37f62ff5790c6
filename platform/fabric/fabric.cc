#include "platform/fabric/fabric.h"

#include <fmt/core.h>

#include <utility>

#include "platform/base/error.h"

namespace perdura::fabric {

RdmaOperation::~RdmaOperation() {
  if (posted_ && !done_) queue_pair_.abandon(*this);
}

RdmaOperation& RdmaOperation::post() {
  if (!posted_) {
    posted_ = true;
    queue_pair_.post(*this);
  }
  return *this;
}

void RdmaOperation::complete(Status status, std::uint64_t old_value) {
  completion_ = {status, request_.opcode, old_value};
  done_ = true;
  if (observer != nullptr) [[unlikely]]
    observer->completed(*this);
  if (waiting_) executor_->make_ready(waiting_);
}

void CompletionQueue::push(const ReceiveCompletion& completion) {
  if (entries_.count == entries_.slots.size()) {
    std::vector<ReceiveCompletion> larger(entries_.count == 0 ? 16 : entries_.count * 2);
    for (std::size_t i = 0; i < entries_.count; ++i) {
      larger[i] = entries_.slots[(entries_.head + i) % entries_.slots.size()];
    }
    entries_.slots = std::move(larger);
    entries_.head = 0;
  }
  entries_.slots[(entries_.head + entries_.count) % entries_.slots.size()] = completion;
  ++entries_.count;
  waiting_.wake_one();
}

ReceiveCompletion CompletionQueue::take() {
  ReceiveCompletion first = pop();
  if (first.observer != nullptr) [[unlikely]]
    std::exchange(first.observer, nullptr)->taken();
  return first;
}

ReceiveCompletion CompletionQueue::pop() {
  const ReceiveCompletion first = entries_.slots[entries_.head];
  entries_.head = (entries_.head + 1) % entries_.slots.size();
  --entries_.count;
  return first;
}

void CompletionQueue::forget(const QueuePair& queue_pair) {
  const std::size_t count = entries_.count;
  for (std::size_t i = 0; i < count; ++i) {
    const ReceiveCompletion entry = pop();
    if (entry.queue_pair != &queue_pair) push(entry);
  }
}

void check_size_word(Bytes word, Bytes region_size) {
  if (word % kWord == 0 && word < region_size && kWord <= region_size - word) return;
  throw PlatformError(fmt::format(
      "byte {} of a region of {} cannot be the size of a registration, which is an aligned word",
      word, region_size));
}

void Endpoint::allow_appends(const ExtentMap& /*map*/, Bytes /*size*/, RangeFaults& /*faults*/) {
  throw PlatformError("this device has no APPEND; platforms sim, shm and sockets have it");
}

void check_private_data(std::size_t size) {
  if (size <= kMaxPrivateData) return;
  throw UsageError(
      fmt::format("{} bytes of private data; a connection takes {}", size, kMaxPrivateData));
}

}  // namespace perdura::fabric
