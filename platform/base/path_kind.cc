#include "platform/base/path_kind.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>

#include "platform/base/error.h"

namespace perdura {

namespace fs = std::filesystem;

namespace {

struct Answer {
  fs::file_status status;
  std::string unknown;  // why there is no answer
};

Answer answer_of(fs::file_status (*ask)(const fs::path&, std::error_code&) noexcept,
                 const fs::path& path) {
  std::error_code problem;
  const fs::file_status status = ask(path, problem);
  // A missing folder on the way, or a file in its place, is an answer, too: nothing is there.
  if (fs::status_known(status)) return {status, ""};
  return {status, fmt::format("cannot be examined: {}", problem.message())};
}

Answer answer_of(const fs::path& path) { return answer_of(&fs::status, path); }

// The reason why this user cannot read a file that exists.
std::string why_not_open(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fmt::format("cannot be read: {}", std::strerror(errno));
  ::close(descriptor);
  return "cannot be read";
}

fs::file_status known(const fs::path& path, const Answer& answer) {
  if (answer.unknown.empty()) return answer.status;
  throw PlatformError(fmt::format("{}: {}", path.string(), answer.unknown));
}

}  // namespace

PathKind kind_of(const fs::path& path) {
  const Answer answer = answer_of(path);
  if (!answer.unknown.empty()) return PathKind::unknown;
  if (fs::is_regular_file(answer.status)) return PathKind::file;
  if (fs::is_directory(answer.status)) return PathKind::folder;
  return fs::exists(answer.status) ? PathKind::other : PathKind::nothing;
}

bool is_there(const fs::path& path) { return fs::exists(known(path, answer_of(path))); }
bool is_folder(const fs::path& path) { return fs::is_directory(known(path, answer_of(path))); }
bool is_file(const fs::path& path) { return fs::is_regular_file(known(path, answer_of(path))); }
bool is_link(const fs::path& path) {
  return fs::is_symlink(known(path, answer_of(&fs::symlink_status, path)));
}

// By the system's own calls: where the C++ library's iteration is refused memory, it ends the
// program, and what the program has made or started stays.
std::vector<fs::path> names_in(const fs::path& folder, std::error_code& problem) {
  std::vector<fs::path> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  problem.assign(open ? 0 : errno, std::generic_category());
  if (!open) return names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(open.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.push_back(folder / name);
  }
  problem.assign(errno, std::generic_category());
  return names;
}

std::vector<fs::path> names_in(const fs::path& folder) {
  std::error_code problem;
  std::vector<fs::path> names = names_in(folder, problem);
  if (!problem || problem == std::errc::no_such_file_or_directory) return names;
  throw PlatformError(fmt::format("{}: cannot be read: {}", folder.string(), problem.message()));
}

std::string not_a_folder(const fs::path& path) {
  const Answer answer = answer_of(path);
  if (!answer.unknown.empty()) return answer.unknown;
  if (fs::is_regular_file(answer.status)) return "is a file, not a folder";
  return fs::exists(answer.status) ? "is neither a file nor a folder; give a folder"
                                   : "there is no such folder";
}

std::string not_a_file(const fs::path& path) {
  const Answer answer = answer_of(path);
  if (!answer.unknown.empty()) return answer.unknown;
  if (fs::is_directory(answer.status)) return "is a folder; give a file";
  if (fs::is_regular_file(answer.status)) return why_not_open(path);
  return fs::exists(answer.status) ? "is neither a file nor a folder; give a file"
                                   : "there is no such file";
}

}  // namespace perdura
