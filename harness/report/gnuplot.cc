#include "harness/report/gnuplot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <vector>

#include "harness/report/output_file.h"

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

// A script may take for ever, and a signal may come between two looks at whether one has come.
constexpr int kPauseMs = 100;

// Both at once: a pipe that nobody reads would stop gnuplot.
void read_all(std::array<pollfd, 2> pipes, std::array<std::string, 2>& texts,
              const std::function<void()>& meanwhile) {
  std::array<char, 65536> buffer{};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    if (meanwhile) meanwhile();
    if (poll(pipes.data(), pipes.size(), kPauseMs) <= 0) continue;
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      if (pipes[i].fd < 0 || pipes[i].revents == 0) continue;
      const ssize_t count = read(pipes[i].fd, buffer.data(), buffer.size());
      if (count > 0) texts[i].append(buffer.data(), static_cast<std::size_t>(count));
      if (count == 0 || (count < 0 && errno != EINTR)) pipes[i].fd = -1;
    }
  }
}

// A pipe whose ends are closed at the latest here.
class Pipe {
 public:
  Pipe() { open_ = pipe2(ends_.data(), O_CLOEXEC) == 0; }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool is_open() const { return open_; }
  int out() const { return ends_[0]; }
  int in() const { return ends_[1]; }
  void close_in() { close_end(1); }

 private:
  void close_end(std::size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }

  std::array<int, 2> ends_{-1, -1};
  bool open_ = false;
};

// A process that is ended at the latest here.
class Child {
 public:
  explicit Child(pid_t process) : process_(process) {}
  ~Child() {
    if (process_ < 0) return;
    kill(process_, SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int wait() {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return status;
  }

 private:
  pid_t process_;
};

// In the child. Whoever ends perdura ends gnuplot, too: a script may take for ever.
[[noreturn]] void become_gnuplot(const std::vector<char*>& argv, int image, int errors, int refusal,
                                 pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const bool ready = getppid() == parent && dup2(nothing, STDIN_FILENO) >= 0 &&
                     dup2(image, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0;
  if (ready) execvp(argv[0], argv.data());
  const int problem = errno;
  [[maybe_unused]] const auto told = write(refusal, &problem, sizeof(problem));
  _exit(127);
}

}  // namespace

Expected<void> run_gnuplot(const std::string& program, const std::filesystem::path& script,
                           const Drawing& drawing) {
  std::vector<std::string> words{
      program,       "-d",           "-c",          script.string(), drawing.csv.string(),
      "/dev/stdout", drawing.format, drawing.title, drawing.x_label, drawing.y_label,
      drawing.origin};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  Pipe image;
  Pipe errors;
  Pipe refusal;  // closed by what starts gnuplot, or told why that cannot be
  if (!image.is_open() || !errors.is_open() || !refusal.is_open()) {
    return fail_work(fmt::format("no pipe to gnuplot: {}; try again", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    return fail_work(fmt::format("no process for gnuplot: {}; try again", std::strerror(errno)));
  }
  if (process == 0) become_gnuplot(argv, image.in(), errors.in(), refusal.in(), parent);
  Child child(process);
  refusal.close_in();
  image.close_in();
  errors.close_in();
  std::array<std::string, 2> texts;
  read_all({{{image.out(), POLLIN, 0}, {errors.out(), POLLIN, 0}}}, texts, drawing.while_drawing);
  int problem = 0;
  if (read(refusal.out(), &problem, sizeof(problem)) != sizeof(problem)) problem = 0;
  const int status = child.wait();
  if (problem != 0) {
    return fail(
        fmt::format("{}: cannot be started ({}); install gnuplot, on Debian the package "
                    "gnuplot-nox",
                    program, std::strerror(problem)));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail_work(fmt::format("{}: gnuplot failed: {}; mend the script or the figure's columns",
                                 script.string(), complaint(texts[1])));
  }
  if (texts[0].empty()) {
    return fail_work(
        fmt::format("{}: gnuplot drew nothing; the script must write to the file that "
                    "is its second argument",
                    script.string()));
  }
  return write_file(drawing.image, texts[0]);
}

}  // namespace perdura::report
