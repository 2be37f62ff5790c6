// What the tests of novad share: files of a client, and its connection for READs as a program would
// make it that has found a filekey.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "platform/sim/sim_platform.h"
#include "rpc/messages.h"
#include "systems/novad/link.h"
#include "systems/novad/novad.h"
#include "tests/services/fs/home.h"
#include "tests/support/platforms.h"

namespace perdura::systems::novad::test {

using fs::test::Home;
using fs::test::nodes_for;

constexpr NodeId kServer = 0;

inline std::vector<std::byte> filled(std::size_t size, char with) {
  return std::vector<std::byte>(size, static_cast<std::byte>(with));
}

// What a session has counted, in the order of kSessionMetrics.
struct SessionCounts {
  explicit SessionCounts(const fs::Session& session)
      : rpcs(session.metrics()[0]),
        reads(session.metrics()[1]),
        writes(session.metrics()[2]),
        refused(session.metrics()[3]),
        commits(session.metrics()[4]) {}
  double rpcs;
  double reads;
  double writes;
  double refused;
  double commits;
};

// The model's testbed, with devices that commit or that do not.
inline sim::Profile testbed(bool commits) {
  sim::Profile profile = perdura::test::erda_testbed();
  profile.nic.flush_persistence = commits;
  return profile;
}

// Runs `body` with a client's session on the model. The server waits for events, so its CPU takes
// time only for work; `cpu()` tells how much it has taken.
using CpuTime = std::function<Picoseconds()>;
inline void run_with_idle_server(
    const fs::FsConfig& given,
    const std::function<Task<>(fs::Session& session, const CpuTime& cpu)>& body,
    bool commits = false) {
  const auto platform = std::make_unique<sim::SimPlatform>(testbed(commits), 2);
  fs::FsConfig config = given;
  config.servers = {{kServer, fs::FsRole::metadata, 0}};
  bool is_open = false;
  platform->start_service(kServer, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
    co_await kNovad.make(thread, "home", config);
    const auto server = co_await kNovad.cluster->open(thread, "home", config);
    co_await yield();
    is_open = true;
    co_await server->serve(thread);
  });
  platform->start(1, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    while (!is_open) co_await sleep_for(Microseconds(20));
    const auto files = co_await kNovad.mount(thread, "home", config);
    const auto session = files->attach(thread);
    co_await body(*session, [&] { return platform->local_node(kServer)->cpu_time(); });
  });
  platform->run();
}

// A new file that the session holds.
inline Task<fs::InodeNumber> open_new(fs::Session& session, std::string name,
                                      std::vector<std::byte> data) {
  const auto made =
      co_await session.create(fs::kRootInode, name, {.mode = S_IFREG | 0644}, fs::Timestamp{1});
  EXPECT_TRUE(made.has_value());
  if (!made) co_return fs::InodeNumber{};
  EXPECT_TRUE((co_await session.write(made->inode, 0, data, {})).has_value());
  EXPECT_TRUE((co_await session.hold(made->inode)).has_value());
  co_return made->inode;
}

// The bytes that a read returns, as text; "error" if it fails.
inline Task<std::string> text_of(fs::Session& session, fs::InodeNumber inode, Bytes offset,
                                 std::size_t size) {
  std::vector<std::byte> into(size);
  const auto read = co_await session.read(inode, offset, into);
  if (!read) co_return "error";
  co_return std::string(reinterpret_cast<const char*>(into.data()), *read);
}

}  // namespace perdura::systems::novad::test
