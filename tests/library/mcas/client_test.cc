// The calls of a client (MCAS, Tables 1 to 3): what each does, and how each says that it cannot.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <thread>

#include "tests/library/mcas/support.h"

namespace perdura::library_test {
namespace {

using mcas::Client;
using mcas::DirectMemory;
using mcas::Match;
using mcas::Pending;
using mcas::Pool;
using mcas::Status;

class McasClient : public testing::Test {
 protected:
  McasClient() { shards_.start_all(); }

  Shards shards_{1};
};

TEST_F(McasClient, PutsGetsAndErases) {
  Client client(shards_.client());
  Pool pool = client.create_pool("p", kPool).value();
  EXPECT_EQ(pool.get("k").status(), Status::not_found);
  EXPECT_TRUE(pool.put("k", "first").ok());
  EXPECT_EQ(pool.put("k", "second", {.no_overwrite = true}).status(), Status::exists);
  EXPECT_EQ(pool.get("k").value(), "first");
  EXPECT_TRUE(pool.put("k", std::string("s\0x", 3)).ok());
  EXPECT_EQ(pool.get("k").value(), std::string("s\0x", 3));
  EXPECT_EQ(pool.attributes("k").value().value_length, 3U);
  EXPECT_EQ(pool.attributes().value().items, 1U);
  EXPECT_TRUE(pool.erase("k").ok());
  EXPECT_EQ(pool.erase("k").status(), Status::not_found);
  EXPECT_EQ(pool.put("", "of no key").status(), Status::invalid);
  EXPECT_EQ(pool.put("k", std::string(1 << 20, 'x')).status(), Status::too_large);
  EXPECT_THROW(pool.get("k").value(), mcas::Failure);
}

// More of them than can be under way at a time; what comes when one has ended does not overtake
// those that wait.
TEST_F(McasClient, AsynchronousOperationsOfOneThreadAndKeyKeepTheirOrder) {
  constexpr int kPuts = 100;
  mcas::ClientOptions options = shards_.client();
  options.queue_depth = 4;
  Client client(options);
  Pool pool = client.open_pool("p", {.create_on_demand = true}, kPool).value();
  for (int round = 0; round < 30; ++round) {
    std::vector<Pending<void>> puts;
    for (int i = 0; i < kPuts; ++i) puts.push_back(pool.async_put("k", std::to_string(i)));
    auto erased = pool.async_erase("k");
    auto none = pool.async_get("k");
    auto last = pool.async_put("k", "last");
    auto got = pool.async_get("k");
    for (auto& put : puts) put.wait().value();
    EXPECT_TRUE(erased.wait().ok());
    EXPECT_EQ(none.wait().status(), Status::not_found);
    last.wait().value();
    ASSERT_EQ(got.wait().value(), "last") << "round " << round;
  }
}

// The program blocks a signal to wait for it when the library has its threads already.
TEST_F(McasClient, ItsThreadsTakeNoSignalsOfTheProgram) {
  Client client(shards_.client());
  Pool pool = client.open_pool("p", {.create_on_demand = true}, kPool).value();
  sigset_t waited_for;
  sigset_t before;
  ::sigemptyset(&waited_for);
  ::sigaddset(&waited_for, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &waited_for, &before);
  ::kill(::getpid(), SIGUSR1);  // whoever takes it ends the program
  EXPECT_TRUE(pool.put("k", "v").ok());
  int number = 0;
  EXPECT_EQ(::sigwait(&waited_for, &number), 0);
  EXPECT_EQ(number, SIGUSR1);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);

  std::size_t threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::getpid())) continue;
    std::ifstream status(task.path() / "status");
    std::uint64_t blocked = 0;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigBlk:")) blocked = std::stoull(line.substr(7), nullptr, 16);
    }
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM,
                             SIGCHLD, SIGPROF, SIGWINCH, SIGRTMAX}) {
      EXPECT_NE(blocked >> (signal - 1) & 1, 0U) << "signal " << signal;
    }
    ++threads;
  }
  EXPECT_GT(threads, 0U);
}

TEST_F(McasClient, OpensClosesAndDeletesPools) {
  Client client(shards_.client());
  EXPECT_EQ(client.open_pool("p").status(), Status::not_found);
  Pool pool = client.open_pool("p", {.create_on_demand = true}, kPool).value();
  EXPECT_EQ(client.create_pool("p", kPool, {.create_only = true}).status(), Status::exists);
  EXPECT_TRUE(pool.put("k", "v").ok());
  Pool reader = client.create_pool("p", kPool, {.read_only = true}).value();
  EXPECT_EQ(reader.put("k", "w").status(), Status::no_permission);
  EXPECT_EQ(reader.get("k").value(), "v");
  EXPECT_EQ(client.delete_pool("p").status(), Status::busy);
  EXPECT_TRUE(reader.close().ok());
  EXPECT_EQ(reader.get("k").status(), Status::no_permission);
  EXPECT_TRUE(pool.close().ok());
  EXPECT_TRUE(pool.close().ok());
  EXPECT_TRUE(client.delete_pool("p").ok());
  EXPECT_EQ(client.delete_pool("p").status(), Status::not_found);
}

TEST_F(McasClient, ClosesAPoolWithItsLastCopy) {
  Client client(shards_.client());
  {
    Pool pool = client.create_pool("p", kPool).value();
    const Pool copy = pool;
    { const Pool another = copy; }
    EXPECT_TRUE(pool.put("k", "v").ok());
    EXPECT_EQ(client.delete_pool("p").status(), Status::busy);
  }
  EXPECT_TRUE(client.delete_pool("p").ok());
}

TEST_F(McasClient, FindsKeysByAnIndexAndCountsRequests) {
  Client client(shards_.client());
  Pool pool = client.create_pool("p", kPool).value();
  EXPECT_EQ(pool.find("", Match::prefix).status(), Status::unsupported);
  EXPECT_EQ(pool.configure("AddIndex::NoSuch").status(), Status::unsupported);
  EXPECT_TRUE(pool.configure("AddIndex::VolatileTree").ok());
  EXPECT_TRUE(pool.attributes().value().has_index);
  for (const char* const key : {"b1", "a1", "b2"}) EXPECT_TRUE(pool.put(key, key).ok());
  const mcas::FoundKey first = pool.find("b", Match::prefix).value();
  EXPECT_EQ(first.key, "b1");
  EXPECT_EQ(pool.find("b", Match::prefix, first.position + 1).value().key, "b2");
  EXPECT_EQ(pool.find("[ab]2", Match::regular_expression).value().key, "b2");
  EXPECT_EQ(pool.find("a1", Match::exact).value().position, 0U);
  EXPECT_EQ(pool.find("c", Match::prefix).status(), Status::not_found);
  EXPECT_TRUE(pool.configure("RemoveIndex::").ok());
  const mcas::Statistics statistics = client.statistics().value();
  EXPECT_EQ(statistics.puts, 3U);
  EXPECT_EQ(statistics.pools, 1U);
  EXPECT_EQ(statistics.sessions, 1U);
}

TEST_F(McasClient, TransfersLargeValuesDirectly) {
  constexpr std::size_t kLength = 3 << 20;
  Client client(shards_.client());
  Pool pool = client.create_pool("p", 16 << 20).value();
  DirectMemory from = client.register_direct_memory(kLength).value();
  DirectMemory into = client.register_direct_memory(kLength).value();
  EXPECT_EQ(client.register_direct_memory(0).status(), Status::invalid);
  for (std::size_t i = 0; i < kLength; ++i) from.bytes()[i] = static_cast<std::byte>(i * 31 >> 5);
  EXPECT_TRUE(pool.put_direct("k", {from, 0, kLength}).ok());
  EXPECT_EQ(pool.put_direct("k", {from, 0, kLength}, {.no_overwrite = true}).status(),
            Status::exists);
  EXPECT_EQ(pool.get_direct("k", {into, 0, kLength}).value(), kLength);
  EXPECT_EQ(std::memcmp(from.bytes().data(), into.bytes().data(), kLength), 0);
  EXPECT_EQ(pool.get_direct("k", {into, 0, kLength - 1}).status(), Status::too_large);
  EXPECT_EQ(pool.get_direct("k", {into, 1, kLength}).status(), Status::invalid);

  std::memcpy(from.bytes().data(), "part", 4);
  EXPECT_TRUE(pool.put_direct_offset("k", 1000, {from, 0, 4}).ok());
  EXPECT_TRUE(pool.get_direct_offset("k", 999, {into, 8, 6}).ok());
  EXPECT_EQ(std::memcmp(into.bytes().data() + 9, "part", 4), 0);
  EXPECT_EQ(into.bytes()[8], from.bytes()[999]);
  EXPECT_EQ(pool.get_direct_offset("k", kLength, {into, 0, 1}).status(), Status::invalid);
}

// Memory that is dropped while it is transferred stays until the transfer has ended.
TEST_F(McasClient, KeepsMemoryUntilItsTransfersHaveEnded) {
  Client client(shards_.client());
  Pool pool = client.create_pool("p", 16 << 20).value();
  std::vector<Pending<void>> puts;
  for (int i = 0; i < 20; ++i) {
    DirectMemory from = client.register_direct_memory(1 << 18).value();
    std::memset(from.bytes().data(), 'a' + i, from.bytes().size());
    puts.push_back(pool.async_put_direct(std::to_string(i), {from, 0, 1 << 18}));
  }
  DirectMemory into = client.register_direct_memory(1 << 18).value();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(puts[static_cast<std::size_t>(i)].wait().ok());
    ASSERT_TRUE(pool.get_direct(std::to_string(i), {into, 0, 1 << 18}).ok());
    EXPECT_EQ(into.bytes().front(), static_cast<std::byte>('a' + i));
    EXPECT_EQ(into.bytes().back(), static_cast<std::byte>('a' + i));
  }
}

TEST_F(McasClient, CompletesManyOperationsAtOnce) {
  Client client(shards_.client());
  Pool pool = client.create_pool("p", kPool).value();
  std::vector<Pending<void>> puts;
  for (int i = 0; i < 500; ++i) {
    // What the call was given may be changed at once.
    std::string key = std::to_string(i);
    std::string value = "value of " + key;
    puts.push_back(pool.async_put(key, value));
    key.assign(key.size(), '#');
    value.assign(value.size(), '#');
  }
  EXPECT_TRUE(test::wait_until([&] { return puts.back().completed(); }));
  for (Pending<void>& put : puts) EXPECT_TRUE(put.wait().ok());
  std::vector<Pending<std::string>> gets;
  for (int i = 0; i < 500; ++i) gets.push_back(pool.async_get(std::to_string(i)));
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(gets[static_cast<std::size_t>(i)].wait().value(), "value of " + std::to_string(i));
  }
}

TEST_F(McasClient, AResultIsThereAsOftenAsItIsWaitedFor) {
  Client client(shards_.client());
  Pool pool = client.open_pool("p", {.create_on_demand = true}, kPool).value();
  const std::string value(1000, 'v');
  ASSERT_TRUE(pool.put("key", value).ok());
  mcas::Pending<std::string> get = pool.async_get("key");
  mcas::Pending<void> erase = pool.async_erase("another key");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(get.wait().value(), value);
    EXPECT_TRUE(get.completed());
    EXPECT_EQ(erase.wait().status(), Status::not_found);
  }
}

TEST_F(McasClient, CallsOfSeveralThreadsDoNotMix) {
  Client client(shards_.client());
  Pool pool = client.create_pool("p", kPool).value();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, &wrong, t] {
      const std::string mine = std::to_string(t) + ":";
      for (int i = 0; i < 200; ++i) {
        const std::string key = mine + std::to_string(i % 10);
        const std::string value = key + " " + std::to_string(i);
        if (!pool.put(key, value).ok() || pool.get(key).value() != value) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(pool.attributes().value().items, 40U);
}

TEST_F(McasClient, OperationsEndWithTheClientAndItsPools) {
  std::vector<Pending<void>> puts;
  {
    Client client(shards_.client());
    Pool pool = client.create_pool("p", kPool).value();
    for (int i = 0; i < 1000; ++i) puts.push_back(pool.async_put(std::to_string(i), "v"));
  }
  for (Pending<void>& put : puts) {
    const Status status = put.wait().status();
    EXPECT_TRUE(status == Status::ok || status == Status::disconnected) << to_string(status);
  }
  Client client(shards_.client());
  EXPECT_TRUE(client.open_pool("p").ok());
}

TEST_F(McasClient, APoolOutlivesItsClient) {
  std::optional<Pool> pool;
  {
    Client client(shards_.client());
    pool = client.create_pool("p", kPool).value();
  }
  EXPECT_TRUE(pool->put("k", "v").ok());
  EXPECT_EQ(pool->get("k").value(), "v");
}

TEST_F(McasClient, HasTheSameCallsForC) {
  EXPECT_EQ(
      std::system((PERDURA_C_TEST " " + shards_.job() + " " + shards_.client().address).c_str()),
      0);
}

TEST(McasClientAlone, SaysWhyItCannotConnect) {
  const auto options = [](const std::string& job) {
    return mcas::ClientOptions{.job = test::job_name(job),
                               .connect_timeout = std::chrono::milliseconds(0)};
  };
  EXPECT_THROW(Client({.job = "with blanks"}), std::invalid_argument);
  EXPECT_THROW(Client({.job = "x", .node = 256}), std::invalid_argument);
  EXPECT_THROW(Client({.job = "x", .queue_depth = 0}), std::invalid_argument);
  EXPECT_THROW(Client({.job = "x", .call_timeout = std::chrono::milliseconds(-1)}),
               std::invalid_argument);
  EXPECT_THROW(Client({.job = "x", .address = "10.0.0.1"}), std::invalid_argument);
  EXPECT_THROW(Client({.job = "x", .node = 256, .address = "10.0.0.1:1"}), std::invalid_argument);
  try {
    const Client client(options("nobody"));
    FAIL() << "there is no shard";
  } catch (const TimedOut& problem) {
    EXPECT_FALSE(problem.in_doubt());
    EXPECT_NE(std::string(problem.what()).find("perdura mcas serve"), std::string::npos)
        << problem.what();
  }
}

// The memory of a job is its user's alone. One who may not open it is told so, and does not wait.
TEST(McasClientAlone, OfAnotherUserIsRefusedAtOnce) {
  Shards shards(1);
  if (!shards.client().address.empty()) GTEST_SKIP() << "verbs asks nobody who he is";
  shards.start_all();
  { const Client client(shards.client()); }
  const std::string memory = "/dev/shm/perdura-" + shards.job();
  mcas::ClientOptions options = shards.client();
  options.connect_timeout = std::chrono::milliseconds::max();
  // Root may open everything, so that it becomes somebody; others take their own rights away.
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) std::filesystem::permissions(memory, std::filesystem::perms::none);
  Child other([&] {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) throw std::runtime_error("cannot be nobody");
    try {
      const Client client(options);
    } catch (const std::runtime_error& problem) {
      const std::string said = problem.what();
      if (said.starts_with("cannot join the job in " + memory +
                           ": Permission denied (it is of user ")) {
        return;
      }
      throw;
    }
  });
  EXPECT_EQ(other.wait(), 0);
  std::filesystem::permissions(memory, std::filesystem::perms::owner_all);
}

// A shard that stands still: calls end at their limits, and what was sent may still take effect.
TEST(McasClientAlone, NoCallWaitsLongerThanItsLimits) {
  Shards shards(1);
  shards.start_all();
  mcas::ClientOptions options = shards.client();
  options.connect_timeout = std::chrono::milliseconds(2'000);
  options.call_timeout = std::chrono::milliseconds(0);
  Client client(options);
  Pool pool = client.create_pool("p", kPool).value();
  shards.server(0).stand_still();
  Pending<void> put = pool.async_put("k", "v");
  EXPECT_EQ(put.wait().status(), Status::timed_out);
  EXPECT_FALSE(put.completed());
  shards.server(0).go_on();
  EXPECT_TRUE(test::wait_until([&] { return put.completed(); }));
  EXPECT_TRUE(put.wait().ok());
  EXPECT_EQ(pool.get("k").value(), "v");
}

}  // namespace
}  // namespace perdura::library_test
