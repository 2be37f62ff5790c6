// Records whose payload follows from their number.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "systems/remote_log/log_server.h"
#include "systems/remote_log/remote_log.h"
#include "tests/support/platforms.h"

namespace perdura::bench::test {

inline constexpr std::uint32_t kLargest = 90;

inline std::vector<std::byte> payload_of(std::uint64_t number) {
  std::vector<std::byte> payload(number * 37 % (kLargest + 1));
  for (std::size_t i = 0; i < payload.size(); ++i) {
    payload[i] = static_cast<std::byte>(number * 131 + i * 7 + 1);
  }
  return payload;
}

inline bool is_payload_of(std::uint64_t number, std::span<const std::byte> payload) {
  const auto expected = payload_of(number);
  return std::equal(payload.begin(), payload.end(), expected.begin(), expected.end());
}

inline systems::remote_log::LogOptions options_of(const methods::Method& method,
                                                  pmem::Medium receive_medium,
                                                  std::uint64_t slots = 8) {
  return {.method = method,
          .slots = slots,
          .largest_record = kLargest,
          .receive_buffers = 4,
          .receive_medium = receive_medium};
}

}  // namespace perdura::bench::test
