// What commands print: counts as one says them, columns, and options by their short names.
#include <pty.h>

#include <algorithm>
#include <sstream>

#include "tests/harness/cli/program.h"
#include "tests/harness/temporary_folder.h"

namespace perdura {
namespace {

TEST(Wording, OneOfAThingIsNotSeveral) {
  const Outcome plan = perdura(
      "plan erda-latency --set 'matrix.workload=[\"workloadc\"]' --set 'matrix.value_size=[64]' "
      "--set 'matrix.system=[\"erda\"]' --set workload.client_nodes=1");
  ASSERT_EQ(plan.code, 0) << plan.text;
  EXPECT_TRUE(plan.text.starts_with("erda-latency: 1 point on sim (")) << plan.text;
  EXPECT_NE(plan.text.find(": a server and a client\n"), std::string::npos) << plan.text;
  EXPECT_TRUE(perdura("plan erda-latency").text.starts_with("erda-latency: 60 points on sim ("));
}

// The names of configurations are of different lengths, and each name ends with a colon.
TEST(Wording, TheVerdictsOfAllConfigurationsAreInOneColumn) {
  const std::string beginning = "write-flush on ";
  std::istringstream lines(perdura("crash write-flush").text);
  std::size_t column = 0;
  std::size_t configurations = 0;
  for (std::string line; std::getline(lines, line) && line.starts_with(beginning);) {
    const std::size_t verdict = line.find_first_not_of(' ', line.find(':') + 1);
    if (configurations++ == 0) column = verdict;
    EXPECT_EQ(verdict, column) << line;
  }
  EXPECT_GT(configurations, 12U);
}

// What the program prints on a terminal of that width.
std::string on_terminal(unsigned short columns, const std::string& command) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t process = forkpty(&terminal, nullptr, nullptr, &size);
  if (process == 0) {
    execl(PERDURA_PROGRAM, PERDURA_PROGRAM, command.c_str(), nullptr);
    _exit(127);
  }
  std::string shown;
  std::array<char, 4096> some;
  for (ssize_t length = 0; (length = ::read(terminal, some.data(), some.size())) > 0;) {
    shown.append(some.data(), static_cast<std::size_t>(length));
  }
  close(terminal);
  waitpid(process, nullptr, 0);
  std::erase(shown, '\r');
  return shown;
}

// A line that goes on is no longer than the terminal is wide, and has the words that it has in a
// file.
TEST(Wording, TheListBreaksNoWordOnATerminal) {
  const auto words_of = [](const std::string& text) {
    std::istringstream input(text);
    return std::vector<std::string>{std::istream_iterator<std::string>(input), {}};
  };
  const std::string in_file = perdura("list").text;
  for (const unsigned short columns : {60, 80, 200}) {
    const std::string shown = on_terminal(columns, "list");
    EXPECT_EQ(words_of(shown), words_of(in_file));
    std::istringstream lines(shown);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), columns) << line;
    }
  }
}

TEST(Wording, EveryFolderForResultsHasTheSameShortOption) {
  for (const char* command : {"run", "probe", "report", "compare", "guarantees"}) {
    const Outcome help = perdura(std::string(command) + " --help");
    EXPECT_NE(help.text.find("-o,"), std::string::npos) << help.text;
  }
}

// A process that another command starts is a command of its own, which nobody is to type.
TEST(Wording, CompletionOffersTheCommandsThatHelpShows) {
  const std::string bash = perdura("completion bash").text;
  for (const std::string group : {"fs", "mcas", "mojim"}) {
    std::istringstream help(perdura(group + " --help").text);
    std::string shown;
    std::string line;
    while (std::getline(help, line) && line != "Subcommands:") {
    }
    while (std::getline(help, line) && line.starts_with("  ")) {
      if (line[2] != ' ')
        shown += (shown.empty() ? "" : " ") + line.substr(2, line.find(' ', 2) - 2);
    }
    ASSERT_FALSE(shown.empty()) << group;
    EXPECT_NE(bash.find("'" + group + " '*) words='" + shown + "' ;;"), std::string::npos)
        << group << ": help shows " << shown;
  }
  // Neither is one named to who has mistyped another.
  EXPECT_EQ(perdura("mojim cope").text.find("copy"), std::string::npos);
  EXPECT_EQ(bash.find("--ready"), std::string::npos);
  EXPECT_EQ(perdura("completion fish").text.find("-a copy "), std::string::npos);
}

// That the tables are written there is seen where they are compared with the committed ones.
TEST(Wording, TheShortOptionOfGuaranteesIsItsFolder) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path file = temporary.path() / "file";
  std::ofstream(file) << "not a folder\n";
  const std::string folder = (file / "tables").string();
  const Outcome refused = perdura("guarantees -o " + folder);
  EXPECT_EQ(refused.code, 2) << refused.text;
  EXPECT_NE(refused.text.find("--out " + folder), std::string::npos) << refused.text;
}

}  // namespace
}  // namespace perdura
