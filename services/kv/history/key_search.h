// The search for a valid order of one key's operations (docs/history.md). It visits starts, ends
// and power failures in the order of time, and maintains the set of possible configurations of the
// key: its content, and the operations in flight that have taken effect. The history is rejected
// when the set becomes empty.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "services/kv/history/bits.h"
#include "services/kv/history/checker.h"
#include "services/kv/history/key_history.h"

namespace perdura::history {

class KeySearch {
 public:
  enum class Result : std::uint8_t { accepted, violated, undecided };

  // `failures` are the power failures that may undo the last change, in order.
  Result run(const KeyHistory& key, std::span<const Time> failures);
  // Must be called only after `violated`.
  Violation violation() const;

 private:
  // The content of a key: the index of a cluster, or one of the following.
  using Content = std::uint32_t;
  static constexpr Content kAbsent = ~Content{0};
  static constexpr Content kSpent = kAbsent - 1;  // a version that no read needs anymore
  static constexpr std::uint32_t kFree = ~std::uint32_t{0};

  struct Configuration {
    Content current = kAbsent;
    Content previous = kSpent;  // the content that a power failure restores
    bool exposed = false;       // true if a power failure can still restore `previous`
    // When `current` and `previous` were written. A put that was in flight then may have taken
    // effect just before, without being seen.
    Time current_since = Time::min();
    Time previous_since = Time::min();
    std::uint32_t spare_puts_used = 0;
    std::uint32_t spare_erases_used = 0;
    Bits done{};  // slots of operations that have taken effect
  };
  using Configurations = std::vector<Configuration>;

  struct Ending {
    Time end;
    bool put;  // among equal ends, a put's comes first: none of its reads may end before it
    std::uint32_t slot;
    // Orders a heap whose top is the earliest end.
    bool operator<(const Ending& other) const {
      return end != other.end ? end > other.end : put < other.put;
    }
  };

  void reset(const KeyHistory& key, std::span<const Time> failures);
  void begin(std::uint32_t index);
  bool end(std::uint32_t slot);
  void fail();
  void count_spares();

  const Step& step_in(std::uint32_t slot) const { return key_->steps()[slots_[slot]]; }
  bool under_way(std::uint32_t slot) const { return slots_[slot] != kFree; }
  static bool is_cluster(Content content) { return content < kSpent; }
  bool failure_until(Time when) const { return !failures_.empty() && failures_.front() <= when; }
  bool may_be_replaced(Content content) const;
  bool undone(const Configuration& configuration, std::uint32_t slot, Step::Role role) const;
  bool has_undone(const Configuration& configuration, Step::Role role) const;
  // The operation that has to take effect first. Only puts whose reads have all begun are
  // considered.
  std::optional<std::uint32_t> first_due(const Configuration& configuration, Step::Role role) const;

  // The transitions: each returns the configuration after one more operation has taken effect.
  Configuration replaced(const Configuration& from, Content by) const;
  Configuration with_put(const Configuration& from, std::uint32_t slot) const;
  Configuration with_spare_put(const Configuration& from) const;
  Configuration with_erase(const Configuration& from, std::optional<std::uint32_t> slot) const;
  Configuration with_hidden_put(const Configuration& from, std::uint32_t slot, Time when) const;
  Configuration fallen_back(const Configuration& from) const;
  Configuration survived(const Configuration& from) const;
  void serve_reads(Configuration& configuration) const;
  void tidy(Configuration& configuration) const;

  void move_towards(const Configuration& from, std::uint32_t slot);
  void hide(const Configuration& from, std::uint32_t slot);
  void move_before_failure();
  void try_erases(const Configuration& from, std::optional<std::uint32_t> goal);
  void try_separators(const Configuration& from, std::optional<std::uint32_t> goal);
  // Adds a configuration to `next_` if the operation of slot `goal` has taken effect, else to
  // `frontier_`.
  void reach(Configuration configuration, std::optional<std::uint32_t> goal);
  bool covers(const Configuration& one, const Configuration& other) const;
  void add_next(Configuration configuration);
  void add_frontier(Configuration configuration);

  const KeyHistory* key_ = nullptr;
  std::span<const Time> failures_;  // still to come
  Time now_{};
  std::size_t spare_puts_ = 0;                  // number that have begun
  std::size_t spare_erases_ = 0;                // number that have begun
  std::vector<std::uint32_t> unstarted_reads_;  // for each cluster, its reads that have not begun
  std::vector<std::uint32_t> slots_;            // steps in flight, or kFree
  std::vector<std::uint32_t> free_slots_;
  std::vector<Ending> endings_;
  Bits changing_;  // slots of operations that change the key
  Configurations set_;
  Configurations next_;
  Configurations frontier_;
  bool overflow_ = false;
  const Step* refused_ = nullptr;
};

}  // namespace perdura::history
