// How connections are made: the initiator makes its queue pair and sends what the peer needs to
// know of it to the listening endpoint; whoever accepts makes the other end, which can receive at
// once, and answers; when the initiator's can, too, it says so, and the acceptor may send.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "platform/error.h"
#include "platform/fabric/verbs/endpoint.h"

namespace perdura::fabric::verbs {
namespace {

constexpr Picoseconds kLookAgain = Milliseconds(1);
constexpr std::uint8_t kReceiverNotReadyTimer = 7;  // 0.12 ms
constexpr int kMostReads = 16;

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

unsigned rights_of(const Device& device) {
  unsigned rights = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
#ifdef PERDURA_VERBS_FLUSH
  if (device.capabilities().flush) rights |= IBV_ACCESS_FLUSH_GLOBAL;
  if (device.capabilities().flush_persistence) rights |= IBV_ACCESS_FLUSH_PERSISTENT;
#else
  static_cast<void>(device);
#endif
  return rights;
}

void set_path(ibv_ah_attr& path, const Device& device, const QueuePairAddress& theirs) {
  path.dlid = theirs.lid;
  path.port_num = static_cast<std::uint8_t>(device.port());
  if (device.port_attributes().link_layer != IBV_LINK_LAYER_ETHERNET) return;
  path.is_global = 1;
  std::memcpy(path.grh.dgid.raw, theirs.gid.data(), theirs.gid.size());
  path.grh.sgid_index = static_cast<std::uint8_t>(device.gid().index);
  path.grh.hop_limit = 64;
}

}  // namespace

QueuePairAddress VerbsQueuePair::own_address() const {
  const Device& device = endpoint_.device();
  return {number(),
          first_packet_,
          device.port_attributes().lid,
          static_cast<std::uint8_t>(device.port_attributes().active_mtu),
          static_cast<std::uint8_t>(std::clamp(device.attributes().max_qp_rd_atom, 1, kMostReads)),
          device.gid().gid};
}

void VerbsQueuePair::establish(Address peer, std::uint64_t peer_id,
                               const QueuePairAddress& theirs) {
  peer_ = peer;
  peer_id_ = peer_id;
  opened_ = true;
  const Device& device = endpoint_.device();
  const FabricOptions& options = endpoint_.options();
  const auto modify = [&](ibv_qp_attr& attributes, int mask, std::string_view state) {
    if (const int error = ibv_modify_qp(pair_.get(), &attributes, mask); error != 0) {
      throw PlatformError(fmt::format(
          "{} cannot connect node {} to node {} ({}): {} in the change to {}; look whether both "
          "hosts' devices are on one network",
          device.name(), endpoint_.address().node, peer.node, to_string(theirs.gid),
          pmem::mapped::error_text(error), state));
    }
  };
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = static_cast<std::uint8_t>(device.port());
  init.qp_access_flags = rights_of(device);
  modify(init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");

  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu =
      std::min(static_cast<ibv_mtu>(theirs.mtu), device.port_attributes().active_mtu);
  receive.dest_qp_num = theirs.number;
  receive.rq_psn = theirs.first_packet;
  receive.max_dest_rd_atomic = own_address().reads_taken;
  receive.min_rnr_timer = kReceiverNotReadyTimer;
  set_path(receive.ah_attr, device, theirs);
  modify(receive,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "RTR");

  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.sq_psn = first_packet_;
  send.timeout = options.timeout;
  send.retry_cnt = options.retries;
  send.rnr_retry = options.rnr_retries;
  send.max_rd_atomic = static_cast<std::uint8_t>(
      std::clamp(device.attributes().max_qp_init_rd_atom, 1, static_cast<int>(theirs.reads_taken)));
  modify(send,
         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "RTS");
  connected_ = true;
}

class VerbsConnectionRequest final : public ConnectionRequest {
 public:
  VerbsConnectionRequest(VerbsEndpoint& endpoint, Message request)
      : endpoint_(endpoint), request_(std::move(request)) {}
  ~VerbsConnectionRequest() override {
    if (!answered_) reject();
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
    queue_pair->establish(request_.from, request_.from_id, address_in(request_));
    answered_ = true;
    Message accepted;
    accepted.kind = MessageKind::accepted;
    accepted.from = endpoint_.address_;
    accepted.from_id = queue_pair->id();
    accepted.to = request_.from;
    accepted.to_id = request_.from_id;
    accepted.data = with_address(queue_pair->own_address(), private_data);
    endpoint_.control_.send(std::move(accepted));
    return queue_pair;
  }

  void reject() override {
    answered_ = true;
    endpoint_.tell(MessageKind::refused, request_.from, 0, request_.from_id);
  }

 private:
  VerbsEndpoint& endpoint_;
  Message request_;
  bool answered_ = false;
};

// A connection that this side asked for.
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
};

Task<Connection> VerbsEndpoint::connect(Address to, QueuePairOptions options,
                                        std::vector<std::byte> private_data) {
  check_private_data(private_data.size());
  const Time deadline = executor_.now() + options_.connection_timeout;
  auto queue_pair = std::make_unique<VerbsQueuePair>(*this, next_id(), options);
  Pending pending(*this, queue_pair->id(), to);
  const Pending* const asked = &pending;
  for (;;) {
    pending.answer.reset();
    if (!control_.is_lost(to.node)) {
      Message request;
      request.kind = MessageKind::connect;
      request.from = address_;
      request.from_id = queue_pair->id();
      request.to = to;
      request.data = with_address(queue_pair->own_address(), private_data);
      control_.send(std::move(request));
      co_await runtime::until([asked] { return asked->answer.has_value(); }, deadline);
    }
    if (pending.answer && pending.answer->kind == MessageKind::refused) {
      co_return Connection{Status::disconnected, nullptr, {}};
    }
    if (pending.answer && pending.answer->kind == MessageKind::accepted) {
      const Message& answer = *pending.answer;
      queue_pair->establish(to, answer.from_id, address_in(answer));
      queue_pair->peer_is_ready();
      tell(MessageKind::established, to, queue_pair->id(), answer.from_id);
      const auto data = private_data_in(answer);
      co_return Connection{Status::success, std::move(queue_pair),
                           std::vector(data.begin(), data.end())};
    }
    // Not there, or not listening: perhaps it comes.
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
  VerbsQueuePair* const queue_pair = find(message.to_id);
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
      if (const auto asked = pending_.find(message.to_id); asked != pending_.end()) {
        asked->second->answer = std::move(message);
      } else if (message.kind == MessageKind::accepted) {
        // Given up meanwhile.
        tell(MessageKind::disconnected, message.from, message.to_id, message.from_id);
      }
      return;
    case MessageKind::established:
      if (queue_pair != nullptr) queue_pair->peer_is_ready();
      return;
    case MessageKind::disconnected:
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
    if (asked->to.node != node || asked->answer) continue;
    asked->answer.emplace();
    asked->answer->kind = MessageKind::unreachable;
  }
}

}  // namespace perdura::fabric::verbs
