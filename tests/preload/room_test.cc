// A file system with little room: a run is refused before anything is made, or it works. One that
// gets full meanwhile costs nothing that was synced.
#include "platform/base/units.h"
#include "tests/preload/running.h"

namespace perdura::test {
namespace {

// A shell in a mount namespace of its own, with $D on a file system of this size.
Outcome run_with_room(Bytes room, const SharedFolder& folder, const std::string& script) {
  const std::string at = fs::path(folder.file("c")).parent_path().string();
  const std::string before = fmt::format(
      "D='{}'; mount -t tmpfs -o size={} none \"$D\" || exit 77; mkdir \"$D/a\" \"$D/b\"\n"
      "run() {{ '{}' mojim run --mode m-sync --size 1MiB --primary \"$D/a/file\" --mirror "
      "\"$D/b/file\" -- \"$@\"; }}\n",
      at, room, PERDURA_PROGRAM);
  return run({"/usr/bin/unshare", "-rm", "/bin/sh", "-c", before + script});
}

bool has(const Outcome& outcome, const std::string& text) {
  return outcome.text.find(text) != std::string::npos;
}

TEST(Room, IsAskedForWithLogsBeforeAnythingIsMade) {
  int refused = 0;
  int done = 0;
  // Two files of 1 MiB and two logs of 16.25 MiB are about 36.
  for (Bytes room = 1; room <= 41; room += 4) {
    SCOPED_TRACE(fmt::format("{} MiB", room));
    const SharedFolder folder;
    const Outcome outcome = run_with_room(room * MiB, folder,
                                          "run " PERDURA_WAYS
                                          " \"$D/a/file\" store fsync exit; echo code $?\n"
                                          "cmp \"$D/a/file\" \"$D/b/file\" && echo equal\n"
                                          "find \"$D\" -type f | sed 's/^/made: /'");
    if (outcome.code == 77) GTEST_SKIP() << outcome.text;
    SCOPED_TRACE(outcome.text);
    if (has(outcome, "code 2\n")) {
      ++refused;
      EXPECT_TRUE(has(outcome, "there is no room"));
      EXPECT_FALSE(has(outcome, "made: "));
    } else {
      ++done;
      EXPECT_TRUE(has(outcome, "code 0\n"));
      EXPECT_TRUE(has(outcome, "equal\n"));
    }
  }
  EXPECT_GE(refused, 8);
  EXPECT_GE(done, 1);
}

TEST(Room, ThatIsGoneInTheMiddleOfARunCostsNothing) {
  const SharedFolder folder;
  const std::string program = PERDURA_WAYS " \\\"\\$D/a/file\\\" store fsync exit";
  const Outcome outcome = run_with_room(
      60 * MiB, folder,
      "export D\n"
      "run sh -c \"" +
          program +
          "; cat /dev/zero 2>/dev/null >\\$D/fill\n"
          "dd if=/dev/zero of=\\$D/a/file bs=1 count=1 conv=notrunc,fsync status=none && echo "
          "synced\"\n"
          "echo code $?\n"
          "cmp \"$D/a/file\" \"$D/b/file\" && echo equal\n"
          "rm \"$D/fill\"\n"
          "run " PERDURA_WAYS
          " \"$D/a/file\" store fsync exit; echo then $?\n"
          "cmp \"$D/a/file\" \"$D/b/file\" && echo and equal\n");
  if (outcome.code == 77) GTEST_SKIP() << outcome.text;
  SCOPED_TRACE(outcome.text);
  EXPECT_TRUE(has(outcome, "synced\n"));
  // The record of the run has no room, so the next one compares.
  EXPECT_TRUE(has(outcome, "code 1\nequal\n"));
  EXPECT_TRUE(has(outcome, "is its file system full?"));
  EXPECT_TRUE(has(outcome, "then 0\nand equal\n"));
}

}  // namespace
}  // namespace perdura::test
