#include "harness/config/roles.h"

#include <gtest/gtest.h>

namespace perdura::harness {
namespace {

TEST(Roles, NumberNodesInTheirOrder) {
  const Roles roles({{"primary"}, {"mirror", 2}, {"backup", 3}});
  EXPECT_EQ(roles.node_count(), 6U);
  EXPECT_EQ(roles.nodes_of("mirror"), 2U);
  EXPECT_EQ(roles.nodes_of("client"), 0U);
  NodeId node = 0;
  for (const Role& role : roles) {
    for (NodeId index = 0; index < role.nodes; ++index, ++node) {
      EXPECT_EQ(roles.node(role.name, index), node);
      EXPECT_EQ(roles.assignment_of(node).role.name, role.name);
      EXPECT_EQ(roles.assignment_of(node).index, index);
    }
  }
  EXPECT_THROW(static_cast<void>(roles.assignment_of(node)), std::logic_error);
  EXPECT_THROW(static_cast<void>(roles.node("mirror", 2)), std::logic_error);
}

TEST(Roles, AreSaidInWords) {
  EXPECT_EQ(Roles({{"server"}, {"client"}}).to_text(), "a server and a client");
  EXPECT_EQ(Roles({{"primary"}, {"mirror"}, {"backup", 3}}).to_text(),
            "a primary, a mirror and 3 backups");
  EXPECT_EQ(Roles({{"application"}}).to_text(), "an application");
}

}  // namespace
}  // namespace perdura::harness
