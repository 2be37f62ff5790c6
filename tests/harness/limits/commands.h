// Each command of the program, with arguments by which it does its work in a moment. The program
// itself says which there are; a test fails if one has no row here.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/limits/limited_process.h"
#include "tests/support/temporary_directory.h"

namespace perdura::test {

enum class Ending {
  by_itself,
  by_signal,  // a server, which ends by SIGTERM
  by_umount,  // it serves in the background when it has ended
};

struct CommandRow {
  std::string name;
  // The words that a user would type after `perdura`. HOME: the folder that holds the input; NEW:
  // an empty folder.
  std::string arguments;
  // The file that it makes below NEW; empty if it makes none.
  std::string makes{};
  Ending ending = Ending::by_itself;
  // It starts processes, each of which says in a line of its own what it misses; one names the
  // limit.
  bool is_of_several = false;
};

const std::vector<CommandRow>& command_rows();

// For tests that are tried with each row: fs_mkfs.
std::string name_in_test(const testing::TestParamInfo<CommandRow>& row);
void PrintTo(const CommandRow& row, std::ostream* output);

// The commands that the program lists, as "fs mkfs".
std::set<std::string> known_commands();

// The input of the commands, made when a command needs it; all of it may be read and written by
// everybody.
class Home {
 public:
  Home();

  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }

  struct Attempt {
    std::filesystem::path fresh;  // NEW
    Ended ended;
  };
  // Runs the command in a NEW of its own.
  Attempt attempt(const CommandRow& row, const Start& how);
  // The same with other arguments than those of the row.
  Attempt attempt(const CommandRow& row, const std::string& arguments, const Start& how);

  // HOME and NEW written out.
  std::string written_out(const std::string& arguments, const std::filesystem::path& fresh) const;

 private:
  // Makes the files that the arguments name as HOME/NAME.
  void make_input(const std::string& arguments);
  // Files that a command has made belong to root, who may be another user than the next one.
  void open_input() const;

  TemporaryDirectory folder_;
  int attempts_ = 0;
};

// Complaints of the program: lines that begin with its name and are no notes.
std::vector<std::string> complaints(const std::string& errors);

// Empty if a command did what it does without a limit, or said in one line that it cannot, ended
// with exit code 1 or 2, and left nothing; else what was wrong.
std::string fault_of(const CommandRow& row, const Home::Attempt& attempt, int usual_code);

}  // namespace perdura::test
