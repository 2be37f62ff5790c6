#include "platform/fabric/sim/endpoint.h"

#include <fmt/format.h>

#include <cassert>

#include "platform/base/error.h"
#include "platform/fabric/sim/packets.h"

namespace perdura::fabric::sim {

namespace {

// How long connect() waits for a listener, and how often it looks.
constexpr Picoseconds kConnectTimeout = std::chrono::seconds(1);
constexpr Picoseconds kConnectRetry = Microseconds(50);

class SimQueuePair final : public QueuePair {
 public:
  explicit SimQueuePair(End& end) : end_(end) { end_.attach(*this); }
  ~SimQueuePair() override { end_.close(); }

  void post_unsignaled(const WorkRequest& request) override {
    end_.requester().post(request, nullptr);
  }
  bool connected() const override { return end_.connected(); }
  Address peer() const override { return end_.peer().address(); }
  std::size_t in_line() const override { return end_.requester().in_line(); }

 private:
  void post(RdmaOperation& operation) override {
    end_.requester().post(operation.request(), &operation);
  }
  void abandon(RdmaOperation& operation) override {
    if (operation.transport_state == nullptr) return;  // it could not be posted
    static_cast<Flight*>(operation.transport_state)->operation = nullptr;
  }

  End& end_;
};

}  // namespace

// The state that the two sides share while a connection is being established.
struct SimEndpoint::Attempt {
  SimEndpoint* from;
  Address address;
  QueuePairOptions options;
  std::vector<std::byte> private_data;
  Picoseconds propagation{};  // one way
  bool abandoned = false;     // true once the connecting task has been destroyed
  bool answered = false;
  End* end = nullptr;  // set when it is accepted; null if it is rejected
  std::vector<std::byte> answer;
  WaitList waiting;
};

class SimConnectionRequest final : public ConnectionRequest {
 public:
  SimConnectionRequest(SimEndpoint& to, std::shared_ptr<SimEndpoint::Attempt> attempt)
      : to_(to), attempt_(std::move(attempt)), from_(attempt_->address) {}
  ~SimConnectionRequest() override {
    if (!answered_) reject({});
  }

  Address from() const override { return from_; }
  std::span<const std::byte> private_data() const override { return attempt_->private_data; }

  std::unique_ptr<QueuePair> accept(const QueuePairOptions& options,
                                    std::span<const std::byte> private_data) override {
    assert(private_data.size() <= kMaxPrivateData);
    answered_ = true;
    End& here = to_.network_.new_end(to_.nic_, to_.thread_, to_.address_, options);
    if (attempt_->abandoned) {
      End& nobody = to_.network_.new_end(to_.nic_, to_.thread_, from_, {});
      auto queue_pair = joined(here, nobody);
      nobody.close();
      return queue_pair;
    }
    SimEndpoint& from = *attempt_->from;
    End& there = from.network_.new_end(from.nic_, from.thread_, from.address_, attempt_->options);
    auto queue_pair = joined(here, there);
    attempt_->answer.assign(private_data.begin(), private_data.end());
    attempt_->end = &there;
    answer();
    return queue_pair;
  }

  void reject(std::span<const std::byte> private_data) override {
    assert(private_data.size() <= kMaxPrivateData);
    answered_ = true;
    attempt_->answer.assign(private_data.begin(), private_data.end());
    answer();
  }

 private:
  // The queue pair of an end that has a peer: without one it could not be closed.
  static std::unique_ptr<QueuePair> joined(End& here, End& there) {
    End::join(here, there);
    return std::make_unique<SimQueuePair>(here);
  }

  // The answer leaves when the thread has finished the work that precedes it. If the process dies
  // sooner, the connection is broken by the time the answer would arrive, and the peer gets none.
  void answer() {
    to_.network_.after(to_.ahead() + attempt_->propagation, [attempt = attempt_] {
      if (attempt->abandoned) return;
      if (attempt->end != nullptr && !attempt->end->connected()) {
        std::exchange(attempt->end, nullptr)->close();
        attempt->answer.clear();
      }
      attempt->answered = true;
      attempt->waiting.wake_all();
    });
  }

  SimEndpoint& to_;
  std::shared_ptr<SimEndpoint::Attempt> attempt_;
  Address from_;
  bool answered_ = false;
};

void Directory::add(SimEndpoint& endpoint) {
  const Address address = endpoint.address();
  endpoints_[{address.node, address.port}] = &endpoint;
}

void Directory::remove(SimEndpoint& endpoint) {
  const Address address = endpoint.address();
  const auto found = endpoints_.find({address.node, address.port});
  if (found != endpoints_.end() && found->second == &endpoint) endpoints_.erase(found);
}

SimEndpoint* Directory::find(Address address) const {
  const auto found = endpoints_.find({address.node, address.port});
  return found == endpoints_.end() ? nullptr : found->second;
}

SimEndpoint::SimEndpoint(Network& network, Directory& directory, Nic& nic, SimThread& thread,
                         Address address)
    : network_(network), directory_(directory), nic_(nic), thread_(thread), address_(address) {
  directory_.add(*this);
}

// Peers that have not been answered are rejected; those that connect later find no listener.
SimEndpoint::~SimEndpoint() {
  directory_.remove(*this);
  while (!attempts_.empty()) SimConnectionRequest(*this, attempts_.take_front()).reject({});
}

Picoseconds SimEndpoint::ahead() const { return thread_.now() - network_.engine.now(); }

Capabilities SimEndpoint::capabilities() const {
  const perdura::sim::NicProfile& nic = nic_.profile.nic;
  Capabilities capabilities{nic.flush, nic.flush_persistence, nic.atomic_write, nic.max_inline,
                            1U << 30};
  // A relaxed simulation, which is for litmus tests, has no APPEND and no commit.
  capabilities.appends = !network_.engine.relaxed();
  capabilities.commits = nic.flush_persistence && !network_.engine.relaxed();
  if (nic_.is_software) {
    capabilities.write_with_immediate = false;
    capabilities.atomics = false;
  }
  return capabilities;
}

MemoryRegion SimEndpoint::register_memory(pmem::Region& region, Bytes offset, Bytes length,
                                          Access access) {
  if (offset > region.size() || length > region.size() - offset) {
    throw PlatformError(fmt::format("cannot register bytes {}..{} of region '{}', which has {}",
                                    offset, offset + length, region.name(), region.size()));
  }
  const MemoryRegion memory = nic_.add(address_.node, region, offset, length, access);
  charge_registration(memory.key);
  return memory;
}

ExtentMap SimEndpoint::register_extents(pmem::Region& region, std::span<const Extent> extents,
                                        Access access) {
  const ExtentMap map =
      nic_.add(address_.node, region, make_extent_table(extents, region.size()), access);
  charge_registration(map.key);
  return map;
}

// The thread suspends first, so that the time of everything that the task did before the change is
// charged. After the change it waits until the device has finished the operations that it has
// begun.
Task<> SimEndpoint::map_extent(const ExtentMap& map, Extent extent) {
  co_await yield();
  charge_change(nic_.map(map, extent));
  thread_.spin_until(nic_.registered(map.key).busy_until);
}

Task<> SimEndpoint::unmap_extents(const ExtentMap& map, Bytes at, Bytes length) {
  co_await yield();
  nic_.unmap(map, at, length);
  charge_change(0);
  thread_.spin_until(nic_.registered(map.key).busy_until);
}

void SimEndpoint::allow_appends(const ExtentMap& map, Bytes size, RangeFaults& faults) {
  if (!capabilities().appends) return Endpoint::allow_appends(map, size, faults);
  nic_.allow_appends(map, size, faults);
  charge_change(0);
}

// `entries` is the number of entries that are written into the translation table.
void SimEndpoint::charge_change(std::uint64_t entries) {
  if (!nic_.translations || perdura::sim::SimThread::running() != &thread_) return;
  const perdura::sim::TranslationProfile& profile = nic_.translations->profile();
  thread_.charge_time(profile.change + perdura::sim::times(profile.registration_entry, entries));
}

void SimEndpoint::charge_registration(RemoteKey key) {
  if (!nic_.translations || perdura::sim::SimThread::running() != &thread_) return;
  const perdura::sim::TranslationProfile& profile = nic_.translations->profile();
  const std::uint64_t entries = nic_.entries_of(nic_.registered(key));
  thread_.charge_time(profile.registration +
                      perdura::sim::times(profile.registration_entry, entries));
}

void SimEndpoint::deregister_memory(RemoteKey key) {
  nic_.remove(key);
  charge_change(0);
}

std::unique_ptr<ReceiveQueue> SimEndpoint::create_receive_queue(std::uint32_t depth) {
  return std::make_unique<SimReceiveQueue>(depth);
}

Task<Connection> SimEndpoint::connect(Address to, QueuePairOptions options,
                                      std::vector<std::byte> private_data) {
  assert(private_data.size() <= kMaxPrivateData);
  const Picoseconds given = options.connection_timeout;
  const Time deadline = thread_.now() + (given > Picoseconds{} ? given : kConnectTimeout);
  SimEndpoint* listener = directory_.find(to);
  while (listener == nullptr || !listener->listening_) {
    if (thread_.now() >= deadline) co_return Connection{Status::retry_exceeded, nullptr, {}};
    co_await sleep_for(std::min(kConnectRetry, deadline - thread_.now()));
    listener = directory_.find(to);
  }
  struct Guard {
    std::shared_ptr<Attempt> attempt;
    // If the task is destroyed before it has its queue pair, nobody else would close this end, to
    // which the peer may send as soon as it has accepted.
    ~Guard() {
      attempt->abandoned = true;
      if (attempt->end != nullptr) attempt->end->close();
    }
  };
  Guard guard{std::make_shared<Attempt>()};
  Attempt& attempt = *guard.attempt;
  attempt.from = this;
  attempt.address = address_;
  attempt.options = options;
  attempt.private_data = std::move(private_data);
  attempt.propagation = path_between(nic_.profile.link, listener->nic_.profile.link).propagation;
  network_.after(ahead() + attempt.propagation, [&directory = directory_, to, a = guard.attempt] {
    SimEndpoint* there = directory.find(to);
    if (there == nullptr) {  // the listener was stopped meanwhile
      a->answered = true;
      a->waiting.wake_all();
      return;
    }
    there->attempts_.push_back(a);
    there->waiting_.wake_one();
  });
  network_.after(deadline - thread_.now(), [a = guard.attempt] {
    if (a->answered || a->abandoned) return;
    a->abandoned = true;  // if the peer accepts later, it finds that the attempt was given up
    a->waiting.wake_all();
  });
  while (!attempt.answered && !attempt.abandoned) co_await wait(attempt.waiting);
  if (!attempt.answered) co_return Connection{Status::retry_exceeded, nullptr, {}};
  if (attempt.end == nullptr) {
    co_return Connection{Status::disconnected, nullptr, std::move(attempt.answer)};
  }
  co_return Connection{Status::success,
                       std::make_unique<SimQueuePair>(*std::exchange(attempt.end, nullptr)),
                       std::move(attempt.answer)};
}

Task<std::unique_ptr<ConnectionRequest>> SimEndpoint::next_connection() {
  listening_ = true;
  while (attempts_.empty()) co_await wait(waiting_);
  co_return std::make_unique<SimConnectionRequest>(*this, attempts_.take_front());
}

}  // namespace perdura::fabric::sim
