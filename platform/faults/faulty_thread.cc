#include "platform/faults/faulty_thread.h"

#include <algorithm>
#include <cassert>

#include "platform/base/error.h"
#include "platform/faults/faulty_queue_pair.h"

namespace perdura::faults {

namespace {

using fabric::Address;
using fabric::Opcode;
using fabric::QueuePairOptions;

constexpr std::size_t kBuffersOfARegion = 64;

class FaultyRequest final : public fabric::ConnectionRequest {
 public:
  FaultyRequest(std::shared_ptr<Faults> faults, std::unique_ptr<fabric::ConnectionRequest> inner)
      : faults_(std::move(faults)), inner_(std::move(inner)) {}

  Address from() const override { return inner_->from(); }
  std::span<const std::byte> private_data() const override { return inner_->private_data(); }
  std::unique_ptr<fabric::QueuePair> accept(const QueuePairOptions& options,
                                            std::span<const std::byte> private_data) override {
    auto queue_pair = std::make_unique<FaultyQueuePair>(faults_, options);
    QueuePairOptions inner = options;
    if (inner.reported_as == nullptr) inner.reported_as = queue_pair.get();
    queue_pair->attach(inner_->accept(inner, private_data));
    return queue_pair;
  }
  void reject(std::span<const std::byte> private_data) override { inner_->reject(private_data); }

 private:
  std::shared_ptr<Faults> faults_;
  std::unique_ptr<fabric::ConnectionRequest> inner_;
};

class FaultyEndpoint final : public fabric::Endpoint {
 public:
  FaultyEndpoint(std::shared_ptr<Faults> faults, fabric::Endpoint& inner)
      : faults_(std::move(faults)), inner_(inner) {}

  Address address() const override { return inner_.address(); }
  fabric::Capabilities capabilities() const override { return inner_.capabilities(); }
  fabric::MemoryRegion register_memory(pmem::Region& region, Bytes offset, Bytes length,
                                       fabric::Access access) override {
    return inner_.register_memory(region, offset, length, access);
  }
  void deregister_memory(fabric::RemoteKey key) override { inner_.deregister_memory(key); }
  fabric::ExtentMap register_extents(pmem::Region& region, std::span<const fabric::Extent> extents,
                                     fabric::Access access) override {
    return inner_.register_extents(region, extents, access);
  }
  Task<> map_extent(const fabric::ExtentMap& map, fabric::Extent extent) override {
    return inner_.map_extent(map, extent);
  }
  Task<> unmap_extents(const fabric::ExtentMap& map, Bytes at, Bytes length) override {
    return inner_.unmap_extents(map, at, length);
  }
  void allow_appends(const fabric::ExtentMap& map, Bytes size,
                     fabric::RangeFaults& faults) override {
    inner_.allow_appends(map, size, faults);
  }
  std::unique_ptr<fabric::ReceiveQueue> create_receive_queue(std::uint32_t depth) override {
    return inner_.create_receive_queue(depth);
  }

  Task<fabric::Connection> connect(Address to, QueuePairOptions options,
                                   std::vector<std::byte> private_data) override {
    auto queue_pair = std::make_unique<FaultyQueuePair>(faults_, options);
    if (options.reported_as == nullptr) options.reported_as = queue_pair.get();
    fabric::Connection connection = co_await inner_.connect(to, options, std::move(private_data));
    if (connection.queue_pair != nullptr) {
      queue_pair->attach(std::move(connection.queue_pair));
      connection.queue_pair = std::move(queue_pair);
    }
    co_return connection;
  }

  Task<std::unique_ptr<fabric::ConnectionRequest>> next_connection() override {
    std::unique_ptr<fabric::ConnectionRequest> request = co_await inner_.next_connection();
    co_return std::make_unique<FaultyRequest>(faults_, std::move(request));
  }

 private:
  std::shared_ptr<Faults> faults_;
  fabric::Endpoint& inner_;
};

}  // namespace

// --- decisions -----------------------------------------------------------------------------------

Faults::Faults(Thread& thread, const FaultPlan& plan, Death death)
    : thread_(thread),
      plan_(plan),
      death_(std::move(death)),
      // The address is part of the seed, so that endpoints with the same plan behave differently.
      random_(plan.seed << 32 ^ std::uint64_t{thread.endpoint.address().node} << 16 ^
              thread.endpoint.address().port) {
  if (plan.die_at != 0 && !death_) {
    throw UsageError("a fault plan with a death needs somebody who brings it about");
  }
}

bool Faults::happens(double probability) {
  // Faults that the plan does not contain draw nothing, so that adding one kind of fault does not
  // change when the others come.
  if (probability <= 0) return false;
  constexpr std::size_t kScale = std::size_t{1} << 30;
  return static_cast<double>(random_.choose(kScale)) < probability * static_cast<double>(kScale);
}

Picoseconds Faults::time_in(const TimeRange& range) {
  if (range.most == range.least) return range.least;
  // Drawn in thousandths of the range, since ranges may be longer than what choose() accepts.
  const auto part = static_cast<std::int64_t>(random_.choose(1001));
  return range.least + (range.most - range.least) / 1000 * part;
}

Fate Faults::next(const fabric::WorkRequest& request) {
  Fate fate;
  if (dead_) {
    fate.swallowed = true;
    return fate;
  }
  ++counts.operations;
  if (!enabled) return fate;
  const bool send = request.opcode == Opcode::send;
  const bool message = send || request.opcode == Opcode::write_with_immediate;
  fate.loses_connection = happens(plan_.lose) || counts.operations == plan_.lose_at;
  if (message && happens(plan_.hold)) {
    fate.held = time_in(plan_.held);
    ++counts.held;
  }
  if (send && happens(plan_.duplicate)) {
    fate.duplicated = true;
    ++counts.duplicated;
  }
  fate.slow = time_in(plan_.slow);
  if (counts.operations == plan_.die_at) {
    fate.swallowed = plan_.die_when == DeathStep::before_post;
    fate.dies_after_post = plan_.die_when == DeathStep::after_post;
    fate.dies_at_completion = plan_.die_when == DeathStep::at_completion;
    if (fate.swallowed) die({});
  }
  return fate;
}

void Faults::die_after_post() { die(plan_.die_after); }

void Faults::die_at_completion() { die({}); }

void Faults::die(Picoseconds after) {
  // The thread may go on for a while until it dies. If it is to die at once, nothing more may leave
  // it.
  if (after == Picoseconds{}) dead_ = true;
  death_(after);
}

fabric::LocalBuffer Faults::keep(const fabric::LocalPieces& data) {
  const std::uint32_t room = thread_.endpoint.capabilities().max_inline;
  assert(data.length() <= room);
  if (free_.empty()) {
    auto& region = regions_.emplace_back(thread_.node.create_region(
        "late operations", Bytes{room} * kBuffersOfARegion, pmem::Medium::dram));
    const fabric::MemoryRegion memory =
        thread_.endpoint.register_memory(*region, fabric::Access::local);
    for (std::size_t i = 0; i < kBuffersOfARegion; ++i) {
      free_.push_back(memory.local(i * room, room));
    }
  }
  fabric::LocalBuffer kept = free_.back();
  free_.pop_back();
  kept.length = data.length();
  auto to = kept.bytes().begin();
  for (const fabric::LocalBuffer& piece : data.all()) {
    const auto bytes = piece.bytes();
    to = std::copy(bytes.begin(), bytes.end(), to);
  }
  return kept;
}

// --- the thread ----------------------------------------------------------------------------------

FaultyThread::FaultyThread(Thread& inner, const FaultPlan& plan, Death death)
    : faults_(std::make_shared<Faults>(inner, plan, std::move(death))),
      endpoint_(std::make_unique<FaultyEndpoint>(faults_, inner.endpoint)),
      thread_{inner.node, inner.executor, *endpoint_} {}

FaultyThread::~FaultyThread() = default;

const FaultCounts& FaultyThread::counts() const { return faults_->counts; }

void FaultyThread::enable(bool on) { faults_->enabled = on; }

void FaultyThread::lose_connections() {
  const std::vector<Line*> lines = faults_->lines;
  for (Line* line : lines) line->lose();
}

}  // namespace perdura::faults
