// Recovery and inspection alone: new machines with the persistent memory that a power failure has
// left, the servers of a scenario, and its inspector. The run before the failure is not repeated.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "platform/pmem/model/lazy_images.h"
#include "platform/pmem/sim/crashed_memory.h"
#include "platform/sim/sim_platform.h"
#include "services/crash.h"

namespace perdura::explore {

// The images that a failure of the power of all servers may leave, by server. To be called at the
// failure, while the power is still on.
std::vector<pmem::ImageSpace> images_left(sim::SimPlatform& platform, NodeId servers);

// The persistent memory that such a failure leaves, by server.
struct LeftMemory {
  // `images` are those of images_left() at the same failure.
  LeftMemory(sim::SimPlatform& platform, std::vector<pmem::ImageSpace> images);

  std::vector<pmem::ImageSpace> spaces;
  std::deque<pmem::sim::CrashedMemory> memories;  // what all images have in common
};

// Recovers and inspects. `scenario` must be in the state of its snapshot; it notes what the
// inspector finds, problems included. `begin` is the virtual time at which recovery begins, which
// is later than anything that clients did. `memories` are those of the servers' machines.
void recover(services::CrashScenario& scenario, const sim::Profile& profile, Time begin,
             std::deque<pmem::sim::CrashedMemory>& memories);

// Recovers from the images of one failure, again and again: each recovery starts from an image that
// no earlier one has covered. The scenario returns to its snapshot before each further recovery.
//
//   Recoveries recoveries(images, left.memories, scenario, profile, begin);
//   while (recoveries.next()) {
//     if (recoveries.found_new()) ... scenario.judge() ...
//   }
class Recoveries {
 public:
  // All arguments but `begin` must outlive this; `begin` means the same as in recover(). Each
  // recovery restores `memories` to the state that they have when this is constructed.
  Recoveries(pmem::LazyImages& images, std::deque<pmem::sim::CrashedMemory>& memories,
             services::CrashScenario& scenario, const sim::Profile& profile, Time begin);

  // Recovers and inspects; returns false if no image is left.
  bool next();
  // Recovers once more and decides every word as it was decided in an earlier recovery.
  void repeat(const pmem::LazyImages::Decisions& decisions);
  // Recovers once from the image that these choices make (choices_of()).
  void take(pmem::Choices& image);
  // True if the last recovery has found something that none before it has.
  bool found_new() const { return found_new_; }
  const std::string& found() const { return found_; }
  std::uint64_t count() const { return count_; }

 private:
  void recover_once();

  pmem::LazyImages& images_;
  std::deque<pmem::sim::CrashedMemory>& memories_;
  services::CrashScenario& scenario_;
  const sim::Profile& profile_;
  Time begin_;
  std::uint64_t count_ = 0;
  std::string found_{};
  bool found_new_ = false;
  std::set<std::string, std::less<>> known_{};
};

// The choices that make one of the images that the last recovery has covered, those of all servers
// one after the other.
std::vector<pmem::ImageSpace::Choice> choices_of(const pmem::LazyImages& images);

}  // namespace perdura::explore
