// A mounted file system on one thread of a platform.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "systems/nova/nova.h"
#include "tests/support/platforms.h"

namespace perdura::systems::nova::test {

inline std::vector<std::byte> bytes(std::size_t count, int value = 0x5A) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

// Runs `body(thread)`, whose name for the file system is "home", which has been made.
inline void run(const std::string& platform_name, const fs::FsConfig& config,
                const std::function<Task<>(Thread&)>& body) {
  const auto platform = perdura::test::make_platform(platform_name, 1);
  platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await kNova.make(thread, "home", config);
    co_await body(thread);
  });
  platform->run();
}

}  // namespace perdura::systems::nova::test
