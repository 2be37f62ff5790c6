#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/ycsb/key_chooser.h"
#include "bench/ycsb/workload_spec.h"
#include "platform/base/random.h"

namespace perdura::ycsb {

struct WorkloadOperation {
  OperationKind kind;
  std::uint64_t key_number;       // KeyFormat turns it into the key
  std::uint32_t value_size = 0;   // bytes; only for kinds that write
  std::uint32_t scan_length = 0;  // records; only for scans
  std::uint64_t version = 0;  // for fill_value; unique among all puts of all clients; loading is 0
};

// Draws the sizes of values: the sum of the fields' lengths.
class ValueSizes {
 public:
  // Precondition: spec.validate().
  explicit ValueSizes(const WorkloadSpec& spec);

  std::uint32_t next(Random& random) const;
  // True if sizes vary. If they do not, next() takes nothing from the random generator.
  bool vary() const { return distribution_ != LengthDistribution::constant; }
  std::uint32_t constant() const { return fields_ * max_length_; }

 private:
  LengthDistribution distribution_;
  std::uint32_t fields_;
  std::uint32_t min_length_;
  std::uint32_t max_length_;
  Zipfian zipfian_;
};

// Draws the operations of one client before the measurement: it creates its part of the loaded
// keys, each once. Client i of n takes each n-th key. Deterministic like OperationGenerator.
class LoadGenerator {
 public:
  // Throws std::invalid_argument if the specification is invalid or client >= clients.
  LoadGenerator(const WorkloadSpec& spec, std::uint64_t seed, std::uint32_t client,
                std::uint32_t clients);

  // The next insert, or nothing when the client's part is done.
  std::optional<WorkloadOperation> next();

 private:
  KeyNumbering numbering_;
  ValueSizes value_sizes_;
  Random random_;
  std::uint64_t position_;
};

// Draws the operations of one client during the measurement. An object belongs to one client and is
// never shared. The operations depend on the specification, the seed, the client's number, the
// number of clients and the acknowledgments given so far, on nothing else.
//
// Inserts use the new key numbers that KeyNumbering assigns to the client, each once. Deletes take
// the client's own part of the loaded keys, then its own acknowledged inserts, oldest first, each
// once: so every insert really creates and every delete really deletes, and a workload of inserts
// or deletes alone walks its keys without repetition. Other operations draw keys by the request
// distribution, see KeyChooser; where a workload deletes, they can meet keys that are gone, and
// "not found" is then a correct answer.
class OperationGenerator {
 public:
  // Throws std::invalid_argument if the specification is invalid or client >= clients.
  OperationGenerator(const WorkloadSpec& spec, std::uint64_t seed, std::uint32_t client,
                     std::uint32_t clients);

  // The next operation, or nothing when there can be none: a delete was due and no key is left that
  // this client may delete, or an insert was due and the key numbers are used up
  // (KeyFormat::capacity()). Does not stop at operationcount; see operations_of_client().
  std::optional<WorkloadOperation> next() {
    if (next_ahead_ < kAhead) [[likely]]
      return ahead_[next_ahead_++];
    return next_of_many();
  }

  // Notes that the store has acknowledged an insert that next() returned; in any order. From then
  // on the key may be drawn, once all earlier inserts of this client are acknowledged too. If an
  // insert has failed for good and is never acknowledged, neither it nor the client's later ones
  // are drawn.
  void acknowledge_insert(std::uint64_t key_number);

  // The number of the client's own inserts that may be drawn.
  std::uint64_t acknowledged_inserts() const { return acknowledged_; }

 private:
  // If no operation depends on the outcome of an earlier one, many are drawn at once: the processor
  // overlaps their computation, and less remains to be done between two operations of a client. The
  // sequence is the same.
  static constexpr std::size_t kAhead = 32;
  std::optional<WorkloadOperation> next_of_many();
  std::optional<WorkloadOperation> draw();
  void add_value(WorkloadOperation& operation);
  std::uint64_t next_version() const { return 1 + numbering_.client + puts_ * numbering_.clients; }
  OperationKind draw_kind();
  std::optional<std::uint64_t> next_new_key();
  std::optional<std::uint64_t> next_key_to_erase();
  std::uint32_t draw_scan_length();

  KeyNumbering numbering_;
  KeyChooser keys_;
  ValueSizes value_sizes_;
  Random random_;
  std::array<double, kOperationKinds> cumulative_shares_;
  std::uint64_t key_capacity_;
  std::uint32_t min_scan_length_;
  std::uint32_t max_scan_length_;
  std::optional<Zipfian> zipfian_scans_;

  std::uint64_t puts_ = 0;
  std::uint64_t inserts_ = 0;
  std::uint64_t erases_ = 0;
  std::uint64_t acknowledged_ = 0;           // all inserts before this one are acknowledged
  std::vector<std::uint64_t> out_of_order_;  // acknowledged inserts after it

  bool draws_ahead_;
  std::size_t next_ahead_ = kAhead;
  std::array<WorkloadOperation, kAhead> ahead_;
};

}  // namespace perdura::ycsb
