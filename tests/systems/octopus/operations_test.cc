// Every operation on paths, by one client and by two at a time, against a model; and what happens when
// there is no room.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <string>

#include "platform/base/error.h"
#include "systems/octopus/table.h"
#include "tests/support/platforms.h"
#include "tests/support/seed.h"
#include "tests/systems/octopus/model.h"

namespace perdura::systems::octopus::test {
namespace {

using fs::test::Home;

class OctopusOn : public testing::TestWithParam<std::string> {
 protected:
  using Body = std::function<Task<>(Thread&, Home&)>;

  // The first of the bodies makes the file system; each is on a node of its own.
  void run(const fs::FsConfig& config, const std::vector<Body>& bodies) {
    const auto clients = static_cast<NodeId>(bodies.size());
    const auto platform =
        perdura::test::make_platform(GetParam(), fs::test::nodes_for(kOctopus, clients));
    Home home(kOctopus, config);
    home.start(*platform);
    const auto done = platform->create_barrier(clients);
    for (NodeId i = 0; i < clients; ++i) {
      platform->start(home.client(i), 0, CompletionMode::polling, [&, i](Thread& thread) -> Task<> {
        if (i == 0) {
          co_await home.make(thread, {});
        } else {
          co_await home.wait();
        }
        co_await bodies[i](thread, home);
        co_await done->arrive_and_wait();
        if (i > 0) co_return;
        EXPECT_EQ(co_await home.audit(), "");
      });
    }
    platform->run();
  }
};

// A few files too many for the table, and a few names too many for a directory.
TEST_P(OctopusOn, RandomOperationsAgreeWithTheModel) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(fmt::format("PERDURA_TEST_SEED={}", seed));
  const fs::FsConfig config{.size = 2 * MiB, .parameters = {{"directory_entries", 6}}};
  run(config, {[&](Thread& thread, Home& home) -> Task<> {
        const auto client = co_await client_of(home, thread);
        const TableGeometry geometry(Parameters::of(home.config()));
        Model model({geometry.records, 6, 64 * KiB});
        RandomPaths paths(*client, model, "", seed);
        for (int i = 0; i < 3000 && !HasFailure(); ++i) co_await paths.step();
        co_await expect_tree(*client, model);
      }});
}

TEST_P(OctopusOn, TwoClientsAtOnceDoNotDisturbEachOther) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(fmt::format("PERDURA_TEST_SEED={}", seed));
  const auto body = [&](const char* prefix, std::uint32_t number) {
    return [&, prefix, number](Thread& thread, Home& home) -> Task<> {
      const auto client = co_await client_of(home, thread);
      Model model;
      EXPECT_EQ(error_of(co_await client->make_directory(prefix, 1)), std::errc{});
      model.create(prefix, true, 1);
      RandomPaths paths(*client, model, prefix, seed + number);
      for (int i = 0; i < 1500 && !HasFailure(); ++i) co_await paths.step();
      co_await expect_tree(*client, model, prefix);
    };
  };
  run({.size = 32 * MiB}, {body("p", 0), body("q", 1)});
}

// Each append has a place of its own, and everybody finds all of them.
TEST_P(OctopusOn, AppendsOfTwoClientsDoNotOverlap) {
  constexpr int kTimes = 100;
  constexpr Bytes kSize = 100;
  const auto body = [&](std::byte value) {
    return [&, value](Thread& thread, Home& home) -> Task<> {
      const auto client = co_await client_of(home, thread);
      const auto made = co_await client->create("log", 1);
      EXPECT_TRUE(made || made.error() == std::errc::file_exists);
      for (int i = 0; i < kTimes; ++i) {
        const auto where = co_await client->append("log", Bytestring(kSize, value), 2);
        EXPECT_EQ(error_of(where), std::errc{});
        Bytestring found(kSize);
        EXPECT_EQ(co_await client->read("log", where.value_or(0), found), kSize);
        EXPECT_EQ(found, Bytestring(kSize, value));
      }
      while ((co_await client->stat("log"))->size < 2 * kTimes * kSize) {
        co_await sleep_for(Microseconds(1));
      }
    };
  };
  run({.size = 2 * MiB}, {body(std::byte{1}), body(std::byte{2})});
}

TEST_P(OctopusOn, SeveralOperationsOfAClientAreUnderWayAtOnce) {
  run({.size = 32 * MiB}, {[&](Thread& thread, Home& home) -> Task<> {
        const auto client = co_await client_of(home, thread);
        int ended = 0;
        const auto use = [&](int number) -> Task<> {
          const std::string path = fmt::format("file {}", number);
          EXPECT_EQ(error_of(co_await client->create(path, 1)), std::errc{});
          const Bytestring data(1000, static_cast<std::byte>(number));
          for (int i = 0; i < 10; ++i) {
            EXPECT_EQ(error_of(co_await client->append(path, data, 2)), std::errc{});
          }
          Bytestring found(20000);
          EXPECT_EQ(co_await client->read(path, 0, found), 10000U);
          found.resize(10000);
          EXPECT_EQ(found, Bytestring(10000, static_cast<std::byte>(number)));
          ++ended;
        };
        // More than there are slots.
        for (int number = 1; number <= 20; ++number) thread.executor.spawn(use(number));
        while (ended < 20) co_await sleep_for(Microseconds(1));
      }});
}

TEST_P(OctopusOn, AFullTableIsNoSpaceAndHasRoomAgain) {
  run({.size = 1 * MiB}, {[&](Thread& thread, Home& home) -> Task<> {
        const auto client = co_await client_of(home, thread);
        const std::uint64_t records = TableGeometry(Parameters::of(home.config())).records;
        const Bytestring data(64 * KiB, std::byte{7});
        for (std::uint64_t i = 1; i < records; ++i) {
          const std::string path = fmt::format("{}", i);
          EXPECT_EQ(error_of(co_await client->create(path, 1)), std::errc{});
          EXPECT_EQ(error_of(co_await client->write(path, 0, data, 1)), std::errc{});
        }
        EXPECT_EQ(error_of(co_await client->create("more", 1)), std::errc::no_space_on_device);
        EXPECT_EQ(error_of(co_await client->make_directory("more", 1)),
                  std::errc::no_space_on_device);
        EXPECT_EQ(error_of(co_await client->append("1", Bytestring(1), 1)),
                  std::errc::file_too_large);
        EXPECT_EQ(error_of(co_await client->unlink("3", 1)), std::errc{});
        EXPECT_EQ(error_of(co_await client->create("more", 1)), std::errc{});
        // Nothing of the removed file is in the new one.
        EXPECT_EQ(error_of(co_await client->write("more", 100, Bytestring(1), 1)), std::errc{});
        Bytestring found(200, std::byte{1});
        EXPECT_EQ(co_await client->read("more", 0, found), 101U);
        found.resize(101);
        EXPECT_EQ(found, Bytestring(101));
      }});
}

// A client that has been given the address of a file may still use it.
TEST_P(OctopusOn, TheExtentOfARemovedFileIsNotReusedAsLongAsItIsInUse) {
  run({.size = 1 * MiB}, {[&](Thread& thread, Home& home) -> Task<> {
        const std::uint64_t records = TableGeometry(Parameters::of(home.config())).records;
        auto user = co_await client_of(home, thread);
        const auto other = co_await client_of(home, thread);
        for (std::uint64_t i = 1; i < records; ++i) {
          EXPECT_EQ(error_of(co_await other->create(fmt::format("{}", i), 1)), std::errc{});
        }
        EXPECT_EQ(error_of(co_await user->write("2", 0, Bytestring(5), 1)), std::errc{});
        EXPECT_EQ(error_of(co_await other->unlink("2", 1)), std::errc{});
        EXPECT_EQ(error_of(co_await other->create("more", 1)), std::errc::no_space_on_device);
        EXPECT_EQ(error_of(co_await user->stat("2")), std::errc::no_such_file_or_directory);
        EXPECT_EQ(error_of(co_await other->create("more", 1)), std::errc{});
        // So may one that is gone, until the server has noticed.
        EXPECT_EQ(error_of(co_await user->write("3", 0, Bytestring(5), 1)), std::errc{});
        EXPECT_EQ(error_of(co_await other->unlink("3", 1)), std::errc{});
        user.reset();
        fs::Result<void> made;
        do {
          co_await sleep_for(Microseconds(1));
          made = co_await other->create("at last", 1);
        } while (error_of(made) == std::errc::no_space_on_device);
        EXPECT_EQ(error_of(made), std::errc{});
      }});
}

TEST_P(OctopusOn, LongNamesAreListedInSeveralAnswers) {
  run({.size = 32 * MiB}, {[&](Thread& thread, Home& home) -> Task<> {
        const auto client = co_await client_of(home, thread);
        Model model;
        for (int i = 0; i < 60; ++i) {
          const std::string path = fmt::format("{:02}{}", i, std::string(kLongestPath - 2, 'n'));
          EXPECT_EQ(error_of(co_await client->create(path, 1)), model.create(path, false, 1));
        }
        co_await expect_tree(*client, model);
        EXPECT_EQ(error_of(co_await client->create(std::string(256, 'n'), 1)),
                  std::errc::filename_too_long);
      }});
}

TEST_P(OctopusOn, PathsThatAreNoneAreRefused) {
  run({.size = 1 * MiB}, {[&](Thread& thread, Home& home) -> Task<> {
        const auto client = co_await client_of(home, thread);
        const std::array<std::string, 8> paths{"/", "/a",   "a/",   "a//b",
                                               ".", "a/..", "../a", {"a\0b", 3}};
        for (const std::string& path : paths) {
          EXPECT_EQ(error_of(co_await client->create(path, 1)), std::errc::invalid_argument)
              << path;
          EXPECT_EQ(error_of(co_await client->stat(path)), std::errc::invalid_argument) << path;
        }
      }});
}

INSTANTIATE_TEST_SUITE_P(Platforms, OctopusOn, testing::ValuesIn(perdura::test::platform_names()),
                         [](const auto& one) { return one.param; });

std::string refusal(const fs::FsConfig& config) {
  try {
    Parameters::of(config);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(OctopusParameters, WhatCannotBeIsRefusedInOneLine) {
  fs::FsConfig config{.servers = {{0, fs::FsRole::metadata, 0}}};
  EXPECT_EQ(refusal(config), "no error");
  config.parameters = {{"extent_bytes", 100}};
  EXPECT_EQ(refusal(config), "octopus: extent_bytes must be a multiple of 64, not 100");
  config.parameters = {{"extent_bytes", 16 * MiB}};
  EXPECT_EQ(refusal(config),
            "octopus: 16777216 bytes have no room for a file of 16777216; raise the size, or lower "
            "extent_bytes");
  config.parameters = {{"clients", 2}};
  config.threads = 3;
  EXPECT_EQ(refusal(config), "octopus: 3 threads are more than its 2 clients; raise clients");
  config = {.servers = {{0, fs::FsRole::metadata, 0}, {1, fs::FsRole::store, 0}}};
  EXPECT_EQ(refusal(config), "octopus: has one server, which has the metadata and the data");
}

}  // namespace
}  // namespace perdura::systems::octopus::test
