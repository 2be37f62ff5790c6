#include "explore/schedules.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "platform/host/os_thread.h"
#include "platform/strategies/bounded.h"
#include "platform/strategies/exhaustive.h"
#include "platform/strategies/pct.h"
#include "platform/strategies/random.h"

namespace perdura::explore {

namespace {

using pmem::Tape;

// One in this many of a client's choices is drawn; the others are 0.
constexpr std::size_t kRarityOfOperations = 2;
// The same for the delays of a random schedule.
constexpr std::size_t kRarityOfDelays = 16;
constexpr std::uint64_t kUsualRandomSchedules = 100;
// Chooses the last alternative of a stream, however many there are.
constexpr std::uint64_t kLast = 1000;

class ScheduleExploration {
 public:
  ScheduleExploration(const SoakCase& one, const sim::Profile& profile,
                      const ScheduleOptions& options)
      : one_(one), profile_(profile), options_(options) {}

  ScheduleResult explore() {
    while (result_.histories < options_.histories && !result_.finding) explore_batch();
    return std::move(result_);
  }

 private:
  struct History {
    std::uint64_t seed = 0;
    std::uint64_t seed_of_clients = 0;
    std::unique_ptr<strategies::Strategy> strategy{};
    bool ended = false;
    std::uint64_t failures = 0;
    std::optional<Tape::Streams> finding{};
    services::GuaranteeLevel kept{};  // what the finding kept
    bool image_had_choices = false;   // that of the last failure of the last run
    std::uint64_t listings = seed;    // grows with each listing after a first failure
    std::uint64_t pairs = 0;
  };

  // Histories take turns, since what is easy to find shows in the first schedules of one of them.
  void explore_batch() {
    constexpr std::uint64_t kTogether = 20;
    const std::uint64_t count = std::min(kTogether, options_.histories - result_.histories);
    std::vector<History> batch;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t seed = options_.seed + result_.histories + i;
      batch.push_back({seed, seed_of_clients(seed), make_strategy(seed)});
    }
    const auto found = [](const History& history) { return history.finding.has_value(); };
    const auto ended = [](const History& history) { return history.ended; };
    while (!std::all_of(batch.begin(), batch.end(), ended)) {
      note_share(batch);
      take_turns(batch);
      // The same one, however many threads there are.
      const auto first = std::find_if(batch.begin(), batch.end(), found);
      if (first == batch.end()) continue;
      make_finding(*first);
      break;
    }
    result_.histories += count;
    for (const History& history : batch) {
      result_.schedules += history.strategy->runs();
      result_.failures += history.failures;
      note_probability(*history.strategy);
    }
  }

  // The next schedule of each history, in several threads.
  void take_turns(std::vector<History>& batch) {
    share_out(options_.threads, batch.size(), [&](std::size_t i) { take_turn(batch[i]); });
  }

  void take_turn(History& history) {
    strategies::Strategy& strategy = *history.strategy;
    const bool at_limit = options_.schedules > 0 && strategy.runs() == options_.schedules;
    history.ended = history.ended || at_limit || !strategy.next();
    if (!history.ended) try_schedule(history);
  }

  void note_share(const std::vector<History>& batch) {
    double done = static_cast<double>(result_.histories);
    for (const History& history : batch) {
      const bool has_begun = history.strategy->runs() > 0;
      done += history.ended ? 1 : has_begun ? history.strategy->share() : 0;
    }
    const std::lock_guard lock(mutex_);
    share_ = std::min(1.0, done / static_cast<double>(options_.histories));
  }

  // One of so many crash points of the first failure has been tried. Where a history has more than
  // one schedule, note_share() is called between them.
  void note_share_of_pairs(std::size_t crash_points) {
    if (options_.deviations > 0) return;
    const std::lock_guard lock(mutex_);
    const auto all = static_cast<double>(crash_points) * static_cast<double>(options_.histories);
    share_ = std::min(1.0, share_ + 1 / all);
  }

  void note_probability(const strategies::Strategy& strategy) {
    const auto* const pct = dynamic_cast<const strategies::Pct*>(&strategy);
    if (pct == nullptr) return;
    result_.choices = std::max(result_.choices, pct->choices());
    result_.probability = std::min(result_.probability, pct->probability());
  }

  // A history of several clients, if the service has such: one client alone sees nothing too early.
  std::uint64_t seed_of_clients(std::uint64_t seed) const {
    constexpr std::uint64_t kTries = 16;
    for (std::uint64_t attempt = 0; attempt < kTries; ++attempt) {
      const std::uint64_t candidate = seed + (attempt << 48);
      pmem::SparseChoices clients(candidate, kRarityOfOperations);
      Tape tape(failing_last(), [&](std::string_view stream) {
        return stream_of(stream) == StreamOf::clients ? &clients : nullptr;
      });
      if (GeneratedRun(one_.system, profile_, one_.setup(), tape).scenario().clients() > 1) {
        return candidate;
      }
    }
    return seed;
  }

  std::unique_ptr<strategies::Strategy> make_strategy(std::uint64_t seed) const {
    const std::uint64_t schedules =
        options_.schedules == 0 ? kUsualRandomSchedules : options_.schedules;
    switch (options_.strategy) {
      case StrategyKind::bounded:
        return std::make_unique<strategies::Bounded>(options_.deviations);
      case StrategyKind::pct:
        return std::make_unique<strategies::Pct>(seed, options_.depth, schedules);
      case StrategyKind::random:
        return std::make_unique<strategies::Random>(seed, kRarityOfDelays, schedules);
      case StrategyKind::exhaustive:
        break;
    }
    return std::make_unique<strategies::Exhaustive>();
  }

  // Lists the crash points of a run of the strategy's next schedule whose power fails when all is
  // done, then tries each until something is found.
  void try_schedule(History& history) {
    strategies::Strategy& strategy = *history.strategy;
    pmem::SparseChoices clients(history.seed_of_clients, kRarityOfOperations);
    Tape::Streams begin = failing_last();
    // Every second history: a copy that stays away is given up.
    if (options_.failures > 1 && history.seed % 2 == 0) begin["patience"] = {kLast, kLast};
    Tape tape(std::move(begin), [&](std::string_view stream) -> pmem::Choices* {
      switch (stream_of(stream)) {
        case StreamOf::clients:
          return &clients;
        case StreamOf::schedule:
          return &strategy;
        case StreamOf::image:
        case StreamOf::rest:
          break;
      }
      return nullptr;
    });
    GeneratedRun listing(one_.system, profile_, one_.setup(), tape);
    // Before its last deviation a schedule is one that was tried before.
    const auto* const bounded = dynamic_cast<const strategies::Bounded*>(&strategy);
    attend();
    const std::vector<Picoseconds> points = listing.run().list_crash_points(
        CrashPointList::Which::where_memory_changes,
        [bounded] { return bounded == nullptr || bounded->is_new(); });
    Tape::Streams streams = tape.drawn();
    if (options_.failures > 1) {
      return try_pairs(streams, listing.scenario().servers(), points, history);
    }
    for (const Picoseconds point : points) {
      set(streams, {{point}});
      if (!try_crash_point(streams, history)) return;
    }
  }

  // The servers fail as late as they can.
  Tape::Streams failing_last() const {
    return power_failures(
        std::vector<PowerFailure>(options_.failures, {.after = PowerFailure::kLatest}));
  }

  static void set(Tape::Streams& streams, const std::vector<PowerFailure>& failures) {
    for (auto& [name, choices] : power_failures(failures)) streams[name] = choices;
  }

  // All that may fail at a crash point.
  static std::vector<PowerFailure> all_failures(NodeId servers, Picoseconds after) {
    std::vector<PowerFailure> all{{after}};
    for (NodeId server = 0; servers > 1 && server < servers; ++server) {
      for (const bool stays_away : {false, true}) all.push_back({after, server, stays_away});
    }
    return all;
  }

  // Which of the crash points are tried, if not all: others each time, and at least one.
  std::vector<Picoseconds> chosen(const std::vector<Picoseconds>& crash_points,
                                  std::uint64_t first) const {
    std::vector<Picoseconds> chosen;
    const std::uint64_t step = std::min<std::uint64_t>(options_.stride, crash_points.size());
    std::uint64_t number = first;
    for (const Picoseconds crash_point : crash_points) {
      if (number++ % step == 0) chosen.push_back(crash_point);
    }
    return chosen;
  }

  void try_pairs(Tape::Streams streams, NodeId servers, const std::vector<Picoseconds>& all,
                 History& history) {
    const std::vector<Picoseconds> points = chosen(all, history.seed);
    for (const Picoseconds point : points) {
      for (const PowerFailure& first : all_failures(servers, point)) {
        pmem::LeastChoices least;
        if (!try_second(streams, first, least, history)) return;
        if (!history.image_had_choices) continue;
        pmem::MostChoices most;
        if (!try_second(streams, first, most, history)) return;
      }
      note_share_of_pairs(points.size());
    }
  }

  // Tries the crash points of a run after its first failure, which depend on the image that this
  // one leaves. Returns false if it has found something; `image_had_choices` then tells of the
  // first failure.
  bool try_second(Tape::Streams streams, const PowerFailure& first, pmem::Choices& image,
                  History& history) {
    set(streams, {first, {.after = PowerFailure::kLatest}});
    Tape tape(streams, [&](std::string_view stream) {
      return stream_of(stream) == StreamOf::image ? &image : nullptr;
    });
    GeneratedRun listing(one_.system, profile_, one_.setup(), tape);
    attend();
    const NodeId servers = listing.scenario().servers();
    const std::vector<Picoseconds> points =
        listing.run().list_crash_points(CrashPointList::Which::where_memory_changes, {}, 1);
    streams = tape.drawn();
    const bool first_had_choices = draws_image(streams);
    for (const Picoseconds point : chosen(points, ++history.listings)) {
      for (const PowerFailure& second : all_failures(servers, point)) {
        set(streams, {first, second});
        // Each of the copies that may be promoted, in turn.
        streams["promoted"] = {history.pairs++ % servers};
        if (!try_crash_point(streams, history)) return false;
      }
    }
    history.image_had_choices = first_had_choices;
    return true;
  }

  static bool draws_image(const Tape::Streams& streams) {
    return std::any_of(streams.begin(), streams.end(), [](const auto& stream) {
      return stream_of(stream.first) == StreamOf::image && !stream.second.empty();
    });
  }

  // False if it has found something. Images of a failure of all servers are tried by recoveries
  // from each, those of a server alone by further runs.
  bool try_crash_point(const Tape::Streams& streams, History& history) {
    constexpr std::uint64_t kLeastAndMost = 2;
    constexpr std::uint64_t kAll = ~std::uint64_t{0};
    const std::uint64_t images = options_.recoveries == 0 ? kAll : options_.recoveries;
    pmem::LeastChoices least;
    const std::uint64_t recoveries = try_image(streams, least, history, images);
    if (history.finding) return false;
    if (recoveries > 0 || !history.image_had_choices) return true;
    pmem::MostChoices most;
    try_image(streams, most, history);
    pmem::RandomChoices random(history.seed ^ history.failures << 32);
    const std::uint64_t others = std::max(options_.recoveries, kLeastAndMost) - kLeastAndMost;
    for (std::uint64_t i = 0; i < others && !history.finding; ++i) {
      try_image(streams, random, history);
    }
    return !history.finding;
  }

  // Returns the number of recoveries from images besides the run's own.
  std::uint64_t try_image(const Tape::Streams& streams, pmem::Choices& image, History& history,
                          std::uint64_t images = 0) {
    attend();
    ++history.failures;
    Tape tape(streams, [&](std::string_view stream) {
      return stream_of(stream) == StreamOf::image ? &image : nullptr;
    });
    TriedRun tried = try_once(one_, profile_, tape, images);
    if (tried.run.undecided) throw services::Undecided();
    Tape::Streams of_last = tape.drawn();
    for (const auto& [name, choices] : streams) of_last.erase(name);
    history.image_had_choices = draws_image(of_last);
    history.finding = std::move(tried.failing);
    history.kept = tried.run.kept;
    return tried.run.recoveries;
  }

  void make_finding(const History& history) {
    result_.finding =
        simplest_finding(one_, profile_, *history.finding, history.kept, options_.stop);
    result_.finding->seed = history.seed;
    result_.finding->schedule = history.strategy->runs();
  }

  void attend() const {
    if (!options_.progress) return;
    const std::lock_guard lock(mutex_);
    options_.progress(share_);
  }

  const SoakCase& one_;
  const sim::Profile& profile_;
  const ScheduleOptions& options_;
  ScheduleResult result_;
  double share_ = 0;  // guarded by mutex_
  mutable std::mutex mutex_;
};

}  // namespace

ScheduleResult explore_schedules(const SoakCase& one, const sim::Profile& profile,
                                 const ScheduleOptions& options) {
  return ScheduleExploration(one, profile, options).explore();
}

}  // namespace perdura::explore
