// What a power failure undoes, how far it had come, and by which rule it is lost.
#include "platform/pmem/model/loss.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace perdura::pmem {
namespace {

// A node with two lines of persistent memory and a thread.
struct LosingNode {
  explicit LosingNode(PersistenceModel model) : state(model) {
    state.attach(0, Medium::pm, memory.data());
  }
  std::vector<Loss> losses() {
    LeastChoices least;
    return state.losses(state.image(least));
  }

  alignas(kCacheLine) std::array<std::byte, 2 * kCacheLine> memory{};
  PersistenceState state;
  int thread = 0;
  std::vector<std::byte> ones = std::vector<std::byte>(16, std::byte{1});
};

constexpr PersistenceModel kDmp{PersistenceDomain::dmp, false};
constexpr PersistenceModel kDmpDdio{PersistenceDomain::dmp, true};

void expect_one(const std::vector<Loss>& losses, LostIn where, Rule rule) {
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses.front().where, where) << to_string(losses.front().where);
  EXPECT_EQ(losses.front().rule, rule) << to_string(losses.front().rule);
  EXPECT_EQ(losses.front().mask, 0xFFFFU);
  EXPECT_FALSE(meaning(rule).empty());
}

TEST(Loss, OfAStoreSaysWhatIsMissing) {
  LosingNode node(kDmp);
  node.state.store(&node.thread, {0, 0}, node.ones);
  expect_one(node.losses(), LostIn::cache, Rule::flush_and_fence_persist);
  node.state.flush(&node.thread, {0, 0}, 16);
  expect_one(node.losses(), LostIn::write_back, Rule::flush_waits_for_fence);
  node.state.fence(&node.thread);
  EXPECT_TRUE(node.losses().empty());
}

TEST(Loss, OfANonTemporalStore) {
  LosingNode node(kDmp);
  node.state.stream(&node.thread, {0, 0}, node.ones);
  expect_one(node.losses(), LostIn::write_combining_buffer, Rule::streams_wait_for_fence);
}

TEST(Loss, OfAWriteSaysHowFarItIsKnownToHaveCome) {
  for (const PersistenceModel& model : {kDmp, kDmpDdio}) {
    LosingNode node(model);
    const auto connection = node.state.connect();
    const auto write = node.state.post(connection, RemoteKind::posted);
    node.state.place(write, {0, 0}, node.ones);
    expect_one(node.losses(), LostIn::network, Rule::completion_means_accepted);
    node.state.completed(write);
    expect_one(node.losses(), LostIn::device, Rule::accepted_is_not_visible);
    node.state.seen({0, 0}, 16);
    if (model.ddio) {
      expect_one(node.losses(), LostIn::cache_of_device, Rule::ddio_stays_in_cache);
    } else {
      expect_one(node.losses(), LostIn::controller, Rule::push_persists);
    }
  }
}

// Of two stores to a word the first is durable: only the second is lost.
TEST(Loss, IsWhatCameAfterTheChangeThatSurvives) {
  LosingNode node(kDmp);
  node.state.store(&node.thread, {0, 0}, node.ones);
  node.state.flush(&node.thread, {0, 0}, 16);
  node.state.fence(&node.thread);
  const std::vector<std::byte> twos(16, std::byte{2});
  node.state.store(&node.thread, {0, 0}, twos);
  const std::vector<Loss> losses = node.losses();
  expect_one(losses, LostIn::cache, Rule::flush_and_fence_persist);
  EXPECT_EQ(losses.front().bytes[0], std::byte{2});
}

}  // namespace
}  // namespace perdura::pmem
