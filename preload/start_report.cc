#include "preload/start_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "platform/base/error.h"
#include "platform/base/limits.h"

namespace perdura::preload {
namespace {

const std::string kServes = "serves";

// In one piece, since others write to the same pipe.
bool report(int pipe, std::string line) {
  line += '\n';
  const bool done = write(pipe, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(pipe);
  return done;
}

}  // namespace

bool serve_and_report(int pipe,
                      const std::function<void(const std::function<void()>& serves)>& serve) {
  bool is_reported = false;
  try {
    serve([&] {
      if (!report(pipe, kServes)) throw PlatformError("nobody waits for this process");
      is_reported = true;
    });
  } catch (const std::exception& error) {
    if (is_reported || !report(pipe, problem_text(error))) throw;
    return false;
  }
  return true;
}

std::string why_not_serving(int pipe, std::size_t processes, const std::string& who) {
  std::string line;
  for (char one = 0; processes > 0;) {
    const ssize_t length = read(pipe, &one, 1);
    if (length < 0 && errno == EINTR) continue;
    if (length != 1) return fmt::format("{} has ended; see above", who);
    if (one != '\n') {
      line += one;
      continue;
    }
    if (line != kServes) return line;
    line.clear();
    --processes;
  }
  return "";
}

}  // namespace perdura::preload
