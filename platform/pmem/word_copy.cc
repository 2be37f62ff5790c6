#include "platform/pmem/word_copy.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "platform/pmem/instructions.h"

namespace perdura::pmem {
namespace {

using SharedWord [[gnu::may_alias]] = std::uint64_t;
using SharedByte = unsigned char;

std::size_t bytes_to_alignment(const std::byte* p) {
  return static_cast<std::size_t>(-reinterpret_cast<std::uintptr_t>(p)) % kWord;
}

void store_word(std::byte* to, const std::byte* from) {
  std::uint64_t word;
  std::memcpy(&word, from, kWord);
  __atomic_store_n(reinterpret_cast<SharedWord*>(to), word, __ATOMIC_RELEASE);
}

void load_word(std::byte* into, const std::byte* from) {
  const std::uint64_t word =
      __atomic_load_n(reinterpret_cast<const SharedWord*>(from), __ATOMIC_ACQUIRE);
  std::memcpy(into, &word, kWord);
}

void store_bytes(std::byte* to, const std::byte* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    __atomic_store_n(reinterpret_cast<SharedByte*>(to + i), static_cast<SharedByte>(from[i]),
                     __ATOMIC_RELEASE);
  }
}

void load_bytes(std::byte* into, const std::byte* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    into[i] = static_cast<std::byte>(
        __atomic_load_n(reinterpret_cast<const SharedByte*>(from + i), __ATOMIC_ACQUIRE));
  }
}

void stream_word(std::byte* to, const std::byte* from) {
#if defined(__SANITIZE_THREAD__)
  store_word(to, from);  // the thread sanitizer does not see non-temporal stores
#else
  std::uint64_t word;
  std::memcpy(&word, from, kWord);
  _mm_stream_si64(reinterpret_cast<long long*>(to), static_cast<long long>(word));
#endif
}

// Each store writes two words; that is several times as fast as one word at a time.
void stream_line(std::byte* to, const std::byte* from) {
#if defined(__SANITIZE_THREAD__)
  for (std::size_t i = 0; i < kCacheLine; i += kWord) store_word(to + i, from + i);
#else
  for (std::size_t i = 0; i < kCacheLine; i += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
#endif
}

// The offsets of the words of a cache line. The compiler does not unroll a loop of atomic accesses
// by itself, and then a copy of 4 KiB takes three times as long.
template <class Use>
void each_word(Use use) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kCacheLine; i += kWord) use(i);
}

std::size_t bytes_to_line(const std::byte* p) {
  return static_cast<std::size_t>(-reinterpret_cast<std::uintptr_t>(p)) % kCacheLine;
}

}  // namespace

void copy_to_shared(std::byte* to, std::span<const std::byte> from) {
  const std::byte* source = from.data();
  std::size_t left = from.size();
  const std::size_t head = std::min(bytes_to_alignment(to), left);
  store_bytes(to, source, head);
  to += head;
  source += head;
  left -= head;
  for (; left >= kCacheLine; to += kCacheLine, source += kCacheLine, left -= kCacheLine) {
    each_word([&](std::size_t i) { store_word(to + i, source + i); });
  }
  for (; left >= kWord; to += kWord, source += kWord, left -= kWord) store_word(to, source);
  store_bytes(to, source, left);
}

void copy_from_shared(std::span<std::byte> into, const std::byte* from) {
  std::byte* target = into.data();
  std::size_t left = into.size();
  const std::size_t head = std::min(bytes_to_alignment(from), left);
  load_bytes(target, from, head);
  target += head;
  from += head;
  left -= head;
  for (; left >= kCacheLine; target += kCacheLine, from += kCacheLine, left -= kCacheLine) {
    each_word([&](std::size_t i) { load_word(target + i, from + i); });
  }
  for (; left >= kWord; target += kWord, from += kWord, left -= kWord) load_word(target, from);
  load_bytes(target, from, left);
}

void copy_between_shared(std::byte* to, std::span<const std::byte> from) {
  const std::byte* source = from.data();
  std::size_t left = from.size();
  const auto copy = [&](std::size_t count) {
    std::array<std::byte, kCacheLine> some;
    copy_from_shared(std::span(some).first(count), source);
    copy_to_shared(to, std::span<const std::byte>(some).first(count));
    to += count;
    source += count;
    left -= count;
  };
  const std::size_t head = std::min(bytes_to_alignment(to), left);
  if (head > 0) copy(head);
  if (bytes_to_alignment(source) == 0) {
    for (; left >= kCacheLine; to += kCacheLine, source += kCacheLine, left -= kCacheLine) {
      each_word([&](std::size_t i) {
        std::array<std::byte, kWord> word;
        load_word(word.data(), source + i);
        store_word(to + i, word.data());
      });
    }
  }
  while (left > 0) copy(std::min(kCacheLine, left));
}

void stream_to_shared(std::byte* to, std::span<const std::byte> from) {
  const std::byte* source = from.data();
  std::size_t left = from.size();
  const auto bytes = [&](std::size_t count) {
    store_bytes(to, source, count);
    flush_lines(to, count);
    to += count;
    source += count;
    left -= count;
  };
  const auto words = [&](std::size_t most) {
    for (most = std::min(most, left) / kWord; most > 0; --most) {
      stream_word(to, source);
      to += kWord;
      source += kWord;
      left -= kWord;
    }
  };
  if (const std::size_t head = std::min(bytes_to_alignment(to), left); head != 0) bytes(head);
  words(bytes_to_line(to));
  const std::size_t lines = left / kCacheLine * kCacheLine;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < lines; i += kCacheLine) stream_line(to + i, source + i);
  to += lines;
  source += lines;
  left -= lines;
  words(left);
  if (left != 0) bytes(left);
}

void fill_lines(std::byte* to, Bytes length, std::byte value) {
#if defined(__SANITIZE_THREAD__)
  std::array<std::byte, kWord> word;
  word.fill(value);
  for (Bytes i = 0; i < length; i += kWord) store_word(to + i, word.data());
#else
  const __m128i words = _mm_set1_epi8(static_cast<char>(value));
  auto* at = reinterpret_cast<__m128i*>(to);
  for (const auto* const end = at + length / sizeof words; at < end; at += 4) {
    for (int i = 0; i < 4; ++i) _mm_stream_si128(at + i, words);
  }
#endif
}

std::uint64_t sum_lines(const std::byte* from, Bytes length) {
  const auto* line = reinterpret_cast<const __m128i*>(from);
  // Several independent sums, so that an addition need not wait for the previous one.
  __m128i a = _mm_setzero_si128();
  __m128i b = a;
  __m128i c = a;
  __m128i d = a;
  for (const auto* const end = line + length / sizeof(__m128i); line < end; line += 4) {
    a = _mm_add_epi64(a, _mm_load_si128(line));
    b = _mm_add_epi64(b, _mm_load_si128(line + 1));
    c = _mm_add_epi64(c, _mm_load_si128(line + 2));
    d = _mm_add_epi64(d, _mm_load_si128(line + 3));
  }
  const __m128i sum = _mm_add_epi64(_mm_add_epi64(a, b), _mm_add_epi64(c, d));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(sum)) +
         static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum)));
}

void count_write(WriteMeter& meter, Cause cause, const std::byte* target,
                 std::span<const std::byte> from) {
  if (from.empty()) return;
  if (meter.level() == WriteMeter::Level::issued) {
    meter.bytes(cause, {}, from);
    return;
  }
  // The old contents are copied first, since other threads may write them meanwhile.
  std::array<std::byte, 1024> small;
  thread_local std::vector<std::byte> large;
  std::span<std::byte> before;
  if (from.size() <= small.size()) {
    before = std::span(small).first(from.size());
  } else {
    if (large.size() < from.size()) large.resize(from.size());
    before = std::span(large).first(from.size());
  }
  copy_from_shared(before, target);
  meter.bytes(cause, before, from);
}

}  // namespace perdura::pmem
