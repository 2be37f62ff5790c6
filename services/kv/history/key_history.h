// The operations of one key, in the form that the search needs: every read is matched with the put
// whose version it returned, and operations that cannot matter are left out.
#pragma once

#include <optional>
#include <vector>

#include "services/kv/history/checker.h"
#include "services/kv/history/index_table.h"

namespace perdura::history {

// A version: its put and the reads that returned it.
struct Cluster {
  static constexpr std::uint32_t kInitial = ~std::uint32_t{0};
  std::uint32_t put = kInitial;   // index of the put; kInitial: the key held the version initially
  std::uint32_t reads = 0;        // number of reads
  std::uint32_t latest_read = 0;  // index of the read that starts last, if there are reads
  Time start = Time::min();       // start of the put
  Time last_start = Time::min();  // latest start of the put and the reads
  Time first_end = Time::max();   // earliest end of the put and the reads
  Time last_end = Time::min();    // latest end of the reads
};

// An operation that must have taken effect between its start and its end.
struct Step {
  enum class Role : std::uint8_t { put, erase, find, find_absent };
  static constexpr std::uint32_t kNoCluster = ~std::uint32_t{0};
  Time start;
  Time end;
  std::uint32_t operation;             // index of the operation
  std::uint32_t cluster = kNoCluster;  // only of a put or find
  Role role;

  bool changes() const { return role == Role::put || role == Role::erase; }
};

class KeyHistory {
 public:
  // Analyzes the operations of one key, which must stay valid and in place. Returns a violation if
  // an operation contradicts another one directly; the other members must not be used then.
  std::optional<Violation> assign(const std::vector<Operation>& operations,
                                  std::optional<std::uint64_t> initial);

  const std::vector<Operation>& operations() const { return *operations_; }
  const std::vector<Cluster>& clusters() const { return clusters_; }
  const std::vector<Step>& steps() const { return steps_; }  // sorted by start
  // The starts of puts and erases that may have taken effect but that no read has seen, sorted.
  const std::vector<Time>& spare_puts() const { return spare_puts_; }
  const std::vector<Time>& spare_erases() const { return spare_erases_; }
  // The cluster of the key's initial version, if it had one.
  std::optional<std::uint32_t> initial_cluster() const { return initial_cluster_; }

 private:
  void add_puts();
  void add_reads();
  void add_rest();
  void complain(std::string what, std::initializer_list<std::uint32_t> operations);

  const std::vector<Operation>* operations_ = nullptr;
  IndexTable versions_;
  std::vector<Cluster> clusters_;
  std::vector<Step> steps_;
  std::vector<Time> spare_puts_;
  std::vector<Time> spare_erases_;
  std::optional<std::uint32_t> initial_cluster_;
  std::optional<Violation> violation_;
};

}  // namespace perdura::history
