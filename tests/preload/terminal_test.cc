// perdura mojim run in a terminal of its own: whoever presses ^C, or closes the window, ends the
// program, and the copies after it.
#include <pty.h>
#include <termios.h>

#include <algorithm>

#include "platform/base/units.h"
#include "tests/preload/running.h"

namespace perdura::test {
namespace {

constexpr Bytes kFileSize = 64 * KiB;

// The text that a terminal shows until `text` is in it, or until its programs have ended.
std::string shown_until(int terminal, const std::string& text) {
  std::string all;
  char some[256];
  while (text.empty() || all.find(text) == std::string::npos) {
    const ssize_t length = read(terminal, some, sizeof some);
    if (length <= 0) break;
    all.append(some, static_cast<std::size_t>(length));
  }
  return all;
}

struct Press {
  const char* name;
  std::string key;            // that is pressed; empty: the terminal is closed
  bool is_of_daemon = false;  // who goes on in a session of its own
};

class Terminal : public testing::TestWithParam<Press> {};

TEST_P(Terminal, EndsTheProgramAndThenTheCopies) {
  const SharedFolder folder;
  // It syncs its last words when it gets a signal, and ends with 3.
  const std::string waits = fmt::format(
      "trap 'trap \"\" INT QUIT HUP; kill -9 $!; printf words | dd of={} conv=notrunc,fsync "
      "status=none; exit 3' INT QUIT HUP; dd if=/dev/zero of={} bs=1 count=1 conv=notrunc,fsync "
      "status=none; sleep 1000 & echo began; wait",
      folder.file("a"), folder.file("a"));
  std::vector<std::string> program{"/bin/sh", "-c", waits};
  if (GetParam().is_of_daemon) program = {"/bin/sh", "-c", "setsid -f sh -c \"$0\"", waits};
  std::vector<std::string> arguments = mojim("run", "m-sync", folder, program);
  std::replace(arguments.begin(), arguments.end(), std::string("4MiB"),
               fmt::format("{}", kFileSize));
  int terminal = -1;
  const pid_t process = forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(process, 0);
  if (process == 0) {
    std::vector<char*> given;
    for (std::string& argument : arguments) given.push_back(argument.data());
    given.push_back(nullptr);
    execv(given[0], given.data());
    _exit(127);
  }
  std::string shown = shown_until(terminal, "began");
  if (GetParam().is_of_daemon && shown.find("this waits for it") == std::string::npos) {
    shown += shown_until(terminal, "this waits for it");
  }
  if (GetParam().key.empty()) {
    close(terminal);
  } else {
    ASSERT_EQ(write(terminal, GetParam().key.data(), 1), 1);
    shown += shown_until(terminal, "");
    close(terminal);
  }
  int status = 0;
  ASSERT_EQ(waitpid(process, &status, 0), process);
  ASSERT_TRUE(WIFEXITED(status)) << shown;
  EXPECT_EQ(WEXITSTATUS(status), GetParam().is_of_daemon ? 0 : 3) << shown;
  for (const char* node : {"a", "b"}) {
    std::ifstream file(folder.file(node));
    std::string words(5, ' ');
    file.read(words.data(), 5);
    EXPECT_EQ(words, "words") << node << ": " << shown;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Terminal,
                         testing::Values(Press{"InterruptKey", "\x03"}, Press{"QuitKey", "\x1c"},
                                         Press{"Closed", ""},
                                         Press{"InterruptKeyOfADaemon", "\x03", true}),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace perdura::test
