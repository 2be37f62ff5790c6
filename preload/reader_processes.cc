#include "preload/reader_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace perdura::preload {

using services::MemoryRange;
using std::chrono::steady_clock;

namespace {

constexpr auto kLimit = std::chrono::seconds(2);
constexpr auto kLookAgain = std::chrono::milliseconds(1);

// Returns the pages as ascending runs, merged into one if there are more than kMostRuns.
std::vector<PageRun> runs_of(std::span<const MemoryRange> ranges) {
  std::vector<PageRun> runs;
  for (const MemoryRange& range : ranges) {
    if (range.length == 0) continue;
    const std::uint64_t first = range.offset / kReaderPage;
    const std::uint64_t last = (range.offset + range.length - 1) / kReaderPage;
    runs.push_back({first, last - first + 1});
  }
  std::sort(runs.begin(), runs.end(),
            [](const PageRun& a, const PageRun& b) { return a.first < b.first; });
  std::vector<PageRun> merged;
  for (const PageRun& run : runs) {
    if (merged.empty() || run.first > merged.back().first + merged.back().count) {
      merged.push_back(run);
      continue;
    }
    const std::uint64_t end =
        std::max(merged.back().first + merged.back().count, run.first + run.count);
    merged.back().count = end - merged.back().first;
  }
  if (merged.size() > SharedReaders::kMostRuns) {
    const PageRun last = merged.back();
    merged = {{merged.front().first, last.first + last.count - merged.front().first}};
  }
  return merged;
}

}  // namespace

ReaderProcesses::ReaderProcesses(const std::string& file, Role role) : file_(file), shared_(file) {
  using Reason = SharedReaders::Reason;
  shared_->server = this_process();
  shared_->reason = role == Role::primary ? Reason::primary : Reason::in_change;
  shared_.persist();
  exclude();
}

ReaderProcesses::~ReaderProcesses() {
  if (shared_->is_changing() && shared_->reason == SharedReaders::Reason::in_change) {
    shared_->reason = SharedReaders::Reason::incomplete;
  }
  shared_->server = 0;
  shared_.persist();
}

bool ReaderProcesses::is_anybody_there() const {
  const std::uint32_t ever = shared_->ever;
  return std::any_of(shared_->readers, shared_->readers + ever,
                     [](const auto& reader) { return reader != 0; });
}

bool ReaderProcesses::begin_change() {
  is_asked_ = false;
  shared_->sequence += shared_->is_changing() ? 2 : 1;
  return is_anybody_there();
}

bool ReaderProcesses::withdraw(std::span<const MemoryRange> ranges) {
  if (!is_asked_) ask(ranges);
  return !first_who_has_not_left();
}

void ReaderProcesses::exclude() {
  begin_change();
  const MemoryRange all{0, ~Bytes{0}};
  ask({&all, 1});
  while (const auto reader = first_who_has_not_left()) {
    const auto& left = shared_->slots[*reader].left;
    if (const std::uint32_t seen = left; seen != shared_->sequence) wait_while(left, seen, 1);
  }
}

void ReaderProcesses::end_change() {
  is_asked_ = false;
  ++shared_->sequence;
  if (is_anybody_there()) wake_all(shared_->sequence);
}

// Asks under a new sequence, since readers may have seen the present one without these pages.
void ReaderProcesses::ask(std::span<const MemoryRange> ranges) {
  const std::vector<PageRun> runs = runs_of(ranges);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    shared_->runs[i].first.store(runs[i].first, std::memory_order_relaxed);
    shared_->runs[i].count.store(runs[i].count, std::memory_order_relaxed);
  }
  shared_->run_count.store(static_cast<std::uint32_t>(runs.size()), std::memory_order_relaxed);
  shared_->sequence += 2;
  wake_all(shared_->sequence);
  is_asked_ = true;
  asked_at_ = looked_at_ = steady_clock::now();
}

std::optional<std::uint32_t> ReaderProcesses::first_who_has_not_left() {
  const std::uint32_t sequence = shared_->sequence;
  const auto now = steady_clock::now();
  const bool looks = now - looked_at_ >= kLookAgain;
  if (looks) looked_at_ = now;
  std::optional<std::uint32_t> first;
  for (std::uint32_t reader = 0; reader < shared_->ever; ++reader) {
    if (shared_->readers[reader] == 0 || shared_->slots[reader].left == sequence) continue;
    if (looks && has_ended(reader)) continue;
    if (!first) first = reader;
  }
  return first;
}

// Releases the slot of a reader that has ended, and kills one that has not left in time.
bool ReaderProcesses::has_ended(std::uint32_t reader) {
  ProcessId id = shared_->readers[reader];
  if (id == 0) return true;
  std::optional<Watched>& watched = watched_[reader];
  if (!watched || watched->process.id() != id) watched.emplace(Process(id));
  if (watched->process.has_ended()) {
    watched.reset();
    // Another reader may have taken the dead one's slot meanwhile.
    return shared_->readers[reader].compare_exchange_strong(id, 0) || id == 0;
  }
  if (steady_clock::now() - asked_at_ < kLimit || watched->is_killed) return false;
  watched->is_killed = true;
  watched->process.kill();
  std::fprintf(stderr,
               "perdura mojim: %s: process %d has not left what a sync point changes within two "
               "seconds, and was ended, since it would have read it in part\n",
               file_.c_str(), watched->process.number());
  return false;
}

void take_over_readers(const std::string& file) {
  const SharedReadersFile shared(file);
  shared->server = this_process();
}

}  // namespace perdura::preload
