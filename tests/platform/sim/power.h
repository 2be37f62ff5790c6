// Programs on persistent memory, and the images that a power failure after them may leave.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "platform/sim/failures.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"

namespace perdura::sim::test {

using pmem::PersistenceDomain;
using pmem::PersistenceModel;
using pmem::Region;

inline constexpr Bytes kPoolSize = 64 * KiB;

inline Profile testbed() { return perdura::test::erda_testbed(); }

// The first words of the pool, in the places given.
using Image = std::vector<std::uint64_t>;
using Program = std::function<Task<>(Thread&, Region&)>;

inline Image image_of(SimPlatform& platform, const std::vector<Bytes>& words) {
  const auto pool = platform.local_node(0)->open_region("pool");
  Image image;
  for (const Bytes word : words) image.push_back(pool->load(word * kWord));
  return image;
}

// Runs the programs, each on a thread of node 0, fails the power long after, and returns what is in
// the words.
inline Image run_and_fail(PersistenceModel model, const std::vector<Program>& programs,
                          const std::vector<Bytes>& words, pmem::Choices& choices,
                          Time when = Time(Milliseconds(1))) {
  SimPlatform platform(testbed(), 2);
  platform.track_durability(model);
  const auto pool = platform.local_node(0)->create_region("pool", kPoolSize, pmem::Medium::pm);
  for (const Program& program : programs) {
    platform.start_service(0, 0, CompletionMode::polling,
                           [&](Thread& thread) -> Task<> { co_await program(thread, *pool); });
  }
  platform.start(1, 1, CompletionMode::polling,
                 [](Thread&) -> Task<> { co_await sleep_for(Milliseconds(2)); });
  Image image;
  platform.at(when, [&] {
    platform.fail_power(0, choices);
    image = image_of(platform, words);
  });
  platform.run();
  return image;
}

// All images that a power failure after the programs may leave, and how many choices led to them.
struct Found {
  std::set<Image> images;
  std::uint64_t sequences = 0;
};

inline Found all_images(PersistenceModel model, const std::vector<Program>& programs,
                        const std::vector<Bytes>& words) {
  Found result;
  pmem::Enumerator choices;
  while (choices.next()) result.images.insert(run_and_fail(model, programs, words, choices));
  result.sequences = choices.sequences();
  return result;
}

}  // namespace perdura::sim::test
