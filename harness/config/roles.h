// The roles of a point's nodes, such as server and client. A driver declares the roles of its
// points; the harness maps them to nodes, and a site file names hosts for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"

namespace perdura::harness {

struct Role {
  std::string name;  // as in site files and in the names of columns
  NodeId nodes = 1;
};

// Nodes are numbered from 0 in the order of roles: first those of the first role, then those of the
// second, and so on.
class Roles {
 public:
  Roles() = default;
  Roles(std::vector<Role> roles) : roles_(std::move(roles)) {}

  NodeId node_count() const;
  // The number of nodes of a role; 0 if there is no such role.
  NodeId nodes_of(std::string_view role) const;
  // The first node of a role, or the `index`th after it.
  NodeId node(std::string_view role, NodeId index = 0) const;
  // The role of a node; `index` is its number among the nodes of that role.
  struct Assignment {
    const Role& role;
    NodeId index;
  };
  Assignment assignment_of(NodeId node) const;

  auto begin() const { return roles_.begin(); }
  auto end() const { return roles_.end(); }
  // "a server and 3 clients".
  std::string to_text() const;

 private:
  std::vector<Role> roles_;
};

}  // namespace perdura::harness
