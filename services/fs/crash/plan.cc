#include "services/fs/crash/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace perdura::fs {

namespace {

using Kind = Operation::Kind;

constexpr std::uint32_t kPlainFile = S_IFREG | 0644;
constexpr std::size_t kMostSteps = 8;  // steps of a generated session between two failures
constexpr std::size_t kShared = 2;

template <class T, std::size_t N>
const T& one_of(const std::array<T, N>& alternatives, pmem::Choices& choices) {
  return alternatives[choices.choose(N)];
}

// The paths that a step has to do with; empty if it needs what its own session holds.
std::vector<std::string> paths_of(const Step& step) {
  if (step.slot || step.into) return {};
  std::vector<std::string> paths;
  for (const std::string& path : {step.path, step.new_path}) {
    if (!path.empty()) paths.push_back(path);
  }
  return paths;
}

bool leads_to(const std::string& directory, const std::string& path) {
  return path == directory || path.starts_with(directory + "/");
}

bool have_to_do_with_the_same(const Step& one, const Step& other) {
  for (const std::string& path : paths_of(one)) {
    for (const std::string& other_path : paths_of(other)) {
      if (leads_to(path, other_path) || leads_to(other_path, path)) return true;
    }
  }
  return false;
}

using Pair = std::array<std::size_t, 2>;

// The pairs of steps that two sessions do at once.
const std::vector<Pair>& pairs_of_steps() {
  static const std::vector<Pair> pairs = [] {
    std::vector<Pair> found;
    const std::span<const Step> steps = all_steps();
    for (std::size_t one = 0; one < steps.size(); ++one) {
      for (std::size_t other = 0; other < steps.size(); ++other) {
        if (have_to_do_with_the_same(steps[one], steps[other])) found.push_back({one, other});
      }
    }
    return found;
  }();
  return pairs;
}

std::vector<std::size_t> steps_of(const services::SequenceKind& kind, std::uint64_t number) {
  if (kind.at_once) {
    const Pair& pair = pairs_of_steps()[number];
    return {pair.begin(), pair.end()};
  }
  std::vector<std::size_t> steps(kind.length);
  for (std::size_t i = kind.length; i-- > 0; number /= all_steps().size()) {
    steps[i] = number % all_steps().size();
  }
  return steps;
}

// Sessions share names in directories that nobody removes or moves.
constexpr std::array<const char*, 6> kNames{"A/new", "new", "B/new", "bar", "A/foo", "B/hard"};
constexpr std::array<const char*, 4> kDirectoryNames{"A/sub", "E", "dir", "B/dir"};

// Always makes five draws, so that changing the kind does not change what the later draws mean.
std::optional<Step> generated_step(pmem::Choices& choices) {
  constexpr std::array<Bytes, 6> kOffsets{0, 4090, 100, 4096, 8192, 20000};
  constexpr std::array<Bytes, 6> kLengths{10, 4096, 100, 5000, 1, 9000};
  constexpr std::array kRenaming{RenameMode::replace, RenameMode::exchange, RenameMode::keep};
  constexpr std::array kAllocation{AllocationMode::extend, AllocationMode::punch,
                                   AllocationMode::keep_size, AllocationMode::zero,
                                   AllocationMode::zero_keep_size};
  constexpr std::size_t kKinds = 22;
  const std::size_t kind = choices.choose(kKinds);
  const std::size_t which = choices.choose(kNames.size());
  const std::size_t other = choices.choose(kNames.size());
  const Bytes offset = one_of(kOffsets, choices);
  const Bytes length = one_of(kLengths, choices);
  const std::string name = kNames[which];
  const std::string directory = kDirectoryNames[which % kDirectoryNames.size()];
  const std::string other_directory = kDirectoryNames[other % kDirectoryNames.size()];
  const auto on_slot = [&](Operation operation) {
    return Step{.operation = std::move(operation), .slot = which % kShared};
  };
  switch (kind) {
    case 1:
    case 2:
      return on_slot({.kind = Kind::write, .offset = offset, .length = length});
    case 3:
      return on_slot({.kind = Kind::append, .length = length});
    case 4:
      return on_slot({.kind = Kind::truncate, .length = offset});
    case 5:
      return on_slot({.kind = Kind::allocate,
                      .offset = offset,
                      .length = length,
                      .allocation = kAllocation[other % kAllocation.size()]});
    case 6:
      return on_slot({.kind = Kind::read, .offset = offset, .length = length});
    case 7:
      return on_slot({.kind = Kind::attributes});
    case 8:
      return on_slot({.kind = Kind::change, .mode = other % 2 == 0 ? 06755U : 0600U});
    case 9:
      return on_slot({.kind = Kind::change, .owner = true});
    case 10:
      return on_slot({.kind = Kind::set_extended, .name = "user.x", .length = length});
    case 11:
      return on_slot({.kind = Kind::remove_extended, .name = "user.x"});
    case 12:
      return on_slot({.kind = Kind::sync});
    case 13:
      return Step{.operation = {.kind = Kind::create, .mode = kPlainFile}, .path = name};
    case 14:
      return Step{.operation = {.kind = Kind::link}, .new_path = name, .slot = other % kShared};
    case 15:
      return Step{.operation = {.kind = Kind::unlink}, .path = name};
    case 16:
    case 17:
      return Step{.operation = {.kind = Kind::rename,
                                .renaming = kRenaming[(offset + length) % kRenaming.size()]},
                  .path = name,
                  .new_path = kNames[other]};
    case 18:
      return Step{.operation = {.kind = Kind::create, .mode = S_IFDIR | 0755}, .path = directory};
    case 19:
      return Step{.operation = {.kind = Kind::remove_directory}, .path = directory};
    case 20:
      return Step{.operation = {.kind = Kind::rename,
                                .renaming = kRenaming[(offset + length) % kRenaming.size()]},
                  .path = directory,
                  .new_path = other_directory};
    case 21:
      return Step{.operation = {.kind = Kind::look_up}, .path = name};
    default:
      return std::nullopt;
  }
}

SessionPlan generated_session(pmem::Choices& choices) {
  constexpr std::array<Picoseconds, 3> kPauses{Picoseconds{}, Microseconds(2), Microseconds(20)};
  SessionPlan plan{.pause = one_of(kPauses, choices)};
  for (std::size_t i = 0; i < kMostSteps; ++i) {
    if (auto step = generated_step(choices)) plan.steps.push_back(std::move(*step));
  }
  return plan;
}

Step shared_write(Bytes offset, Bytes length) {
  return {.operation = {.kind = Kind::write, .offset = offset, .length = length}, .slot = 0};
}

}  // namespace

FsCrashPlan one_session_plan(bool brief) {
  const std::size_t stride = brief ? 8 : 3;
  const int plain_writes = brief ? 10 : 16;
  const int kept = brief ? 2 : 4;
  FsCrashPlan plan;
  SessionPlan session;
  for (std::size_t i = 0; i < all_steps().size(); i += stride) {
    session.steps.push_back(all_steps()[i]);
  }
  // Data that soon becomes garbage, alone in its log and beside live entries, so that garbage is
  // collected in every way.
  session.steps.push_back(
      {.operation = {.kind = Kind::create, .mode = kPlainFile}, .path = "plain"});
  const Operation write{.kind = Kind::write, .length = 10};
  for (int i = 0; i < plain_writes; ++i)
    session.steps.push_back({.operation = write, .path = "plain"});
  for (int i = 0; i < kept; ++i) {
    const Operation set{
        .kind = Kind::set_extended, .name = fmt::format("user.kept-{}", i), .length = 10};
    session.steps.push_back({.operation = set, .path = "bar"});
    for (int j = 0; j < 6; ++j) session.steps.push_back({.operation = write, .path = "bar"});
  }
  plan.sessions = {{std::move(session)}};
  return plan;
}

FsCrashPlan two_sessions_plan() {
  FsCrashPlan plan{.shared = 1};
  const Step append{.operation = {.kind = Kind::append, .length = 50}, .slot = 0};
  const Step truncate{.operation = {.kind = Kind::truncate, .length = 30}, .slot = 0};
  const Step read{.operation = {.kind = Kind::read, .length = 5000}, .slot = 0};
  const Step link{.operation = {.kind = Kind::link}, .new_path = "A/new", .slot = 0};
  const Step unlink{.operation = {.kind = Kind::unlink}, .path = "A/new"};
  const Step create{.operation = {.kind = Kind::create, .mode = kPlainFile}, .path = "B/new"};
  const Step rename{.operation = {.kind = Kind::rename}, .path = "B/new", .new_path = "A/new"};
  plan.sessions = {{{{shared_write(0, 100), append, link, read, rename, unlink}, {}}},
                   {{{create, shared_write(4090, 20), truncate, rename, append, read}, {}}}};
  return plan;
}

std::uint64_t sequences(const services::SequenceKind& kind) {
  if (kind.at_once) return kind.length == Pair().size() ? pairs_of_steps().size() : 0;
  std::uint64_t count = 1;
  for (std::uint32_t i = 0; i < kind.length; ++i) count *= all_steps().size();
  return count;
}

FsCrashPlan sequence_plan(const services::SequenceKind& kind, std::uint64_t number) {
  FsCrashPlan plan{.at_once = kind.at_once};
  if (!kind.at_once) {
    plan.steps_before = kind.length - 1;
    plan.sessions = {{SessionPlan{}}};
  }
  for (const std::size_t step : steps_of(kind, number)) {
    if (kind.at_once) plan.sessions.push_back({SessionPlan{}});
    plan.sessions.back().back().steps.push_back(all_steps()[step]);
  }
  return plan;
}

std::string name_of_sequence(const services::SequenceKind& kind, std::uint64_t number) {
  std::string name;
  for (const std::size_t step : steps_of(kind, number)) {
    if (!name.empty()) name += kind.at_once ? " | " : "; ";
    name += text_of(all_steps()[step]);
  }
  return name;
}

FsCrashPlan generated_plan(pmem::Tape& tape, std::uint32_t failures) {
  constexpr std::uint32_t kMostSessions = 4;
  constexpr std::size_t kRarityOfFilling = 4;
  constexpr Bytes kSmall = 256 * KiB;
  FsCrashPlan plan{.shared = kShared};
  plan.metadata_returns = true;
  plan.sessions.resize(kMostSessions);
  for (std::uint32_t number = 0; number < kMostSessions; ++number) {
    pmem::Choices& choices = tape.stream(fmt::format("client-{}", number));
    const bool takes_part = choices.choose(3) > 0;
    for (std::uint32_t epoch = 0; epoch <= failures; ++epoch) {
      plan.sessions[number].push_back(takes_part ? generated_session(choices) : SessionPlan{});
    }
  }
  if (tape.stream("filling").choose(kRarityOfFilling) == kRarityOfFilling - 1) {
    plan.size = kSmall;
    plan.is_almost_full = true;
  }
  return plan;
}

}  // namespace perdura::fs
