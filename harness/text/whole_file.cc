#include "harness/text/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"

namespace perdura::harness {

std::optional<std::string> read_whole(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  // The size is only a hint: files in /proc and pipes report none, and others may grow meanwhile.
  struct stat status {};
  const bool sized = ::fstat(descriptor, &status) == 0 && status.st_size > 0;
  std::string bytes(sized ? static_cast<std::size_t>(status.st_size) + 1 : 4096, '\0');
  std::size_t filled = 0;
  bool whole = false;
  while (!whole) {
    if (filled == bytes.size()) bytes.resize(2 * filled);
    const ssize_t count = ::read(descriptor, bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    filled += static_cast<std::size_t>(count);
    whole = count == 0;
  }
  ::close(descriptor);
  if (!whole) return std::nullopt;
  bytes.resize(filled);
  return bytes;
}

std::string read_if_there(const std::filesystem::path& file) {
  if (auto bytes = read_whole(file)) return std::move(*bytes);
  if (kind_of(file) == PathKind::nothing) return "";
  throw PlatformError(fmt::format("{}: {}", file.string(), not_a_file(file)));
}

}  // namespace perdura::harness
