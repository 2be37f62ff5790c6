#include "services/log/crash_scenario.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "services/judge.h"
#include "services/log/specification.h"

namespace perdura::services {

namespace {

using Operation = LogSpecification::Operation;

constexpr fabric::Address kServer{0, 0};
constexpr std::uint32_t kWriter = 0;
constexpr std::uint32_t kInspector = 1;
constexpr std::uint64_t kLogRecords = 4;
constexpr std::uint64_t kAppends = 14;
constexpr std::uint64_t kFirstOfInspector = 100;
constexpr std::size_t kRecordSize = 64;
constexpr Picoseconds kLook = Microseconds(5);

constexpr CrashSchedule kSchedules[] = {
    {"appends", "a client appends to a log that goes around"},
};

// A record that says what it holds in each of its words, so that no part of it can be another's.
using Record = std::array<std::uint64_t, kRecordSize / sizeof(std::uint64_t)>;

Record record_of(std::uint64_t content) {
  Record record;
  record.fill(content);
  return record;
}

std::optional<std::uint64_t> content_of(std::span<const std::byte> payload) {
  Record record{};
  if (payload.size() != sizeof record) return std::nullopt;
  std::memcpy(record.data(), payload.data(), sizeof record);
  if (record != record_of(record.front())) return std::nullopt;
  return record.front();
}

class LogCrashScenario final : public CrashScenario {
 public:
  LogCrashScenario(const LogSystem& system, LogConfig config)
      : system_(system), config_(std::move(config)) {}

  std::uint32_t clients() const override { return 1; }

  Task<> serve(Thread& thread) override {
    const std::unique_ptr<LogStore> store = system_.open(
        thread, "log", config_, [this](std::uint64_t number, std::span<const std::byte> payload) {
          const auto content = content_of(payload);
          if (!content) note_problem(fmt::format("record {} is torn", number));
          applied_[number] = content.value_or(0);
        });
    struct Opened {
      LogCrashScenario& scenario;
      ~Opened() { scenario.store_ = nullptr; }
    } opened{*this};
    store_ = store.get();
    // What was applied behind the head that has survived is applied again, or was never appended.
    applied_.erase(applied_.upper_bound(store->applied()), applied_.end());
    co_await store->serve();
  }

  Task<> use(Thread& thread, std::uint32_t) override {
    const std::unique_ptr<LogWriter> writer = co_await system_.connect(thread, kServer, config_);
    for (std::uint64_t content = 1; content <= kAppends; ++content) {
      if (!co_await append(*writer, content, kWriter)) co_return;
    }
  }

  // Reads, appends and reads again.
  Task<> inspect(Thread& thread) override {
    while (clients_at_work() > 0) co_await sleep_for(kLook);
    const std::unique_ptr<LogWriter> writer = co_await system_.connect(thread, kServer, config_);
    co_await read(*writer);
    if (!co_await append(*writer, kFirstOfInspector, kInspector)) {
      note_problem("the connection to the recovered log breaks");
      co_return;
    }
    co_await read(*writer);
  }

  CrashVerdict judge(std::optional<Time> failed_at, const CrashLevels& levels) const override {
    return judge_history(LogSpecification{}, calls_, kInspector, failed_at, problem(), levels);
  }

  std::map<std::string, std::uint64_t, std::less<>> events() const override {
    return {{"laps of the log", kAppends / kLogRecords}};
  }

 private:
  // An operation without an answer yet; returns its place.
  std::size_t begin(const Operation& operation, std::uint32_t client) {
    ClientCall<Operation>& begun = calls_.emplace_back();
    begun.call.operation = operation;
    begun.call.start = Executor::current().now();
    begun.call.answered = false;
    begun.client = client;
    return calls_.size() - 1;
  }
  void end(std::size_t place) {
    calls_[place].call.end = Executor::current().now();
    calls_[place].call.answered = true;
  }

  // False if the server is gone.
  Task<bool> append(LogWriter& writer, std::uint64_t content, std::uint32_t client) {
    Operation operation;
    operation.record = content;
    const std::size_t place = begin(operation, client);
    const Record record = record_of(content);
    const auto number = co_await writer.append(std::as_bytes(std::span(record)));
    if (!number) {
      if (number.error() != LogError::disconnected) note_problem("an append fails: too large");
      co_return false;
    }
    calls_[place].call.operation.number = *number;
    end(place);
    co_return true;
  }

  // What the server has applied when it has applied all.
  Task<> read(const LogWriter& writer) {
    Operation operation;
    operation.kind = Operation::Kind::read;
    const std::size_t place = begin(operation, kInspector);
    while (store_ == nullptr || store_->applied() < writer.tail()) co_await sleep_for(kLook);
    LogSpecification::State& found = calls_[place].call.operation.found;
    for (const auto& [number, content] : applied_) {
      if (number != found.size() + 1) {
        note_problem(fmt::format("record {} was never applied", found.size() + 1));
      }
      found.push_back(content);
    }
    end(place);
  }

  const LogSystem& system_;
  const LogConfig config_;
  std::map<std::uint64_t, std::uint64_t> applied_;  // by number; what an application made durable
  const LogStore* store_ = nullptr;
  std::vector<ClientCall<Operation>> calls_;
};

}  // namespace

std::span<const CrashSchedule> log_schedules() { return kSchedules; }

CrashHistory log_crash_history(const LogSystem& system, const CrashSetup& setup) {
  LogConfig config{.records = kLogRecords, .largest_record = kRecordSize};
  config.method = setup.correct ? persistence::choose({{setup.model, pmem::Medium::dram},
                                                       {setup.model, pmem::Medium::pm}},
                                                      *system.append, {})
                                : system.published(setup.model, setup.parameters);
  return [&system, config] { return std::make_unique<LogCrashScenario>(system, config); };
}

}  // namespace perdura::services
