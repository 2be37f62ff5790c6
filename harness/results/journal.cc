#include "harness/results/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "harness/results/hash.h"
#include "harness/text/atomic_file.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMark = 0x31'4e'52'55'4a'44'52'50;  // "PRDJURN1"

struct Header {
  std::uint64_t mark = kMark;
  std::uint64_t size = 0;
  std::uint64_t content_hash = 0;
  std::uint64_t hash = 0;

  std::uint64_t right_hash() const {
    const std::array<std::uint64_t, 3> words{mark, size, content_hash};
    return hash_of({reinterpret_cast<const char*>(words.data()), sizeof(words)});
  }
  bool right() const { return mark == kMark && hash == right_hash(); }
};

std::string record_of(std::string_view content) {
  Header header{.size = content.size(), .content_hash = hash_of(content)};
  header.hash = header.right_hash();
  std::string record(sizeof(header) + content.size(), '\0');
  std::memcpy(record.data(), &header, sizeof(header));
  std::copy(content.begin(), content.end(), record.begin() + sizeof(header));
  return record;
}

struct Scan {
  std::vector<std::string> records;
  std::size_t whole = 0;  // length in bytes of all complete records
  bool damaged = false;   // something other than an incomplete record follows
};

Scan scan(std::string_view bytes) {
  Scan found;
  for (;;) {
    const std::string_view rest = bytes.substr(found.whole);
    if (rest.size() < sizeof(Header)) return found;
    Header header;
    std::memcpy(&header, rest.data(), sizeof(header));
    if (!header.right()) {
      // Zeros are no damage: after a power failure, a file system may have extended the file
      // without writing its data.
      found.damaged = rest.find_first_not_of('\0') != std::string_view::npos;
      return found;
    }
    const std::string_view behind = rest.substr(sizeof(header));
    if (behind.size() < header.size) return found;
    const std::string_view content = behind.substr(0, header.size);
    if (hash_of(content) != header.content_hash) {
      found.damaged = behind.size() > header.size;
      return found;
    }
    found.records.emplace_back(content);
    found.whole += sizeof(header) + header.size;
  }
}

[[noreturn]] void refuse(const fs::path& file, int code) {
  throw PlatformError(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(code)));
}

// The first of the names journal.damaged-1, journal.damaged-2, ... that does not exist.
fs::path free_name_beside(const fs::path& file) {
  for (std::uint64_t n = 1;; ++n) {
    fs::path name = fmt::format("{}.damaged-{}", file.string(), n);
    if (!is_there(name)) return name;
  }
}

int open_locked(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) refuse(file, errno);
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  close(descriptor);
  throw UsageError(
      fmt::format("{}: another process is at work on this sweep; wait for its end", file.string()));
}

}  // namespace

Journal Journal::create(const fs::path& file, std::string_view first) {
  write_atomically(file, record_of(first));
  return {file, open_locked(file)};
}

Journal Journal::open(const fs::path& file, IfDamaged if_damaged) {
  Journal journal(file, open_locked(file));
  const std::string bytes = read_if_there(file);
  Scan found = scan(bytes);
  if (found.records.empty()) {
    throw UsageError(
        fmt::format("{}: damaged at byte {}, and nothing before it is whole: restore the file, or "
                    "run the experiment again in a new folder",
                    file.string(), found.whole));
  }
  if (found.damaged) {
    const std::string where =
        fmt::format("{}: damaged at byte {} of {}", file.string(), found.whole, bytes.size());
    if (if_damaged == IfDamaged::refuse) {
      throw UsageError(fmt::format(
          "{}; restore the file, or add --cut-back to go on from the {} record{} before "
          "it: the points after it are run again, and the damaged file is kept",
          where, found.records.size(), found.records.size() == 1 ? "" : "s"));
    }
    const fs::path kept = free_name_beside(file);
    write_atomically(kept, bytes);
    journal.cut_back_ = fmt::format(
        "{}; cut back to the {} record{} before it, {} bytes are lost; the damaged "
        "file is kept as {}",
        where, found.records.size(), found.records.size() == 1 ? "" : "s",
        bytes.size() - found.whole, kept.string());
  }
  if (found.whole < bytes.size() &&
      (ftruncate(journal.descriptor_, static_cast<off_t>(found.whole)) != 0 ||
       fsync(journal.descriptor_) != 0)) {
    refuse(file, errno);
  }
  journal.records_ = std::move(found.records);
  return journal;
}

Journal::~Journal() {
  if (descriptor_ >= 0) close(descriptor_);
}

Journal::Journal(Journal&& other) noexcept
    : file_(std::move(other.file_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      records_(std::move(other.records_)),
      cut_back_(std::move(other.cut_back_)) {}

Journal& Journal::operator=(Journal&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(records_, other.records_);
  std::swap(cut_back_, other.cut_back_);
  return *this;
}

void Journal::append(std::string_view content) {
  const std::string record = record_of(content);
  const off_t end = lseek(descriptor_, 0, SEEK_END);
  std::string_view left = record;
  while (!left.empty()) {
    const ssize_t written = write(descriptor_, left.data(), left.size());
    if (written >= 0) {
      left.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      const int problem = errno;
      // A partial record is useless, and on a full disk its space is needed, so it is cut off.
      [[maybe_unused]] const int cut = ftruncate(descriptor_, end);
      refuse(file_, problem);
    }
  }
  if (fsync(descriptor_) != 0) refuse(file_, errno);
}

}  // namespace perdura::harness
