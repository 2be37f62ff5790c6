#include "harness/report/gnuplot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

namespace perdura::report {
namespace {

/// The line that says what is wrong: gnuplot first repeats the command and points at it with '^'.
std::string complaint(const std::string& text) {
  std::istringstream lines(text);
  std::string found = "no message";
  for (std::string line; std::getline(lines, line);) {
    if (line.find("line ") != std::string::npos) return line;
    if (line.find_first_not_of(" \t^") != std::string::npos) found = line;
  }
  return found;
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

Expected<void> run_gnuplot(const std::string& program, const std::filesystem::path& script,
                           const std::vector<std::string>& arguments) {
  std::vector<std::string> words{program, "-d", "-c", script.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  std::array<int, 2> errors{};
  if (pipe2(errors.data(), O_CLOEXEC) != 0) {
    return fail_work(fmt::format("no pipe to gnuplot: {}; try again", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors[1], STDERR_FILENO);
  pid_t child = 0;
  const int problem =
      posix_spawnp(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(errors[1]);
  if (problem != 0) {
    close(errors[0]);
    return fail(
        fmt::format("{}: cannot be started ({}); install gnuplot, on Debian the package "
                    "gnuplot-nox",
                    program, std::strerror(problem)));
  }
  const std::string text = read_all(errors[0]);
  close(errors[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail_work(fmt::format("{}: gnuplot failed: {}; mend the script or the figure's columns",
                                 script.string(), complaint(text)));
  }
  return {};
}

}  // namespace perdura::report
