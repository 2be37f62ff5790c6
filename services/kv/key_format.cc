#include "services/kv/key_format.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "services/kv/fnv.h"
#include "services/kv/short_copy.h"

namespace perdura::kv {
namespace {

constexpr std::size_t kHashDigits = 19;  // digits of the largest absolute value, 2^63
// Including the digit that encodes the sign.
constexpr std::size_t kHashNameDigits = kHashDigits + 1;
constexpr std::size_t kNumberDigits = 13;  // digits of kMaxCapacity
constexpr std::size_t kMaxBinaryBytes = 8;

void write_decimal(std::uint64_t number, std::byte* out, std::size_t digits) {
  for (std::size_t i = digits; i-- > 0; number /= 10) {
    out[i] = static_cast<std::byte>('0' + number % 10);
  }
}

// A bijection of `bits`-bit numbers: multiplying by an odd number and XORing the high half into the
// low one are both invertible.
std::uint64_t mixed(std::uint64_t number, unsigned bits) {
  const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const unsigned half = (bits + 1) / 2;
  for (std::uint64_t odd : {0x9e3779b97f4a7c15ULL, 0xbf58476d1ce4e5b9ULL, 0x94d049bb133111ebULL}) {
    number = ((number + 0x632be59bd9b4e019ULL) * odd) & mask;
    number ^= number >> half;
  }
  return number;
}

}  // namespace

KeyFormat::KeyFormat(std::size_t size, std::string prefix, InsertOrder order)
    : size_(size), lead_(std::move(prefix)), order_(order) {
  std::size_t dependent = 0;
  if (order == InsertOrder::hashed && size >= lead_.size() + kHashNameDigits) {
    form_ = Form::hashed_name;
    dependent = kHashNameDigits;
  } else if (order == InsertOrder::ordered && size >= lead_.size() + kNumberDigits) {
    form_ = Form::ordered_name;
    dependent = kNumberDigits;
  } else {
    form_ = Form::binary;
    dependent = std::min(size, kMaxBinaryBytes);
  }
  lead_.resize(size - dependent, '0');
}

std::uint64_t KeyFormat::capacity() const {
  const std::size_t bits = 8 * size_;
  return bits < 40 ? std::uint64_t{1} << bits : kMaxCapacity;
}

void KeyFormat::write(std::uint64_t key_number, std::span<std::byte> key) const {
  assert(key_number < capacity() && key.size() >= size_);
  copy_short(key.data(), reinterpret_cast<const std::byte*>(lead_.data()), lead_.size());
  std::byte* const rest = key.data() + lead_.size();
  switch (form_) {
    case Form::hashed_name: {
      const std::uint64_t hash = fnv1a_64(key_number);
      rest[0] = static_cast<std::byte>((hash >> 63) != 0 ? '0' : '1');
      write_decimal(ycsb_fold(hash), rest + 1, kHashDigits);
      return;
    }
    case Form::ordered_name:
      write_decimal(key_number, rest, kNumberDigits);
      return;
    case Form::binary:
      write_binary(key_number, rest);
      return;
  }
}

void KeyFormat::write_binary(std::uint64_t key_number, std::byte* key) const {
  const std::size_t bytes = size_ - lead_.size();
  if (order_ == InsertOrder::hashed)
    key_number = mixed(key_number, static_cast<unsigned>(8 * bytes));
  // Big-endian: the low bytes of the number, the lowest one last.
  store_short(key, __builtin_bswap64(key_number) >> (8 * (kMaxBinaryBytes - bytes)), bytes);
}

}  // namespace perdura::kv
