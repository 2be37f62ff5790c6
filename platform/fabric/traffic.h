// How much nodes send and receive (docs/accounting.md). A model counts at the device of each node.
// On real platforms the initiator of an operation counts for both ends, since no code runs at the
// other one.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>

#include "platform/fabric/fabric.h"

namespace perdura::fabric {

struct Traffic {
  Bytes sent = 0;
  Bytes received = 0;

  Traffic& operator+=(const Traffic& other) {
    sent += other.sent;
    received += other.received;
    return *this;
  }
  Traffic& operator-=(const Traffic& other) {
    sent -= other.sent;
    received -= other.received;
    return *this;
  }
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

using TrafficByNode = std::map<NodeId, Traffic>;

// The payload of an operation as its initiator sees it: what it sends to the responder, and what it
// receives in answer. Operands and results of atomics are payload; headers and acknowledgments are
// not.
constexpr Traffic payload_of(const WorkRequest& request) {
  switch (request.opcode) {
    case Opcode::read:
      return {0, request.local.length()};
    case Opcode::write:
    case Opcode::write_with_immediate:
    case Opcode::send:
      return {request.local.length(), 0};
    case Opcode::compare_and_swap:
      return {2 * kWord, kWord};
    case Opcode::fetch_and_add:
      return {kWord, kWord};
    case Opcode::atomic_write:
      return {kWord, 0};
    case Opcode::append:
      return {request.local.length(), kWord};
    case Opcode::flush:
    case Opcode::commit:
      break;
  }
  return {};
}

// Counts the bytes that the queue pairs of a node exchange with their peers.
class TrafficMeter {
 public:
  // The counter of one queue pair. Only the queue pair's thread counts; any thread may read.
  class Counter {
   public:
    explicit Counter(NodeId peer) : peer_(peer) {}
    void count(const WorkRequest& request) {
      const Traffic payload = payload_of(request);
      add(sent_, payload.sent);
      add(received_, payload.received);
    }
    NodeId peer() const { return peer_; }
    Traffic read() const {
      return {sent_.load(std::memory_order_relaxed), received_.load(std::memory_order_relaxed)};
    }

   private:
    static void add(std::atomic<Bytes>& sum, Bytes more) {
      sum.store(sum.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }
    NodeId peer_;
    std::atomic<Bytes> sent_{0};
    std::atomic<Bytes> received_{0};
  };

  // Makes the counter of a new queue pair. It outlives the queue pair.
  Counter& open(NodeId peer) {
    const std::scoped_lock lock(mutex_);
    return counters_.emplace_back(peer);
  }

  // The bytes that the operations initiated by `node` have sent and received, at either end. Exact
  // while the threads wait in a barrier.
  TrafficByNode read(NodeId node) const {
    const std::scoped_lock lock(mutex_);
    TrafficByNode all;
    for (const Counter& counter : counters_) {
      const Traffic own = counter.read();
      all[node] += own;
      all[counter.peer()] += {own.received, own.sent};
    }
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::deque<Counter> counters_;
};

}  // namespace perdura::fabric
