#include "platform/base/report_line.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace perdura {

namespace {

// Opens the same pipe or terminal without blocking. The flag of the descriptor itself must not be
// changed: it is shared with other processes, which may rely on it.
int open_without_waiting() {
  return ::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

// The line is written by one call, so that lines of several threads do not mix.
void report_line(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  struct stat info {};
  if (::fstat(STDERR_FILENO, &info) != 0) return;
  if (S_ISSOCK(info.st_mode)) {
    ::send(STDERR_FILENO, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return;
  }
  const bool may_wait = S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode);
  const int own = may_wait ? open_without_waiting() : -1;
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  // If it cannot be opened, for example because it belongs to another user: writes only if there is
  // room now.
  if (own < 0 && may_wait && (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0)) return;
  [[maybe_unused]] const auto written =
      ::write(own >= 0 ? own : STDERR_FILENO, text.data(), text.size());
  if (own >= 0) ::close(own);
}

}  // namespace perdura
