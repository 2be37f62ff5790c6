#include "services/kv/history/key_search.h"

#include <algorithm>
#include <utility>

namespace perdura::history {

using Role = Step::Role;

void KeySearch::reset(const KeyHistory& key, std::span<const Time> failures) {
  key_ = &key;
  failures_ = failures;
  now_ = Time::min();
  spare_puts_ = spare_erases_ = 0;
  overflow_ = false;
  refused_ = nullptr;
  unstarted_reads_.clear();
  for (const Cluster& cluster : key.clusters()) unstarted_reads_.push_back(cluster.reads);
  slots_.clear();
  free_slots_.clear();
  endings_.clear();
  changing_ = {};
  set_.assign(1, Configuration{.current = key.initial_cluster().value_or(kAbsent)});
  tidy(set_.front());
}

KeySearch::Result KeySearch::run(const KeyHistory& key, std::span<const Time> failures) {
  reset(key, failures);
  const std::vector<Step>& steps = key.steps();
  std::uint32_t next = 0;
  while (next < steps.size() || !endings_.empty()) {
    const Time start = next < steps.size() ? steps[next].start : Time::max();
    const Time end = endings_.empty() ? Time::max() : endings_.front().end;
    // Events at the same moment are concurrent: starts come first, ends last.
    if (next < steps.size() && start <= end && (failures_.empty() || start <= failures_.front())) {
      begin(next++);
    } else if (failure_until(end)) {
      now_ = failures_.front();
      count_spares();
      fail();
    } else {
      const std::uint32_t slot = endings_.front().slot;
      std::pop_heap(endings_.begin(), endings_.end());
      endings_.pop_back();
      now_ = end;
      count_spares();
      if (!this->end(slot)) return overflow_ ? Result::undecided : Result::violated;
    }
    if (overflow_) return Result::undecided;
  }
  return Result::accepted;
}

void KeySearch::begin(std::uint32_t index) {
  const Step& step = key_->steps()[index];
  now_ = step.start;
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back(index);
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = index;
  }
  if (step.changes()) changing_.set(slot);
  endings_.push_back({step.end, step.role == Role::put, slot});
  std::push_heap(endings_.begin(), endings_.end());

  // A read takes effect as soon as the key holds what the read returned.
  if (step.changes()) return;
  const Content found = step.role == Role::find ? step.cluster : kAbsent;
  for (Configuration& configuration : set_) {
    if (configuration.current == found) configuration.done.set(slot);
  }
  if (step.role == Role::find && --unstarted_reads_[step.cluster] == 0) {
    for (Configuration& configuration : set_) tidy(configuration);
  }
}

bool KeySearch::end(std::uint32_t slot) {
  const bool all_done = std::all_of(
      set_.begin(), set_.end(),
      [&](const Configuration& configuration) { return configuration.done.test(slot); });
  if (!all_done) {
    next_.clear();
    for (const Configuration& configuration : set_) {
      if (configuration.done.test(slot)) {
        add_next(configuration);
      } else {
        move_towards(configuration, slot);
      }
    }
    if (next_.empty()) {
      refused_ = &step_in(slot);
      return false;
    }
    std::swap(set_, next_);
  }
  for (Configuration& configuration : set_) configuration.done.reset(slot);
  changing_.reset(slot);
  slots_[slot] = kFree;
  free_slots_.push_back(slot);
  return true;
}

void KeySearch::count_spares() {
  const std::vector<Time>& puts = key_->spare_puts();
  while (spare_puts_ < puts.size() && puts[spare_puts_] <= now_) ++spare_puts_;
  const std::vector<Time>& erases = key_->spare_erases();
  while (spare_erases_ < erases.size() && erases[spare_erases_] <= now_) ++spare_erases_;
}

void KeySearch::fail() {
  frontier_.clear();
  for (const Configuration& configuration : set_) add_frontier(configuration);
  next_.clear();
  move_before_failure();
  failures_ = failures_.subspan(1);
  for (const Configuration& configuration : set_) add_next(survived(configuration));
  std::swap(set_, next_);
}

// A version must not be replaced if a read that has not begun yet will return it, unless a power
// failure may restore it before the last of its reads ends.
bool KeySearch::may_be_replaced(Content content) const {
  return !is_cluster(content) || unstarted_reads_[content] == 0 ||
         failure_until(key_->clusters()[content].last_end);
}

bool KeySearch::undone(const Configuration& configuration, std::uint32_t slot, Role role) const {
  return under_way(slot) && step_in(slot).role == role && !configuration.done.test(slot);
}

bool KeySearch::has_undone(const Configuration& configuration, Role role) const {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (undone(configuration, slot, role)) return true;
  }
  return false;
}

std::optional<std::uint32_t> KeySearch::first_due(const Configuration& configuration,
                                                  Role role) const {
  std::optional<std::uint32_t> first;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (!undone(configuration, slot, role)) continue;
    if (role == Role::put && unstarted_reads_[step_in(slot).cluster] != 0) continue;
    if (!first || step_in(slot).end < step_in(*first).end) first = slot;
  }
  return first;
}

KeySearch::Configuration KeySearch::replaced(const Configuration& from, Content by) const {
  Configuration result = from;
  result.previous = from.current;
  result.previous_since = from.current_since;
  result.exposed = !failures_.empty();
  result.current = by;
  result.current_since = now_;
  return result;
}

KeySearch::Configuration KeySearch::with_put(const Configuration& from, std::uint32_t slot) const {
  Configuration result = replaced(from, step_in(slot).cluster);
  result.done.set(slot);
  serve_reads(result);
  tidy(result);
  return result;
}

KeySearch::Configuration KeySearch::with_spare_put(const Configuration& from) const {
  Configuration result = replaced(from, kSpent);
  ++result.spare_puts_used;
  tidy(result);
  return result;
}

KeySearch::Configuration KeySearch::with_erase(const Configuration& from,
                                               std::optional<std::uint32_t> slot) const {
  Configuration result = replaced(from, kAbsent);
  if (slot) {
    result.done.set(*slot);
  } else {
    ++result.spare_erases_used;
  }
  serve_reads(result);
  tidy(result);
  return result;
}

KeySearch::Configuration KeySearch::with_hidden_put(const Configuration& from, std::uint32_t slot,
                                                    Time when) const {
  Configuration result = from;
  result.done.set(slot);
  const std::uint32_t cluster = step_in(slot).cluster;
  for (std::uint32_t other = 0; other < slots_.size(); ++other) {
    if (undone(result, other, Role::find) && step_in(other).cluster == cluster &&
        step_in(other).start <= when) {
      result.done.set(other);
    }
  }
  return result;
}

KeySearch::Configuration KeySearch::fallen_back(const Configuration& from) const {
  Configuration result = from;
  result.current = from.previous;
  result.current_since = from.previous_since;
  result.exposed = false;
  serve_reads(result);
  tidy(result);
  return result;
}

KeySearch::Configuration KeySearch::survived(const Configuration& from) const {
  Configuration result = from;
  result.exposed = false;
  tidy(result);
  return result;
}

void KeySearch::serve_reads(Configuration& configuration) const {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (!under_way(slot)) continue;
    const Step& step = step_in(slot);
    if (step.changes()) continue;
    const Content found = step.role == Role::find ? step.cluster : kAbsent;
    if (configuration.current == found) configuration.done.set(slot);
  }
}

// Normalizes a configuration, so that equivalent configurations become equal.
void KeySearch::tidy(Configuration& configuration) const {
  // Reads in flight that return the current version have already taken effect.
  const Content current = configuration.current;
  if (is_cluster(current) && unstarted_reads_[current] == 0) configuration.current = kSpent;
  if (failures_.empty()) configuration.exposed = false;
  if (!configuration.exposed) {
    configuration.previous = kSpent;
    configuration.previous_since = configuration.current_since;
  } else if (is_cluster(configuration.previous) && unstarted_reads_[configuration.previous] == 0) {
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
      if (undone(configuration, slot, Role::find) &&
          step_in(slot).cluster == configuration.previous) {
        return;
      }
    }
    configuration.previous = kSpent;
  }
}

// Adds all configurations in which the operation of the slot has taken effect, after those others
// that have to take effect before it.
void KeySearch::move_towards(const Configuration& from, std::uint32_t slot) {
  const Role role = step_in(slot).role;
  // The version's put ends no later, so it has taken effect, and its version has been replaced.
  if (role == Role::find) return;
  frontier_.clear();
  frontier_.push_back(from);
  for (std::size_t i = 0; i < frontier_.size() && !overflow_; ++i) {
    const Configuration configuration = frontier_[i];
    if (role == Role::put) hide(configuration, slot);
    if (!may_be_replaced(configuration.current)) continue;
    if (role == Role::put) add_next(with_put(configuration, slot));
    if (configuration.current == kAbsent) {
      try_separators(configuration, slot);
    } else {
      try_erases(configuration, slot);
    }
  }
}

// The put and all of its reads took effect just before another change, and its version was not seen
// afterwards.
void KeySearch::hide(const Configuration& from, std::uint32_t slot) {
  const Content content = step_in(slot).cluster;
  const Cluster& cluster = key_->clusters()[content];
  if (cluster.last_start <= from.previous_since) {
    Configuration result = with_hidden_put(from, slot, from.previous_since);
    tidy(result);
    add_next(std::move(result));
  }
  // The put took effect between the two last changes, so that its version is the one that a power
  // failure restores; then it may be seen again.
  const bool seen_later = failure_until(cluster.last_end);
  if (from.exposed && cluster.start <= from.current_since &&
      (cluster.last_start <= from.current_since || seen_later)) {
    Configuration result = with_hidden_put(from, slot, from.current_since);
    result.previous = content;
    result.previous_since = from.current_since;
    tidy(result);
    add_next(std::move(result));
  }
}

// Tries everything that may have taken effect just before the power failure, and lets the failure
// undo the last change.
void KeySearch::move_before_failure() {
  for (std::size_t i = 0; i < frontier_.size() && !overflow_; ++i) {
    const Configuration configuration = frontier_[i];
    if (configuration.exposed) add_next(fallen_back(configuration));
    if (!may_be_replaced(configuration.current)) continue;
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
      // A put whose version will be read later cannot have been undone.
      if (undone(configuration, slot, Role::put) && unstarted_reads_[step_in(slot).cluster] == 0) {
        add_next(fallen_back(with_put(configuration, slot)));
      }
    }
    if (configuration.current == kAbsent) {
      try_separators(configuration, std::nullopt);
    } else {
      try_erases(configuration, std::nullopt);
    }
  }
}

// Acknowledged deletes differ only in when they are due, so it suffices to try the one that is due
// first. A delete that need not take effect is used only if there is no acknowledged one.
void KeySearch::try_erases(const Configuration& from, std::optional<std::uint32_t> goal) {
  if (const auto erase = first_due(from, Role::erase)) {
    reach(with_erase(from, erase), goal);
  } else if (from.spare_erases_used < spare_erases_ && has_undone(from, Role::find_absent)) {
    reach(with_erase(from, std::nullopt), goal);
  }
}

// A delete needs a version to delete. Puts whose reads have all begun differ only in when they are
// due, since each of them could be hidden from now on; so it suffices to try the one that is due
// first. This does not hold if a power failure may still undo the change before which a put could
// be hidden.
void KeySearch::try_separators(const Configuration& from, std::optional<std::uint32_t> goal) {
  if (!has_undone(from, Role::erase)) return;
  const auto put = first_due(from, Role::put);
  if (failures_.empty() && put) return reach(with_put(from, *put), goal);
  if (from.spare_puts_used < spare_puts_) reach(with_spare_put(from), goal);
  if (failures_.empty()) return;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (undone(from, slot, Role::put) && may_be_replaced(step_in(slot).cluster)) {
      reach(with_put(from, slot), goal);
    }
  }
}

void KeySearch::reach(Configuration configuration, std::optional<std::uint32_t> goal) {
  if (goal && configuration.done.test(*goal)) {
    add_next(std::move(configuration));
  } else {
    add_frontier(std::move(configuration));
  }
}

// True if `one` can do everything that `other` can. Reads that are done impose no further
// constraints, and a later last change can hide more puts.
bool KeySearch::covers(const Configuration& one, const Configuration& other) const {
  return one.current == other.current && one.previous == other.previous &&
         one.exposed == other.exposed && one.current_since >= other.current_since &&
         one.previous_since >= other.previous_since &&
         one.spare_puts_used <= other.spare_puts_used &&
         one.spare_erases_used <= other.spare_erases_used && one.done.covers(other.done, changing_);
}

void KeySearch::add_next(Configuration configuration) {
  for (std::size_t i = 0; i < next_.size();) {
    if (covers(next_[i], configuration)) return;
    if (covers(configuration, next_[i])) {
      std::swap(next_[i], next_.back());
      next_.pop_back();
    } else {
      ++i;
    }
  }
  next_.push_back(std::move(configuration));
  overflow_ = overflow_ || next_.size() > kMaxConfigurations;
}

void KeySearch::add_frontier(Configuration configuration) {
  for (const Configuration& known : frontier_) {
    if (covers(known, configuration)) return;
  }
  frontier_.push_back(std::move(configuration));
  overflow_ = overflow_ || frontier_.size() > kMaxConfigurations;
}

}  // namespace perdura::history
