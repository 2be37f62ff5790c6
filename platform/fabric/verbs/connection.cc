// Establishment of connections: the initiator creates its queue pair and sends its address to the
// listening endpoint. The acceptor creates the other end, ready to be connected, and answers. When
// the initiator's queue pair is connected (bring_up.h), it notifies the acceptor, which may then
// send.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "platform/fabric/verbs/endpoint.h"

namespace perdura::fabric::verbs {
namespace {

constexpr Picoseconds kLookAgain = Milliseconds(1);

std::vector<std::byte> with_address(const QueuePairAddress& address,
                                    std::span<const std::byte> private_data) {
  std::vector<std::byte> data(sizeof(address) + private_data.size());
  std::memcpy(data.data(), &address, sizeof(address));
  std::copy(private_data.begin(), private_data.end(), data.begin() + sizeof(address));
  return data;
}

QueuePairAddress address_in(const Message& message) {
  QueuePairAddress address;
  if (message.data.size() >= sizeof(address)) {
    std::memcpy(&address, message.data.data(), sizeof(address));
  }
  return address;
}

std::span<const std::byte> private_data_in(const Message& message) {
  const std::size_t before = std::min(sizeof(QueuePairAddress), message.data.size());
  return std::span(message.data).subspan(before);
}

}  // namespace

void VerbsQueuePair::begin(Address peer, std::uint64_t peer_id) {
  peer_ = peer;
  peer_id_ = peer_id;
  opened_ = true;
  traffic_ = &endpoint_.traffic().open(peer.node);
}

void VerbsQueuePair::accept(Address peer, std::uint64_t peer_id, const QueuePairAddress& theirs) {
  begin(peer, peer_id);
  bring_up_->accept(peer, theirs);
  connected_ = true;
}

Task<Status> VerbsQueuePair::connect(Address peer, std::uint64_t peer_id, QueuePairAddress theirs,
                                     Time deadline) {
  begin(peer, peer_id);
  const Status status = co_await bring_up_->connect(peer, theirs, deadline);
  connected_ = status == Status::success;
  co_return status;
}

class VerbsConnectionRequest final : public ConnectionRequest {
 public:
  VerbsConnectionRequest(VerbsEndpoint& endpoint, Message request)
      : endpoint_(endpoint), request_(std::move(request)) {}
  ~VerbsConnectionRequest() override {
    if (!answered_) reject({});
  }

  Address from() const override { return request_.from; }
  std::span<const std::byte> private_data() const override { return private_data_in(request_); }

  std::unique_ptr<QueuePair> accept(const QueuePairOptions& options,
                                    std::span<const std::byte> private_data) override {
    check_private_data(private_data.size());
    auto queue_pair = std::make_unique<VerbsQueuePair>(endpoint_, endpoint_.next_id(), options);
    if (endpoint_.control_.is_lost(request_.from.node)) {
      answered_ = true;
      queue_pair->born_broken(request_.from);
      return queue_pair;
    }
    queue_pair->accept(request_.from, request_.from_id, address_in(request_));
    answered_ = true;
    Message accepted;
    accepted.kind = MessageKind::accepted;
    accepted.from = endpoint_.address_;
    accepted.from_id = endpoint_.named(queue_pair->id());
    accepted.to = request_.from;
    accepted.to_id = request_.from_id;
    accepted.data = with_address(queue_pair->own_address(), private_data);
    endpoint_.control_.send(std::move(accepted));
    return queue_pair;
  }

  void reject(std::span<const std::byte> private_data) override {
    check_private_data(private_data.size());
    answered_ = true;
    Message refused;
    refused.kind = MessageKind::refused;
    refused.from = endpoint_.address_;
    refused.to = request_.from;
    refused.to_id = request_.from_id;
    refused.data.assign(private_data.begin(), private_data.end());
    endpoint_.control_.send(std::move(refused));
  }

 private:
  VerbsEndpoint& endpoint_;
  Message request_;
  bool answered_ = false;
};

// A connection that this side has requested and that is not established yet.
struct VerbsEndpoint::Pending {
  Pending(VerbsEndpoint& of, std::uint64_t own_id, Address peer)
      : endpoint(of), id(own_id), to(peer) {
    endpoint.pending_[id] = this;
  }
  ~Pending() { endpoint.pending_.erase(id); }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  VerbsEndpoint& endpoint;
  std::uint64_t id;
  Address to;
  std::optional<Message> answer;
  bool lost = false;  // the peer's process has ended since it was asked
};

Task<Connection> VerbsEndpoint::connect(Address to, QueuePairOptions options,
                                        std::vector<std::byte> private_data) {
  check_private_data(private_data.size());
  const Picoseconds given = options.connection_timeout;
  const Time deadline =
      executor_.now() + (given > Picoseconds{} ? given : options_.connection_timeout);
  auto queue_pair = std::make_unique<VerbsQueuePair>(*this, next_id(), options);
  Pending pending(*this, named(queue_pair->id()), to);
  const Pending* const asked = &pending;
  for (;;) {
    pending.answer.reset();
    pending.lost = false;
    if (!control_.is_lost(to.node)) {
      Message request;
      request.kind = MessageKind::connect;
      request.from = address_;
      request.from_id = pending.id;
      request.to = to;
      request.data = with_address(queue_pair->own_address(), private_data);
      control_.send(std::move(request));
      co_await host::until([asked] { return asked->answer.has_value(); }, deadline);
    }
    if (pending.answer && pending.answer->kind == MessageKind::refused) {
      co_return Connection{Status::disconnected, nullptr, std::move(pending.answer->data)};
    }
    if (pending.answer && pending.answer->kind == MessageKind::accepted) {
      const Message answer = std::move(*pending.answer);
      Status status =
          co_await queue_pair->connect(to, answer.from_id, address_in(answer), deadline);
      if (pending.lost) status = Status::retry_exceeded;
      if (status != Status::success) {
        tell(MessageKind::disconnected, to, queue_pair->id(), answer.from_id);
        co_return Connection{status, nullptr, {}};
      }
      queue_pair->peer_is_ready();
      tell(MessageKind::established, to, queue_pair->id(), answer.from_id);
      const auto data = private_data_in(answer);
      co_return Connection{Status::success, std::move(queue_pair),
                           std::vector(data.begin(), data.end())};
    }
    // The peer has not started or does not listen yet. It may come, so look again until the
    // deadline.
    if (executor_.now() >= deadline) co_return Connection{Status::retry_exceeded, nullptr, {}};
    co_await sleep_for(kLookAgain);
  }
}

Task<std::unique_ptr<ConnectionRequest>> VerbsEndpoint::next_connection() {
  listening_ = true;
  while (requests_.empty()) co_await wait(acceptors_);
  Message request = std::move(requests_.front());
  requests_.pop_front();
  co_return std::make_unique<VerbsConnectionRequest>(*this, std::move(request));
}

// --- news from the control plane ----------------------------------------------------------------

void VerbsEndpoint::handle(Message message) {
  VerbsQueuePair* const queue_pair = find_named(message.to_id);
  switch (message.kind) {
    case MessageKind::connect:
      if (!listening_) {
        tell(MessageKind::unreachable, message.from, 0, message.from_id);
        return;
      }
      requests_.push_back(std::move(message));
      acceptors_.wake_all();
      return;
    case MessageKind::accepted:
    case MessageKind::refused:
    case MessageKind::unreachable:
      if (const auto asked = pending_.find(message.to_id);
          asked != pending_.end() && !asked->second->answer) {
        asked->second->answer = std::move(message);
      } else if (message.kind == MessageKind::accepted) {
        // The initiator has given up meanwhile, or has asked the peer's successor, so it notifies
        // the peer.
        tell(MessageKind::disconnected, message.from, 0, message.from_id);
      }
      return;
    case MessageKind::established:
      if (queue_pair != nullptr) queue_pair->peer_is_ready();
      return;
    case MessageKind::disconnected:
      if (queue_pair != nullptr) queue_pair->peer_has_ended();
      return;
    case MessageKind::ended:
      if (queue_pair != nullptr) queue_pair->break_off(Status::retry_exceeded);
      return;
    case MessageKind::found: {
      const auto key = static_cast<std::uint32_t>(message.words[0]);
      const auto range = range_in(message);
      if (range) ranges_[range_id(message.from.node, key)] = *range;
      if (queue_pair != nullptr) queue_pair->key_found(key, range);
      return;
    }
    case MessageKind::lost:
      handle_lost(message.from.node);
      return;
    default:
      return;
  }
}

void VerbsEndpoint::handle_lost(NodeId node) {
  for (const auto& [id, queue_pair] : by_id_) {
    if (queue_pair->peer().node == node) queue_pair->break_off(Status::retry_exceeded);
  }
  for (const auto& [id, asked] : pending_) {
    if (asked->to.node != node) continue;
    asked->lost = true;
    asked->answer.emplace();
    asked->answer->kind = MessageKind::unreachable;
  }
  // Another process may be that node from now on, with other memory for the same keys.
  std::erase_if(ranges_, [node](const auto& range) { return range.first >> 32 == node; });
}

}  // namespace perdura::fabric::verbs
