#include "explore/all_failures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::explore {

namespace {

// All subsets of size `size` of the numbers below `count`, in lexicographic order.
std::vector<std::vector<NodeId>> subsets(NodeId count, NodeId size) {
  std::vector<bool> chosen(count);
  std::fill_n(chosen.begin(), size, true);
  std::vector<std::vector<NodeId>> all;
  do {
    std::vector<NodeId>& nodes = all.emplace_back();
    for (NodeId node = 0; node < count; ++node) {
      if (chosen[node]) nodes.push_back(node);
    }
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return all;
}

}  // namespace

Failures failures_like(const WhatFails& failing) {
  return {.kind = failing.kind, .servers = static_cast<NodeId>(failing.servers.size())};
}

std::vector<WhatFails> all_failures(const Failures& fails,
                                    const services::CrashScenario& scenario) {
  std::vector<WhatFails> all;
  const NodeId servers = scenario.servers();
  if (of_servers(fails.kind)) {
    if (fails.servers == 0 || fails.servers == servers) return {{fails.kind}};
    for (auto& nodes : subsets(servers, fails.servers)) {
      all.push_back({.kind = fails.kind, .servers = std::move(nodes)});
    }
    return all;
  }
  for (std::uint32_t client = 0; client < scenario.clients(); ++client) {
    if (fails.kind == FailureKind::client) {
      // One on the node of a server dies with that.
      if (!scenario.has_node_of_its_own(client)) continue;
      all.push_back({.kind = fails.kind, .client = client});
      continue;
    }
    for (const auto& [node, peer] : links_of(scenario, client)) {
      all.push_back({.kind = fails.kind, .client = client, .link = {node, peer}});
      all.push_back({.kind = fails.kind, .client = client, .link = {peer, node}});
    }
  }
  return all;
}

std::string text_of(std::string_view history, const WhatFails& failing, NodeId servers) {
  switch (failing.kind) {
    case FailureKind::client:
      return fmt::format("{}, client {} dies", history, failing.client);
    case FailureKind::connection:
      return fmt::format("{}, the connection of node {} with node {} breaks", history,
                         failing.link.first, failing.link.second);
    case FailureKind::power:
    case FailureKind::process:
      break;
  }
  const std::string_view dies = failing.kind == FailureKind::process ? ", the process dies" : "";
  if (failing.servers.empty()) return fmt::format("{}{}", history, dies);
  return fmt::format("{}, of {} servers {} fails{}", history, servers,
                     fmt::join(failing.servers, " and "), dies);
}

void check_can_fail(std::string_view system, const Failures& fails, std::uint64_t recoveries,
                    const services::CrashScenario& scenario) {
  const NodeId servers = scenario.servers();
  const bool of_its_own = scenario.has_node_of_its_own(0);
  if (fails.kind == FailureKind::connection && servers == 1 && !of_its_own) {
    throw UsageError(fmt::format(
        "{}'s clients are threads of its one server and have no connections; use --fails process",
        system));
  }
  if (fails.kind == FailureKind::client && !of_its_own) {
    throw UsageError(fmt::format(
        "{}'s clients are threads of its servers' processes; use --fails process", system));
  }
  if (fails.servers > servers) {
    throw UsageError(
        fmt::format("of {} {} server(s) cannot fail: it has {}", system, fails.servers, servers));
  }
  const bool of_all = fails.servers == 0 || fails.servers == servers;
  if (recoveries == 0 && fails.kind == FailureKind::power && !of_all) {
    throw UsageError("all images are tried only if the power of all servers fails");
  }
}

}  // namespace perdura::explore
