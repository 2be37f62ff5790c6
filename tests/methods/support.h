// Updates that say what they are, and what the responder's region must hold after them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "methods/link.h"
#include "methods/remote_persister.h"
#include "methods/responder.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace perdura::methods::test {

using Buffer = std::vector<std::byte>;

// The simulated testbed with all operations that a device may have.
inline perdura::sim::Profile full_profile(bool ddio = false) {
  perdura::sim::Profile profile = perdura::test::erda_testbed();
  profile.ddio = ddio;
  profile.nic.flush = true;
  profile.nic.flush_persistence = true;
  profile.nic.atomic_write = true;
  return profile;
}

inline std::unique_ptr<pmem::Region> open_or_create(Node& node, const std::string& name,
                                                    Bytes size) {
  auto region = node.open_region(name);
  if (region == nullptr) region = node.create_region(name, size, pmem::Medium::pm);
  return region;
}

// A history of updates: number i, from 1, writes "a" somewhere in the first bytes of the region,
// often over what earlier ones wrote, and number i as "b" into the word behind them.
class History {
 public:
  static constexpr Bytes kRoomForA = 256;
  static constexpr Bytes kB = kRoomForA;
  static constexpr Bytes kRegion = kRoomForA + kCacheLine;
  static constexpr std::uint32_t kLargestA = 72;

  static Bytes offset(std::uint64_t i) { return i * 40 % (kRoomForA - kLargestA) / 8 * 8; }
  static Bytes size(std::uint64_t i) { return 24 + i * 8 % 56; }
  static Buffer data(std::uint64_t i) {
    std::vector<std::uint64_t> words(size(i) / kWord);
    for (std::size_t at = 0; at < words.size(); ++at) words[at] = i << 32 | (i * 31 + at);
    const auto bytes = std::as_bytes(std::span(words));
    return Buffer(bytes.begin(), bytes.end());
  }

  // What the region holds after the first n.
  static Buffer after(std::uint64_t n, bool ordered) {
    Buffer image(kRegion);
    for (std::uint64_t i = 1; i <= n; ++i) {
      const Buffer a = data(i);
      std::copy(a.begin(), a.end(), image.begin() + static_cast<std::ptrdiff_t>(offset(i)));
    }
    if (ordered) std::memcpy(image.data() + kB, &n, sizeof n);
    return image;
  }

  static Task<tl::expected<void, UpdateError>> update(RemotePersister& persister, std::uint64_t i) {
    return update(persister, i, i - 1);
  }
  // Of a method that publishes, "b" is a link, which the writer expects to be this one.
  static Task<tl::expected<void, UpdateError>> update(RemotePersister& persister, std::uint64_t i,
                                                      std::uint64_t expected) {
    const Buffer a = data(i);
    UpdateRequest request{.a = {offset(i), a}};
    if (persister.setup().method.update != Update::single) {
      request.b = {kB, std::as_bytes(std::span(&i, 1))};
      request.expected = expected;
    }
    co_return co_await persister.update(request);
  }
};

// The method, and also with READ in place of FLUSH if it has one.
inline std::vector<Method> with_flush_and_read(const Method& method) {
  std::vector<Method> variants{method};
  if (method.uses(pmem::StepKind::flush_visibility)) {
    variants.push_back(with_read_for_flush(method));
  }
  return variants;
}

inline PersisterSetup setup_of(const Method& method, pmem::Medium receive_medium,
                               std::uint32_t receive_buffers = 8) {
  return {.method = method,
          .largest_a = History::kLargestA,
          .largest_b = 8,
          .receive_buffers = receive_buffers,
          .receive_medium = receive_medium};
}

inline Buffer contents(const pmem::Region& region) {
  Buffer bytes(region.size());
  region.read(0, bytes);
  return bytes;
}

// The link as recovery takes it: without a mark.
inline Buffer without_mark_of(const Method& method, Buffer image) {
  std::uint64_t word = 0;
  std::memcpy(&word, &image[History::kB], sizeof word);
  if (method.marks()) word = without_mark(word);
  std::memcpy(&image[History::kB], &word, sizeof word);
  return image;
}

// Whether the region is as after some number of updates, of which the first `acknowledged` surely,
// and perhaps one more: if that is an ordered one, "b" is not there before all of "a".
inline testing::AssertionResult holds(const Buffer& image, std::uint64_t acknowledged,
                                      std::uint64_t begun, bool ordered) {
  const Buffer before = History::after(acknowledged, ordered);
  const Buffer after = History::after(begun, ordered);
  bool complete = true;
  for (Bytes at = 0; at < History::kRegion; at += kWord) {
    const bool old_word = std::memcmp(&image[at], &before[at], kWord) == 0;
    const bool new_word = std::memcmp(&image[at], &after[at], kWord) == 0;
    if (!old_word && !new_word) {
      std::uint64_t word = 0;
      std::memcpy(&word, &image[at], sizeof word);
      return testing::AssertionFailure() << "the word at " << at << " is " << word
                                         << ", none of update " << acknowledged << " or " << begun;
    }
    if (at < History::kB) {
      complete = complete && new_word;
    } else if (ordered && !old_word && !complete) {
      return testing::AssertionFailure() << "b of update " << begun << " is there before its a";
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace perdura::methods::test
