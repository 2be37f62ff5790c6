// How much memory the regions of a node take.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "platform/base/units.h"

namespace perdura::pmem {

// Bytes of regions, by medium.
struct MemoryUse {
  Bytes dram = 0;
  Bytes pm = 0;

  MemoryUse& operator+=(const MemoryUse& other) {
    dram += other.dram;
    pm += other.pm;
    return *this;
  }
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

// DRAM is in use until its region is destroyed. Persistent memory is in use from when its region
// is created or found until the region is removed, whether or not it is open. Thread-safe.
class MemoryMeter {
 public:
  // Counts a new region of DRAM. The region must hold the result, which keeps `keeper` alive and
  // may outlive the meter.
  std::shared_ptr<void> hold_dram(Bytes size, std::shared_ptr<void> keeper) {
    state_->change([size](State& state) { state.now.dram += size; });
    return std::make_shared<Held>(state_, size, std::move(keeper));
  }
  // Counts a region that was created or opened; it counts once, however often it is opened.
  void found_persistent(std::string_view name, Bytes size) {
    state_->change([&](State& state) {
      if (state.persistent.emplace(name, size).second) state.now.pm += size;
    });
  }
  void removed_persistent(std::string_view name) {
    state_->change([&](State& state) {
      const auto found = state.persistent.find(name);
      if (found == state.persistent.end()) return;
      state.now.pm -= found->second;
      state.persistent.erase(found);
    });
  }
  // For each medium, the most that was in use at a time so far.
  MemoryUse peak() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->peak;
  }

 private:
  struct State {
    std::mutex mutex;
    MemoryUse now;
    MemoryUse peak;
    std::map<std::string, Bytes, std::less<>> persistent;

    template <class Change>
    void change(Change apply) {
      const std::scoped_lock lock(mutex);
      apply(*this);
      peak = {std::max(peak.dram, now.dram), std::max(peak.pm, now.pm)};
    }
  };
  struct Held {
    Held(std::shared_ptr<State> its_state, Bytes its_size, std::shared_ptr<void> its_keeper)
        : state(std::move(its_state)), size(its_size), keeper(std::move(its_keeper)) {}
    ~Held() {
      state->change([this](State& all) { all.now.dram -= size; });
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    std::shared_ptr<State> state;
    Bytes size;
    std::shared_ptr<void> keeper;
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace perdura::pmem
