// Expects that a file system and the specification answer the same.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <system_error>

#include "services/fs/fs.h"

namespace perdura::fs::test {

template <class T, class U>
void expect_same(const Result<T>& found, const Result<U>& expected, const char* what) {
  const auto text = [](const auto& result) {
    return result ? std::string("done") : std::make_error_code(result.error()).message();
  };
  EXPECT_EQ(text(found), text(expected)) << what;
}
inline void expect_same_attributes(Attributes found, Attributes expected, const char* what) {
  EXPECT_GE(found.blocks, expected.blocks) << what;
  found.generation = expected.generation;
  found.blocks = expected.blocks;
  if (found.is_directory()) found.size = expected.size;
  EXPECT_TRUE(found == expected) << what << " inode " << static_cast<std::uint64_t>(found.inode);
}
inline void compare(const Result<Attributes>& found, const Result<Attributes>& expected,
                    const char* what) {
  expect_same(found, expected, what);
  if (found && expected) expect_same_attributes(*found, *expected, what);
}

}  // namespace perdura::fs::test
