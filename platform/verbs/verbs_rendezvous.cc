#include "platform/verbs/verbs_rendezvous.h"

#include <fmt/format.h>

#include <sstream>

namespace perdura {
namespace {

using fabric::Address;
using fabric::tcp::Listener;
using fabric::verbs::Message;

// An announcement without hosts means that nothing listens at the address any more.
Message announcement(Address address, const Listener& listener) {
  Message message;
  message.kind = fabric::verbs::MessageKind::listening;
  message.from = address;
  message.words = {listener.port, listener.token};
  const std::string hosts = fmt::format("{}", fmt::join(listener.hosts, " "));
  const auto bytes = std::as_bytes(std::span(hosts));
  message.data.assign(bytes.begin(), bytes.end());
  return message;
}

Listener announced_by(const Message& message) {
  Listener listener{.port = static_cast<std::uint16_t>(message.words[0]),
                    .token = message.words[1]};
  std::istringstream hosts(
      std::string(reinterpret_cast<const char*>(message.data.data()), message.data.size()));
  for (std::string host; hosts >> host;) listener.hosts.push_back(host);
  return listener;
}

}  // namespace

std::uint64_t VerbsRendezvous::job_of(const fabric::verbs::ControlListener* listener,
                                      const std::string& coordinator) {
  if (listener != nullptr) return listener->token();
  const auto parsed = fabric::verbs::parse_coordinator(coordinator);
  return parsed ? parsed->token : 0;
}

void VerbsRendezvous::publish(Address address, const Listener& listener) {
  Listener here = listener;
  here.hosts = fabric::verbs::local_addresses();
  {
    const std::scoped_lock lock(mutex_);
    known_[{address.node, address.port}] = here;
  }
  control_->announce(announcement(address, here));
}

void VerbsRendezvous::withdraw(Address address) {
  {
    const std::scoped_lock lock(mutex_);
    known_.erase({address.node, address.port});
  }
  control_->announce(announcement(address, {}));
}

std::optional<Listener> VerbsRendezvous::find(Address address) {
  const std::scoped_lock lock(mutex_);
  const auto found = known_.find({address.node, address.port});
  if (found == known_.end()) return std::nullopt;
  return found->second;
}

void VerbsRendezvous::take(const Message& message) {
  Listener listener = announced_by(message);
  const std::scoped_lock lock(mutex_);
  if (listener.hosts.empty()) {
    known_.erase({message.from.node, message.from.port});
  } else {
    known_[{message.from.node, message.from.port}] = std::move(listener);
  }
}

}  // namespace perdura
