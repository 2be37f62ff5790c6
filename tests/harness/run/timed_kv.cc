#include "timed_kv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <unordered_map>

#include "platform/base/random.h"

namespace perdura::test {
namespace {

using namespace kv;

std::vector<TimedOperation>& served() {
  static std::vector<TimedOperation> operations;
  return operations;
}

struct Store {
  explicit Store(const KvConfig& its) : config(its) {}

  std::uint64_t value(std::string_view parameter) const {
    const auto found = config.parameters.find(parameter);
    return found == config.parameters.end() ? 0 : found->second.number();
  }
  double milliseconds(Time time) const {
    return static_cast<double>(time.time_since_epoch().count()) / 1e9;
  }
  Picoseconds draw(Time start) {
    double nanoseconds = static_cast<double>(value("service_ns"));
    if (value("distribution") == 1) nanoseconds *= -std::log(1 - random.uniform_unit());
    if (value("distribution") == 2 && random.uniform_below(100) == 0) nanoseconds *= 100;
    if (const auto settling = static_cast<double>(value("settling_ms")); settling > 0) {
      nanoseconds *= 2 - std::min(1.0, milliseconds(start) / settling);
    }
    if (value("growing") == 1) nanoseconds *= 1 + milliseconds(start) / 10;
    return Picoseconds(static_cast<std::int64_t>(nanoseconds * 1000));
  }
  // When an operation that comes now ends.
  Time serve() {
    const Time now = Executor::current().now();
    const Picoseconds service = draw(now);
    const Time begin = value("in_parallel") == 1 ? now : std::max(now, free_at);
    served().push_back({now, service});
    const auto within = begin.time_since_epoch() % Picoseconds(std::chrono::seconds(1));
    const Picoseconds stall = std::chrono::milliseconds(value("stall_ms"));
    free_at = begin + std::max(stall - within, Picoseconds{}) + service;
    return free_at;
  }

  KvConfig config;
  Random random{42};
  Time free_at{};
  std::unordered_map<std::string, std::vector<std::byte>> records;
};

std::unique_ptr<Store>& store() {
  static std::unique_ptr<Store> only;
  return only;
}

class TimedPartition final : public KvPartition {
 public:
  ~TimedPartition() override { store().reset(); }
  Task<> serve() override {
    WaitList forever;
    co_await wait(forever);
  }
  Task<> settle() override { co_return; }
};

class TimedSession final : public KvSession {
 public:
  Task<Result<Bytes>> get(Key key, std::span<std::byte> into) override {
    co_await arrival_at(store()->serve());
    const std::vector<std::byte>& value = store()->records.at(text(key));
    std::copy(value.begin(), value.end(), into.begin());
    co_return value.size();
  }
  // Loads only, in no time.
  Task<Result<void>> put(Key key, Value value) override {
    store()->records[text(key)].assign(value.begin(), value.end());
    co_return Result<void>();
  }
  Task<Result<void>> erase(Key) override { co_return tl::unexpected(Error::not_found); }
  SessionCounts counts() const override { return {}; }

 private:
  static std::string text(Key key) {
    return {reinterpret_cast<const char*>(key.data()), key.size()};
  }
};

std::unique_ptr<KvPartition> open(Thread&, std::string, const KvConfig& config) {
  served().clear();
  store() = std::make_unique<Store>(config);
  return std::make_unique<TimedPartition>();
}

Task<std::unique_ptr<KvSession>> connect(Thread&, fabric::Address, KvConfig) {
  while (store() == nullptr) co_await sleep_for(Microseconds(1));
  co_return std::make_unique<TimedSession>();
}

}  // namespace

const std::vector<TimedOperation>& timed_operations() { return served(); }

const KvSystem kTimedKv{
    .name = "timed",
    .title = "Timed",
    .paper = "none",
    .guarantee = "none",
    .open = open,
    .connect = connect,
};

}  // namespace perdura::test
