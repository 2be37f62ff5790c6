// What the tests of novad share: files of a client, and its connection for READs as a program would
// make it that has found a filekey.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
