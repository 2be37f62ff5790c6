#include "harness/run/interval_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace perdura::harness {
namespace {

// A cost that is known for each role. Its column is named after the role, followed by `suffix`.
struct RoleColumn {
  std::string_view suffix;
  std::string_view noun;   // with {} in place of the role
  schema::Quantity shown;  // only unit and scale; the nouns depend on the role
  double (*value)(const RoleCosts& costs);

  bool per_operation() const { return suffix.ends_with("_per_op"); }
  std::string name(const Role& role) const { return fmt::format("{}{}", role.name, suffix); }
};

template <class Number>
double real(Number number) {
  return static_cast<double>(number);
}

constexpr schema::Quantity kMicroseconds{"", "", "us"};
constexpr schema::Quantity kBytes{"", "", "bytes"};
constexpr schema::Quantity kMebibytes{"", "", "MiB", 1.0 / MiB};

constexpr RoleColumn kColumns[] = {
    {"_cpu_us_per_op", "{} CPU time", kMicroseconds,
     [](const RoleCosts& costs) { return to_microseconds(costs.cpu); }},
    {"_nvm_bytes_per_op", "NVM bytes written at the {}", kBytes,
     [](const RoleCosts& costs) { return real(costs.writes.total().field_bits) / 8; }},
    {"_sent_bytes_per_op", "bytes sent by the {}", kBytes,
     [](const RoleCosts& costs) { return real(costs.traffic.sent); }},
    {"_received_bytes_per_op", "bytes received by the {}", kBytes,
     [](const RoleCosts& costs) { return real(costs.traffic.received); }},
    {"_dram_peak_bytes", "peak DRAM of the {}", kMebibytes,
     [](const RoleCosts& costs) { return real(costs.peak_memory.dram); }},
    {"_nvm_peak_bytes", "peak NVM of the {}", kMebibytes,
     [](const RoleCosts& costs) { return real(costs.peak_memory.pm); }},
};

}  // namespace

schema::Schema role_columns(const Roles& roles) {
  std::deque<std::string> texts;
  const auto kept = [&](std::string text) -> std::string_view {
    return texts.emplace_back(std::move(text));
  };
  std::vector<schema::Column> columns;
  for (const Role& role : roles) {
    for (const RoleColumn& column : kColumns) {
      const std::string noun = fmt::format(fmt::runtime(column.noun), role.name);
      const std::string_view title_end = column.per_operation() ? " per operation" : "";
      columns.push_back({.name = kept(column.name(role)),
                         .shown = {kept(noun), kept(schema::capitalized(noun).append(title_end)),
                                   column.shown.unit, column.shown.scale},
                         .better = schema::Column::Better::less});
    }
  }
  return schema::Schema(columns);
}

void IntervalCosts::begin(Node& node) {
  NodeCosts& costs = nodes_[node.id()];
  if (!modelled_) costs.host_before = host_counts();
  costs.writes_before = node.pm_writes();
  costs.traffic_before = node.traffic();
  costs.cpu_before = node.cpu_time();
}

void IntervalCosts::end(Node& node, Interval interval) {
  NodeCosts& costs = nodes_[node.id()];
  const Picoseconds cpu = node.cpu_time() - costs.cpu_before;
  if (interval == Interval::empty) {
    costs.empty_cpu = cpu;
    return;
  }
  costs.own.cpu = std::max(cpu - costs.empty_cpu, Picoseconds{});
  costs.own.writes = node.pm_writes();
  costs.own.writes -= costs.writes_before;
  costs.own.peak_memory = node.peak_memory();
  costs.traffic = node.traffic();
  for (const auto& [peer, before] : costs.traffic_before) costs.traffic[peer] -= before;
  if (!modelled_) costs.noise = noise_between(costs.host_before, host_counts());
}

void IntervalCosts::add_to(Measurement& measurement, const Roles& roles) const {
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    const auto add = [&](NodeId to, const RoleCosts& costs) {
      const Role& role = roles.assignment_of(to).role;
      measurement.roles[role.name] += costs;
      for (const RoleColumn& column : kColumns) {
        measurement.declared[column.name(role)] += column.value(costs);
      }
    };
    add(node, nodes_[node].own);
    for (const auto& [peer, traffic] : nodes_[node].traffic) {
      RoleCosts known;
      known.traffic = traffic;
      add(peer, known);
    }
    if (nodes_[node].noise) measurement.note_noise(*nodes_[node].noise);
  }
}

}  // namespace perdura::harness
