// A log in a persistent region of the caller's node, to which its CPU appends in the way of
// libpmemlog: it stores the record and makes it durable, then counts it and makes the count
// durable. So a record that is counted is whole, and needs no checksum.
//
//   0      magic | slots | largest payload     written last, when the log is made
//   64     tail: number of records appended
//   128    head: number of records applied
//   192    the slots; record number i, from 1, is in slot (i - 1) mod slots: its length, its payload
//
// libpmemlog lays records side by side and never uses room again before all of them are given up;
// this log is a ring.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platform/platform.h"

namespace perdura::systems::rpc_log {

struct LocalLogOptions {
  std::uint64_t slots = 4096;          // number of records that the log holds
  std::uint32_t largest_payload = 64;  // in bytes

  Bytes slot_size() const { return round_up(kWord + largest_payload, kCacheLine); }
};

class LocalLog {
 public:
  // Called for each record in order. Its effects must be durable when it returns.
  using Apply = std::function<void(std::uint64_t number, std::span<const std::byte> payload)>;

  // Opens the log in the persistent region `name`, or makes it. Throws UsageError if the region is
  // another log or none.
  LocalLog(Node& node, const std::string& name, const LocalLogOptions& options);

  // Appends a record durably and returns its number. The log must not be full, and the payload not
  // longer than the largest.
  std::uint64_t append(std::span<const std::byte> payload);
  bool is_full() const { return tail_ - head_ == options_.slots; }
  // Applies at most `most` records, after which their slots can be used again. Returns the number
  // applied.
  std::uint64_t apply_some(std::uint64_t most, const Apply& apply);

  // Gives all records up at once, so that their slots can be used again.
  void rewind();

  std::uint64_t tail() const { return tail_; }
  std::uint64_t head() const { return head_; }

 private:
  void make();
  void check_shape(const std::string& name) const;
  void store_count(Bytes word, std::uint64_t count);
  Bytes slot_offset(std::uint64_t number) const;

  const LocalLogOptions options_;
  std::unique_ptr<pmem::Region> region_;
  std::uint64_t tail_ = 0;
  std::uint64_t head_ = 0;
  std::vector<std::byte> record_;
};

}  // namespace perdura::systems::rpc_log
