#include "library/mojim/application.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iostream>

#include "platform/base/error.h"

namespace perdura::mojim {

using services::MemoryRange;
using services::SyncError;

namespace {

// The part of one range that is in another; nothing if they are apart.
std::optional<MemoryRange> common(const MemoryRange& a, const MemoryRange& b) {
  const Bytes begin = std::max(a.offset, b.offset);
  const Bytes end = std::min(a.offset + a.length, b.offset + b.length);
  if (begin >= end) return std::nullopt;
  return MemoryRange{begin, end - begin};
}

// Runs of lines of a page.
void add_lines(const pmem::DirtyPage& page, std::vector<MemoryRange>& ranges) {
  std::uint64_t lines = page.lines;
  while (lines != 0) {
    const int first = std::countr_zero(lines);
    const int count = std::countr_one(lines >> first);
    ranges.push_back({page.offset + static_cast<Bytes>(first) * kCacheLine,
                      static_cast<Bytes>(count) * kCacheLine});
    if (first + count == 64) break;
    lines = lines >> (first + count) << (first + count);
  }
}

std::vector<MemoryRange> merged(std::vector<MemoryRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const MemoryRange& a, const MemoryRange& b) { return a.offset < b.offset; });
  std::vector<MemoryRange> result;
  for (const MemoryRange& range : ranges) {
    if (!result.empty() && range.offset <= result.back().offset + result.back().length) {
      const Bytes end =
          std::max(result.back().offset + result.back().length, range.offset + range.length);
      result.back().length = end - result.back().offset;
    } else {
      result.push_back(range);
    }
  }
  return result;
}

}  // namespace

Application::Application(Cluster cluster, std::function<void()> on_thread)
    : cluster_(std::move(cluster)), on_thread_(std::move(on_thread)) {
  prepare_files(cluster_, 0);
  readers_.emplace(cluster_.files.front(), ReaderProcesses::Role::primary);
  platform_ = join(cluster_, {0});
  platform_->start(0, 0, CompletionMode::polling,
                   [this](Thread& thread) { return be_primary(thread); });
  thread_ = OsThread([this] {
    on_thread_();
    try {
      platform_->run();
    } catch (...) {
      if (!tracked_) ready_.set_exception(std::current_exception());
    }
  });
  try {
    ready_.get_future().get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

Application::~Application() {
  executor_->inbox()->post([this]() -> Task<> {
    ends_ = true;
    ended_.wake_all();
    co_return;
  });
  thread_.join();
}

Task<> Application::be_primary(Thread& thread) {
  on_thread_();
  replica_ = cluster_.system().open(thread, kRegion, cluster_.config(), cluster_.role(0));
  lost_.resize(cluster_.files.size());
  mapped_ = co_await replica_->map(thread);
  pmem::Region& region = mapped_->region();
  tracked_ = std::make_unique<pmem::TrackedMemory>(region, 0, cluster_.size);
  executor_ = static_cast<runtime::ThreadExecutor*>(&thread.executor);
  ready_.set_value();
  while (!ends_) co_await wait(ended_);
  co_await mapped_->settle();
  tracked_.reset();
  mapped_.reset();
  replica_.reset();
}

void Application::note_written(Bytes offset, Bytes length) {
  const std::lock_guard held(changing_);
  written_.push_back({offset, length});
}

// To be called with syncing_.
std::vector<MemoryRange> Application::take_changed(std::span<const MemoryRange> ranges) {
  std::vector<MemoryRange> changed;
  for (const MemoryRange& range : ranges) {
    const Bytes end = std::min(range.offset + range.length, cluster_.size);
    if (range.offset >= end) continue;
    for (const pmem::DirtyPage& page : tracked_->sync(range.offset, end - range.offset)) {
      add_lines(page, changed);
    }
  }
  const std::lock_guard held(changing_);
  std::vector<MemoryRange> left;
  for (const MemoryRange& written : written_) {
    const bool covered = std::any_of(ranges.begin(), ranges.end(), [&](const MemoryRange& range) {
      return common(range, written).has_value();
    });
    (covered ? changed : left).push_back(written);
  }
  written_ = std::move(left);
  return merged(std::move(changed));
}

std::optional<SyncError> Application::sync(std::span<const MemoryRange> ranges,
                                           Atomicity atomicity) {
  const std::lock_guard held(syncing_);
  std::vector<MemoryRange> changed = take_changed(ranges);
  std::optional<SyncError> problem;
  if (changed.empty()) return problem;
  executor_->inbox()->post([&] { return send(std::move(changed), atomicity, problem); }).get();
  return problem;
}

// Before the application learns that its sync point is safe without them: who promotes such a copy
// must know.
void Application::tell_of_lost_copies() {
  for (NodeId node = 1; node < lost_.size(); ++node) {
    if (lost_[node] || !replica_->has_lost(node)) continue;
    lost_[node] = true;
    std::cerr << fmt::format(
        "perdura mojim: {} does not answer; the program goes on without it, and the next run gives "
        "it the file\n",
        cluster_.files[node]);
  }
}

Task<> Application::send(std::vector<MemoryRange> changed, Atomicity atomicity,
                         std::optional<SyncError>& problem) {
  const auto whole = co_await mapped_->sync(changed);
  tell_of_lost_copies();
  if (whole) co_return;
  if (whole.error() != SyncError::too_large || atomicity == Atomicity::required) {
    problem = whole.error();
    co_return;
  }
  // One after the other: an application that calls msync expects no more of Linux.
  constexpr Bytes kPart = 1 * MiB;  // fits into a log
  for (const MemoryRange& range : changed) {
    for (Bytes sent = 0; sent < range.length && !problem; sent += kPart) {
      const MemoryRange part{range.offset + sent, std::min(kPart, range.length - sent)};
      const auto of_part = co_await mapped_->sync(part);
      tell_of_lost_copies();
      if (!of_part) problem = of_part.error();
    }
  }
}

}  // namespace perdura::mojim
