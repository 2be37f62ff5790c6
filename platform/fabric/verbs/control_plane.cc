#include "platform/fabric/verbs/control_plane.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura::fabric::verbs {

void Mailbox::put(Message message) {
  {
    const std::scoped_lock lock(mutex_);
    messages_.push_back(std::move(message));
    count_.fetch_add(1, std::memory_order_seq_cst);
  }
  bell_.ring();
}

std::vector<Message> Mailbox::take() {
  const std::scoped_lock lock(mutex_);
  count_.store(0, std::memory_order_seq_cst);
  return std::exchange(messages_, {});
}

void ControlPlane::open(Address address, Mailbox& mailbox) {
  const std::scoped_lock lock(mailboxes_mutex_);
  if (!mailboxes_.try_emplace({address.node, address.port}, &mailbox).second) {
    throw UsageError(
        fmt::format("two threads of node {} have port {}", address.node, address.port));
  }
}

void ControlPlane::close(Address address) {
  const std::scoped_lock lock(mailboxes_mutex_);
  mailboxes_.erase({address.node, address.port});
}

void ControlPlane::ring_all() {
  const std::scoped_lock lock(mailboxes_mutex_);
  for (const auto& [address, mailbox] : mailboxes_) mailbox->ring();
}

void ControlPlane::deliver(Message message) {
  Message answer;
  if (message.kind == MessageKind::lookup) {
    answer.kind = MessageKind::found;
    lookup_(message, answer);
  } else {
    const std::scoped_lock lock(mailboxes_mutex_);
    const auto found = mailboxes_.find({message.to.node, message.to.port});
    if (found != mailboxes_.end()) {
      found->second->put(std::move(message));
      return;
    }
    if (message.kind == MessageKind::connect) {
      answer.kind = MessageKind::unreachable;
    } else if (message.kind == MessageKind::accepted) {
      answer.kind = MessageKind::disconnected;
    } else {
      return;
    }
  }
  answer.from = message.to;
  answer.to = message.from;
  answer.from_id = message.to_id;
  answer.to_id = message.from_id;
  send(std::move(answer));
}

void ControlPlane::answer_unreachable(Message message) {
  if (message.kind != MessageKind::connect) return;
  std::swap(message.from, message.to);
  message.to_id = message.from_id;
  message.kind = MessageKind::unreachable;
  deliver(std::move(message));
}

void ControlPlane::tell_lost(NodeId node) {
  Message lost;
  lost.kind = MessageKind::lost;
  lost.from.node = node;
  const std::scoped_lock lock(mailboxes_mutex_);
  for (const auto& [address, mailbox] : mailboxes_) mailbox->put(lost);
}

}  // namespace perdura::fabric::verbs
