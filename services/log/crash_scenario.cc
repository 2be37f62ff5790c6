#include "services/log/crash_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "persistence/remote_persister.h"
#include "platform/base/error.h"
#include "platform/faults/faulty_thread.h"
#include "services/judge.h"
#include "services/log/specification.h"

namespace perdura::services {

namespace {

using Operation = LogSpecification::Operation;

constexpr fabric::Address kServer{0, 0};
constexpr std::uint32_t kWriter = 0;
constexpr std::uint32_t kInspector = 1;
constexpr std::uint64_t kLogRecords = 4;
constexpr std::size_t kAppends = 14;
constexpr std::uint64_t kFirstOfInspector = 1000;
constexpr std::size_t kRecordSize = 64;
constexpr Picoseconds kLook = Microseconds(5);

constexpr Event kEvents[] = {{"laps of the log"}};

constexpr CrashSchedule kSchedules[] = {
    {"appends", "a client appends to a log that goes around"},
};

// What the client does, before the first failure and after each one.
struct Appends {
  std::size_t count = 0;
  Picoseconds pause{};  // after each
  Picoseconds late{};   // each fabric operation is delayed by this
};
struct LogPlan {
  Bytes record_size = kRecordSize;
  std::vector<Appends> epochs;
};

LogPlan generated_plan(pmem::Choices& choices, std::uint32_t failures) {
  // Within a line, over several lines, and over several packets.
  constexpr std::array<Bytes, 4> kSizes{64, 16, 200, 4800};
  constexpr std::array<Picoseconds, 3> kPauses{Picoseconds{}, Microseconds(2), Microseconds(20)};
  constexpr std::array<Picoseconds, 3> kDelays{Picoseconds{}, Microseconds(5), Microseconds(25)};
  LogPlan plan;
  plan.record_size = kSizes[choices.choose(kSizes.size())];
  for (std::uint32_t epoch = 0; epoch <= failures; ++epoch) {
    Appends& one = plan.epochs.emplace_back();
    one.count = choices.choose(3 * kLogRecords);
    one.pause = kPauses[choices.choose(kPauses.size())];
    one.late = kDelays[choices.choose(kDelays.size())];
  }
  return plan;
}

// Every word of a record holds the same value, which no other record has, so that a torn record
// cannot be taken for an intact one.
using Record = std::vector<std::uint64_t>;

Record record_of(std::uint64_t content, Bytes size) {
  return Record(size / sizeof(std::uint64_t), content);
}

std::optional<std::uint64_t> content_of(std::span<const std::byte> payload, Bytes size) {
  Record record(size / sizeof(std::uint64_t));
  if (payload.size() != size) return std::nullopt;
  std::memcpy(record.data(), payload.data(), size);
  if (record != record_of(record.front(), size)) return std::nullopt;
  return record.front();
}

class LogCrashScenario final : public CrashScenario {
 public:
  LogCrashScenario(const LogSystem& system, LogConfig config, LogPlan plan)
      : system_(system), config_(std::move(config)), plan_(std::move(plan)) {}

  std::uint32_t clients() const override { return 1; }

  Task<> serve(Thread& thread) override {
    const std::unique_ptr<LogStore> store = system_.open(
        thread, "log", config_, [this](std::uint64_t number, std::span<const std::byte> payload) {
          const auto content = content_of(payload, config_.largest_record);
          if (!content) note_problem(fmt::format("record {} is torn", number));
          applied_[number] = content.value_or(0);
        });
    struct Opened {
      LogCrashScenario& scenario;
      ~Opened() { scenario.store_ = nullptr; }
    } opened{*this};
    store_ = store.get();
    // The effects of records behind the head that survived the failure are forgotten: recovery
    // applies these records again, or they count as never appended.
    applied_.erase(applied_.upper_bound(store->applied()), applied_.end());
    co_await store->serve();
  }

  Task<> use(Thread& thread, std::uint32_t) override {
    // After further failures than were planned for, the client does the same again.
    const std::size_t epoch = connected_++;
    const Appends& plan = plan_.epochs[std::min(epoch, plan_.epochs.size() - 1)];
    const bool late = plan.late > Picoseconds{};
    std::optional<faults::FaultyThread> delayed;
    if (late) delayed.emplace(thread, faults::FaultPlan{.slow = {plan.late, plan.late}});
    const std::unique_ptr<LogWriter> writer =
        co_await system_.connect(late ? delayed->thread() : thread, kServer, config_);
    for (std::size_t appends = 0; appends < plan.count; ++appends) {
      if (!co_await append(*writer, ++content_, kWriter)) co_return;
      if (plan.pause > Picoseconds{}) co_await sleep_for(plan.pause);
    }
  }

  // After the failure the inspector reads the log, appends a record, and reads the log again.
  Task<> inspect(Thread& thread) override {
    while (clients_at_work() > 0) co_await sleep_for(kLook);
    const std::unique_ptr<LogWriter> writer = co_await connect_after_another(thread);
    co_await read(*writer);
    if (!co_await append(*writer, kFirstOfInspector, kInspector)) {
      note_problem("the connection to the recovered log breaks");
      co_return;
    }
    co_await read(*writer);
  }

  CrashVerdict judge(std::span<const Time> failures, const CrashLevels& levels) const override {
    return judge_history(LogSpecification{}, calls_, kInspector, failures, problem(), levels);
  }

  std::map<std::string, std::uint64_t, std::less<>> events() const override {
    return {{std::string(kEvents[0].name), content_ / kLogRecords}};
  }
  std::span<const Event> expected_events() const override { return kEvents; }

 private:
  // A server that lives on keeps a client's session until it has heard of the client's end.
  Task<std::unique_ptr<LogWriter>> connect_after_another(Thread& thread) {
    for (;;) {
      try {
        co_return co_await system_.connect(thread, kServer, config_);
      } catch (const persistence::RefusedForNow&) {
      }
      co_await sleep_for(kLook);
    }
  }

  // Notes the beginning of an operation; returns its index.
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
    const Record record = record_of(content, config_.largest_record);
    const auto number = co_await writer.append(std::as_bytes(std::span(record)));
    if (!number) {
      if (number.error() != LogError::disconnected) note_problem("an append fails: too large");
      co_return false;
    }
    calls_[place].call.operation.number = *number;
    end(place);
    co_return true;
  }

  // Notes which records the server has applied once it has applied all of them.
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
  const LogPlan plan_;
  std::size_t connected_ = 0;  // how often the client has connected
  std::uint64_t content_ = 0;  // of the last record of the client
  // Records by number, as an application would make them durable.
  std::map<std::uint64_t, std::uint64_t> applied_;
  const LogStore* store_ = nullptr;
  std::vector<ClientCall<Operation>> calls_;
};

LogConfig small_log(const LogSystem& system, const CrashSetup& setup, const LogPlan& plan) {
  LogConfig config{.records = kLogRecords,
                   .largest_record = static_cast<std::uint32_t>(plan.record_size)};
  config.method = setup.correct ? persistence::choose({{setup.model, pmem::Medium::dram},
                                                       {setup.model, pmem::Medium::pm}},
                                                      *system.append, {})
                                : system.published(setup.model, setup.parameters);
  return config;
}

}  // namespace

std::span<const CrashSchedule> log_schedules() { return kSchedules; }

CrashHistory log_crash_history(const LogSystem& system, const CrashSetup& setup) {
  LogPlan plan;
  plan.epochs = {{kAppends, {}, {}}};
  return [&system, plan, config = small_log(system, setup, plan)] {
    return std::make_unique<LogCrashScenario>(system, config, plan);
  };
}

std::unique_ptr<CrashScenario> log_generated_scenario(const LogSystem& system,
                                                      const CrashSetup& setup,
                                                      pmem::Choices& choices,
                                                      std::uint32_t failures) {
  LogPlan plan = generated_plan(choices, failures);
  LogConfig config = small_log(system, setup, plan);
  return std::make_unique<LogCrashScenario>(system, std::move(config), std::move(plan));
}

}  // namespace perdura::services
