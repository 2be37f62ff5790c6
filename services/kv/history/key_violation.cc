// Explains why a history was rejected: the operation that could not take effect, and the operations
// that prevent it.
#include <fmt/format.h>

#include <algorithm>

#include "services/kv/history/key_search.h"

namespace perdura::history {
namespace {

// The last acknowledged put or delete whose whole interval lies between two moments, so that it
// certainly took effect there.
const Operation* last_change_between(const std::vector<Operation>& operations, Time from,
                                     Time until) {
  const Operation* last = nullptr;
  for (const Operation& operation : operations) {
    const bool changes = operation.kind != Kind::get && operation.outcome == Outcome::ok;
    if (!changes || operation.start <= from || operation.end >= until) continue;
    if (last == nullptr || operation.end > last->end) last = &operation;
  }
  return last;
}

std::string named(const Operation& operation) {
  return operation.kind == Kind::erase ? "the delete"
                                       : fmt::format("the put of version {}", operation.version);
}

}  // namespace

Violation KeySearch::violation() const {
  const std::vector<Operation>& operations = key_->operations();
  const Operation& refused = operations[refused_->operation];
  Violation result{.key = refused.key, .what = {}, .operations = {refused}};

  if (refused_->role == Step::Role::find) {
    const Cluster& cluster = key_->clusters()[refused_->cluster];
    const Time put_end =
        cluster.put == Cluster::kInitial ? Time::min() : operations[cluster.put].end;
    if (cluster.put != Cluster::kInitial) result.operations.push_back(operations[cluster.put]);
    const Operation* change = last_change_between(operations, put_end, refused.start);
    if (change != nullptr) result.operations.push_back(*change);
    result.what = fmt::format(
        "a get returned version {}, which {} (stale read)", refused.version,
        change != nullptr ? named(*change) + " had replaced before it began" : "was gone by then");
    return result;
  }

  // The put must have taken effect before its first read ended.
  if (refused_->role == Step::Role::put && refused_->end < refused.end) {
    const auto is_first = [&](const Operation& operation) {
      return operation.kind == Kind::get && operation.outcome == Outcome::ok &&
             operation.version == refused.version && operation.end == refused_->end;
    };
    result.operations.push_back(*std::find_if(operations.begin(), operations.end(), is_first));
  }

  // The version that later reads returned, and that therefore must not be replaced.
  const auto blocked = std::find_if(set_.begin(), set_.end(), [&](const Configuration& one) {
    return !may_be_replaced(one.current);
  });
  if (blocked != set_.end()) {
    const Cluster& cluster = key_->clusters()[blocked->current];
    const Operation& read = operations[cluster.latest_read];
    const bool after =
        cluster.put == Cluster::kInitial || refused.start > operations[cluster.put].end;
    if (refused_->changes() && after && read.start > refused.end) {
      result.operations.insert(result.operations.begin(), read);
      result.what = fmt::format(
          "a get returned version {} after {} had been acknowledged (stale read, or lost update)",
          read.version, named(refused));
    } else {
      result.operations.push_back(read);
      result.what =
          fmt::format("there is no moment for {}, because version {} had to stay",
                      refused_->changes() ? named(refused) : "finding nothing", read.version);
    }
    if (cluster.put != Cluster::kInitial) result.operations.push_back(operations[cluster.put]);
    return result;
  }

  const Operation* change = last_change_between(operations, Time::min(), refused.start);
  if (change != nullptr) result.operations.push_back(*change);
  result.what = refused_->role == Step::Role::find_absent
                    ? fmt::format("a {} found nothing at a time when the key was present",
                                  to_string(refused.kind))
                : refused.kind == Kind::erase
                    ? "a delete was acknowledged at a time when the key was absent"
                    : "there is no moment for the operation";
  return result;
}

}  // namespace perdura::history
