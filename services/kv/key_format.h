#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace perdura::kv {

enum class InsertOrder : std::uint8_t { hashed, ordered };

// Turns key numbers into keys of exactly size() bytes. Different key numbers below capacity()
// always yield different keys: otherwise "creates" of a benchmark would silently overwrite.
//
// There are three forms, chosen by size() and the insert order:
//
//  - hashed, at least prefix + 20 bytes: YCSB's name, that is, the prefix and the decimal hash
//    of the number, with zeros in between. YCSB drops the hash's sign, so two of its keys may
//    coincide; here the twentieth digit from the right is a sign. It is 0 for negative hashes, such
//    as those of the first records, so that their names equal YCSB's, and 1 for all others.
//  - ordered, at least prefix + 13 bytes: prefix and decimal number, with zeros in between.
//  - anything shorter: the number itself, big-endian in the last min(size, 8) bytes, after as much
//    of the prefix, and then zeros, as fits. For hashed keys the number is first permuted by a
//    bijection of that many bytes, so that neighbors are scattered but none coincide.
//
// In the ordered forms the bytewise order of keys is that of their numbers.
class KeyFormat {
 public:
  // Key numbers are below this limit, since the hash is known to be injective up to here.
  static constexpr std::uint64_t kMaxCapacity = std::uint64_t{1} << 40;

  // Precondition: size > 0.
  KeyFormat(std::size_t size, std::string prefix, InsertOrder order);

  std::size_t size() const { return size_; }

  // The number of different keys.
  std::uint64_t capacity() const;

  // Writes the key into the first size() bytes of `key`. No allocation.
  // Precondition: key_number < capacity(), key.size() >= size().
  void write(std::uint64_t key_number, std::span<std::byte> key) const;

 private:
  enum class Form : std::uint8_t { hashed_name, ordered_name, binary };

  void write_binary(std::uint64_t key_number, std::byte* key) const;

  std::size_t size_;
  std::string lead_;  // the part before the digits or bytes of the number
  InsertOrder order_;
  Form form_;
};

}  // namespace perdura::kv
