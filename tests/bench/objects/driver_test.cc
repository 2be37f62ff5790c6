// The driver of pools: every experiment of ours can be planned, points measure what they say on
// every platform, wrong values are noticed, and what cannot be is refused before anything runs.
#include "bench/objects/objects_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "bench/objects/objects_workload.h"
#include "systems/registry/registry.h"
#include "tests/bench/driver_under_test.h"

namespace perdura::bench {
namespace {

using harness::Measurement;
using harness::Point;
using harness::Verdict;

constexpr std::string_view kText =
    "name = \"x\"\n"
    "driver = \"objects\"\n"
    "[workload]\n"
    "records = 40\n"
    "operations = 120\n"
    "warmup = 12\n"
    "key_size = 8\n"
    "value_size = 200\n"
    "part_size = 48\n"
    "server_threads = 2\n"
    "clients_per_shard = 2\n"
    "completion = \"polling\"\n"
    "[matrix]\n"
    "workload = [\"put\"]\n"
    "system = [\"mcas-pools\"]\n";

const DriverUnderTest& tested() {
  static const ObjectsDriver driver(systems::object_systems());
  static const DriverUnderTest one(driver, kText);
  return one;
}

Point point_of(std::string_view workload, std::vector<std::string> changes = {}) {
  changes.push_back(fmt::format("matrix.workload=[\"{}\"]", workload));
  return tested().plan(changes).front();
}

bool is_invocation(std::string_view workload) { return workload.starts_with("invoke"); }

class ObjectsDriverOn : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Platforms, ObjectsDriverOn,
                         testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

TEST_P(ObjectsDriverOn, MeasuresEachOperationOfEachWorkload) {
  for (const std::string_view workload : kObjectWorkloads) {
    if (is_invocation(workload)) continue;
    for (const char* pool : {"own", "shared"}) {
      for (const int queue_depth : {1, 3}) {
        SCOPED_TRACE(testing::Message() << workload << ", " << pool << ", " << queue_depth);
        // An erase finds its record: there are as many as operations, of each client.
        const Point point = point_of(
            workload, {fmt::format("workload.pool=\"{}\"", pool),
                       fmt::format("workload.queue_depth={}", queue_depth), "workload.records=66"});
        const Measurement result = tested().measure(point, GetParam());
        EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
        EXPECT_EQ(result.usage_error, "");
        EXPECT_EQ(result.operations(), 120U);
        EXPECT_EQ(result.kinds.size(), workload == "mixed" ? 2U : 1U);
        for (const auto& [kind, measured] : result.kinds) {
          EXPECT_GT(measured.operations, 0U) << kind.name;
          EXPECT_EQ(measured.latency.count(), measured.operations);
          EXPECT_EQ(measured.errors, 0U);
        }
        EXPECT_GT(result.elapsed, Picoseconds{});
        EXPECT_EQ(result.guarantee, "durable");
      }
    }
  }
}

// What is moved is written once, to persistent memory of the server.
TEST(ObjectsDriver, CountsWhatIsWritten) {
  const auto bytes = [](std::string_view workload) {
    const Measurement result = tested().measure(point_of(workload), "sim");
    return static_cast<double>(result.writes().total().bytes_issued) / 120;
  };
  for (const std::string_view whole : {"put", "put-direct"}) {
    EXPECT_GE(bytes(whole), 200) << whole;
    EXPECT_LT(bytes(whole), 400) << whole;
  }
  EXPECT_EQ(bytes("put-direct-offset"), 48);
  for (const std::string_view reading : {"get", "get-direct", "get-direct-offset"}) {
    EXPECT_EQ(bytes(reading), 0) << reading;
  }
}

// Direct transfers move what messages would not take.
TEST(ObjectsDriver, ValuesOfDirectTransfersNeedNotFitIntoMessages) {
  const std::string large = "workload.value_size=3145728";
  EXPECT_NE(tested().refusal({large}).find("max_message_value"), std::string::npos);
  const Measurement result = tested().measure(
      point_of("put-direct",
               {large, "workload.records=2", "workload.operations=8", "workload.warmup=0"}),
      "sim");
  EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
  EXPECT_EQ(result.operations(), 8U);
}

// More shards do more, since each is a thread.
TEST(ObjectsDriver, AddsUpOverShards) {
  const auto throughput = [](int shards) {
    return tested()
        .measure(point_of("get", {fmt::format("workload.server_threads={}", shards),
                                  "workload.operations=2000", "workload.clients_per_shard=5"}),
                 "sim")
        .throughput()
        .value();
  };
  EXPECT_GT(throughput(2), 1.5 * throughput(1));
}

// A store whose pools answer gets with a byte that nobody wrote, and invocations at all.
class WrongPool final : public objects::Pool {
 public:
  using Bytes = perdura::Bytes;
  Task<objects::Result<void>> put(objects::Key key, objects::Value value,
                                  objects::PutFlags) override {
    values_[text(key)].assign(value.begin(), value.end());
    return done();
  }
  Task<objects::Result<Bytes>> get(objects::Key key, std::span<std::byte> into) override {
    std::vector<std::byte> value = values_[text(key)];
    value[20] ^= std::byte{1};
    std::copy(value.begin(), value.end(), into.begin());
    co_return value.size();
  }
  Task<objects::Result<std::vector<std::byte>>> get(objects::Key) override { return {}; }
  Task<objects::Result<void>> erase(objects::Key) override { return done(); }
  Task<objects::Result<void>> put_direct(objects::Key, objects::DirectBuffer,
                                         objects::PutFlags) override {
    return done();
  }
  Task<objects::Result<Bytes>> get_direct(objects::Key, objects::DirectBuffer into) override {
    co_return into.length;
  }
  Task<objects::Result<void>> put_direct_offset(objects::Key, Bytes,
                                                objects::DirectBuffer) override {
    return done();
  }
  Task<objects::Result<void>> get_direct_offset(objects::Key, Bytes,
                                                objects::DirectBuffer) override {
    return done();
  }
  Task<objects::Result<objects::Answers>> invoke(objects::Key, std::span<const std::byte> request,
                                                 Bytes, objects::InvokeFlags) override {
    EXPECT_EQ(request.size(), 8U);
    co_await sleep_for(Microseconds(1));
    co_return objects::Answers{};
  }
  Task<objects::Result<objects::Answers>> invoke_put(objects::Key,
                                                     std::span<const std::byte> request,
                                                     objects::Value value, Bytes,
                                                     objects::InvokeFlags flags) override {
    EXPECT_EQ(value.size(), 200U);
    return invoke({}, request, 0, flags);
  }
  Task<objects::Result<objects::PoolAttributes>> attributes() override { return {}; }
  Task<objects::Result<objects::KeyAttributes>> attributes(objects::Key) override { return {}; }
  Task<objects::Result<void>> configure(std::string_view) override { return done(); }
  Task<objects::Result<objects::FoundKey>> find(std::string_view, objects::Match,
                                                std::uint64_t) override {
    return {};
  }
  Task<objects::Result<void>> close() override { return done(); }

 private:
  static std::string text(objects::Key key) {
    return {reinterpret_cast<const char*>(key.data()), key.size()};
  }
  static Task<objects::Result<void>> done() { co_return objects::Result<void>{}; }
  std::map<std::string, std::vector<std::byte>> values_;
};

class WrongSession final : public objects::Session {
 public:
  Task<objects::Result<std::unique_ptr<objects::Pool>>> create_pool(std::string_view, Bytes,
                                                                    objects::PoolFlags) override {
    std::unique_ptr<objects::Pool> pool = std::make_unique<WrongPool>();
    co_return std::move(pool);
  }
  Task<objects::Result<std::unique_ptr<objects::Pool>>> open_pool(std::string_view,
                                                                  objects::PoolFlags,
                                                                  Bytes) override {
    return {};
  }
  Task<objects::Result<void>> delete_pool(std::string_view) override { return {}; }
  Task<objects::Result<objects::ShardStatistics>> statistics() override { return {}; }
  objects::Result<objects::DirectMemory> register_direct_memory(pmem::Region&) override {
    return objects::DirectMemory{};
  }
  void unregister_direct_memory(objects::DirectMemory) override {}
};

class WrongShard final : public objects::Shard {
 public:
  Task<> serve() override { co_return; }
  std::string audit() override { return ""; }
};

Measurement measure_wrong(std::string_view workload) {
  objects::System wrong = systems::find_object_system("mcas-pools");
  wrong.open = [](Thread&, std::string, const objects::Config&) -> std::unique_ptr<objects::Shard> {
    return std::make_unique<WrongShard>();
  };
  wrong.connect = [](Thread&, fabric::Address,
                     objects::Config) -> Task<std::unique_ptr<objects::Session>> {
    std::unique_ptr<objects::Session> session = std::make_unique<WrongSession>();
    co_return std::move(session);
  };
  const ObjectsDriver driver(std::span(&wrong, 1));
  const DriverUnderTest with(driver, kText);
  const Point point = with.plan({fmt::format("matrix.workload=[\"{}\"]", workload)}).front();
  return with.measure(point, "sim");
}

TEST(ObjectsDriver, NoticesValuesThatNobodyWrote) {
  for (const std::string_view workload : {"get", "get-direct", "get-direct-offset"}) {
    const Measurement result = measure_wrong(workload);
    EXPECT_EQ(result.verdict, Verdict::invalid) << workload;
    EXPECT_NE(result.reason.find("yielded a value that nobody wrote"), std::string::npos)
        << result.reason;
    EXPECT_GT(result.kinds.begin()->second.errors, 0U);
  }
}

TEST(ObjectsDriver, CallsActiveDataObjects) {
  for (const std::string_view workload : {"invoke", "invoke-put"}) {
    const Measurement result = measure_wrong(workload);
    EXPECT_EQ(result.verdict, Verdict::valid) << result.reason;
    EXPECT_EQ(result.operations(), 120U);
    EXPECT_EQ(result.kinds.begin()->first.name, workload);
  }
}

TEST(ObjectsDriver, RefusesWhatCannotBe) {
  EXPECT_EQ(tested().refusal({}), "no error");
  EXPECT_EQ(tested().refusal({"matrix.workload=[\"erase\"]"}), "no error");
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"matrix.workload=[\"erase\"]", "workload.records=32"},
       "a client erases 33 records, warm-up included, of 32"},
      {{"matrix.workload=[\"put-direct-offset\"]", "workload.part_size=201"},
       "a part of 201 bytes is longer than the value"},
      {{"workload.key_size=1", "workload.records=257"}, "there are only 256 keys of 1 bytes"},
      {{"matrix.system=[\"mcas\"]"}, "mcas-pools"},
      {{"timeline.interval_us=100"}, "not recorded over time"},
      {{"systems.mcas-pools.first_segment=3"}, "first_segment is 3, but must be a power of two"},
  };
  for (const auto& [changes, what] : wrong) {
    EXPECT_NE(tested().refusal(changes).find(what), std::string::npos) << tested().refusal(changes);
  }
}

TEST(ObjectsDriver, PlansTheExperiments) {
  for (const char* name : {"mcas-direct", "mcas-latency", "mcas-ado"}) {
    const auto experiment = harness::load_experiment(
        fmt::format(PERDURA_SOURCE_DIR "/experiments/{}.toml", name), tested().declarations());
    const ObjectsDriver driver(systems::object_systems());
    EXPECT_GE(plan_points(experiment, harness::Locations({PERDURA_SOURCE_DIR}), driver, 1).size(),
              4U);
  }
}

}  // namespace
}  // namespace perdura::bench
