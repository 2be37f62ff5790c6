#include "services/kv/value.h"

#include <bit>
#include <cassert>
#include <cstring>

#include "platform/base/random.h"
#include "services/kv/key_format.h"
#include "services/kv/short_copy.h"

namespace perdura::kv {
namespace {

static_assert(std::endian::native == std::endian::little, "the layout of a value is little-endian");

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kHeader = kLeastWithKey;
static_assert(kHeader == 2 * kWord);
constexpr unsigned kKeyBits = 40;
static_assert(KeyFormat::kMaxCapacity == std::uint64_t{1} << kKeyBits);

std::uint64_t hash_of(std::uint64_t key_number, std::uint64_t version) {
  std::uint64_t state = version;
  state = splitmix64(state) ^ key_number;
  return splitmix64(state);
}

// The words of the body. With one multiplication for each word and no dependencies between words,
// filling a value is almost as fast as memory; the seed is already well mixed.
std::uint64_t body_word(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t word = seed + index * 0x9e3779b97f4a7c15ULL;
  word = (word ^ (word >> 32)) * 0xd6e8feb86659fd93ULL;
  return word ^ (word >> 32);
}

std::uint64_t first_word(std::uint64_t key_number, std::uint64_t hash) {
  return key_number | (hash >> kKeyBits) << kKeyBits;
}

std::uint64_t low_bytes(std::uint64_t word, std::size_t bytes) {
  return bytes >= kWord ? word : word & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

std::uint64_t load_word(const std::byte* from) { return load_as<std::uint64_t>(from); }

void fill_short_value(std::span<std::byte> value, std::uint64_t key_number, std::uint64_t version) {
  const std::size_t version_bytes = value.size() / 2;
  const std::uint64_t part = low_bytes(version, version_bytes);
  const std::uint64_t hash = hash_of(key_number, part);
  store_short(value.data(), part, version_bytes);
  store_short(value.data() + version_bytes, hash, value.size() - version_bytes);
}

std::optional<std::uint64_t> check_short_value(std::span<const std::byte> value,
                                               std::uint64_t key_number) {
  const std::size_t version_bytes = value.size() / 2;
  const std::size_t hash_bytes = value.size() - version_bytes;
  const std::uint64_t part = stored_version(value);
  const std::uint64_t stored = load_short(value.data() + version_bytes, hash_bytes);
  if (stored != low_bytes(hash_of(key_number, part), hash_bytes)) return std::nullopt;
  return part;
}

}  // namespace

void fill_value(std::span<std::byte> value, std::uint64_t key_number, std::uint64_t version) {
  assert(key_number < KeyFormat::kMaxCapacity);
  if (value.empty()) return;
  if (value.size() < kHeader) return fill_short_value(value, key_number, version);

  const std::uint64_t hash = hash_of(key_number, version);
  const std::uint64_t first = first_word(key_number, hash);
  std::memcpy(value.data(), &first, kWord);
  std::memcpy(value.data() + kWord, &version, kWord);

  std::byte* const body = value.data() + kHeader;
  const std::size_t words = (value.size() - kHeader) / kWord;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = body_word(hash, i);
    std::memcpy(body + i * kWord, &word, kWord);
  }
  store_short(body + words * kWord, body_word(hash, words), (value.size() - kHeader) % kWord);
}

std::uint64_t stored_version(std::span<const std::byte> value) {
  if (value.size() < kHeader) return load_short(value.data(), value.size() / 2);
  return load_word(value.data() + kWord);
}

std::optional<std::uint64_t> stored_key_number(std::span<const std::byte> value) {
  if (value.size() < kLeastWithKey) return std::nullopt;
  return load_word(value.data()) & ((std::uint64_t{1} << kKeyBits) - 1);
}

std::optional<std::uint64_t> check_value(std::span<const std::byte> value,
                                         std::uint64_t key_number) {
  if (value.empty()) return 0;
  if (value.size() < kHeader) return check_short_value(value, key_number);

  const std::uint64_t version = stored_version(value);
  const std::uint64_t hash = hash_of(key_number, version);
  if (load_word(value.data()) != first_word(key_number, hash)) return std::nullopt;

  // Collects all differences before it decides: a loop without branches is faster than one that
  // stops early, and values are nearly always intact.
  const std::byte* const body = value.data() + kHeader;
  const std::size_t words = (value.size() - kHeader) / kWord;
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < words; ++i) {
    difference |= load_word(body + i * kWord) ^ body_word(hash, i);
  }
  const std::size_t tail = (value.size() - kHeader) % kWord;
  difference |= load_short(body + words * kWord, tail) ^ low_bytes(body_word(hash, words), tail);
  if (difference != 0) return std::nullopt;
  return version;
}

}  // namespace perdura::kv
