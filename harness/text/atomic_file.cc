#include "harness/text/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "platform/base/error.h"

namespace perdura::harness {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, int code) {
  throw PlatformError(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(code)));
}

// Returns 0 or the error number.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// Writes into an existing pipe or terminal, which must not be replaced by a file.
void write_through(const std::filesystem::path& file, std::string_view text) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) refuse(file, errno);
  int problem = write_all(descriptor, text);
  if (close(descriptor) != 0 && problem == 0) problem = errno;
  if (problem != 0) refuse(file, problem);
}

}  // namespace

void write_atomically(const std::filesystem::path& file, std::string_view text) {
  struct stat old {};
  if (stat(file.c_str(), &old) == 0 && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode)) {
    write_through(file, text);
    return;
  }
  const std::string temporary = fmt::format("{}.{}.tmp", file.string(), getpid());
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) refuse(file, errno);
  int problem = write_all(descriptor, text);
  if (problem == 0 && fsync(descriptor) != 0) problem = errno;
  if (close(descriptor) != 0 && problem == 0) problem = errno;
  if (problem == 0 && rename(temporary.c_str(), file.c_str()) != 0) problem = errno;
  if (problem != 0) {
    unlink(temporary.c_str());
    refuse(file, problem);
  }
}

}  // namespace perdura::harness
