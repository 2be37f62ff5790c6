#include "services/kv/history/key_history.h"

#include <fmt/format.h>

#include <algorithm>

namespace perdura::history {

void KeyHistory::complain(std::string what, std::initializer_list<std::uint32_t> operations) {
  if (violation_) return;
  violation_.emplace();
  violation_->key = operations_->front().key;
  violation_->what = std::move(what);
  for (const std::uint32_t index : operations) {
    violation_->operations.push_back((*operations_)[index]);
  }
}

void KeyHistory::add_puts() {
  std::size_t puts = 0;
  for (const Operation& operation : *operations_) puts += operation.kind == Kind::put ? 1 : 0;
  versions_.clear(puts + 1);
  for (std::uint32_t i = 0; i < operations_->size(); ++i) {
    const Operation& operation = (*operations_)[i];
    const bool may_count =
        operation.outcome == Outcome::ok || operation.outcome == Outcome::unknown;
    if (operation.kind != Kind::put || !may_count) continue;
    const auto fresh = static_cast<std::uint32_t>(clusters_.size());
    const std::uint32_t known = versions_.find_or_add(operation.version, fresh);
    if (known != fresh) {
      const std::uint32_t other = clusters_[known].put;
      complain(fmt::format("version {} was written twice, so reads of it say nothing",
                           operation.version),
               {i, other == Cluster::kInitial ? i : other});
      continue;
    }
    const bool answered = operation.outcome == Outcome::ok;
    clusters_.push_back({.put = i,
                         .start = operation.start,
                         .last_start = operation.start,
                         .first_end = answered ? operation.end : Time::max()});
  }
}

void KeyHistory::add_reads() {
  for (std::uint32_t i = 0; i < operations_->size(); ++i) {
    const Operation& operation = (*operations_)[i];
    if (operation.kind != Kind::get) continue;
    if (operation.outcome == Outcome::torn) {
      complain("a get returned a value that nobody wrote (torn)", {i});
    }
    if (operation.outcome != Outcome::ok) continue;
    const std::uint32_t index = versions_.find(operation.version);
    if (index == IndexTable::kNone) {
      complain(fmt::format("a get returned version {}, which nobody wrote", operation.version),
               {i});
      continue;
    }
    Cluster& cluster = clusters_[index];
    if (operation.end < cluster.start) {
      complain(fmt::format("a get returned version {} before its put had begun", operation.version),
               {i, cluster.put});
      continue;
    }
    // The read took effect after its put, and the put before the first of its reads ended.
    const Time start = std::max(operation.start, cluster.start);
    if (cluster.reads == 0 || start > cluster.last_start) cluster.latest_read = i;
    ++cluster.reads;
    cluster.last_start = std::max(cluster.last_start, start);
    cluster.first_end = std::min(cluster.first_end, operation.end);
    cluster.last_end = std::max(cluster.last_end, operation.end);
    steps_.push_back({.start = start,
                      .end = operation.end,
                      .operation = i,
                      .cluster = index,
                      .role = Step::Role::find});
  }
}

void KeyHistory::add_rest() {
  bool erased = false;
  bool found_absent = false;
  for (std::uint32_t i = 0; i < operations_->size(); ++i) {
    const Operation& operation = (*operations_)[i];
    if (operation.kind == Kind::put) continue;
    if (operation.outcome == Outcome::not_found) {
      found_absent = true;
      steps_.push_back({.start = operation.start,
                        .end = operation.end,
                        .operation = i,
                        .role = Step::Role::find_absent});
    } else if (operation.kind == Kind::erase && operation.outcome == Outcome::ok) {
      erased = true;
      steps_.push_back({.start = operation.start,
                        .end = operation.end,
                        .operation = i,
                        .role = Step::Role::erase});
    } else if (operation.kind == Kind::erase && operation.outcome == Outcome::unknown) {
      spare_erases_.push_back(operation.start);
    }
  }
  for (std::uint32_t index = 0; index < clusters_.size(); ++index) {
    const Cluster& cluster = clusters_[index];
    if (cluster.put == Cluster::kInitial) continue;
    if (cluster.first_end == Time::max()) {
      spare_puts_.push_back(cluster.start);
      continue;
    }
    steps_.push_back({.start = cluster.start,
                      .end = cluster.first_end,
                      .operation = cluster.put,
                      .cluster = index,
                      .role = Step::Role::put});
  }
  // A put that no read saw matters only because a delete can delete its version. A delete that no
  // read saw matters only because reads can find the key absent after it.
  if (!erased) spare_puts_.clear();
  if (!found_absent) spare_erases_.clear();
  std::sort(spare_puts_.begin(), spare_puts_.end());
  std::sort(spare_erases_.begin(), spare_erases_.end());
  std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    return a.start != b.start ? a.start < b.start : a.operation < b.operation;
  });
}

std::optional<Violation> KeyHistory::assign(const std::vector<Operation>& operations,
                                            std::optional<std::uint64_t> initial) {
  operations_ = &operations;
  clusters_.clear();
  steps_.clear();
  spare_puts_.clear();
  spare_erases_.clear();
  violation_.reset();
  initial_cluster_.reset();
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    if (operation.outcome != Outcome::unknown && operation.end < operation.start) {
      complain("an operation ended before it began", {i});
    }
  }
  add_puts();
  if (initial) {
    const auto fresh = static_cast<std::uint32_t>(clusters_.size());
    const std::uint32_t known = versions_.find_or_add(*initial, fresh);
    if (known != fresh) {
      complain(fmt::format("version {} was written, though the key held it already", *initial),
               {clusters_[known].put});
    } else {
      clusters_.emplace_back();
      initial_cluster_ = fresh;
    }
  }
  add_reads();
  add_rest();
  return std::move(violation_);
}

}  // namespace perdura::history
