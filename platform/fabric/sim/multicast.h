// A multicast WRITE, which no device has: one message that the network delivers to several peers,
// each of which places it and acknowledges it ("Building Distributed Systems with Non-Volatile Main
// Memories and RDMA Networks", section 5.5.4, which leaves it to future work). Only for experiments
// on it; the fabric's interface knows nothing of it.
//
//   {
//     const fabric::sim::Multicast group;
//     for (fabric::RdmaOperation& write : writes) write.post();
//   }
//   for (fabric::RdmaOperation& write : writes) co_await write;
//
// WRITEs of the same data that a thread posts over several connections while the object exists, and
// without suspending, leave its device as one message: the first of them is posted, fetched and
// sent; the others are copies of it that the network makes, and cost the sender nothing but their
// acknowledgments. An operation that the queue pair holds back, because as many are under way as it
// allows, is sent by itself. In a relaxed simulation the object has no effect.
#pragma once

#include <optional>

#include "platform/base/units.h"

namespace perdura::fabric::sim {

class Multicast {
 public:
  Multicast() { current_ = this; }
  ~Multicast() { current_ = nullptr; }
  Multicast(const Multicast&) = delete;
  Multicast& operator=(const Multicast&) = delete;

  // For requesters: the message as it has left the sender's device.
  struct Sent {
    Time departure{};
    Time fetched{};  // when the device had all of the payload
  };
  // The group whose WRITEs are being posted; null if there is none.
  static Multicast* current() { return current_; }
  const std::optional<Sent>& sent() const { return sent_; }
  void has_left(const Sent& sent) { sent_ = sent; }

 private:
  static inline thread_local Multicast* current_ = nullptr;
  std::optional<Sent> sent_;
};

}  // namespace perdura::fabric::sim
