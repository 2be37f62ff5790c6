// A thread that performs and measures the operations of a YCSB client on a database, one at a time.
// Every value that it reads is checked after the operation.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/driver/crew.h"
#include "bench/lmdb/database.h"
#include "bench/lmdb/result.h"
#include "bench/ycsb/generator.h"
#include "services/kv/key_format.h"

namespace perdura::bench::lmdb {

// Time since the start of this process.
Time now();

class Client {
 public:
  Client(Database& database, const ycsb::WorkloadSpec& spec, std::uint64_t seed,
         std::uint32_t index, std::uint32_t clients);

  // Performs this client's share of `operations`. Measures them if there is a crew.
  void operate(std::uint64_t operations, Crew* crew);

  // The measurements, and the problems of all operations, measured or not.
  const Result& result() const { return result_; }
  Time first_start() const { return first_start_; }
  Time last_end() const { return last_end_; }

 private:
  enum class Outcome : std::uint8_t { success, not_found, wrong_value };

  Outcome perform(const ycsb::WorkloadOperation& operation);
  bool is_right(std::uint64_t key_number) const;  // the value that was read
  bool are_right() const;                         // the entries that were scanned
  void fail(const ycsb::WorkloadOperation& operation, const std::string& what);

  ycsb::WorkloadSpec spec_;
  kv::KeyFormat key_format_;
  std::uint32_t index_;
  std::uint32_t clients_;
  Database& database_;
  Database::ReadTransaction reader_;
  ycsb::OperationGenerator generator_;
  std::vector<std::byte> key_;
  std::vector<std::byte> written_;
  std::vector<std::byte> read_;
  struct Scanned {
    std::size_t begin = 0;  // offset in read_ of the key; the value follows
    std::size_t value = 0;
    std::size_t end = 0;
  };
  std::vector<Scanned> scanned_;
  Result result_;
  Time first_start_ = Time::max();
  Time last_end_ = Time::min();
};

// Loads the records of a workload.
void load(Database& database, const ycsb::WorkloadSpec& spec, std::uint64_t seed);
// Returns the number of entries of a database. Throws Error if one of them cannot have been written
// by any operation of the workload.
std::uint64_t checked_entries(Database& database, const ycsb::WorkloadSpec& spec);

}  // namespace perdura::bench::lmdb
