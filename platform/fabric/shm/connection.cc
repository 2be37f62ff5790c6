// Establishment of connections: the initiator prepares its end and puts a request into the mailbox
// of the listening endpoint; the acceptor prepares the other end and writes the answer into the
// initiator's end.
#include <algorithm>
#include <cstring>

#include "platform/fabric/shm/endpoint.h"

namespace perdura::fabric::shm {
namespace {

constexpr Picoseconds kLookAgain = Milliseconds(1);

std::uint64_t mail_state(std::uint64_t generation, NodeId node, std::uint64_t phase) {
  return generation << 24 | std::uint64_t{node} << 8 | phase;
}

// Must happen before the slot's state announces the answer.
void write_answer(ConnectionSlot& slot, std::span<const std::byte> private_data) {
  slot.private_length = static_cast<std::uint32_t>(private_data.size());
  std::copy(private_data.begin(), private_data.end(), slot.private_data.begin());
}

std::vector<std::byte> answer_in(const ConnectionSlot& slot) {
  const std::size_t length = std::min<std::size_t>(slot.private_length, kMaxPrivateData);
  return {slot.private_data.begin(),
          slot.private_data.begin() + static_cast<std::ptrdiff_t>(length)};
}

}  // namespace

class ShmConnectionRequest final : public ConnectionRequest {
 public:
  ShmConnectionRequest(ShmEndpoint& endpoint, ShmEndpoint::Request request)
      : endpoint_(endpoint), request_(std::move(request)) {}
  ~ShmConnectionRequest() override {
    if (!answered_) reject({});
  }

  Address from() const override { return request_.from; }
  std::span<const std::byte> private_data() const override { return request_.private_data; }

  std::unique_ptr<QueuePair> accept(const QueuePairOptions& options,
                                    std::span<const std::byte> private_data) override {
    check_private_data(private_data.size());
    auto peer = endpoint_.watch_.find(request_.from.node);
    if (peer != nullptr && peer->generation() != request_.generation) peer = nullptr;
    auto segment = peer == nullptr ? nullptr
                                   : PeerSegment::open(endpoint_.job_.endpoint_path(request_.from),
                                                       request_.generation);
    // The initiator has gone meanwhile, so the queue pair is broken from the start.
    if (segment == nullptr) peer = nullptr;
    const std::uint32_t index = endpoint_.open_slot(options, peer, SlotState::open);
    answered_ = true;
    endpoint_.slots_[index].use = ShmEndpoint::LocalSlot::Use::connected;

    if (segment != nullptr) {
      ConnectionSlot& theirs = segment->shared().connections[request_.slot];
      theirs.peer_slot = index;
      write_answer(theirs, private_data);
    }
    auto memory = peer == nullptr ? nullptr : endpoint_.memory_of(peer);
    auto queue_pair = std::make_unique<ShmQueuePair>(
        endpoint_, index, options,
        RemoteEnd{request_.from, request_.slot, segment, std::move(memory)});
    if (segment != nullptr) {
      // This fails if the initiator has given up; the queue pair then notices it when it checks its
      // peer.
      auto expected = SlotState::connecting;
      segment->shared().connections[request_.slot].state.compare_exchange_strong(
          expected, SlotState::accepted, std::memory_order_seq_cst);
      endpoint_.notify(segment->shared());
      queue_pair->check_peer();
    }
    return queue_pair;
  }

  void reject(std::span<const std::byte> private_data) override {
    check_private_data(private_data.size());
    answered_ = true;
    endpoint_.reject(request_, private_data);
  }

 private:
  ShmEndpoint& endpoint_;
  ShmEndpoint::Request request_;
  bool answered_ = false;
};

// The initiator's end while it waits for the answer. It is given up if the coroutine is destroyed.
class ShmEndpoint::PendingSlot {
 public:
  PendingSlot(ShmEndpoint& endpoint, std::uint32_t index, Address to)
      : endpoint_(endpoint), index_(index), to_(to) {}
  PendingSlot(const PendingSlot&) = delete;
  PendingSlot& operator=(const PendingSlot&) = delete;
  ~PendingSlot() {
    if (!taken_) give_up();
  }

  ConnectionSlot& slot() const { return endpoint_.segment_.shared().connections[index_]; }
  SlotState state() const { return slot().state.load(std::memory_order_seq_cst); }
  std::uint32_t index() const { return index_; }

  std::uint32_t take() {
    taken_ = true;
    return index_;
  }
  // The request was not sent, so no peer can refer to this slot.
  void unsent() { slot().detached = 1; }

 private:
  void give_up() {
    auto expected = SlotState::connecting;
    if (!slot().state.compare_exchange_strong(expected, SlotState::cancelled,
                                              std::memory_order_seq_cst) &&
        expected == SlotState::accepted) {
      slot().state.store(SlotState::closed, std::memory_order_seq_cst);
      const LocalSlot& local = endpoint_.slots_[index_];
      if (auto peer =
              PeerSegment::open(endpoint_.job_.endpoint_path(to_), local.peer->generation())) {
        peer->shared().connections[slot().peer_slot].detached = 1;
        endpoint_.notify(peer->shared());
      }
    }
    endpoint_.leave_slot(index_);
  }

  ShmEndpoint& endpoint_;
  std::uint32_t index_;
  Address to_;
  bool taken_ = false;
};

std::shared_ptr<PeerMemory> ShmEndpoint::memory_of(const std::shared_ptr<PeerNode>& node) {
  auto& known = peer_memory_[node->generation()];
  auto memory = known.lock();
  if (memory == nullptr || &memory->node() != node.get()) {
    memory = std::make_shared<PeerMemory>(node);
    known = memory;
  }
  return memory;
}

// The listening endpoint at an address, or null.
std::shared_ptr<PeerNode> ShmEndpoint::reach(Address to, std::shared_ptr<PeerSegment>& segment) {
  auto node = watch_.find(to.node);
  if (node == nullptr) return nullptr;
  segment = PeerSegment::open(job_.endpoint_path(to), node->generation());
  if (segment == nullptr || segment->shared().listening.load(std::memory_order_acquire) == 0) {
    return nullptr;
  }
  return node;
}

// False if the mailbox is full.
bool ShmEndpoint::post_mail(EndpointSegment& peer, std::uint32_t slot,
                            const std::vector<std::byte>& private_data) {
  const std::uint64_t generation = segment_.shared().generation;
  const auto writing = mail_state(generation, address_.node, ConnectMail::kWriting);
  for (ConnectMail& mail : peer.mailbox) {
    std::uint64_t state = mail.state.load(std::memory_order_acquire);
    if ((state & 0xFF) == ConnectMail::kPosted) continue;
    if (state != 0) {
      // Another initiator is writing its request here. If that was killed meanwhile, this one may
      // take the place over.
      const auto writer = watch_.find(static_cast<NodeId>(state >> 8 & 0xFFFF));
      if (writer != nullptr && writer->generation() == state >> 24) continue;
    }
    if (!mail.state.compare_exchange_strong(state, writing, std::memory_order_acq_rel)) continue;
    mail.order = peer.mail_order.fetch_add(1);
    mail.generation = generation;
    mail.node = address_.node;
    mail.port = address_.port;
    mail.slot = slot;
    mail.private_length = static_cast<std::uint32_t>(private_data.size());
    std::copy(private_data.begin(), private_data.end(), mail.private_data.begin());
    mail.state.store(mail_state(generation, address_.node, ConnectMail::kPosted),
                     std::memory_order_release);
    notify(peer);
    return true;
  }
  return false;
}

void ShmEndpoint::collect_mail() {
  std::vector<ConnectMail*> posted;
  for (ConnectMail& mail : segment_.shared().mailbox) {
    const std::uint64_t state = mail.state.load(std::memory_order_acquire);
    if ((state & 0xFF) == ConnectMail::kPosted) posted.push_back(&mail);
  }
  std::sort(posted.begin(), posted.end(),
            [](const ConnectMail* a, const ConnectMail* b) { return a->order < b->order; });
  for (ConnectMail* mail : posted) {
    const std::size_t length = std::min(mail->private_length, kMaxPrivateData);
    requests_.push_back({{mail->node, static_cast<Port>(mail->port)},
                         mail->generation,
                         mail->slot,
                         {mail->private_data.begin(),
                          mail->private_data.begin() + static_cast<std::ptrdiff_t>(length)}});
    mail->state.store(0, std::memory_order_release);
  }
}

void ShmEndpoint::reject(const Request& request, std::span<const std::byte> private_data) {
  const auto segment = PeerSegment::open(job_.endpoint_path(request.from), request.generation);
  if (segment == nullptr) return;
  ConnectionSlot& slot = segment->shared().connections[request.slot];
  write_answer(slot, private_data);
  auto expected = SlotState::connecting;
  slot.state.compare_exchange_strong(expected, SlotState::rejected, std::memory_order_seq_cst);
  slot.detached.store(1, std::memory_order_seq_cst);
  notify(segment->shared());
}

Task<Connection> ShmEndpoint::connect(Address to, QueuePairOptions options,
                                      std::vector<std::byte> private_data) {
  check_private_data(private_data.size());
  const Picoseconds given = options.connection_timeout;
  const Time deadline =
      executor_.now() + (given > Picoseconds{} ? given : options_.connection_timeout);
  for (;;) {
    std::shared_ptr<PeerSegment> segment;
    std::shared_ptr<PeerNode> node = reach(to, segment);
    if (node != nullptr) {
      PendingSlot pending(*this, open_slot(options, node, SlotState::connecting), to);
      if (!post_mail(segment->shared(), pending.index(), private_data)) {
        pending.unsent();
      } else {
        co_await host::until(
            [&] {
              return pending.state() != SlotState::connecting || node->dead() ||
                     segment->shared().closed.load(std::memory_order_acquire) != 0;
            },
            deadline);
        auto expected = SlotState::accepted;
        if (pending.slot().state.compare_exchange_strong(expected, SlotState::open,
                                                         std::memory_order_seq_cst)) {
          const ConnectionSlot& slot = pending.slot();
          std::vector<std::byte> answer = answer_in(slot);
          const std::uint32_t index = pending.take();
          slots_[index].use = LocalSlot::Use::connected;
          auto queue_pair = std::make_unique<ShmQueuePair>(
              *this, index, options, RemoteEnd{to, slot.peer_slot, segment, memory_of(node)});
          queue_pair->drain();  // the peer may have sent something already
          queue_pair->check_peer();
          co_return Connection{Status::success, std::move(queue_pair), std::move(answer)};
        }
        if (expected == SlotState::rejected) {
          co_return Connection{Status::disconnected, nullptr, answer_in(pending.slot())};
        }
      }
    }
    // The peer has not started, does not listen yet, or went away before it answered. It may come
    // (back), so look again until the deadline.
    if (executor_.now() >= deadline) {
      co_return Connection{Status::retry_exceeded, nullptr, {}};
    }
    co_await sleep_for(kLookAgain);
  }
}

Task<std::unique_ptr<ConnectionRequest>> ShmEndpoint::next_connection() {
  segment_.shared().listening.store(1, std::memory_order_release);
  while (requests_.empty()) co_await wait(acceptors_);
  Request request = std::move(requests_.front());
  requests_.pop_front();
  co_return std::make_unique<ShmConnectionRequest>(*this, std::move(request));
}

}  // namespace perdura::fabric::shm
