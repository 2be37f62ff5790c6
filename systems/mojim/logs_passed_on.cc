// Logs: what is passed on to the following copies, and which thread gives them the region.
#include <algorithm>
#include <mutex>

#include "systems/mojim/logs.h"

namespace perdura::systems::mojim {

std::optional<Logs::SyncPoint> Logs::whole_from(std::uint32_t number,
                                                std::uint64_t position) const {
  const std::lock_guard held(lock_);
  const Ring<SyncPoint>& whole = logs_[number].whole;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i].position >= position) return whole[i];
  }
  return std::nullopt;
}

void Logs::pass(std::uint32_t number, std::uint64_t position) {
  const std::lock_guard held(lock_);
  Log& log = logs_[number];
  if (position <= log.passed_until) return;
  const bool is_all = log.whole.empty() || log.whole[log.whole.size() - 1].end() <= position;
  log.passed_until = is_all ? log.received : position;
  drop_done(log);
}

std::uint64_t Logs::passed_id() const {
  const std::lock_guard held(lock_);
  std::uint64_t id = applied();  // beyond it, something may not have arrived
  for (const Log& log : logs_) {
    for (std::size_t i = 0; i < log.whole.size(); ++i) {
      if (log.whole[i].position < log.passed_until) continue;
      id = std::min(id, log.whole[i].id - 1);
      break;
    }
  }
  return id;
}

std::uint64_t Logs::not_passed() const {
  const std::lock_guard held(lock_);
  std::uint64_t requests = 0;
  for (const Log& log : logs_) requests += log.received - log.passed_until;
  return kept_ ? requests : 0;
}

bool Logs::begin_giving(std::size_t copy, std::uint64_t term) {
  const std::lock_guard held(lock_);
  if (giving_[copy] != Giving::none) return false;
  giving_[copy] = Giving::awaited;
  giving_term_[copy] = term;
  return true;
}

bool Logs::is_giving_for(std::size_t copy, std::uint64_t term) const {
  const std::lock_guard held(lock_);
  return giving_[copy] == Giving::awaited ||
         (giving_[copy] == Giving::begun && giving_term_[copy] >= term);
}

bool Logs::skip_until_given(std::size_t copy, std::uint64_t id) {
  const std::lock_guard held(lock_);
  const bool is_given = giving_[copy] == Giving::begun && id <= giving_from_[copy];
  if (giving_[copy] != Giving::awaited && !is_given) return false;
  skip(id);
  return true;
}

std::optional<std::uint64_t> Logs::given_from(std::size_t copy, std::uint64_t least) {
  const std::lock_guard held(lock_);
  if (applied() < std::max(least, skipped())) return std::nullopt;
  giving_[copy] = Giving::begun;
  giving_from_[copy] = applied();
  return giving_from_[copy];
}

void Logs::end_giving(std::size_t copy) {
  const std::lock_guard held(lock_);
  giving_[copy] = Giving::none;
}

void Logs::skip(std::uint64_t id) {
  std::uint64_t before = skipped();
  while (before < id && !skipped_.compare_exchange_weak(before, id)) {
  }
}

}  // namespace perdura::systems::mojim
