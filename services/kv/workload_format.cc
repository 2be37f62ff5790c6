#include "services/kv/workload_format.h"

#include <algorithm>
#include <cstring>

#include "services/kv/value.h"

namespace perdura::kv {

std::uint64_t WorkloadFormat::key_number(Key key) {
  // Does not use the platform's hash64, which is charged as simulated CPU time.
  std::uint64_t hash = key.size();
  while (!key.empty()) {
    std::uint64_t word = 0;
    const std::size_t bytes = std::min(key.size(), sizeof word);
    std::memcpy(&word, key.data(), bytes);
    key = key.subspan(bytes);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

std::optional<std::uint64_t> WorkloadFormat::version(Key key, Value value) {
  if (value.size() < kLeastValueSize || key.size() != keys_.size()) return std::nullopt;
  if (value.size() < kv::kLeastWithKey) return kv::stored_version(value);
  std::uint64_t number = 0;
  std::memcpy(&number, value.data(), 5);  // the number's place in a value, see services/kv/value.h
  if (number >= keys_.capacity()) return std::nullopt;
  keys_.write(number, expected_key_);
  if (!std::equal(key.begin(), key.end(), expected_key_.begin())) return std::nullopt;
  return kv::check_value(value, number);
}

std::optional<std::uint64_t> WorkloadFormat::number_in_workload(std::uint64_t key_number,
                                                                std::uint64_t first,
                                                                std::uint64_t count) {
  for (std::uint64_t number = first; number - first < count && number < keys_.capacity();
       ++number) {
    keys_.write(number, expected_key_);
    if (this->key_number(expected_key_) == key_number) return number;
  }
  return std::nullopt;
}

}  // namespace perdura::kv
