// The overview's sentences on what is kept when the power fails.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "harness/report/page_parts.h"
#include "harness/schema/quantity.h"
#include "services/guarantee.h"

namespace perdura::report {
namespace {

/// A server that rows ran on, and whether with DDIO ("on", "off"); empty: its testbed decides.
struct Server {
  std::string name;
  std::string ddio;
  bool operator==(const Server&) const = default;
};
using Servers = std::vector<Server>;

/// On which servers a system has each guarantee.
struct Kept {
  std::string system;
  std::map<std::string, Servers> servers;
};

Server server_of(const Points& points, std::size_t row) {
  const std::string& domain = points.text(row, "domain");
  if (domain.empty()) {
    const Origin origin = origin_of(points, row);
    return {origin.modelled() ? "the testbed of " + origin.profile : "this host", ""};
  }
  const std::string& transport = points.text(row, "transport");
  const bool usual = transport.empty() || transport == "ib";
  return {
      shown_value("domain", domain) + (usual ? "" : " over " + shown_value("transport", transport)),
      points.text(row, "ddio")};
}

bool contains(const Servers& servers, const Server& server) {
  return std::find(servers.begin(), servers.end(), server) != servers.end();
}

std::string on_servers(const Servers& servers) {
  std::vector<std::string> parts;
  for (const Server& server : servers) {
    if (server.ddio.empty()) {
      parts.push_back(server.name);
    } else if (!contains(servers, {server.name, server.ddio == "on" ? "off" : "on"})) {
      parts.push_back(server.name + (server.ddio == "on" ? " with DDIO" : " without DDIO"));
    } else if (std::find(parts.begin(), parts.end(), server.name) == parts.end()) {
      parts.push_back(server.name);
    }
  }
  return "on " + listed(parts);
}

/// What was found of each system, as published: a method is no system, and a variant is not what
/// was published.
std::vector<Kept> kept_by_systems(const std::vector<ResultFolder>& folders) {
  std::vector<Kept> found;
  for (const ResultFolder& folder : folders) {
    if (!folder.unfinished().empty()) continue;
    const Points& points = folder.points;
    for (std::size_t row = 0; row < points.size(); ++row) {
      const std::string& guarantee = points.text(row, "guarantee");
      if (guarantee.empty() || !points.text(row, "method").empty()) continue;
      const std::string& name = points.text(row, "system");
      if (folder.specs.systems.variants.contains(name)) continue;
      const std::string system = folder.specs.systems.shown(name);
      auto kept = std::find_if(found.begin(), found.end(),
                               [&](const Kept& each) { return each.system == system; });
      if (kept == found.end()) kept = found.insert(kept, Kept{system, {}});
      Servers& servers = kept->servers[guarantee];
      if (const Server server = server_of(points, row); !contains(servers, server)) {
        servers.push_back(server);
      }
    }
  }
  return found;
}

std::string words_of(std::string_view guarantee) {
  if (guarantee == "none") return "not even atomic";
  if (guarantee == "durable-writes") return "durable except for what was read before it was";
  return std::string(guarantee);
}

/// "With Erda it is not even atomic on this host; durable on WSP."
std::string by_server(const Kept& kept) {
  std::vector<std::string> parts;
  for (const std::string_view word : services::kGuaranteeWords) {
    const auto found = kept.servers.find(std::string(word));
    if (found == kept.servers.end()) continue;
    parts.push_back(fmt::format("{} {}", words_of(word), on_servers(found->second)));
  }
  return fmt::format("With {} it is {}.", kept.system, fmt::join(parts, "; "));
}

}  // namespace

std::string found_sentence(const std::vector<ResultFolder>& folders) {
  const std::vector<Kept> found = kept_by_systems(folders);
  std::map<std::string, std::vector<std::string>> everywhere;  // by what the systems keep
  std::string differing;
  for (const Kept& kept : found) {
    if (kept.servers.size() == 1) {
      everywhere[kept.servers.begin()->first].push_back(kept.system);
    } else {
      differing += (differing.empty() ? "" : " ") + by_server(kept);
    }
  }
  if (everywhere.size() < 2 && differing.empty()) return "";
  std::vector<std::string> parts;
  for (const std::string_view word : services::kGuaranteeWords) {
    const auto names = everywhere.find(std::string(word));
    if (names == everywhere.end()) continue;
    parts.push_back(fmt::format("{} with {}", words_of(word), listed(names->second)));
  }
  const std::string same = parts.empty()
                               ? "depends on the server"
                               : fmt::format("is {} on every server of these runs", listed(parts));
  return fmt::format("When the power fails, a completed operation, as published, {}.{}{}", same,
                     differing.empty() ? "" : " ", differing);
}

}  // namespace perdura::report
