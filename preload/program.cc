#include "preload/program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace perdura::preload {

using services::MemoryRange;

namespace {

// The primary's file is the first one that the environment names.
std::string file_of_environment() {
  const std::string files = std::getenv("PERDURA_MOJIM_FILES");
  return files.substr(0, files.find(':'));
}

void write_line(const char* format, std::va_list arguments) {
  constexpr std::size_t kMost = 600;
  char line[kMost] = "perdura mojim: ";
  std::size_t length = std::strlen(line);
  const int more = std::vsnprintf(line + length, kMost - 1 - length, format, arguments);
  length = std::min(kMost - 2, length + static_cast<std::size_t>(std::max(more, 0)));
  line[length++] = '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, length);
}

}  // namespace

Program::Program() : path_(file_of_environment()), requests_(path_) {}

void Program::say(const char* format, ...) {
  const int before = errno;
  std::va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
  errno = before;
}

bool Program::is_file(int descriptor) const {
  const int before = errno;
  struct stat its {};
  bool is = false;
  if (fstat(descriptor, &its) == 0) {
    struct stat ours {};
    is = has_begun()
             ? requests_.is(its.st_dev, its.st_ino)
             : stat(path(), &ours) == 0 && ours.st_ino == its.st_ino && ours.st_dev == its.st_dev;
  }
  errno = before;
  return is;
}

bool Program::is_replicated(int folder, const char* name, bool follows) const {
  if (!has_begun() || name == nullptr) return false;
  const int before = errno;
  struct stat its {};
  const bool is = fstatat(folder, name, &its, follows ? 0 : AT_SYMLINK_NOFOLLOW) == 0 &&
                  requests_.is(its.st_dev, its.st_ino);
  errno = before;
  return is;
}

bool Program::begin() {
  if (is_used()) return true;
  requests_.add_process(getpid());
  if (!has_begun() && ask({.kind = SyncRequest::begin}) != 0) return false;
  is_used_ = true;
  return true;
}

void Program::note_fork() {
  if (is_used()) requests_.add_process(getpid());
}

int Program::ask(const Requests::Question& question) {
  const int before = errno;
  const Requests::Answer answer = requests_.ask(question);
  errno = before;
  if (answer.error == 0) return 0;
  written_.forget();
  say("%s", answer.why);
  errno = answer.error;
  return -1;
}

int Program::sync(std::span<const MemoryRange> ranges, Atomicity atomicity) {
  if (!begin()) return -1;
  Requests::Question question{.ranges = ranges, .atomicity = atomicity};
  // Comparing this much takes as long as asking the kernel.
  constexpr Bytes kLittle = 256 * KiB;
  Bytes length = 0;
  for (const MemoryRange& range : ranges) length += range.length;
  MemoryRange changed[SyncRequest::kMostChanged];
  if (length <= kLittle) {
    question.where = Where::ranges;
  } else if (requests_.uses() == 1) {
    const int before = errno;
    if (const auto count = written_.take(requests_.inode(), changed)) {
      question.where = Where::changed;
      question.changed = {changed, *count};
    }
    errno = before;
  }
  return ask(question);
}

int Program::sync_all() {
  if (!begin()) return -1;
  const MemoryRange all{0, size()};
  return sync({&all, 1});
}

int Program::check_name() const {
  if (!has_begun() || is_replicated(AT_FDCWD, path(), true)) return 0;
  say("%s is another file than the one that is replicated: it has been removed, renamed, or made "
      "again",
      path());
  errno = EIO;
  return -1;
}

int Program::settle() { return ask({.kind = SyncRequest::settle}); }

FoundParts Program::find(const void* address, std::size_t length,
                         std::span<MemoryRange> ranges) const {
  std::uint64_t inode = 0;
  if (has_begun()) {
    inode = requests_.inode();
  } else {
    struct stat ours {};
    if (stat(path(), &ours) == 0) inode = ours.st_ino;
  }
  return find_parts(reinterpret_cast<std::uintptr_t>(address), length, inode, ranges);
}

}  // namespace perdura::preload
