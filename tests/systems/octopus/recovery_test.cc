// The power of the server fails at every moment of a sequence of operations. Those that had returned are
// there, the one under way is there or not, and whatever was synced has its contents.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "platform/sim/failures.h"
#include "tests/support/explore.h"
#include "tests/support/platforms.h"
#include "tests/systems/octopus/model.h"

namespace perdura::systems::octopus::test {
namespace {

using fs::test::Home;
using Change = std::function<Task<std::errc>(Client&, Model&)>;

Change make(std::string path, bool is_directory) {
  return [path, is_directory](Client& client, Model& model) -> Task<std::errc> {
    model.create(path, is_directory, 7);
    if (is_directory) co_return error_of(co_await client.make_directory(path, 7));
    co_return error_of(co_await client.create(path, 7));
  };
}
Change remove(std::string path, bool is_directory) {
  return [path, is_directory](Client& client, Model& model) -> Task<std::errc> {
    model.remove(path, is_directory, 8);
    if (is_directory) co_return error_of(co_await client.remove_directory(path, 8));
    co_return error_of(co_await client.unlink(path, 8));
  };
}
Change append(std::string path, Bytes size) {
  return [path, size](Client& client, Model& model) -> Task<std::errc> {
    const Bytestring data(size, std::byte{5});
    model.write(path, model.paths().at(path).data.size(), data, 9);
    co_return error_of(co_await client.append(path, data, 9));
  };
}
Change set_times(std::string path) {
  return [path](Client& client, Model& model) -> Task<std::errc> {
    model.set_times(path, 10);
    co_return error_of(co_await client.set_times(path, 10));
  };
}
Change sync(std::string path) {
  return [path](Client& client, Model&) -> Task<std::errc> {
    co_return error_of(co_await client.sync(path));
  };
}

// Chains of several records, directories whose entries are used again, records that are.
const Change kChanges[] = {
    make("d", true),      make("d/a", false), make("d/b", false),     append("d/a", 1000),
    sync("d/a"),          make("e", true),    make("e/f", false),     append("e/f", 100),
    remove("d/a", false), make("d/c", true),  make("d/c/a", false),   set_times("d/b"),
    append("e/f", 5000),  sync("e/f"),        remove("e/f", false),   remove("e", true),
    make("d/a", false),   append("d/a", 10),  remove("d/c/a", false), remove("d/c", true)};

struct Progress {
  Model before;  // after the operations that have returned
  Model after;   // with the operation that is under way
  std::set<std::string> synced;
};

Task<> operate(Client& client, Progress& progress) {
  for (const Change& change : kChanges) {
    const std::errc error = co_await change(client, progress.after);
    if (error == std::errc::not_connected) co_return;
    EXPECT_EQ(error, std::errc{});
    progress.before = progress.after;
  }
}

// The paths are those of one of the two, with their sizes; each time may be that of either.
Task<bool> is_tree(Client& client, const Model& model, const Model& other, std::string directory) {
  auto listed = co_await client.list(directory);
  if (!listed) co_return false;
  std::sort(listed->begin(), listed->end(),
            [](const ListedPath& a, const ListedPath& b) { return a.name < b.name; });
  if (*listed != model.children(directory)) co_return false;
  for (const ListedPath& child : *listed) {
    const std::string path = directory.empty() ? child.name : directory + "/" + child.name;
    const Model::Path& expected = model.paths().at(path);
    const auto known = other.paths().find(path);
    const auto found = co_await client.stat(path);
    if (!found || found->size != expected.data.size()) co_return false;
    if (found->modified != expected.modified &&
        (known == other.paths().end() || found->modified != known->second.modified)) {
      co_return false;
    }
    if (!child.is_directory) continue;
    if (!co_await is_tree(client, model, other, path)) co_return false;
  }
  co_return true;
}

Task<> inspect(Home& home, Thread& thread, const Progress& progress) {
  co_await home.wait();
  const auto client = co_await client_of(home, thread);
  const bool is_before = co_await is_tree(*client, progress.before, progress.after, "");
  const bool is_after = co_await is_tree(*client, progress.after, progress.before, "");
  EXPECT_TRUE(is_before || is_after);
  EXPECT_EQ(co_await home.audit(), "");
  // And it can be used.
  EXPECT_EQ(error_of(co_await client->make_directory("new", 1)), std::errc{});
  EXPECT_EQ(error_of(co_await client->create("new/file", 1)), std::errc{});
  EXPECT_EQ(error_of(co_await client->append("new/file", Bytestring(10, std::byte{1}), 1)),
            std::errc{});
  EXPECT_EQ(error_of(co_await client->unlink("new/file", 1)), std::errc{});
  EXPECT_EQ(error_of(co_await client->remove_directory("new", 1)), std::errc{});
  EXPECT_EQ(co_await home.audit(), "");
}

TEST(OctopusRecovery, AfterAFailureAtEveryMomentWhatHadReturnedIsThere) {
  const auto scenario = [](sim::Failure& failure) {
    SCOPED_TRACE(failure.text());
    sim::SimPlatform platform(perdura::test::erda_testbed(), fs::test::nodes_for(kOctopus, 1));
    platform.track_durability({pmem::PersistenceDomain::dmp, false});
    failure.enable(false);
    // A few records, so that chains have several.
    Home home(
        kOctopus,
        {.size = 1 * MiB,
         .parameters = {
             {"extent_bytes", 8 * KiB}, {"directory_entries", 8}, {"clients", 2}, {"slots", 2}}});
    home.start(platform);
    Progress progress;
    platform.start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      co_await home.make(thread, {});
      const auto client = co_await client_of(home, thread);
      // It connects now, and not to the server that comes after the failure.
      EXPECT_EQ(error_of(co_await client->stat("")), std::errc{});
      failure.enable(true);
      co_await operate(*client, progress);
      failure.enable(false);
    });
    failure.watch(platform, [&](pmem::Choices& choices) {
      platform.fail_power(0, choices);
      home.start(platform);
      platform.start(home.client(0), 1, CompletionMode::polling,
                     [&](Thread& thread) { return inspect(home, thread, progress); });
    });
    platform.run();
  };
  for (const sim::Images images : {sim::Images::least, sim::Images::most, sim::Images::random}) {
    const sim::Explored explored =
        perdura::test::explore_until_failure({.images = images}, scenario);
    RecordProperty("moments", static_cast<int>(explored.crash_points));
    EXPECT_TRUE(HasFailure() || explored.tried > 100);
    if (HasFailure()) break;
  }
}

TEST(OctopusRecovery, WhatWasSyncedHasItsContents) {
  const Bytestring data(3000, std::byte{9});
  sim::SimPlatform platform(perdura::test::erda_testbed(), fs::test::nodes_for(kOctopus, 1));
  platform.track_durability({pmem::PersistenceDomain::dmp, true});
  Home home(kOctopus, {.size = 1 * MiB});
  home.start(platform);
  platform.start(home.client(0), 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    co_await home.make(thread, {});
    const auto client = co_await client_of(home, thread);
    EXPECT_EQ(error_of(co_await client->create("synced", 1)), std::errc{});
    EXPECT_EQ(error_of(co_await client->create("other", 1)), std::errc{});
    EXPECT_EQ(error_of(co_await client->write("synced", 100, data, 1)), std::errc{});
    EXPECT_EQ(error_of(co_await client->write("other", 100, data, 1)), std::errc{});
    EXPECT_EQ(error_of(co_await client->sync("synced")), std::errc{});
    platform.at(Executor::current().now(), [&] {
      pmem::LeastChoices least;
      platform.fail_power(0, least);
      home.start(platform);
      platform.start(home.client(0), 1, CompletionMode::polling, [&](Thread& again) -> Task<> {
        co_await home.wait();
        const auto reader = co_await client_of(home, again);
        const std::array<std::string, 2> paths{"synced", "other"};
        for (const std::string& path : paths) {
          Bytestring found(4000);
          EXPECT_EQ(co_await reader->read(path, 0, found), 3100U);
          found.resize(3100);
          Bytestring expected(3100);
          // The other one has its size, and zeros.
          if (path == "synced") std::copy(data.begin(), data.end(), &expected[100]);
          EXPECT_TRUE(found == expected) << path;
        }
      });
    });
    co_await sleep_for(Microseconds(10));
  });
  platform.run();
}

}  // namespace
}  // namespace perdura::systems::octopus::test
