#include "systems/mojim/following_copies.h"

#include <algorithm>
#include <mutex>

namespace perdura::systems::mojim {

bool FollowingCopies::begin_giving(std::size_t number, std::uint64_t term) {
  const std::lock_guard held(lock_);
  Copy& copy = copies_[number];
  if (copy.giving != Giving::none) return false;
  copy.giving = Giving::awaited;
  copy.giving_term = term;
  return true;
}

bool FollowingCopies::is_giving_for(std::size_t number, std::uint64_t term) const {
  const std::lock_guard held(lock_);
  const Copy& copy = copies_[number];
  return copy.giving == Giving::awaited ||
         (copy.giving == Giving::begun && copy.giving_term >= term);
}

bool FollowingCopies::skip_until_given(std::size_t number, std::uint64_t id) {
  const std::lock_guard held(lock_);
  const Copy& copy = copies_[number];
  const bool is_given = copy.giving == Giving::begun && id <= copy.giving_from;
  if (copy.giving != Giving::awaited && !is_given) return false;
  skip(id);
  return true;
}

std::optional<std::uint64_t> FollowingCopies::given_from(std::size_t number, std::uint64_t least) {
  const std::lock_guard held(lock_);
  if (state_.applied() < std::max(least, skipped())) return std::nullopt;
  Copy& copy = copies_[number];
  copy.giving = Giving::begun;
  copy.giving_from = state_.applied();
  return copy.giving_from;
}

void FollowingCopies::end_giving(std::size_t number) {
  const std::lock_guard held(lock_);
  copies_[number].giving = Giving::none;
}

void FollowingCopies::skip(std::uint64_t id) {
  std::uint64_t before = skipped();
  while (before < id && !skipped_.compare_exchange_weak(before, id)) {
  }
}

}  // namespace perdura::systems::mojim
