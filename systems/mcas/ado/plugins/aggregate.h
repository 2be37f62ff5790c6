// A plugin that computes over the values of a pool in place: the sum of numbers, for which the
// client receives 16 bytes, however many values there are. Values are numbers of 8 bytes, or begin
// with one; shorter ones count as 0. Keys are not locked meanwhile, so if other clients write, the
// sum is not that of a single point in time.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "systems/mcas/ado/plugin.h"

namespace perdura::systems::mcas::ado {

class Aggregate final : public Plugin {
 public:
  struct Sum {
    std::uint64_t values = 0;
    std::uint64_t sum = 0;
  };

  // Requests the sum over all keys from `first` to `last`, in the order of bytes; neither may
  // contain a line break.
  static std::string request(const std::string& first, const std::string& last) {
    return first + '\n' + last;
  }
  static std::optional<Sum> sum_of(const std::string& response) {
    if (response.size() != sizeof(Sum)) return std::nullopt;
    Sum sum;
    std::memcpy(&sum, response.data(), sizeof sum);
    return sum;
  }

  Task<Result> do_work(Services& services, const Invocation& work) override;
};

}  // namespace perdura::systems::mcas::ado
