// The control plane of a process: messages between endpoints, by which connections are established,
// keys of registered memory are looked up, and the death of a process is noticed by its closed TCP
// connection. None of this is on the data path: a dedicated thread receives messages and puts them
// into the mailboxes of the endpoints.
//
// Subclasses determine which processes there are, and how messages reach them. The processes of an
// experiment exist from its beginning to its end (fixed_job.h); servers and their clients come and
// go (open_job.h).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "platform/fabric/verbs/control_message.h"
#include "platform/runtime/doorbell.h"
#include "platform/runtime/host_clock.h"

namespace perdura::fabric::verbs {

// The messages for an endpoint; a delivery rings its thread's doorbell.
class Mailbox {
 public:
  explicit Mailbox(runtime::Doorbell& bell) : bell_(bell) {}
  void put(Message message);
  void ring() { bell_.ring(); }
  bool empty() const { return count_.load(std::memory_order_seq_cst) == 0; }
  std::vector<Message> take();

 private:
  runtime::Doorbell& bell_;
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::vector<Message> messages_;
};

class ControlPlane {
 public:
  // Fills in the answer to a lookup of a key of a local node; called on any thread.
  using Lookup = std::function<void(const Message& lookup, Message& found)>;

  virtual ~ControlPlane() = default;
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;

  const runtime::HostClock& clock() const { return clock_; }

  // Registers the mailbox of a local endpoint. Throws UsageError if the address is taken.
  void open(Address address, Mailbox& mailbox);
  void close(Address address);
  // Rings the doorbells of all local endpoints, so that they look for news.
  void ring_all();

  // Sends a message to an endpoint or, if it is a lookup, to a node. May be called from any thread.
  virtual void send(Message message) = 0;
  // True if the node's process has ended, and no other can take the node's place.
  virtual bool is_lost(NodeId node) const = 0;

 protected:
  explicit ControlPlane(Lookup lookup) : lookup_(std::move(lookup)) {}
  void set_clock(const runtime::HostClock& clock) { clock_ = clock; }

  // Delivers a message to a local node.
  void deliver(Message message);
  // Tells an initiator that its peer cannot be reached; other messages need no answer.
  void answer_unreachable(Message message);
  // Tells all local endpoints that the process of a node has ended.
  void tell_lost(NodeId node);

 private:
  runtime::HostClock clock_;
  Lookup lookup_;
  std::mutex mailboxes_mutex_;
  std::map<std::pair<NodeId, Port>, Mailbox*> mailboxes_;
};

}  // namespace perdura::fabric::verbs
