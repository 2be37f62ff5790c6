#include "services/log/crash_scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "methods/remote_persister.h"
#include "platform/base/error.h"
#include "services/boundaries.h"
#include "services/history_scenario.h"
#include "services/late_thread.h"
#include "services/log/specification.h"

namespace perdura::services {

namespace {

using Operation = LogSpecification::Operation;

constexpr fabric::Address kServer{0, 0};
constexpr std::uint32_t kWriter = 0;
constexpr std::uint64_t kLogRecords = 4;
constexpr std::size_t kAppends = 14;
constexpr std::uint64_t kFirstOfInspector = 1000;
constexpr std::size_t kRecordSize = 64;
constexpr Picoseconds kLook = Microseconds(5);

constexpr Event kEvents[] = {{"laps of the log"}};

constexpr CrashSchedule kSchedules[] = {
    {"appends", "a client appends to a log that goes around"},
};

// The client's appends before the first failure, or after one.
struct Appends {
  std::size_t count = 0;
  Picoseconds pause{};  // after each
  Picoseconds late{};   // each fabric operation is delayed by this
};
struct LogPlan {
  std::uint64_t records = kLogRecords;
  // The lengths of records, used in turn: a record's content determines its length.
  std::vector<Bytes> lengths{kRecordSize};
  std::vector<Appends> epochs{};
  // Generated plans count the boundaries that they must meet (LogCrashScenario::events()).
  bool is_generated = false;

  Bytes longest() const { return *std::max_element(lengths.begin(), lengths.end()); }
  Bytes length_of(std::uint64_t content) const { return lengths[content % lengths.size()]; }
};

// Streams of the tape: "store"; "lengths", which decides if records have lengths around boundaries
// instead; and "client-0". 0 is no append and no delay.
LogPlan generated_plan(pmem::Tape& tape, std::uint32_t failures) {
  // Within a line, over several lines, and over several packets.
  constexpr std::array<Bytes, 4> kSizes{64, 16, 200, 4800};
  constexpr std::array<std::uint64_t, 3> kLogs{kLogRecords, 2, 7};
  constexpr std::array<Picoseconds, 3> kPauses{Picoseconds{}, Microseconds(2), Microseconds(20)};
  constexpr std::array<Picoseconds, 3> kDelays{Picoseconds{}, Microseconds(5), Microseconds(25)};
  LogPlan plan{.is_generated = true};
  pmem::Choices& store = tape.stream("store");
  plan.lengths = {kSizes[store.choose(kSizes.size())]};
  if (pmem::Choices& ends = tape.stream("lengths"); ends.choose(2) == 1) {
    plan.lengths = {length_around_a_boundary(ends), length_around_a_boundary(ends)};
  }
  plan.records = kLogs[store.choose(kLogs.size())];
  pmem::Choices& choices = tape.stream("client-0");
  for (std::uint32_t epoch = 0; epoch <= failures; ++epoch) {
    plan.epochs.push_back({.count = choices.choose(3 * kLogRecords),
                           .pause = kPauses[choices.choose(kPauses.size())],
                           .late = kDelays[choices.choose(kDelays.size())]});
  }
  return plan;
}

// Every word of a record holds the same value, which no other record has, so that a torn record
// cannot be taken for an intact one. A last partial word holds the beginning of the value.
using Record = std::vector<std::byte>;

Record record_of(std::uint64_t content, Bytes length) {
  const std::vector<std::uint64_t> words(length / kWord + 1, content);
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)};
}

std::optional<std::uint64_t> content_of(std::span<const std::byte> payload, const LogPlan& plan) {
  std::uint64_t content = 0;
  if (payload.size() < sizeof content) return std::nullopt;
  std::memcpy(&content, payload.data(), sizeof content);
  if (payload.size() != plan.length_of(content)) return std::nullopt;
  if (!std::ranges::equal(payload, record_of(content, payload.size()))) return std::nullopt;
  return content;
}

class LogCrashScenario final : public HistoryScenario<LogSpecification> {
 public:
  LogCrashScenario(const LogSystem& system, LogConfig config, LogPlan plan)
      : system_(system), config_(std::move(config)), plan_(std::move(plan)) {}

  std::uint32_t clients() const override { return 1; }
  std::uint64_t planned_calls(std::size_t failures) const override {
    return failures < plan_.epochs.size() ? plan_.epochs[failures].count : 0;
  }

  Task<> serve(Thread& thread) override {
    const std::unique_ptr<LogStore> store = system_.open(
        thread, "log", config_, [this](std::uint64_t number, std::span<const std::byte> payload) {
          // A server that takes leftovers for records would apply them forever.
          if (number > appends_begun()) {
            throw PlatformError(
                fmt::format("record {} is applied, and was never appended", number));
          }
          const auto content = content_of(payload, plan_);
          if (!content) note_problem(fmt::format("record {} is torn", number));
          applied_[number] = content.value_or(0);
        });
    struct Opened {
      LogCrashScenario& scenario;
      ~Opened() { scenario.store_ = nullptr; }
    } opened{*this};
    store_ = store.get();
    // Forget the effects of records beyond the server's count of applied ones: recovery applies
    // these records again, or they count as never appended.
    applied_.erase(applied_.upper_bound(store->applied()), applied_.end());
    note_serving(thread);
    changed();
    co_await store->serve();
  }

  Task<> use(Thread& thread, std::uint32_t) override {
    const Appends& plan = plan_.epochs.at(connected_++);
    LateThread late(thread, plan.late);
    const std::unique_ptr<LogWriter> writer = co_await connect_after_another(late.thread());
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
    if (!co_await append(*writer, kFirstOfInspector, inspector())) {
      note_problem("the connection to the recovered log breaks");
      co_return;
    }
    co_await read(*writer);
  }

  std::map<std::string, std::uint64_t, std::less<>> events() const override {
    std::map<std::string, std::uint64_t, std::less<>> events{
        {std::string(kEvents[0].name), content_ / config_.records}};
    if (plan_.is_generated) met_.add_to(events);
    return events;
  }
  std::span<const Event> expected_events() const override { return kEvents; }
  void describe(SystemState& state) const override {
    CrashScenario::describe(state);
    state.add("place in the log", content_ % config_.records);
    state.add("under way", history().empty() || history().back().call.answered ? 0 : 1);
    const std::uint64_t applied = store_ == nullptr ? content_ : applied_.size();
    state.add("to be applied", magnitude(content_ - std::min(content_, applied)));
  }

  std::string state_outside_memory() const override { return fmt::format("{}", applied_); }

 protected:
  void snapshot_observations() override {
    HistoryScenario::snapshot_observations();
    kept_applied_ = applied_;
  }
  void restore_observations() override {
    HistoryScenario::restore_observations();
    applied_ = kept_applied_;
  }
  void explain(const Call<Operation>& call, CrashCall& shown) const override {
    const Operation& operation = call.operation;
    shown.what = shown.changes ? fmt::format("append of {}", operation.record) : "read";
    LogSpecification::State values = operation.found;
    if (shown.changes) values.push_back(operation.record);
    for (const std::uint64_t value : values) {
      shown.values.push_back({value, record_of(value, plan_.length_of(value))});
    }
    if (!call.answered) return;
    shown.told = shown.changes ? fmt::format("record {}", operation.number)
                               : fmt::format("{} records", operation.found.size());
  }

 private:
  // A server that survives keeps a client's session until it has learned that the client is gone.
  Task<std::unique_ptr<LogWriter>> connect_after_another(Thread& thread) {
    for (;;) {
      try {
        co_return co_await system_.connect(thread, kServer, config_);
      } catch (const methods::RefusedForNow&) {
      }
      co_await sleep_for(kLook);
    }
  }

  // Number of appends begun so far. Each takes the number after the last one, or a number that a
  // failure has taken back.
  std::uint64_t appends_begun() const {
    return static_cast<std::uint64_t>(
        std::count_if(history().begin(), history().end(), [](const ClientCall<Operation>& one) {
          return one.call.operation.kind == Operation::Kind::append;
        }));
  }

  // Returns false if the server is gone.
  Task<bool> append(LogWriter& writer, std::uint64_t content, std::uint32_t client) {
    Calling calling(*this, {.record = content}, client);
    const auto number = co_await writer.append(record_of(content, plan_.length_of(content)));
    if (!number) {
      if (number.error() != LogError::disconnected) note_problem("an append fails: too large");
      co_return false;
    }
    calling.operation().number = *number;
    met_.note(plan_.length_of(content));
    calling.end();
    co_return true;
  }

  // Waits until the server has applied all records, and records which ones it has applied.
  Task<> read(const LogWriter& writer) {
    Calling calling(*this, {.kind = Operation::Kind::read}, inspector());
    while (store_ == nullptr || store_->applied() < writer.tail()) co_await sleep_for(kLook);
    LogSpecification::State& found = calling.operation().found;
    for (const auto& [number, content] : applied_) {
      if (number != found.size() + 1) {
        note_problem(fmt::format("record {} was never applied", found.size() + 1));
      }
      found.push_back(content);
    }
    calling.end();
  }

  const LogSystem& system_;
  const LogConfig config_;
  const LogPlan plan_;
  std::uint32_t connected_ = 0;  // number of connections by the client
  std::uint64_t content_ = 0;    // content of the client's last record
  // The contents of applied records by number, which an application would make durable.
  std::map<std::uint64_t, std::uint64_t> applied_;
  const LogStore* store_ = nullptr;
  BoundariesMet met_{"records", ~Bytes{0}};
  std::map<std::uint64_t, std::uint64_t> kept_applied_;
};

LogConfig small_log(const LogSystem& system, const CrashSetup& setup, const LogPlan& plan) {
  LogConfig config{.records = plan.records,
                   .largest_record = static_cast<std::uint32_t>(plan.longest()),
                   .parameters = setup.parameters};
  config.method =
      setup.correct
          ? methods::choose({{setup.model, pmem::Medium::dram}, {setup.model, pmem::Medium::pm}},
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
                                                      const CrashSetup& setup, pmem::Tape& tape,
                                                      std::uint32_t failures) {
  LogPlan plan = generated_plan(tape, failures);
  LogConfig config = small_log(system, setup, plan);
  return std::make_unique<LogCrashScenario>(system, std::move(config), std::move(plan));
}

}  // namespace perdura::services
