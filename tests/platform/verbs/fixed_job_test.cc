// The control plane of a fixed job, over loopback: messages, joining, barriers, lookups, runs, and
// the end of a process.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "platform/base/error.h"
#include "platform/fabric/verbs/fixed_job.h"

namespace perdura::fabric::verbs {
namespace {

constexpr std::chrono::seconds kSoon{20};

template <class Predicate>
bool comes_true(const Predicate& predicate) {
  const auto deadline = std::chrono::steady_clock::now() + kSoon;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

Message sample() {
  Message message;
  message.kind = MessageKind::connect;
  message.from = {3, 40000};
  message.to = {1, 7};
  message.from_id = 0x123456789ABCDEF0;
  message.to_id = 42;
  message.words = {1, 2, 3, 4, 5, ~std::uint64_t{0}};
  for (int i = 0; i < 1000; ++i) message.data.push_back(static_cast<std::byte>(i));
  return message;
}

void expect_same(const Message& a, const Message& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.from, b.from);
  EXPECT_EQ(a.to, b.to);
  EXPECT_EQ(a.from_id, b.from_id);
  EXPECT_EQ(a.to_id, b.to_id);
  EXPECT_EQ(a.words, b.words);
  EXPECT_EQ(a.data, b.data);
}

TEST(ControlMessage, ComesOutOfAnyPiecesOfItsBytes) {
  Message second = sample();
  second.kind = MessageKind::lost;
  second.data.clear();
  std::vector<std::byte> bytes = encode(sample());
  const auto more = encode(second);
  bytes.insert(bytes.end(), more.begin(), more.end());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{88}, bytes.size()}) {
    MessageReader reader;
    std::vector<Message> read;
    for (std::size_t from = 0; from < bytes.size(); from += piece) {
      reader.add(std::span(bytes).subspan(from, std::min(piece, bytes.size() - from)));
      while (auto message = reader.next()) read.push_back(std::move(*message));
    }
    ASSERT_EQ(read.size(), 2U) << piece;
    expect_same(read[0], sample());
    expect_same(read[1], second);
  }
}

TEST(ControlMessage, OfAnotherProgramIsRefused) {
  for (const std::size_t at : {0, 4, 20}) {  // its mark, its kind, its length
    std::vector<std::byte> bytes = encode(sample());
    for (std::size_t i = at; i < at + 4; ++i) bytes[i] = std::byte{0xEE};
    MessageReader reader;
    reader.add(bytes);
    EXPECT_THROW(reader.next(), PlatformError) << at;
  }
}

TEST(ControlListener, ItsAddressCanBeRead) {
  const ControlListener listener;
  const auto parsed = parse_coordinator(listener.address());
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->token, listener.token());
  EXPECT_EQ(parsed->hosts, local_addresses());
  for (const char* wrong : {"", "abc", "12@:1", "12@host", "x@1.2.3.4:5", "1@1.2.3.4:0",
                            "1@1.2.3.4:99999", "1@1.2.3.4:5x"}) {
    EXPECT_FALSE(parse_coordinator(wrong).has_value()) << wrong;
  }
}

// Three processes: node 0, which coordinates, nodes 1 and 2, and node 3.
class FixedJobTest : public testing::Test {
 protected:
  FixedJobTest() {
    auto listener = std::make_shared<ControlListener>();
    const std::string coordinator = listener->address();
    auto first = std::async(std::launch::async, [&] { return make({0}, listener, ""); });
    auto third = std::async(std::launch::async, [&] { return make({3}, nullptr, coordinator); });
    second_ = make({1, 2}, nullptr, coordinator);
    third_ = third.get();
    first_ = first.get();
  }

  static std::unique_ptr<FixedJob> make(std::vector<NodeId> nodes,
                                        std::shared_ptr<ControlListener> listener,
                                        const std::string& coordinator) {
    return std::make_unique<FixedJob>(
        FixedJobOptions{.node_count = 4,
                        .local_nodes = nodes,
                        .listener = std::move(listener),
                        .coordinator = coordinator,
                        .join_timeout = kSoon,
                        .lookup = [](const Message& lookup, Message& found) {
                          found.words[0] = lookup.words[0] * 2 + lookup.to.node;
                        }});
  }

  static Message await(Mailbox& mailbox) {
    if (!comes_true([&] { return !mailbox.empty(); })) throw std::runtime_error("nothing came");
    const auto messages = mailbox.take();
    EXPECT_EQ(messages.size(), 1U);
    return messages.front();
  }

  runtime::Doorbell bell_;
  std::unique_ptr<FixedJob> first_;
  std::unique_ptr<FixedJob> second_;
  std::unique_ptr<FixedJob> third_;
};

TEST_F(FixedJobTest, EndpointsReachEachOtherWhereverTheyAre) {
  Mailbox at_0(bell_);
  Mailbox at_2(bell_);
  Mailbox at_3(bell_);
  first_->open({0, 1}, at_0);
  second_->open({2, 1}, at_2);
  third_->open({3, 1}, at_3);
  EXPECT_THROW(third_->open({3, 1}, at_0), UsageError);
  struct Way {
    FixedJob* from;
    Address sender;
    Address to;
    Mailbox* box;
  };
  for (const Way& way :
       {Way{third_.get(), {3, 1}, {2, 1}, &at_2}, Way{second_.get(), {2, 1}, {3, 1}, &at_3},
        Way{third_.get(), {3, 1}, {0, 1}, &at_0}, Way{first_.get(), {0, 1}, {3, 1}, &at_3},
        Way{second_.get(), {1, 5}, {2, 1}, &at_2}}) {
    Message message = sample();
    message.from = way.sender;
    message.to = way.to;
    way.from->send(message);
    expect_same(await(*way.box), message);
  }
  first_->close({0, 1});
  second_->close({2, 1});
  third_->close({3, 1});
}

TEST_F(FixedJobTest, NobodyAtAnAddressIsToldToWhoAsks) {
  Mailbox asking(bell_);
  third_->open({3, 9}, asking);
  for (const Address nobody : {Address{0, 1}, Address{1, 1}, Address{3, 1}, Address{77, 1}}) {
    Message request = sample();
    request.from = {3, 9};
    request.to = nobody;
    third_->send(request);
    const Message answer = await(asking);
    EXPECT_EQ(answer.kind, MessageKind::unreachable);
    EXPECT_EQ(answer.to_id, request.from_id);
    EXPECT_EQ(answer.from, nobody);
  }
  // Who accepts a connection that nobody wants any more hears that it has ended.
  Message accepted = sample();
  accepted.kind = MessageKind::accepted;
  accepted.from = {3, 9};
  accepted.to = {1, 1};
  third_->send(accepted);
  EXPECT_EQ(await(asking).kind, MessageKind::disconnected);
  third_->close({3, 9});
}

TEST_F(FixedJobTest, LookupsAreAnsweredByTheNodesProcess) {
  Mailbox asking(bell_);
  third_->open({3, 9}, asking);
  for (const NodeId node : {0U, 1U, 2U, 3U}) {
    Message lookup;
    lookup.kind = MessageKind::lookup;
    lookup.from = {3, 9};
    lookup.from_id = 5;
    lookup.to = {node, 0};
    lookup.words[0] = 100;
    third_->send(lookup);
    const Message found = await(asking);
    EXPECT_EQ(found.kind, MessageKind::found);
    EXPECT_EQ(found.to_id, 5U);
    EXPECT_EQ(found.words[0], 200U + node);
  }
  third_->close({3, 9});
}

TEST_F(FixedJobTest, ABarrierIsPassedWhenAllHaveArrived) {
  const std::vector<FixedJob*> all{first_.get(), second_.get(), third_.get()};
  for (FixedJob* control : all) ASSERT_EQ(control->create_barrier(), 0U);
  for (std::uint64_t phase = 1; phase <= 50; ++phase) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (FixedJob* control : all) EXPECT_EQ(control->barrier_phase(0), phase - 1);
      all[(i + phase) % all.size()]->arrive(0, 3);
    }
    for (FixedJob* control : all) {
      EXPECT_TRUE(comes_true([&] { return control->barrier_phase(0) == phase; }));
    }
  }
}

TEST_F(FixedJobTest, ARunEndsForAllOrFails) {
  const auto never = [] { return false; };
  second_->end_run(1, false);
  third_->end_run(1, false);
  first_->end_run(1, false);
  for (FixedJob* control : {first_.get(), second_.get(), third_.get()}) {
    control->await_run(1, never);
    EXPECT_EQ(control->failed_node(), 4U);
  }
  third_->end_run(2, true);
  for (FixedJob* control : {first_.get(), second_.get()}) {
    EXPECT_TRUE(comes_true([&] { return control->failed_node() == 3; }));
  }
}

TEST_F(FixedJobTest, TheEndOfAProcessIsNoticedByAll) {
  Mailbox at_0(bell_);
  Mailbox at_3(bell_);
  first_->open({0, 1}, at_0);
  third_->open({3, 1}, at_3);
  second_.reset();
  for (FixedJob* control : {first_.get(), third_.get()}) {
    EXPECT_TRUE(comes_true([&] { return control->is_lost(1) && control->is_lost(2); }));
    EXPECT_FALSE(control->is_lost(0));
    EXPECT_FALSE(control->is_lost(3));
  }
  std::vector<Message> told;
  EXPECT_TRUE(comes_true([&] {
    for (Message& message : at_0.take()) told.push_back(std::move(message));
    return told.size() == 2;
  }));
  for (const Message& message : told) EXPECT_EQ(message.kind, MessageKind::lost);
  first_->close({0, 1});
  // Without the coordinator nobody is reached.
  first_.reset();
  EXPECT_TRUE(comes_true([&] { return third_->is_lost(0); }));
  third_->close({3, 1});
  third_->end_run(1, false);
  third_->await_run(1, [] { return false; });
}

TEST_F(FixedJobTest, ProcessesOfAHostShareAClock) {
  EXPECT_EQ(first_->clock().epoch, second_->clock().epoch);
  EXPECT_EQ(first_->clock().first_tick, third_->clock().first_tick);
}

TEST(FixedJobJoin, WhoDoesNotComeIsNamed) {
  const auto join = [](const std::string& coordinator, std::shared_ptr<ControlListener> listener) {
    try {
      const FixedJob control({.node_count = 3,
                              .local_nodes = {coordinator.empty() ? 0U : 1U},
                              .listener = std::move(listener),
                              .coordinator = coordinator,
                              .join_timeout = Milliseconds(50)});
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(join("", std::make_shared<ControlListener>()).find("node 1, 2 has not joined"),
            std::string::npos);
  std::string gone;
  {
    const ControlListener listener;
    gone = listener.address();
  }
  EXPECT_NE(join(gone, nullptr).find("cannot join the job"), std::string::npos);
  EXPECT_NE(join("nonsense", nullptr).find("'nonsense' is not the address"), std::string::npos);
}

TEST(FixedJobJoin, OfAnotherJobIsSentAway) {
  const auto listener = std::make_shared<ControlListener>();
  std::string other = listener->address();
  other[0] = other[0] == '1' ? '2' : '1';
  auto coordinator = std::async(std::launch::async, [&] {
    return std::make_unique<FixedJob>(FixedJobOptions{
        .node_count = 2, .local_nodes = {0}, .listener = listener, .join_timeout = kSoon});
  });
  EXPECT_THROW(FixedJob({.node_count = 2,
                         .local_nodes = {1},
                         .coordinator = other,
                         .join_timeout = Milliseconds(200)}),
               PlatformError);
  const FixedJob right({.node_count = 2,
                        .local_nodes = {1},
                        .coordinator = listener->address(),
                        .join_timeout = kSoon});
  EXPECT_NE(coordinator.get(), nullptr);
}

}  // namespace
}  // namespace perdura::fabric::verbs
