#include "harness/config/roles.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

namespace perdura::harness {

NodeId Roles::node_count() const {
  NodeId count = 0;
  for (const Role& role : roles_) count += role.nodes;
  return count;
}

NodeId Roles::nodes_of(std::string_view role) const {
  for (const Role& each : roles_) {
    if (each.name == role) return each.nodes;
  }
  return 0;
}

NodeId Roles::node(std::string_view role, NodeId index) const {
  NodeId first = 0;
  for (const Role& each : roles_) {
    if (each.name == role && index < each.nodes) return first + index;
    first += each.nodes;
  }
  throw std::logic_error(fmt::format("no node {} of role '{}'", index, role));
}

Roles::Assignment Roles::assignment_of(NodeId node) const {
  NodeId index = node;
  for (const Role& each : roles_) {
    if (index < each.nodes) return {each, index};
    index -= each.nodes;
  }
  throw std::logic_error(fmt::format("node {} has no role", node));
}

std::string Roles::to_text() const {
  std::string text;
  for (std::size_t i = 0; i < roles_.size(); ++i) {
    const Role& role = roles_[i];
    if (i > 0) text += i + 1 == roles_.size() ? " and " : ", ";
    const bool vowel = std::string_view("aeiou").find(role.name.front()) != std::string_view::npos;
    text += role.nodes == 1 ? fmt::format("{} {}", vowel ? "an" : "a", role.name)
                            : fmt::format("{} {}s", role.nodes, role.name);
  }
  return text;
}

}  // namespace perdura::harness
