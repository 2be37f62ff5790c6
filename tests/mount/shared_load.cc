#include "tests/mount/shared_load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

namespace perdura::test {

namespace {

namespace files = std::filesystem;

struct CellHeader {
  std::uint32_t magic = 0x6c6c6563;
  std::uint32_t writer = 0;
  std::uint32_t file = 0;
  std::uint32_t version = 0;
  std::uint32_t cell = 0;
  bool operator==(const CellHeader&) const = default;
};

using Cell = std::array<char, kCellBytes>;

Cell cell_of(const CellHeader& header) {
  Cell cell{};
  cell.fill(static_cast<char>('a' + (header.version * 7 + header.cell) % 26));
  std::memcpy(cell.data(), &header, sizeof header);
  return cell;
}

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void wait_briefly() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

class Descriptor {
 public:
  Descriptor(const files::path& path, int flags) : number_(open(path.c_str(), flags, 0644)) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return number_; }

 private:
  int number_;
};

files::path path_in(const files::path& mount, std::size_t writer, std::size_t file) {
  return mount / fmt::format("writer{}", writer) / fmt::format("file{}", file);
}

struct ReadVersion {
  int error = 0;      // why it cannot be read
  std::string wrong;  // in what it is no version of the file
  FileVersion version;
};

ReadVersion read_version(const files::path& path, std::size_t writer, std::size_t number) {
  ReadVersion read;
  const Descriptor file(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno != ENOENT) read.error = errno;
    return read;
  }
  std::array<char, kMostCells * kCellBytes + 1> bytes{};
  const ssize_t length = pread(file, bytes.data(), bytes.size(), 0);
  if (length < 0) {
    read.error = errno;
    return read;
  }
  read.version.exists = true;
  read.version.cells = static_cast<std::uint32_t>(length) / kCellBytes;
  if (static_cast<std::size_t>(length) != read.version.cells * kCellBytes) {
    read.wrong = fmt::format("has {} bytes", length);
    return read;
  }
  for (std::uint32_t cell = 0; cell < read.version.cells; ++cell) {
    Cell found{};
    std::memcpy(found.data(), bytes.data() + cell * kCellBytes, kCellBytes);
    if (found == Cell{}) continue;
    CellHeader header;
    std::memcpy(&header, found.data(), sizeof header);
    CellHeader expected{.writer = static_cast<std::uint32_t>(writer),
                        .file = static_cast<std::uint32_t>(number),
                        .version = header.version,
                        .cell = cell};
    if (header != expected || found != cell_of(expected)) {
      read.wrong = fmt::format(
          "cell {} is torn or another one: {:08x} of writer {}, file {}, version {}, cell {}", cell,
          header.magic, header.writer, header.file, header.version, header.cell);
      return read;
    }
    read.version.versions.at(cell) = header.version;
  }
  return read;
}

std::string describe(const FileVersion& version) {
  if (!version.exists) return "absent";
  std::string text = fmt::format("{} cells", version.cells);
  for (std::uint32_t i = 0; i < version.cells; ++i) {
    text += fmt::format(" {}", version.versions.at(i));
  }
  return text;
}

// Returns in what the file is none of the versions that it may have.
std::string check_file(FileRecord& file, const ReadVersion& read, std::uint32_t first) {
  const std::uint32_t last = file.begun;
  if (last - first >= kVersionsKept - 1) return "";
  if (!read.wrong.empty()) return read.wrong;
  std::string possible;
  for (std::uint32_t version = first; version != last + 1; ++version) {
    if (file.version(version) == read.version) return "";
    possible += fmt::format("; {}: {}", version, describe(file.version(version)));
  }
  return fmt::format("is {}, and not{}", describe(read.version), possible);
}

constexpr std::size_t kShortestAppend = 40;
constexpr std::uint32_t kAppendSizes = 700;

std::string text_of_append(std::size_t writer, std::uint32_t number) {
  std::string text = fmt::format("{}:{}:", writer, number);
  const std::size_t length = kShortestAppend + number * 37 % kAppendSizes;
  text.resize(length - 1, static_cast<char>('A' + number % 26));
  return text + "\n";
}

}  // namespace

bool FileVersion::operator==(const FileVersion& other) const {
  return exists == other.exists && cells == other.cells &&
         std::equal(versions.begin(), versions.begin() + cells, other.versions.begin());
}

void LoadRecord::note(const std::string& what) {
  if (is_wrong.exchange(true)) return;
  const std::size_t length = std::min(what.size(), wrong.size() - 1);
  std::memcpy(wrong.data(), what.data(), length);
}

std::uint64_t LoadRecord::calls() const {
  std::uint64_t sum = 0;
  for (const LoadWriterRecord& writer : writers) sum += writer.calls;
  return sum;
}

std::shared_ptr<LoadRecord> make_load_record() {
  void* const memory =
      mmap(nullptr, sizeof(LoadRecord), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory");
  return {new (memory) LoadRecord, [](LoadRecord* record) { munmap(record, sizeof(LoadRecord)); }};
}

double longest_call(const LoadRecord& record) {
  std::int64_t longest = 0;
  for (const LoadWriterRecord& writer : record.writers) {
    const std::int64_t since = writer.since;
    if (since != 0) longest = std::max(longest, now() - since);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::duration(longest)).count();
}

// --- a writer

LoadWriter::LoadWriter(LoadRecord& record, MountPaths mounts, std::size_t number,
                       std::uint32_t seed)
    : record_(record),
      own_(record.writers.at(number)),
      mounts_(std::move(mounts)),
      number_(number),
      mount_(number % 2),
      random_(seed) {}

int LoadWriter::run() {
  own_.since = 0;
  bool is_settled = false;
  while (!record_.stops && !record_.is_wrong) {
    await_mount();
    own_.since = now();
    if (!is_settled) {
      is_settled = make_directory();
      for (std::size_t file = 0; is_settled && file < kLoadFiles; ++file) {
        is_settled = settle(file);
      }
    } else {
      const std::uint32_t choice = random(8);
      if (choice < 4) {
        change();
      } else if (choice < 5) {
        append();
      } else {
        read_some();
      }
    }
    own_.since = 0;
  }
  return record_.is_wrong ? 1 : 0;
}

void LoadWriter::await_mount() const {
  while (record_.mounts.at(mount_) % 2 != 0 && !record_.stops) wait_briefly();
}

LoadWriter::Excuses LoadWriter::excuses() const {
  return {record_.servers, record_.mounts.at(mount_)};
}

bool LoadWriter::are_excused(const Excuses& before) const {
  const auto excuses = [](std::uint32_t then, std::uint32_t now) {
    return then % 2 != 0 || now != then;
  };
  return excuses(before.servers, record_.servers) ||
         excuses(before.mount, record_.mounts.at(mount_));
}

bool LoadWriter::succeeded(const Excuses& before, bool success, const std::string& what) {
  const int error = errno;
  if (success) {
    ++own_.calls;
    return true;
  }
  if (!are_excused(before)) {
    record_.note(
        fmt::format("writer {}, {}: {}, without a cause", number_, what, std::strerror(error)));
  }
  return false;
}

std::filesystem::path LoadWriter::path_of(std::size_t file) const {
  return path_in(mounts_.at(mount_), number_, file);
}

bool LoadWriter::make_directory() {
  const Excuses before = excuses();
  const files::path directory = path_of(0).parent_path();
  // Not in the directory below the mount.
  if (access((mounts_.at(mount_) / "log").c_str(), F_OK) != 0) {
    return succeeded(before, false, "access log");
  }
  const bool made = mkdir(directory.c_str(), 0755) == 0 || errno == EEXIST;
  return succeeded(before, made, "mkdir");
}

// Learns whether the last change was executed.
bool LoadWriter::settle(std::size_t file) {
  FileRecord& record = own_.files.at(file);
  const Excuses before = excuses();
  const ReadVersion read = read_version(path_of(file), number_, file);
  errno = read.error;
  if (read.error != 0) return succeeded(before, false, fmt::format("read file {}", file));
  // Perhaps in the directory below the mount.
  if (!read.version.exists && are_excused(before)) return false;
  if (read.wrong.empty() && read.version == record.version(record.begun)) {
    record.done = record.begun.load();
    return true;
  }
  if (read.wrong.empty() && read.version == record.version(record.done)) {
    record.begun = record.done.load();
    return true;
  }
  record_.note(fmt::format("writer {} looks at file {}: {}", number_, file,
                           check_file(record, read, record.done)));
  return false;
}

void LoadWriter::change() {
  const std::size_t file = random(kLoadFiles);
  FileRecord& record = own_.files.at(file);
  if (record.begun != record.done && !settle(file)) return;
  const std::uint32_t version = record.done + 1;
  FileVersion next = record.version(record.done);
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  // 0, 1: replaced; 2 to 4: overwritten or appended to; 5: truncated; 6: removed.
  const std::uint32_t kind = next.exists ? random(7) : random(2);
  if (kind < 2) {
    const bool is_empty = !next.exists && kind == 1;
    next.exists = true;
    next.cells = is_empty ? 0 : random(kMostCells + 1);
    next.versions.fill(version);
  } else if (kind < 5) {
    first = random(2) == 0 ? next.cells : random(next.cells + 1);
    if (first == kMostCells) first = random(kMostCells);
    end = first + 1 + random(kMostCells - first);
    next.cells = std::max(next.cells, end);
    for (std::uint32_t cell = first; cell < end; ++cell) next.versions.at(cell) = version;
  } else if (kind == 5) {
    const std::uint32_t before = next.cells;
    next.cells = random(kMostCells + 1);
    for (std::uint32_t cell = before; cell < next.cells; ++cell) next.versions.at(cell) = 0;
  } else {
    next = FileVersion{};
  }
  record.version(version) = next;
  record.begun = version;
  bool done = false;
  if (kind < 2) {
    done = replace(file, next);
  } else if (kind < 6) {
    done = use_open(file, next, first, end, kind == 5);
  } else {
    const Excuses before = excuses();
    done =
        succeeded(before, unlink(path_of(file).c_str()) == 0, fmt::format("unlink file {}", file));
  }
  if (done) record.done = version;
}

bool LoadWriter::write_cells(int opened, std::size_t file, std::uint32_t first,
                             const FileVersion& version, std::uint32_t end) {
  std::vector<char> bytes;
  for (std::uint32_t cell = first; cell < end; ++cell) {
    const Cell one = cell_of({.writer = static_cast<std::uint32_t>(number_),
                              .file = static_cast<std::uint32_t>(file),
                              .version = version.versions.at(cell),
                              .cell = cell});
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  const auto length = static_cast<ssize_t>(bytes.size());
  return pwrite(opened, bytes.data(), bytes.size(), static_cast<off_t>(first * kCellBytes)) ==
         length;
}

bool LoadWriter::replace(std::size_t file, const FileVersion& next) {
  const Excuses before = excuses();
  const files::path path = path_of(file);
  if (next.cells == 0) {
    const bool existed = own_.files.at(file).version(own_.files.at(file).done).exists;
    const Descriptor made(path, O_WRONLY | O_CREAT | O_CLOEXEC | (existed ? O_TRUNC : O_EXCL));
    return succeeded(before, made >= 0, fmt::format("create file {}", file));
  }
  const files::path other = path.parent_path() / "new";
  {
    const Descriptor made(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    if (!succeeded(before, made >= 0, "create new")) return false;
    if (!succeeded(before, write_cells(made, file, 0, next, next.cells), "write new")) return false;
    if (random(2) == 0 && !succeeded(before, fsync(made) == 0, "fsync new")) return false;
  }
  return succeeded(before, rename(other.c_str(), path.c_str()) == 0,
                   fmt::format("rename new to file {}", file));
}

bool LoadWriter::use_open(std::size_t file, const FileVersion& next, std::uint32_t first,
                          std::uint32_t end, bool truncates) {
  const Excuses before = excuses();
  const Descriptor opened(path_of(file), O_WRONLY | O_CLOEXEC);
  if (!succeeded(before, opened >= 0, fmt::format("open file {}", file))) return false;
  const bool changed = truncates
                           ? ftruncate(opened, static_cast<off_t>(next.cells * kCellBytes)) == 0
                           : write_cells(opened, file, first, next, end);
  if (!succeeded(before, changed, fmt::format("change file {}", file))) return false;
  if (random(4) == 0) succeeded(before, fdatasync(opened) == 0, fmt::format("sync file {}", file));
  return true;
}

void LoadWriter::append() {
  const std::uint32_t number = own_.appends;
  if (number == kMostAppends) return;
  own_.log.at(number) = AppendState::begun;
  own_.appends = number + 1;
  const Excuses before = excuses();
  const Descriptor log(mounts_.at(mount_) / "log", O_WRONLY | O_APPEND | O_CLOEXEC);
  if (!succeeded(before, log >= 0, "open log")) return;
  const std::string text = text_of_append(number_, number);
  const bool written = write(log, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (succeeded(before, written, "append")) own_.log.at(number) = AppendState::done;
}

void LoadWriter::read_some() {
  const std::size_t writer = random(kLoadWriters);
  const std::size_t file = random(kLoadFiles);
  FileRecord& record = record_.writers.at(writer).files.at(file);
  const Excuses before = excuses();
  const std::uint32_t first = record.done;
  const ReadVersion read = read_version(path_in(mounts_.at(mount_), writer, file), writer, file);
  errno = read.error;
  if (!succeeded(before, read.error == 0, fmt::format("read {} of writer {}", file, writer))) {
    return;
  }
  if (!read.version.exists && are_excused(before)) return;
  if (const std::string wrong = check_file(record, read, first); !wrong.empty()) {
    record_.note(
        fmt::format("writer {} reads file {} of writer {}: {}", number_, file, writer, wrong));
  }
}

// --- from outside

namespace {

// Says of the bytes at an append's place whose append they are, if anybody's.
std::string describe_append(const std::string& found) {
  std::size_t writer = 0;
  std::uint32_t number = 0;
  if (std::sscanf(found.c_str(), "%zu:%u:", &writer, &number) != 2) {
    return fmt::format("'{}' is none", found.substr(0, 80));
  }
  const std::string whole = text_of_append(writer, number);
  const auto differs = std::mismatch(whole.begin(), whole.end(), found.begin(), found.end());
  const auto from = static_cast<std::size_t>(differs.first - whole.begin());
  return fmt::format("append {} of writer {}, {} bytes, has from byte {} on '{}'", number, writer,
                     whole.size(), from, found.substr(from, 80));
}

}  // namespace

std::string check_files(LoadRecord& record, const files::path& mount) {
  for (std::size_t writer = 0; writer < kLoadWriters; ++writer) {
    for (std::size_t file = 0; file < kLoadFiles; ++file) {
      FileRecord& one = record.writers.at(writer).files.at(file);
      const std::uint32_t first = one.done;
      const ReadVersion read = read_version(path_in(mount, writer, file), writer, file);
      std::string wrong =
          read.error != 0 ? std::strerror(read.error) : check_file(one, read, first);
      if (!wrong.empty()) return fmt::format("file {} of writer {}: {}", file, writer, wrong);
    }
  }
  return "";
}

std::string LogReader::check(const files::path& mount) {
  std::array<std::uint32_t, kLoadWriters> before{};
  std::array<std::vector<bool>, kLoadWriters> done;
  for (std::size_t writer = 0; writer < kLoadWriters; ++writer) {
    LoadWriterRecord& one = record_.writers.at(writer);
    before.at(writer) = one.appends;
    for (std::uint32_t i = 0; i < before.at(writer); ++i) {
      done.at(writer).push_back(one.log.at(i) == AppendState::done);
    }
  }
  const Descriptor log(mount / "log", O_RDONLY | O_CLOEXEC);
  std::string text;
  std::array<char, 65536> part{};
  for (;;) {
    const ssize_t length =
        pread(log, part.data(), part.size(), static_cast<off_t>(offset_ + text.size()));
    if (length < 0) return fmt::format("log: {}", std::strerror(errno));
    if (length == 0) break;
    text.append(part.data(), static_cast<std::size_t>(length));
  }
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t writer = 0;
    std::uint32_t number = 0;
    const std::string here = text.substr(at, kShortestAppend + kAppendSizes);
    if (std::sscanf(here.c_str(), "%zu:%u:", &writer, &number) != 2 || writer >= kLoadWriters ||
        !here.starts_with(text_of_append(writer, number))) {
      return fmt::format("log at {}: {}", offset_ + at, describe_append(here));
    }
    std::vector<bool>& seen = seen_.at(writer);
    if (number < seen.size()) {
      return fmt::format("log at {}: append {} of writer {} comes after {}", offset_ + at, number,
                         writer, seen.size() - 1);
    }
    seen.resize(number + 1);
    seen[number] = true;
    at += text_of_append(writer, number).size();
  }
  offset_ += at;
  for (std::size_t writer = 0; writer < kLoadWriters; ++writer) {
    for (std::uint32_t i = 0; i < before.at(writer); ++i) {
      const bool is_there = i < seen_.at(writer).size() && seen_.at(writer)[i];
      if (done.at(writer)[i] && !is_there) {
        return fmt::format("log: append {} of writer {} is lost", i, writer);
      }
    }
  }
  return "";
}

}  // namespace perdura::test
