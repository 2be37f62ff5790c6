// Decides whether a history is linearizable (Herlihy and Wing 1990), that is, whether it could be
// that of a store in which every operation takes effect at one moment between its start and its
// end. Keys are checked one by one, which is equivalent to checking them together (locality). The
// check is exact: a history is accepted if and only if there is such an order. docs/history.md
// describes the algorithm and argues why it is correct.
//
// A key for which two puts wrote the same version is decided by the general search
// (services/linearizability.h).
//
// Time: n log n for histories without deletes, whatever the number of clients. Deletes that overlap
// with other operations of their key, and power failures, add alternatives that must be followed.
// Memory: 4 bytes for each operation, and the working set of one key at a time, which is about 100
// bytes for each operation of that key.
#pragma once

#include <string>
#include <vector>

#include "services/kv/history/history.h"

namespace perdura::history {

// A system's promise about acknowledged operations.
struct Promise {
  // The changes that a power failure may undo.
  enum class Undone : std::uint8_t {
    nothing,       // acknowledged is durable
    last_version,  // each key may fall back from its newest version, or from being deleted, to the
                   // one right before it; what survived one power failure survives all later ones
  };
  Undone undone = Undone::nothing;
};

struct Violation {
  std::uint64_t key = 0;
  std::string what;                   // one line that does not name the key
  std::vector<Operation> operations;  // operations that contradict each other; `what` describes the
                                      // first
};

// "key 7: <what>: <operation>; <operation>". If there is a `name`, it replaces the key's number.
std::string describe(const Violation& violation, std::string_view name = {});

struct CheckResult {
  std::uint64_t operations = 0;  // number of operations checked
  std::uint64_t keys = 0;
  std::uint64_t keys_violated = 0;
  // The number of keys whose deletes, failures and repeated versions lead to more configurations
  // than are followed (kMaxConfigurations, and the limit of the general search). For these keys the
  // check found no violation and proved nothing. No real system is known to cause this.
  std::uint64_t keys_undecided = 0;
  std::vector<Violation> violations;  // at most kMaxViolations, one for each of the first keys

  bool accepted() const { return keys_violated == 0 && keys_undecided == 0; }
};

inline constexpr std::size_t kMaxViolations = 10;
inline constexpr std::size_t kMaxConfigurations = 1 << 14;

// Throws UsageError if the history is longer than 2^32 - 1 operations.
CheckResult check(const History& history, Promise promise = {});

// The result in one line: "1000 operations on 10 keys: linearizable", or the first violation.
std::string describe(const CheckResult& verdict);

}  // namespace perdura::history
