#include "fake_kv.h"

#include <string>
#include <vector>

#include "platform/base/error.h"

namespace perdura::test {
namespace {

using namespace kv;

class FakePartition;
std::map<std::pair<NodeId, fabric::Port>, FakePartition*>& partitions() {
  static std::map<std::pair<NodeId, fabric::Port>, FakePartition*> all;
  return all;
}

class FakePartition final : public KvPartition {
 public:
  FakePartition(Thread& thread, const std::string& name, const KvConfig& config)
      : address_(thread.endpoint.address()), config_(config) {
    if (value("refuse_open") != 0) throw UsageError("the fake was told to refuse");
    region_ = thread.node.create_region(name, 64 * KiB, pmem::Medium::pm);
    partitions()[{address_.node, address_.port}] = this;
    ++fake_counts().partitions_alive;
  }
  ~FakePartition() override {
    partitions().erase({address_.node, address_.port});
    --fake_counts().partitions_alive;
  }

  Task<> serve() override {
    WaitList forever;
    co_await wait(forever);
  }
  Task<> settle() override {
    ++fake_counts().settled;
    co_return;
  }

  KvSpace space() const override {
    return {.capacity = value("space"), .free = records.size(), .cleanings = 3, .cleanings_now = 1};
  }

  std::uint64_t value(std::string_view parameter) const {
    const auto found = config_.parameters.find(parameter);
    return found == config_.parameters.end() ? 0 : found->second.number();
  }
  bool every(std::string_view parameter) {
    const std::uint64_t n = value(parameter);
    return n != 0 && ++counters_[std::string(parameter)] % n == 0;
  }

  std::vector<double> metrics() const override { return {0.5 * static_cast<double>(puts)}; }

  std::map<std::string, std::vector<std::byte>> records;
  std::uint64_t puts = 0;
  pmem::Region& region() { return *region_; }

 private:
  fabric::Address address_;
  KvConfig config_;
  std::unique_ptr<pmem::Region> region_;
  std::map<std::string, std::uint64_t> counters_;
};

class FakeSession final : public KvSession {
 public:
  explicit FakeSession(FakePartition& partition) : partition_(partition) {
    ++fake_counts().sessions_alive;
    ++fake_counts().sessions_opened;
  }
  ~FakeSession() override { --fake_counts().sessions_alive; }

  Task<Result<Bytes>> get(Key key, std::span<std::byte> into) override {
    const std::string name = text(key);
    co_await sleep_for(Microseconds(1));
    const auto found = partition_.records.find(name);
    if (found == partition_.records.end() || partition_.every("lose_every")) {
      co_return tl::unexpected(Error::not_found);
    }
    if (partition_.every("corrupt_every")) co_return tl::unexpected(Error::corrupt);
    if (found->second.size() > into.size()) co_return tl::unexpected(Error::too_large);
    copy_bytes(into, found->second);
    if (partition_.every("garble_every")) into[0] ^= std::byte{1};
    co_return found->second.size();
  }
  Task<Result<void>> put(Key key, Value value) override {
    ++puts_;
    ++partition_.puts;
    const std::string name = text(key);
    co_await sleep_for(Microseconds(1));
    const std::uint64_t capacity = partition_.value("capacity");
    if (capacity != 0 && !partition_.records.contains(name) &&
        partition_.records.size() == capacity) {
      co_return tl::unexpected(Error::out_of_space);
    }
    if (partition_.records.contains(name) && partition_.every("drop_every")) {
      co_return Result<void>();
    }
    partition_.records[name].assign(value.begin(), value.end());
    partition_.region().write(0, value);
    co_return Result<void>();
  }
  Task<Result<void>> erase(Key key) override {
    const std::string name = text(key);
    co_await sleep_for(Microseconds(1));
    if (partition_.records.erase(name) == 0) co_return tl::unexpected(Error::not_found);
    co_return Result<void>();
  }
  SessionCounts counts() const override { return {}; }
  std::vector<double> metrics() const override { return {static_cast<double>(puts_)}; }

 private:
  static std::string text(Key key) {
    return {reinterpret_cast<const char*>(key.data()), key.size()};
  }
  FakePartition& partition_;
  std::uint64_t puts_ = 0;
};

std::unique_ptr<KvPartition> open(Thread& thread, std::string name, const KvConfig& config) {
  return std::make_unique<FakePartition>(thread, name, config);
}

Task<std::unique_ptr<KvSession>> connect(Thread&, fabric::Address server, KvConfig config) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto found = partitions().find({server.node, server.port});
    if (found != partitions().end() && config.parameters["refuse_connect"] == 0) {
      co_return std::make_unique<FakeSession>(*found->second);
    }
    co_await sleep_for(Microseconds(1));
  }
  throw PlatformError("nobody serves the fake");
}

}  // namespace

FakeCounts& fake_counts() {
  static FakeCounts counts;
  return counts;
}

constexpr services::Metric kSessionMetrics[] = {
    {"puts_per_op", "puts of a session", "Puts per operation"},
};
constexpr services::Metric kPartitionMetrics[] = {
    {"half_puts", "halves of puts", "Halves of puts", "puts"},
};

constexpr Parameter kParameters[] = {
    {.name = "capacity", .type = Count{}},      {.name = "garble_every", .type = Count{}},
    {.name = "lose_every", .type = Count{}},    {.name = "refuse_open", .type = Flag{}},
    {.name = "refuse_connect", .type = Flag{}}, {.name = "corrupt_every", .type = Count{}},
    {.name = "drop_every", .type = Count{}},    {.name = "space", .type = Count{}},
};

const KvSystem kFakeKv{
    .name = "fake",
    .title = "Fake",
    .paper = "none",
    .guarantee = "none",
    .put = methods::UpdateNeeds{},
    .parameters = kParameters,
    .session_metrics = kSessionMetrics,
    .partition_metrics = kPartitionMetrics,
    .check =
        [](const KvConfig& config) {
          if (config.parameters.contains("capacity") && config.parameters.at("capacity") == 0) {
            throw UsageError("fake: capacity is 0");
          }
        },
    .open = open,
    .connect = connect,
};

}  // namespace perdura::test
