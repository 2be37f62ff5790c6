// An operation that could not be finished at the moment at which it was posted: it waits for a
// place in the send queue, for the emulated network, for a receive buffer, or for its turn to
// complete. Entries come from a pool of the endpoint, so that nothing is allocated once it has
// warmed up.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "platform/fabric/fabric.h"

namespace perdura::fabric::shm {

inline constexpr std::uint32_t kMaxInline = 256;

class ShmQueuePair;

struct SendEntry {
  ShmQueuePair* queue_pair = nullptr;
  RdmaOperation* operation = nullptr;  // null if unsignaled or abandoned
  bool abandoned = false;              // its buffer no longer exists, so it must not be executed
  bool owns_data = false;              // inlined: the payload is here
  WorkRequest request;
  Status status = Status::success;
  std::uint64_t old_value = 0;
  Time due{};
  SendEntry* next = nullptr;
  std::array<std::byte, kMaxInline> data;
};

// First in, first out.
class EntryList {
 public:
  bool empty() const { return head_ == nullptr; }
  std::size_t size() const { return size_; }
  SendEntry* front() const { return head_; }
  void push(SendEntry* entry) {
    entry->next = nullptr;
    if (head_ == nullptr) {
      head_ = entry;
    } else {
      tail_->next = entry;
    }
    tail_ = entry;
    ++size_;
  }
  SendEntry* pop() {
    SendEntry* first = head_;
    head_ = first->next;
    --size_;
    return first;
  }
  // Takes out all entries of one queue pair, in order.
  EntryList extract(const ShmQueuePair* queue_pair) {
    EntryList taken;
    EntryList left;
    while (!empty()) {
      SendEntry* entry = pop();
      (entry->queue_pair == queue_pair ? taken : left).push(entry);
    }
    *this = left;
    return taken;
  }

 private:
  SendEntry* head_ = nullptr;
  SendEntry* tail_ = nullptr;
  std::size_t size_ = 0;
};

class EntryPool {
 public:
  SendEntry* take() {
    if (free_.empty()) {
      entries_.push_back(std::make_unique<SendEntry>());
      return entries_.back().get();
    }
    return free_.pop();
  }
  void give_back(SendEntry* entry) { free_.push(entry); }

 private:
  std::vector<std::unique_ptr<SendEntry>> entries_;
  EntryList free_;
};

}  // namespace perdura::fabric::shm
