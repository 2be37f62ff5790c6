#include "platform/fabric/verbs/connection_manager.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "platform/base/error.h"
#include "platform/fabric/verbs/endpoint.h"
#include "platform/host/os_thread.h"

namespace perdura::fabric::verbs {
namespace {

using pmem::mapped::error_text;

constexpr int kBacklog = 1024;
constexpr int kResolveTimeout = 2000;  // ms

struct ManagerDeleter {
  void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
  void operator()(rdma_cm_id* id) const { rdma_destroy_id(id); }
};
using Channel = std::unique_ptr<rdma_event_channel, ManagerDeleter>;
// Destroying an identifier waits until its last event is acknowledged.
using Identifier = std::unique_ptr<rdma_cm_id, ManagerDeleter>;

Identifier make_identifier(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  return Identifier(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) == 0 ? id : nullptr);
}

// GIDs contain IPv4 addresses as IPv4-mapped IPv6 addresses, in the last four bytes.
sockaddr_in socket_address(const GidBytes& gid, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  std::memcpy(&address.sin_addr, gid.data() + 12, sizeof(address.sin_addr));
  return address;
}

sockaddr* generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

// The private data by which the initiator names the queue pair to which it wants to connect.
struct Wanted {
  std::uint32_t number = 0;
  std::uint32_t first_packet = 0;
};

class Manager;

// One end of a connection. The manager's thread changes it, under the manager's lock.
class ManagedBringUp final : public BringUp {
 public:
  ManagedBringUp(Manager& manager, VerbsEndpoint& endpoint, std::uint32_t id, ibv_qp* pair)
      : manager_(manager),
        endpoint_(endpoint),
        id_(id),
        pair_(pair),
        token_(random_packet_number()) {}
  ~ManagedBringUp() override;

  QueuePairAddress address() const override;
  void accept(Address peer, const QueuePairAddress& theirs) override;
  Task<Status> connect(Address peer, QueuePairAddress theirs, Time deadline) override;
  bool tells_end() const override {
    const Progress progress = progress_.load(std::memory_order_acquire);
    return progress == Progress::connected || progress == Progress::ended;
  }

 private:
  friend class Manager;
  enum class Progress : std::uint8_t { none, connected, ended, refused, failed };

  std::uint32_t number() const { return pair_->qp_num; }
  rdma_conn_param parameters(const Wanted* wanted) const;
  void settle(Progress progress) {
    progress_.store(progress, std::memory_order_release);
    endpoint_.mailbox().ring();
  }
  void fail(std::string_view step, int error) {
    problem_ = fmt::format("{} ({})", step, error_text(error));
    settle(Progress::failed);
  }
  void to_init(Address peer) const;

  Manager& manager_;
  VerbsEndpoint& endpoint_;
  const std::uint32_t id_;
  ibv_qp* pair_;
  const std::uint32_t token_;
  Identifier identifier_;
  Wanted wanted_{};
  std::uint8_t reads_taken_ = 1;  // READs that the peer accepts at the same time
  std::string problem_;
  std::atomic<Progress> progress_{Progress::none};
};

class Manager final : public ConnectionManager {
 public:
  explicit Manager(const Device& device) : device_(device), channel_(rdma_create_event_channel()) {
    const auto check = [&](bool done, std::string_view step) {
      if (done) return;
      throw PlatformError(fmt::format("platform verbs: {} {} at {}: {}; or use platform shm",
                                      device.name(), step, to_string(device.gid().gid),
                                      error_text(errno)));
    };
    check(channel_ != nullptr, "gets no channel of the connection manager");
    ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
    listener_ = make_identifier(channel_.get());
    sockaddr_in here = socket_address(device.gid().gid, 0);
    check(listener_ != nullptr && rdma_bind_addr(listener_.get(), generic(here)) == 0 &&
              rdma_listen(listener_.get(), kBacklog) == 0,
          "cannot listen for connections");
    thread_ = OsThread([this] { serve(); });
  }
  ~Manager() override {
    stop_.set();
    thread_.join();
  }

  std::unique_ptr<BringUp> bring_up(VerbsEndpoint& endpoint, std::uint32_t id,
                                    ibv_qp* pair) override {
    return std::make_unique<ManagedBringUp>(*this, endpoint, id, pair);
  }

  std::uint16_t port() const { return ntohs(rdma_get_src_port(listener_.get())); }

  void expect(ManagedBringUp& end) {
    const std::scoped_lock lock(mutex_);
    expected_[end.number()] = &end;
  }

  // Requests the peer's address; the rest follows as events.
  void start(ManagedBringUp& end, const QueuePairAddress& theirs) {
    const std::scoped_lock lock(mutex_);
    end.identifier_ = make_identifier(channel_.get());
    rdma_cm_id* const id = end.identifier_.get();
    sockaddr_in here = socket_address(device_.gid().gid, 0);
    sockaddr_in there = socket_address(theirs.gid, static_cast<std::uint16_t>(theirs.service));
    if (id == nullptr ||
        rdma_resolve_addr(id, generic(here), generic(there), kResolveTimeout) != 0) {
      end.fail("cannot look up the address", errno);
      return;
    }
    ends_[id] = &end;
  }

  // After this no event changes the end any more.
  void forget(ManagedBringUp& end) {
    const std::scoped_lock lock(mutex_);
    ends_.erase(end.identifier_.get());
    const auto found = expected_.find(end.number());
    if (found != expected_.end() && found->second == &end) expected_.erase(found);
  }

 private:
  void serve();
  void requested(Identifier id, std::optional<Wanted> wanted);
  void happened(rdma_cm_id* id, rdma_cm_event_type event, int status);

  const Device& device_;
  Channel channel_;
  Identifier listener_;
  std::mutex mutex_;
  std::unordered_map<rdma_cm_id*, ManagedBringUp*> ends_;
  std::unordered_map<std::uint32_t, ManagedBringUp*> expected_;  // by number of the queue pair
  Event stop_;
  OsThread thread_;
};

void Manager::serve() {
  for (;;) {
    std::array<pollfd, 2> polled{{{stop_.get(), POLLIN, 0}, {channel_->fd, POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_.get(), &event) != 0) continue;
    rdma_cm_id* const id = event->id;
    const rdma_cm_event_type type = event->event;
    const int status = event->status;
    std::optional<Wanted> wanted;
    const rdma_conn_param& connection = event->param.conn;
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST && connection.private_data_len >= sizeof(Wanted)) {
      std::memcpy(&wanted.emplace(), connection.private_data, sizeof(Wanted));
    }
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      rdma_ack_cm_event(event);
      requested(Identifier(id), wanted);
      continue;
    }
    {
      // With the lock held, forget() comes either before or after the handling of an event.
      // Destroying the identifier then waits until the event has been acknowledged below.
      const std::scoped_lock lock(mutex_);
      happened(id, type, status);
    }
    rdma_ack_cm_event(event);
  }
}

void Manager::requested(Identifier id, std::optional<Wanted> wanted) {
  const std::scoped_lock lock(mutex_);
  const auto found = wanted ? expected_.find(wanted->number) : expected_.end();
  if (found == expected_.end() || found->second->token_ != wanted->first_packet) {
    rdma_reject(id.get(), nullptr, 0);
    return;
  }
  ManagedBringUp& end = *found->second;
  expected_.erase(found);
  rdma_conn_param parameters = end.parameters(nullptr);
  if (rdma_accept(id.get(), &parameters) != 0) {
    end.fail("cannot accept", errno);
    return;
  }
  end.identifier_ = std::move(id);
  ends_[end.identifier_.get()] = &end;
  end.settle(ManagedBringUp::Progress::connected);
}

void Manager::happened(rdma_cm_id* id, rdma_cm_event_type event, int status) {
  using Progress = ManagedBringUp::Progress;
  const auto found = ends_.find(id);
  if (found == ends_.end()) return;
  ManagedBringUp& end = *found->second;
  const Progress before = end.progress_.load(std::memory_order_relaxed);
  switch (event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(id, kResolveTimeout) != 0) end.fail("cannot find a route", errno);
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: {
      rdma_conn_param parameters = end.parameters(&end.wanted_);
      if (rdma_connect(id, &parameters) != 0) end.fail("cannot connect", errno);
      return;
    }
    case RDMA_CM_EVENT_ESTABLISHED:
      if (before == Progress::none) end.settle(Progress::connected);
      return;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      return;
    default:
      break;
  }
  if (before == Progress::connected) {
    end.settle(Progress::ended);
    Message ended;
    ended.kind = MessageKind::ended;
    ended.to_id = end.endpoint_.named(end.id_);
    end.endpoint_.mailbox().put(std::move(ended));
  } else if (event == RDMA_CM_EVENT_REJECTED) {
    end.settle(Progress::refused);
  } else if (before == Progress::none) {
    end.fail(rdma_event_str(event), -status);
  }
}

ManagedBringUp::~ManagedBringUp() { manager_.forget(*this); }

QueuePairAddress ManagedBringUp::address() const {
  return {.number = number(),
          .first_packet = token_,
          .reads_taken = reads_answered(endpoint_.device()),
          .gid = endpoint_.device().gid().gid,
          .service = manager_.port()};
}

void ManagedBringUp::to_init(Address peer) const {
  const Device& device = endpoint_.device();
  if (const int error = change_to_init(device, pair_); error != 0) {
    throw PlatformError(
        fmt::format("{} cannot connect node {} to node {}: {} in the change to INIT", device.name(),
                    endpoint_.address().node, peer.node, error_text(error)));
  }
}

rdma_conn_param ManagedBringUp::parameters(const Wanted* wanted) const {
  rdma_conn_param parameters{};
  parameters.private_data = wanted;
  parameters.private_data_len = wanted == nullptr ? 0 : sizeof(Wanted);
  parameters.responder_resources = reads_answered(endpoint_.device());
  parameters.initiator_depth = reads_under_way(endpoint_.device(), reads_taken_);
  parameters.qp_num = number();
  return parameters;
}

void ManagedBringUp::accept(Address peer, const QueuePairAddress& theirs) {
  to_init(peer);
  reads_taken_ = theirs.reads_taken;
  manager_.expect(*this);
}

Task<Status> ManagedBringUp::connect(Address peer, QueuePairAddress theirs, Time deadline) {
  to_init(peer);
  wanted_ = {theirs.number, theirs.first_packet};
  reads_taken_ = theirs.reads_taken;
  manager_.start(*this, theirs);
  const std::atomic<Progress>* const progress = &progress_;
  co_await host::until(
      [progress] { return progress->load(std::memory_order_acquire) != Progress::none; }, deadline);
  switch (progress_.load(std::memory_order_acquire)) {
    case Progress::connected:
      co_return Status::success;
    case Progress::ended:
    case Progress::refused:
      co_return Status::disconnected;
    case Progress::failed:
      fmt::print(stderr, "perdura: {} cannot connect node {} to node {} ({}, port {}): {}\n",
                 endpoint_.device().name(), endpoint_.address().node, peer.node,
                 to_string(theirs.gid), theirs.service, problem_);
      break;
    case Progress::none:
      break;
  }
  co_return Status::retry_exceeded;
}

}  // namespace

std::unique_ptr<ConnectionManager> make_connection_manager(const Device& device) {
  return std::make_unique<Manager>(device);
}

PortAddresses addresses_of(const std::string& device, unsigned port) {
  const Channel channel(rdma_create_event_channel());
  if (channel == nullptr) {
    return {{},
            fmt::format("no connection manager: {}; load rdma_ucm (modprobe rdma_ucm, needs root), "
                        "and look whether this user may open /dev/infiniband/rdma_cm",
                        error_text(errno))};
  }
  PortAddresses found;
  for (const std::string& text : local_addresses()) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    const Identifier id = make_identifier(channel.get());
    if (id == nullptr || ::inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1 ||
        rdma_bind_addr(id.get(), generic(address)) != 0) {
      continue;
    }
    if (id->verbs != nullptr && id->port_num == port &&
        device == ibv_get_device_name(id->verbs->device)) {
      found.all.push_back(text);
    }
  }
  if (found.all.empty()) found.problem = "no IPv4 address in this network namespace";
  return found;
}

}  // namespace perdura::fabric::verbs
