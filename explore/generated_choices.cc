// Draws the failures, deaths, stalls and delays of a generated run from its tape, before it begins.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "explore/generated_run.h"

namespace perdura::explore {

namespace {

// Failures and deaths happen within one of these times after an operation has begun or ended, or
// after the servers have begun to run; stalls after the run has begun. The short ones meet what
// happens within an operation, or recovery. A time is drawn in steps of a picosecond, since a flush
// may be all that lies between two of them.
constexpr std::array<std::size_t, 3> kWindows{std::size_t{1} << 27,   // 134 us
                                              std::size_t{1} << 24,   // 17 us
                                              std::size_t{1} << 21};  // 2 us
// A failure follows one of this many beginnings and ends of operations, if it comes within kLatest.
constexpr std::size_t kMostChanges = 32;
// So many other choices let it follow one of the first few early observations, and as many one of
// the first few steps in which a server cleans or grows.
constexpr std::size_t kEarly = 16;
constexpr std::size_t kMostEarly = 4;
constexpr std::size_t kMostSteps = 16;
// And half as many as those changes let it follow the beginning, and what is recovered then.
constexpr std::size_t kOfBoth = kMostChanges + kMostChanges / 2;
constexpr std::size_t kMoments = kOfBoth + kEarly + kMostSteps;
// As many further choices, or more if clients plan more than that, let it follow any beginning or
// end that clients plan, for which it waits: kLatest for each kChangesPerWait of them.
constexpr std::uint64_t kChangesPerWait = 4;
constexpr std::uint32_t kMostFailures = 3;
// A few runs have so many more: only another failure shows what an earlier one has left.
constexpr std::uint32_t kMoreFailures = 2;
// For how long a server that fails alone is away: less than others wait for it, about as long, or
// longer.
constexpr std::array<Picoseconds, 4> kAway{Picoseconds{}, Microseconds(100), Microseconds(500),
                                           Microseconds(2000)};
constexpr std::uint64_t kBackAtOnce = 0;  // which one of them; PowerFailure
constexpr std::uint64_t kStaysAway = 1;
constexpr std::size_t kTogether = 3;  // so many of the choices are of all servers
constexpr std::size_t kAlone = 6;     // and so many of one, a multiple of two and of three servers

// Bits of what a schedule draws.
constexpr std::size_t kMessages = 1;
constexpr std::size_t kPlacements = 2;  // only with CrashSetup::late_placements
constexpr std::size_t kWholeSchedule = kMessages + kPlacements;
// Bits of where threads pause.
constexpr std::size_t kPosts = 1;
constexpr std::size_t kYields = 2;

Picoseconds drawn_delay(pmem::Choices& choices, std::span<const std::size_t> windows = kWindows) {
  const std::size_t window = windows[choices.choose(windows.size())];
  return Picoseconds(static_cast<std::int64_t>(choices.choose(window)));
}

}  // namespace

StreamOf stream_of(std::string_view name) {
  if (name.starts_with("client-")) return StreamOf::clients;
  if (name == "messages" || name == "placements") return StreamOf::schedule;
  return name.starts_with("image-") ? StreamOf::image : StreamOf::rest;
}

pmem::Tape::Streams power_failures(std::span<const PowerFailure> failures) {
  constexpr std::uint64_t kHappens = 1;
  constexpr std::uint64_t kPowerFails = 0;
  constexpr std::uint64_t kAfterTheBeginning = 0;
  constexpr std::uint64_t kLongestWindow = 0;
  pmem::Tape::Streams streams{{"drawn", {kWholeSchedule}}};
  std::uint32_t number = 0;
  for (const PowerFailure& failure : failures) {
    ++number;
    const auto instant =
        static_cast<std::uint64_t>(std::min(failure.after, PowerFailure::kLatest).count());
    streams[fmt::format("failure-{}", number)] = {kHappens, kPowerFails, kAfterTheBeginning,
                                                  kLongestWindow, instant};
    std::vector<std::uint64_t>& apart = streams[fmt::format("apart-{}", number)];
    if (number > kMostFailures) streams["failures"] = {number - kMostFailures};
    if (failure.alone)
      apart = {kTogether + *failure.alone, failure.stays_away ? kStaysAway : kBackAtOnce};
  }
  return streams;
}

// The number of beginnings and ends of the calls that clients plan after so many failures.
std::uint64_t GeneratedRun::planned_changes(std::size_t failures) const {
  return 2 * scenario_->planned_calls(failures);
}

GeneratedRun::Moment GeneratedRun::drawn_moment(pmem::Choices& choices, std::size_t failures) {
  const std::size_t changes = planned_changes(failures);
  const std::size_t often = changes > 0 ? std::max<std::size_t>(kMoments / changes, 1) : 0;
  const std::size_t drawn = choices.choose(kMoments + often * changes);
  std::span<const std::size_t> windows = kWindows;
  Moment moment;
  if (drawn < kMostChanges) {
    moment.number = drawn;
  } else if (drawn >= kMoments) {
    moment.number = 1 + (drawn - kMoments) % changes;
    moment.is_awaited = true;
  } else if (drawn >= kOfBoth + kEarly) {
    moment.of = Counted::steps;
    moment.number = 1 + drawn - kOfBoth - kEarly;
    windows = windows.subspan(1);  // a step is short
  } else if (drawn >= kOfBoth) {
    moment.of = Counted::early_observations;
    moment.number = 1 + (drawn - kOfBoth) % kMostEarly;
  }
  moment.delay = drawn_delay(choices, windows);
  return moment;
}

// After how long a failure no longer waits for its moment.
Picoseconds GeneratedRun::patience_with(const Moment& moment) {
  if (!moment.is_awaited) return kLatest;
  return kLatest * static_cast<std::int64_t>(1 + moment.number / kChangesPerWait);
}

// The moment of a failure `after` this time since failures are planned.
GeneratedRun::Moment GeneratedRun::moment_now(Picoseconds after) {
  const std::uint64_t number = counts_[Counted::changes];
  const Picoseconds delay = platform_->engine().now() - changed_at_;
  return {Counted::changes, number, delay, number >= kMostChanges || after > kLatest};
}

std::vector<GeneratedRun::PlannedFailure> GeneratedRun::drawn_failures() {
  constexpr std::size_t kRarity = 16;
  std::vector<PlannedFailure> planned;
  const auto more =
      static_cast<std::uint32_t>(tape_.stream("failures", kRarity).choose(1 + kMoreFailures));
  for (std::uint32_t number = 1; number <= kMostFailures + more; ++number) {
    pmem::Choices& choices = tape_.stream(fmt::format("failure-{}", number));
    if (choices.choose(3) == 0) continue;
    // Usually the power fails; 0 is the plainest failure.
    const Kind kind = choices.choose(4) == 3 ? Kind::process : Kind::power;
    planned.push_back({number, kind, {}});
    draw_apart(planned.back());
  }
  return planned;
}

// Draws when the planned failures happen, which depends on what clients plan, which depends on the
// number of failures.
void GeneratedRun::draw_moments() {
  for (std::size_t before = 0; before < planned_.size(); ++before) {
    PlannedFailure& failure = planned_[before];
    static_assert(kMomentOfFailure == 2);
    failure.moment = drawn_moment(tape_.stream(fmt::format("failure-{}", failure.number)), before);
  }
}

void GeneratedRun::draw_apart(PlannedFailure& failure) {
  pmem::Choices& choices = tape_.stream(fmt::format("apart-{}", failure.number));
  const std::size_t drawn = choices.choose(kTogether + kAlone);
  if (drawn < kTogether) return;
  failure.alone = drawn - kTogether;
  failure.away = kAway[choices.choose(kAway.size())];
}

pmem::Tape::Streams GeneratedRun::anchored() const {
  constexpr std::uint64_t kLongestWindow = 0;
  pmem::Tape::Streams streams = tape_.drawn();
  for (const auto& [number, moment] : moments_of_failures_) {
    const auto delay = static_cast<std::size_t>(moment.delay.count());
    const auto place =
        std::find_if(planned_.begin(), planned_.end(),
                     [of = number](const PlannedFailure& planned) { return planned.number == of; });
    const auto before = static_cast<std::size_t>(place - planned_.begin());
    if (moment.is_awaited && (moment.number == 0 || moment.number > planned_changes(before)))
      continue;
    if (delay >= kWindows[kLongestWindow]) continue;
    const std::uint64_t drawn = moment.is_awaited ? kMoments + moment.number - 1 : moment.number;
    std::vector<std::uint64_t>& failure = streams[fmt::format("failure-{}", number)];
    failure.resize(kMomentOfFailure);
    failure.insert(failure.end(), {drawn, kLongestWindow, delay});
  }
  return streams;
}

void GeneratedRun::draw_stalls() {
  constexpr std::uint32_t kMostStalls = 4;
  constexpr std::size_t kThreads = 6;  // threads of a node, over its restarts
  static_assert(kLatest.count() == static_cast<std::int64_t>(kWindows[0]));
  constexpr std::array<Picoseconds, 4> kLengths{Microseconds(1), Microseconds(5), Microseconds(25),
                                                Microseconds(100)};
  std::map<std::pair<NodeId, std::uint32_t>, std::vector<sim::Stall>> stalls;
  for (std::uint32_t number = 1; number <= kMostStalls; ++number) {
    pmem::Choices& choices = tape_.stream(fmt::format("stall-{}", number));
    if (choices.choose(2) == 0) continue;
    const auto node = static_cast<NodeId>(choices.choose(run_->inspector()));
    const auto thread = static_cast<std::uint32_t>(choices.choose(kThreads));
    const auto part = static_cast<std::int64_t>(choices.choose(kMostFailures + 1));
    const Time begin = Time() + part * kLatest + drawn_delay(choices);
    const Picoseconds length = kLengths[choices.choose(kLengths.size())];
    stalls[{node, thread}].push_back({begin, begin + length});
    note(begin, fmt::format("thread {} of node {} stalls for {:.0f} us", thread, node,
                            to_microseconds(length)));
  }
  for (auto& [thread, of_thread] : stalls) {
    std::sort(of_thread.begin(), of_thread.end(),
              [](const sim::Stall& a, const sim::Stall& b) { return a.begin < b.begin; });
    std::vector<sim::Stall> disjoint;
    for (const sim::Stall& stall : of_thread) {
      if (disjoint.empty() || stall.begin > disjoint.back().end) {
        disjoint.push_back(stall);
      } else {
        disjoint.back().end = std::max(disjoint.back().end, stall.end);
      }
    }
    platform_->stall(thread.first, thread.second, std::move(disjoint));
  }
}

void GeneratedRun::draw_schedule() {
  // In runs drawn from a seed, a few messages of a few runs are late. Runs without late messages
  // are shrunk to far simpler ones.
  constexpr std::size_t kRarityOfRuns = 4;
  constexpr std::size_t kRarity = 24;
  // A server's background work takes long if many of its steps do.
  constexpr std::size_t kRarityOfYields = 2;
  const std::size_t whole = late_placements_ ? kWholeSchedule : kMessages;
  const std::size_t drawn = tape_.stream("drawn", kRarityOfRuns).choose(whole + 1);
  const auto stream = [&](std::size_t bit, std::string_view name) -> pmem::Choices* {
    return (drawn & bit) != 0 ? &tape_.stream(name, kRarity) : nullptr;
  };
  // Nothing but a thread that stands still between an answer and what it does next shows that the
  // answer came too early.
  const std::size_t paused = tape_.stream("paused", kRarityOfRuns).choose(kPosts + kYields + 1);
  sim::ThreadChoices threads;
  if ((paused & kPosts) != 0) threads.posts = &tape_.stream("pauses", kRarity);
  if ((paused & kYields) != 0) threads.yields = &tape_.stream("yields", kRarityOfYields);
  platform_->choose_schedule({.messages = stream(kMessages, "messages"),
                              .devices = stream(kPlacements, "placements"),
                              .threads = threads});
}

void GeneratedRun::draw_deaths() {
  constexpr std::uint32_t kMostDeaths = 2;
  if (scenario_->clients() == 0) return;
  for (std::uint32_t number = 1; number <= kMostDeaths; ++number) {
    pmem::Choices& choices = tape_.stream(fmt::format("death-{}", number));
    if (choices.choose(4) < 3) continue;
    const auto client = static_cast<NodeId>(choices.choose(scenario_->clients()));
    const bool connection = choices.choose(2) == 1;
    const std::size_t failures = choices.choose(kMostFailures + 1);
    const Moment moment = drawn_moment(choices, failures);
    std::optional<Link> broken;
    if (connection) {
      const std::vector<Link> links = links_of(client);
      if (links.empty()) continue;
      broken = links[links.size() == 1 ? 0 : choices.choose(links.size())];
    } else if (!scenario_->has_node_of_its_own(client)) {
      continue;  // the server would die with it
    }
    deaths_.push_back({client, broken, failures, moment});
  }
}

// The pairs of nodes whose connections may break because of it: those from a client's own node, or
// those between the servers for whose sake a client on one of them has to wait.
std::vector<GeneratedRun::Link> GeneratedRun::links_of(std::uint32_t client) const {
  std::vector<Link> links;
  const NodeId node = scenario_->node_of_client(client);
  for (NodeId server = 0; server < scenario_->servers(); ++server) {
    if (scenario_->has_node_of_its_own(client)) {
      links.emplace_back(node, server);
    } else {
      for (NodeId peer = server + 1; peer < scenario_->servers(); ++peer) {
        links.emplace_back(server, peer);
      }
    }
  }
  return links;
}

}  // namespace perdura::explore
