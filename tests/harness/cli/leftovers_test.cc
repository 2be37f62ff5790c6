// What a test leaves that is killed is removed by the next one.
#include "tests/support/temporary_directory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <memory>

#include "tests/harness/temporary_folder.h"

namespace perdura::test {
namespace {

namespace fs = std::filesystem;

class LeftoversTest : public testing::Test {
 protected:
  // A directory of a process that makes it and is killed.
  fs::path left_by_a_killed_test() const {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t process = fork();
    if (process == 0) {
      const TemporaryDirectory directory(where_.path(), "victim");
      std::ofstream(directory.path() / "file") << "x";
      EXPECT_EQ(::write(ends[1], "m", 1), 1);
      for (;;) pause();
    }
    char made = 0;
    EXPECT_EQ(::read(ends[0], &made, 1), 1);
    const std::string begin = "perdura-test." + std::to_string(process) + "-victim-";
    fs::path found;
    for (const auto& entry : fs::directory_iterator(where_.path())) {
      if (entry.path().filename().string().starts_with(begin)) found = entry.path();
    }
    EXPECT_TRUE(fs::exists(found / "file")) << found;
    remove_leftovers(where_.path());
    EXPECT_TRUE(fs::exists(found / "file")) << "it is alive";
    ::kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
    return found;
  }

  const TemporaryFolder where_;
};

TEST_F(LeftoversTest, OfAKilledTestAreRemovedByTheNextOne) {
  const fs::path left = left_by_a_killed_test();
  EXPECT_TRUE(fs::exists(left));
  { const TemporaryDirectory next(where_.path(), "next"); }
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::is_empty(where_.path()));
}

TEST_F(LeftoversTest, OfAKilledTestAreRemovedByTheNextScript) {
  const fs::path left = left_by_a_killed_test();
  const std::string command = "TMPDIR=" + where_.path().string() + " sh -c '. " +
                              PERDURA_SOURCE_DIR
                              "/tests/support/temporary_folder.sh script && "
                              "test -d $folder'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::is_empty(where_.path()));
}

TEST_F(LeftoversTest, WhatIsNotOfTestsIsLeftAlone) {
  for (const char* name : {"perdura-auto-1-0", "perdura-test.x-1", "perdura-test.", "other"}) {
    fs::create_directory(where_.path() / name);
    remove_leftovers(where_.path());
    EXPECT_TRUE(fs::exists(where_.path() / name)) << name;
  }
}

}  // namespace
}  // namespace perdura::test
