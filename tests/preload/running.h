// perdura mojim run, as a process whose output is read line by line, and databases that it leaves.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace perdura::test {

namespace fs = std::filesystem;

// A folder in shared memory, for files that are mapped.
class SharedFolder {
 public:
  SharedFolder() {
    char name[] = "/dev/shm/perdura-mojim-XXXXXX";
    path_ = mkdtemp(name);
    for (const char* node : {"a", "b", "c"}) fs::create_directory(path_ / node);
  }
  ~SharedFolder() { fs::remove_all(path_); }
  std::string file(const char* node) const { return (path_ / node / "file").string(); }

 private:
  fs::path path_;
};

class Running {
 public:
  // Standard output and error of the program, and of what it starts, are read together.
  explicit Running(const std::vector<std::string>& arguments) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[1], 1);
      dup2(ends[1], 2);
      std::vector<char*> given;
      for (const std::string& argument : arguments) {
        given.push_back(const_cast<char*>(argument.c_str()));
      }
      given.push_back(nullptr);
      execv(given[0], given.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
    setvbuf(output_, nullptr, _IONBF, 0);  // for waiting()
  }
  ~Running() {
    if (output_ != nullptr) fclose(output_);
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
  }

  pid_t id() const { return process_; }

  // Nothing at the end.
  std::optional<std::string> line() {
    char* text = nullptr;
    std::size_t room = 0;
    const ssize_t length = getline(&text, &room, output_);
    std::optional<std::string> read;
    if (length > 0) read.emplace(text, static_cast<std::size_t>(length) - 1);
    std::free(text);
    return read;
  }
  // Bytes that have been written and not been read.
  std::size_t waiting() const {
    int bytes = 0;
    EXPECT_EQ(ioctl(fileno(output_), FIONREAD, &bytes), 0);
    return static_cast<std::size_t>(bytes);
  }
  std::string rest() {
    std::string all;
    while (const auto next = line()) all += *next + "\n";
    return all;
  }
  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  // Of a process: as /proc says, 'Z' if it has ended and 'T' if it is stopped; nothing if it is
  // gone.
  struct State {
    char letter = 0;
    pid_t parent = 0;
  };
  static std::optional<State> state_of(pid_t process) {
    std::ifstream status(fmt::format("/proc/{}/stat", process));
    const std::string text((std::istreambuf_iterator<char>(status)), {});
    const std::size_t behind = text.rfind(") ");
    if (behind == std::string::npos) return std::nullopt;
    return State{text[behind + 2], std::atoi(text.c_str() + behind + 4)};
  }

  // Returns false if the process has ended instead.
  static bool wait_until_stopped(pid_t process) {
    for (;;) {
      const auto state = state_of(process);
      if (!state || state->letter == 'Z') return false;
      if (state->letter == 'T') return true;
      sched_yield();
    }
  }
  bool has_ended() const {
    const auto state = state_of(process_);
    return !state || state->letter == 'Z';
  }

  // The process that it has started whose command line holds this; 0 if there is none.
  pid_t child(const std::string& with) const {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const pid_t id = std::atoi(entry.path().filename().c_str());
      if (id <= 0) continue;
      const auto state = state_of(id);
      if (!state || state->parent != process_ || state->letter == 'Z') continue;
      std::ifstream command(entry.path() / "cmdline");
      std::string line((std::istreambuf_iterator<char>(command)), {});
      std::replace(line.begin(), line.end(), '\0', ' ');
      if (line.find(with) != std::string::npos) return id;
    }
    return 0;
  }

 private:
  pid_t process_ = 0;
  std::FILE* output_ = nullptr;
};

struct Outcome {
  int code = 0;
  std::string text;
};

inline Outcome run(const std::vector<std::string>& arguments) {
  Running running(arguments);
  Outcome outcome;
  outcome.text = running.rest();
  outcome.code = running.wait();
  return outcome;
}

// Of lmdb_writer: the last transaction that is there, with all before it, in a file that nobody has
// open. Fails the test if one is missing, or there in part, or if LMDB finds fault with the file.
inline std::uint64_t last_transaction(const std::string& file) {
  Running check({PERDURA_LMDB_WRITER, file});
  const std::string output = check.rest();
  EXPECT_EQ(check.wait(), 0) << file << ": " << output;
  return std::strtoull(output.c_str(), nullptr, 10);
}

inline std::vector<std::string> mojim(const char* command, const std::string& mode,
                                      const SharedFolder& folder,
                                      const std::vector<std::string>& program = {}) {
  std::vector<std::string> arguments{PERDURA_PROGRAM, "mojim", command,     "--mode",        mode,
                                     "--size",        "4MiB",  "--primary", folder.file("a")};
  if (mode != "s-unreplicated") {
    arguments.insert(arguments.end(), {"--mirror", folder.file("b")});
  }
  if (mode.starts_with("m-syncsec") || mode.starts_with("e-")) {
    arguments.insert(arguments.end(), {"--backup", folder.file("c")});
  }
  if (!program.empty()) {
    arguments.push_back("--");
    arguments.insert(arguments.end(), program.begin(), program.end());
  }
  return arguments;
}

}  // namespace perdura::test
