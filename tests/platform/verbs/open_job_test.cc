// The control plane of an open job, over loopback: processes join, leave and come back, and whoever
// is not one of them is sent away.
#include "platform/fabric/verbs/open_job.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <future>
#include <random>

#include "platform/base/error.h"
#include "platform/base/node_runs.h"
#include "tests/support/seed.h"
#include "tests/support/wait_until.h"

namespace perdura::fabric::verbs {
namespace {

using test::wait_until;

constexpr const char* kHost = "127.0.0.1";
constexpr NodeId kServer = 3;
constexpr NodeId kClient = 100;
constexpr Address kService{kServer, 1};
constexpr Address kAsking{kClient, 1};

std::unique_ptr<OpenJob> serve(std::uint16_t port = 0, NodeId node = kServer,
                               const std::string& job = "job") {
  return std::make_unique<OpenJob>(
      OpenJobOptions{.job = job,
                     .node = node,
                     .listens = tcp::HostAndPort{kHost, port},
                     .lookup = [](const Message& lookup, Message& found) {
                       found.words[0] = lookup.words[0] * 2 + lookup.to.node;
                     }});
}

std::unique_ptr<OpenJob> join(std::uint16_t port, NodeId node = kServer,
                              const std::string& job = "job") {
  auto joined = std::make_unique<OpenJob>(OpenJobOptions{
      .job = job, .node = kClient, .lookup = [](const Message& lookup, Message& found) {
        found.words[0] = lookup.words[0] * 3 + lookup.to.node;
      }});
  joined->add_node(node, {kHost, port});
  return joined;
}

Message message_to(Address to, MessageKind kind, std::uint64_t from_id, Address from = kAsking) {
  Message message;
  message.kind = kind;
  message.from = from;
  message.from_id = from_id;
  message.to = to;
  message.to_id = 42;
  message.words = {1, 2, 3, 4, 5, 6};
  message.data.resize(1000, std::byte{7});
  return message;
}

// An endpoint of a job.
class Box {
 public:
  Box(OpenJob& job, Address address) : job_(job), address_(address), mailbox_(bell_) {
    job.open(address, mailbox_);
  }
  ~Box() { job_.close(address_); }
  Box(const Box&) = delete;
  Box& operator=(const Box&) = delete;

  Message next() {
    if (!wait_until([&] { return any(); })) throw std::runtime_error("nothing came");
    Message first = std::move(came_.front());
    came_.erase(came_.begin());
    return first;
  }
  bool any() {
    for (Message& message : mailbox_.take()) came_.push_back(std::move(message));
    return !came_.empty();
  }

 private:
  OpenJob& job_;
  Address address_;
  runtime::Doorbell bell_;
  Mailbox mailbox_;
  std::vector<Message> came_;
};

// Asks for a connection until the request arrives, as an endpoint does, and returns it.
Message reach(OpenJob& client, Box& asking, Box& service, std::uint64_t id = 5) {
  for (bool reached = false; !reached;) {
    client.send(message_to(kService, MessageKind::connect, id));
    if (!wait_until([&] { return (reached = service.any()) || asking.any(); })) break;
    if (!reached) {
      EXPECT_EQ(asking.next().kind, MessageKind::unreachable);
    }
  }
  return service.next();
}

TEST(OpenJob, WhoJoinsIsReachedAndAnswered) {
  const auto server = serve();
  Box service(*server, kService);
  const auto client = join(server->port());
  Box asking(*client, kAsking);
  const Message request = reach(*client, asking, service);
  EXPECT_EQ(request.kind, MessageKind::connect);
  EXPECT_EQ(request.from.node, OpenJob::kFirstCaller);
  EXPECT_EQ(request.from.port, kAsking.port);
  EXPECT_EQ(request.to, kService);
  EXPECT_EQ(request.from_id, 5U);
  EXPECT_EQ(request.words, (std::array<std::uint64_t, 6>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(request.data, std::vector<std::byte>(1000, std::byte{7}));
  server->send(message_to(request.from, MessageKind::accepted, 9, kService));
  const Message answer = asking.next();
  EXPECT_EQ(answer.kind, MessageKind::accepted);
  EXPECT_EQ(answer.from, kService);
  EXPECT_EQ(answer.to, kAsking);
  EXPECT_EQ(answer.from_id, 9U);
  // Keys of either are looked up by the other, and one's own as well.
  for (const auto& [job, box, from, at, expected] :
       {std::tuple{client.get(), &asking, kAsking, kService, 200 + kServer},
        std::tuple{server.get(), &service, kService, request.from, 300 + kClient},
        std::tuple{server.get(), &service, kService, kService, 200 + kServer}}) {
    Message lookup = message_to(at, MessageKind::lookup, 1, from);
    lookup.words[0] = 100;
    job->send(lookup);
    const Message found = box->next();
    EXPECT_EQ(found.kind, MessageKind::found);
    EXPECT_EQ(found.from.node, at.node);
    EXPECT_EQ(found.words[0], expected);
  }
  // Nobody is at this port.
  client->send(message_to({kServer, 8}, MessageKind::connect, 6));
  EXPECT_EQ(asking.next().kind, MessageKind::unreachable);
  client->send(message_to({77, 1}, MessageKind::connect, 6));
  EXPECT_EQ(asking.next().from.node, 77U);
}

TEST(OpenJob, ClientsComeAndGoWithoutTheOthersNotice) {
  const auto server = serve();
  Box service(*server, kService);
  const auto stays = join(server->port());
  Box asking(*stays, kAsking);
  const Address staying = reach(*stays, asking, service).from;
  NodeId last = staying.node;
  for (int i = 0; i < 50; ++i) {
    auto client = join(server->port());
    Address there;
    {
      Box box(*client, kAsking);
      there = reach(*client, box, service).from;
    }
    EXPECT_GT(there.node, last) << "a number stands for one process";
    last = there.node;
    EXPECT_FALSE(server->is_lost(there.node));
    client.reset();
    const Message lost = service.next();
    EXPECT_EQ(lost.kind, MessageKind::lost);
    EXPECT_EQ(lost.from.node, there.node);
    EXPECT_TRUE(server->is_lost(there.node));
    server->send(message_to(there, MessageKind::disconnected, 1, kService));
    server->send(message_to(staying, MessageKind::established, 1, kService));
    EXPECT_EQ(asking.next().kind, MessageKind::established);
  }
  EXPECT_FALSE(asking.any());
}

TEST(OpenJob, AServerThatComesBackIsReachedAgainAfterItsEndWasTold) {
  auto server = serve();
  const std::uint16_t port = server->port();
  const auto client = join(port);
  Box asking(*client, kAsking);
  for (int life = 0; life < 20; ++life) {
    {
      Box service(*server, kService);
      const Address there = reach(*client, asking, service).from;
      EXPECT_EQ(client->problem(kServer), "");
      server->send(message_to(there, MessageKind::accepted, 9, kService));
      EXPECT_EQ(asking.next().kind, MessageKind::accepted);
    }
    server.reset();
    const Message lost = asking.next();
    EXPECT_EQ(lost.kind, MessageKind::lost);
    EXPECT_EQ(lost.from.node, kServer);
    EXPECT_FALSE(client->is_lost(kServer)) << "it may come back";
    // Nothing is kept for the next one.
    client->send(message_to(kService, MessageKind::disconnected, 1));
    client->send(message_to(kService, MessageKind::connect, 1));
    EXPECT_EQ(asking.next().kind, MessageKind::unreachable);
    server = serve(port);
  }
}

TEST(OpenJob, AServerThatIsNotThereYetIsFoundWhenItComes) {
  std::uint16_t port = 0;
  { port = serve()->port(); }
  const auto client = join(port);
  Box asking(*client, kAsking);
  const auto ask = [&] {
    client->send(message_to(kService, MessageKind::connect, 5));
    EXPECT_EQ(asking.next().kind, MessageKind::unreachable);
  };
  ASSERT_TRUE(wait_until([&] {
    ask();
    return client->problem(kServer).find("refused") != std::string::npos;
  })) << client->problem(kServer);
  const auto server = serve(port);
  Box service(*server, kService);
  EXPECT_EQ(reach(*client, asking, service).from_id, 5U);
}

TEST(OpenJob, ADeadServerDoesNotKeepOthersFromAnything) {
  auto first = serve();
  const auto second = serve(0, 4);
  const auto client = join(first->port());
  client->add_node(4, {kHost, second->port()});
  Box asking(*client, kAsking);
  Box at_second(*second, {4, 1});
  {
    Box at_first(*first, kService);
    reach(*client, asking, at_first);
  }
  first.reset();
  EXPECT_EQ(asking.next().kind, MessageKind::lost);
  const auto reach_second = [&](OpenJob& from, Box& box) {
    ASSERT_TRUE(wait_until([&] {
      from.send(message_to({4, 1}, MessageKind::connect, 5));
      wait_until([&] { return at_second.any() || box.any(); });
      return at_second.any();
    }));
    EXPECT_EQ(at_second.next().kind, MessageKind::connect);
  };
  reach_second(*client, asking);
  const auto newcomer = join(second->port(), 4);
  Box new_asking(*newcomer, kAsking);
  reach_second(*newcomer, new_asking);
}

TEST(OpenJob, WhoHasTheWrongJobOrNodeIsToldSo) {
  const auto server = serve();
  Box service(*server, kService);
  const auto problem_of = [&](OpenJob& client, NodeId node) {
    Box asking(client, kAsking);
    wait_until([&] {
      client.send(message_to({node, 1}, MessageKind::connect, 5));
      EXPECT_EQ(asking.next().kind, MessageKind::unreachable);
      return !client.problem(node).empty();
    });
    return client.problem(node);
  };
  EXPECT_EQ(problem_of(*join(server->port(), kServer, "other"), kServer), "another job is there");
  EXPECT_EQ(problem_of(*join(server->port(), 4), 4), "node 3 is there");
  // Somebody who listens and says something else.
  const auto stranger = tcp::try_to_listen(kHost, 0);
  const auto speaks = std::async(std::launch::async, [&] {
    tcp::File socket;
    wait_until([&] { return static_cast<bool>(socket = tcp::accept_from(stranger->file.get())); });
    tcp::send_some(socket.get(), std::as_bytes(std::span(std::string_view("220 ready\r\n"))));
    wait_until([&] {
      std::array<std::byte, 1> any;
      return !tcp::receive_some(socket.get(), any);
    });
  });
  EXPECT_EQ(problem_of(*join(stranger->port), kServer), "another program is there");
  EXPECT_FALSE(service.any());
}

// Bytes of all kinds at the port of a server: it goes on, and nothing of it arrives.
TEST(OpenJob, StrangersAreSentAwayAndNobodyNotices) {
  const unsigned seed = test::random_seed();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto server = serve();
  Box service(*server, kService);
  const auto client = join(server->port());
  Box asking(*client, kAsking);
  const Address known = reach(*client, asking, service).from;

  Message hello;
  hello.kind = MessageKind::hello;
  hello.to.node = kServer;
  hello.words = {0, 1};
  std::vector<std::vector<std::byte>> all;
  for (std::size_t length : {1, 87, 88, 5000, 100'000}) {
    std::vector<std::byte> bytes(length);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    all.push_back(bytes);
  }
  all.push_back(encode(hello));                                          // of another job
  all.push_back(encode(message_to(kService, MessageKind::connect, 5)));  // without a greeting
  all.push_back(encode(message_to(kService, MessageKind::lost, 5)));
  std::vector<std::byte> long_one = encode(message_to(kService, MessageKind::hello, 5));
  const std::uint32_t length = kMaxMessageData;  // that it announces
  std::memcpy(long_one.data() + 20, &length, sizeof(length));
  long_one.resize(200'000);
  all.push_back(long_one);

  for (const auto& bytes : all) {
    const tcp::File socket = tcp::begin_to_connect(kHost, server->port());
    ASSERT_TRUE(socket);
    std::size_t sent = 0;
    std::array<std::byte, 4096> ignored;
    bool open = true;
    // Those that are too short to be refused are shut out when they have said nothing for long.
    EXPECT_TRUE(wait_until([&] {
      if (sent < bytes.size()) {
        sent += tcp::send_some(socket.get(), std::span(bytes).subspan(sent)).value_or(0);
      }
      open = open && tcp::receive_some(socket.get(), ignored).has_value();
      return !open;
    })) << bytes.size();
    EXPECT_FALSE(service.any());
  }
  // Very many that say nothing.
  std::vector<tcp::File> silent;
  for (int i = 0; i < 400; ++i) silent.push_back(tcp::begin_to_connect(kHost, server->port()));
  server->send(message_to(known, MessageKind::established, 1, kService));
  EXPECT_EQ(asking.next().kind, MessageKind::established);
  const auto late = join(server->port());
  Box late_asking(*late, kAsking);
  EXPECT_GT(reach(*late, late_asking, service).from.node, known.node);
}

// A member that sends what no member sends is no longer one.
TEST(OpenJob, AMemberThatSendsNonsenseHasEnded) {
  const auto server = serve();
  Box service(*server, kService);
  const auto client = join(server->port());
  Box asking(*client, kAsking);
  const Address known = reach(*client, asking, service).from;
  for (const MessageKind kind : {MessageKind::lost, MessageKind::ended_run, MessageKind::hello}) {
    client->send(message_to(kService, kind, 5));
    const Message lost = service.next();
    EXPECT_EQ(lost.kind, MessageKind::lost);
    EXPECT_GE(lost.from.node, known.node) << "the sender, and not whom it names";
    EXPECT_EQ(asking.next().kind, MessageKind::lost);
    reach(*client, asking, service);
  }
}

// One who reads nothing keeps nobody waiting, and is given up in the end.
TEST(OpenJob, WhoDoesNotReadIsGivenUp) {
  const auto server = serve();
  Box service(*server, kService);
  // A member by hand: its hello is that of a client, which is taken from one.
  const auto stranger = tcp::try_to_listen(kHost, 0);
  const auto client = join(stranger->port);
  Box asking(*client, kAsking);
  client->send(message_to(kService, MessageKind::connect, 5));
  tcp::File from_client;
  ASSERT_TRUE(wait_until(
      [&] { return static_cast<bool>(from_client = tcp::accept_from(stranger->file.get())); }));
  std::array<std::byte, 4096> hello;
  std::size_t length = 0;
  ASSERT_TRUE(wait_until([&] {
    length = tcp::receive_some(from_client.get(), hello).value_or(0);
    return length != 0;
  }));
  const tcp::File to_server = tcp::begin_to_connect(kHost, server->port());
  ASSERT_TRUE(wait_until([&] {
    return tcp::send_some(to_server.get(), std::span(hello).first(length)).value_or(0) == length;
  }));
  ASSERT_TRUE(wait_until([&] { return !server->is_lost(OpenJob::kFirstCaller); }));
  const Message message =
      message_to({OpenJob::kFirstCaller, 1}, MessageKind::established, 1, kService);
  std::size_t sent_bytes = 0;
  ASSERT_TRUE(wait_until([&] {
    for (int i = 0; i < 100; ++i) server->send(message);
    sent_bytes += 100 * encode(message).size();
    return service.any();
  }));
  EXPECT_EQ(service.next().kind, MessageKind::lost);
  EXPECT_LT(sent_bytes, 64U << 20) << "much is kept for somebody who does not read it";
}

TEST(OpenJob, WhereAServerCannotListenIsSaid) {
  const auto server = serve();
  EXPECT_THROW(serve(server->port()), NodeRuns);
  const auto listen_at = [](const std::string& host) {
    OpenJob({.job = "job", .listens = tcp::HostAndPort{host, 0}});
  };
  EXPECT_THROW(listen_at("192.0.2.1"), UsageError);
  EXPECT_THROW(listen_at("no.such.host.invalid"), UsageError);
  const auto client = join(server->port());
  EXPECT_THROW(client->add_node(9, {"no.such.host.invalid", 1}), UsageError);
  EXPECT_EQ(client->problem(9), "nobody has said where it is");
}

TEST(HostAndPort, IsReadFromText) {
  const auto read = tcp::host_and_port("server-7.example:65535");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, (tcp::HostAndPort{"server-7.example", 65535}));
  EXPECT_EQ(tcp::look_up("127.0.0.1"), "127.0.0.1");
  for (const char* wrong : {"", "host", ":1", "host:", "host:0", "host:65536", "host:1x", "host:-1",
                            "a b:1", "host:1:2", "[::1]:5"}) {
    EXPECT_FALSE(tcp::host_and_port(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace perdura::fabric::verbs
