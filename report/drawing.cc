#include "report/drawing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>

#include "harness/schema/csv_table.h"
#include "harness/text/whole_file.h"
#include "platform/base/path_kind.h"
#include "platform/base/words.h"
#include "report/output_file.h"

namespace perdura::report {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<fs::path>;

/// The line of gnuplot's output that states the error. Before it, gnuplot repeats the command and
/// points at the place with '^'.
std::string complaint(const std::string& text) {
  std::string found = "no message";
  for (const std::string& line : parts_of(text, '\n')) {
    if (line.find("line ") != std::string::npos) return line;
    if (line.find_first_not_of(" \t^") != std::string::npos) found = line;
  }
  return found;
}

// A script may never end, and a signal may arrive between two checks, so each wait is bounded.
constexpr int kPauseMs = 100;

// Reads both pipes at the same time: gnuplot would block on a full pipe that nobody reads
// (deadlock).
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

// A pipe; the destructor closes ends that are still open.
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

// A child process; the destructor kills it if it has not ended.
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

// Runs in the child. gnuplot must die with perdura, since a script may never end.
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

/// Quotes text so that gnuplot reads it back unchanged: on one line, in single quotes.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char character : text) {
    if (character == '\'') result += '\'';
    result += static_cast<unsigned char>(character) < ' ' ? ' ' : character;
  }
  return result + "'";
}

/// The script that draws a figure, independent of the location of its folder: gnuplot NAME.gp, or
/// gnuplot -c NAME.gp OUTPUT FORMAT.
std::string script_of(const Drawing& drawing, const DrawingPlace& place) {
  const fs::path plots = fs::absolute(place.copies)
                             .lexically_normal()
                             .lexically_relative(fs::absolute(place.figures).lexically_normal());
  const auto beside = [](const fs::path& file) { return "folder." + quoted(file.string()); };
  return fmt::format(
      "# Draws this figure again: gnuplot {0}.gp, or gnuplot -c {0}.gp OUTPUT svg|png\n"
      "folder = ARG0\n"
      "while (strlen(folder) && folder[strlen(folder):*] ne \"/\") {{ "
      "folder = folder[1:strlen(folder) - 1] }}\n"
      "script = {1}\n"
      "csv_file = {2}\n"
      "image = ARGC > 0 ? ARG1 : {3}\n"
      "image_format = ARGC > 1 ? ARG2 : \"svg\"\n"
      "title_inside = {4}\n"
      "call script csv_file image image_format title_inside {5} {6} {7}\n",
      drawing.name, beside(plots / (drawing.script + ".gp")), beside(drawing.name + ".csv"),
      beside(drawing.name + ".svg"),
      drawing.title_in_svg
          ? quoted(drawing.title)
          : fmt::format("image_format eq \"png\" ? {} : \"\"", quoted(drawing.title)),
      quoted(drawing.x_label), quoted(drawing.y_label), quoted(drawing.origin));
}

/// The text on top of a bar of this height. It is short, since bars are narrow.
std::string bar_text(double value) {
  if (std::isinf(value)) return "∞";
  if (value == 0) return "0";
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 10 ? 2 : size < 100 ? 1 : 0);
}

/// Runs a figure's script and returns the image; `plot` is the script that error messages name.
schema::Expected<std::string> run_gnuplot(const DrawingPlace& place, const fs::path& script,
                                          const fs::path& plot, const std::string& format) {
  std::vector<std::string> words{place.gnuplot, "-d", "-c", script.string(), "/dev/stdout", format};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  Pipe image;
  Pipe errors;
  Pipe refusal;  // closed when gnuplot starts, or gets the error if it cannot be started
  if (!image.is_open() || !errors.is_open() || !refusal.is_open()) {
    return schema::fail_work(
        fmt::format("no pipe to gnuplot: {}; try again", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    return schema::fail_work(
        fmt::format("no process for gnuplot: {}; try again", std::strerror(errno)));
  }
  if (process == 0) become_gnuplot(argv, image.in(), errors.in(), refusal.in(), parent);
  Child child(process);
  refusal.close_in();
  image.close_in();
  errors.close_in();
  std::array<std::string, 2> texts;
  read_all({{{image.out(), POLLIN, 0}, {errors.out(), POLLIN, 0}}}, texts, place.while_drawing);
  int problem = 0;
  if (read(refusal.out(), &problem, sizeof(problem)) != sizeof(problem)) problem = 0;
  const int status = child.wait();
  if (problem != 0) {
    return schema::fail(
        fmt::format("{}: cannot be started ({}); install gnuplot, on Debian the package "
                    "gnuplot-nox",
                    place.gnuplot, std::strerror(problem)));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return schema::fail_work(
        fmt::format("{}: gnuplot failed: {}; mend the script or the figure's columns",
                    plot.string(), complaint(texts[1])));
  }
  if (texts[0].empty()) {
    return schema::fail_work(
        fmt::format("{}: gnuplot drew nothing; the script must write to the file that "
                    "is its second argument",
                    plot.string()));
  }
  return std::move(texts[0]);
}

}  // namespace

std::string csv_number(double value) {
  return std::isinf(value) ? "inf" : fmt::format("{}", value);
}

// Columns that may be empty come before one that never is, since gnuplot misreads an empty last
// cell.
std::string csv_of(std::span<const DrawnRow> rows) {
  std::string csv =
      "series,label,series_index,style,x,x_label,x_index,y,y_low,y_high,repetitions,"
      "paper_average,noisy,text\n";
  for (const DrawnRow& row : rows) {
    csv +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", schema::csv_cell(row.series),
                    schema::csv_cell(row.label), row.series_index, row.style,
                    schema::csv_cell(row.x), schema::csv_cell(row.x_label), row.x_index,
                    csv_number(row.y), csv_number(row.low), csv_number(row.high), row.repetitions,
                    row.paper_average, row.noisy, bar_text(row.y) + (row.noisy > 0 ? "*" : ""));
  }
  return csv;
}

schema::Expected<Files> copy_scripts(const DrawingPlace& place) {
  Files files;
  std::error_code problem;
  fs::create_directories(place.copies, problem);
  for (const fs::path& script : names_in(place.plots)) {
    if (script.extension() != ".gp") continue;
    const fs::path copy = place.copies / script.filename();
    const auto text = harness::read_whole(script);
    if (!text) {
      return schema::fail_work(fmt::format("{}: {}", script.string(), not_a_file(script)));
    }
    if (auto written = write_file(copy, *text); !written) return tl::unexpected(written.error());
    files.push_back(copy);
  }
  return files;
}

schema::Expected<Drawn> draw(const Drawing& drawing, const DrawingPlace& place) {
  std::error_code problem;
  fs::create_directories(place.figures, problem);
  const auto file = [&](const char* kind) { return place.figures / (drawing.name + kind); };
  const fs::path script = file(".gp");
  Drawn drawn{.files = {file(".csv"), script}, .problem = {}};
  auto written = write_file(drawn.files[0], drawing.csv);
  if (written) written = write_file(script, script_of(drawing, place));
  if (!written) return tl::unexpected(written.error());
  const fs::path plot = place.plots / (drawing.script + ".gp");
  for (const std::string format : {"svg", "png"}) {
    const fs::path target = place.figures / (drawing.name + "." + format);
    const auto image = run_gnuplot(place, script, plot, format);
    if (!image) {
      fs::remove(target, problem);
      if (!drawn.problem) drawn.problem = image.error();
      continue;
    }
    written = write_file(target, *image);
    if (!written) return tl::unexpected(written.error());
    drawn.files.push_back(target);
  }
  return drawn;
}

}  // namespace perdura::report
