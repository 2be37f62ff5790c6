// A shard whose plugins copy what is put, erased and worked on to another shard.
#pragma once

#include <map>
#include <string>

#include "tests/systems/mcas/invocations/support.h"

namespace perdura::systems::mcas::test {

inline objects::Config replicating(const std::string& plugins = "replicate",
                                   GivenParameters more = {}) {
  more["plugin_signals"] = true;
  more["plugin_consent"] = true;
  more["plugin_peer"] = kPeerNode;
  return config_with(plugins, std::move(more));
}

// What a key has, or nothing.
inline Task<std::optional<std::string>> value_in(objects::Pool& pool, const std::string& key) {
  const auto value = co_await pool.get(as_key(key));
  if (value) co_return string_of(*value);
  EXPECT_EQ(value.error(), objects::Error::not_found) << key;
  co_return std::nullopt;
}

}  // namespace perdura::systems::mcas::test
