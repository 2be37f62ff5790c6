#include "harness/run/interval_costs.h"

#include <algorithm>
#include <deque>

namespace perdura::harness {
namespace {

std::string cpu_column(const Role& role) { return role.name + "_cpu_us_per_op"; }
std::string writes_column(const Role& role) { return role.name + "_nvm_bytes_per_op"; }

}  // namespace

report::Schema role_columns(const Roles& roles) {
  std::deque<std::string> texts;
  const auto kept = [&](std::string text) -> std::string_view {
    return texts.emplace_back(std::move(text));
  };
  std::vector<report::Column> columns;
  const auto add = [&](std::string column, std::string noun, std::string_view unit) {
    const std::string title = report::capitalized(noun) + " per operation";
    columns.push_back({.name = kept(std::move(column)),
                       .shown = {kept(std::move(noun)), kept(title), unit},
                       .better = report::Column::Better::less});
  };
  for (const Role& role : roles) {
    add(cpu_column(role), role.name + " CPU time", "us");
    add(writes_column(role), "NVM bytes written at the " + role.name, "bytes");
  }
  return report::Schema(columns);
}

void IntervalCosts::begin(Node& node) {
  NodeCosts& costs = nodes_[node.id()];
  if (!modelled_) costs.host_before = host_counts();
  costs.writes_before = node.pm_writes();
  costs.cpu_before = node.cpu_time();
}

void IntervalCosts::end(Node& node, Interval interval) {
  NodeCosts& costs = nodes_[node.id()];
  const Picoseconds cpu = node.cpu_time() - costs.cpu_before;
  if (interval == Interval::empty) {
    costs.empty_cpu = cpu;
    return;
  }
  costs.cpu = std::max(cpu - costs.empty_cpu, Picoseconds{});
  costs.writes = node.pm_writes();
  costs.writes -= costs.writes_before;
  if (!modelled_) costs.noise = noise_between(costs.host_before, host_counts());
}

void IntervalCosts::add_to(Measurement& measurement, const Roles& roles) const {
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    const Role& role = roles.place_of(node).role;
    RoleCosts& costs = measurement.roles[role.name];
    costs.cpu += nodes_[node].cpu;
    costs.writes += nodes_[node].writes;
    measurement.declared[cpu_column(role)] += to_microseconds(nodes_[node].cpu);
    measurement.declared[writes_column(role)] +=
        static_cast<double>(nodes_[node].writes.total().field_bits) / 8;
    if (nodes_[node].noise) measurement.note_noise(*nodes_[node].noise);
  }
}

}  // namespace perdura::harness
