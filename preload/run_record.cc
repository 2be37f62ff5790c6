#include "preload/run_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <isa-l/crc64.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "preload/mapped_file.h"
#include "preload/state_folder.h"

namespace perdura::preload {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFirstLine = "perdura mojim run 1";
constexpr const char* kLastLine = "end";
constexpr std::array<std::string_view, 5> kEnds{"anew", "open", "settled", "failed", "unequal"};

std::string path_of(const std::string& file) { return state_folder(file) + "/run"; }

void sync_name(const std::string& name, int flags) {
  const int descriptor = open(name.c_str(), flags | O_CLOEXEC);
  const bool is_synced = descriptor >= 0 && fsync(descriptor) == 0;
  const int problem = errno;
  if (descriptor >= 0) close(descriptor);
  if (!is_synced) throw PlatformError(fmt::format("{}: {}", name, std::strerror(problem)));
}

std::vector<std::uint64_t> checksums(const std::string& file) {
  const MappedFile mapped(file);
  std::vector<std::uint64_t> sums;
  const auto bytes = mapped.bytes();
  sums.reserve(bytes.size() / MappedFile::kPage + 1);
  for (Bytes at = 0; at < bytes.size(); at += MappedFile::kPage) {
    const Bytes length = std::min(MappedFile::kPage, bytes.size() - at);
    sums.push_back(
        crc64_ecma_refl(0, reinterpret_cast<const unsigned char*>(bytes.data() + at), length));
  }
  return sums;
}

}  // namespace

std::string new_run() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

std::optional<RunRecord> RunRecord::read(const std::string& file) {
  const std::string path = path_of(file);
  if (!is_there(path)) return std::nullopt;
  std::ifstream in(path);
  const auto line = [&] {
    std::string text;
    std::getline(in, text);
    return text;
  };
  RunRecord record;
  const bool is_known = line() == kFirstLine;
  record.run = line();
  const std::string end = line();
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    if (end == kEnds[i]) record.end = static_cast<End>(i);
  }
  record.cluster.mode = line();
  record.cluster.log = line();
  record.cluster.domain = line();
  std::size_t files = 0;
  std::size_t pages = 0;
  std::istringstream numbers(line());
  numbers >> record.node >> record.cluster.size >> record.cluster.ddio >> record.is_complete >>
      record.size >> files >> pages;
  bool is_whole = is_known && !numbers.fail() && files <= 64 && record.node < files;
  for (std::size_t i = 0; is_whole && i < files; ++i) record.cluster.files.push_back(line());
  for (std::size_t i = 0; is_whole && i < pages && in; ++i) {
    std::uint64_t sum = 0;
    in >> std::hex >> sum;
    record.pages.push_back(sum);
  }
  if (is_whole && pages > 0) line();
  if (!is_whole || line() != kLastLine) {
    throw UsageError(
        fmt::format("{}: is no record of a run; remove {} if its copies are not needed any more",
                    path, state_folder(file)));
  }
  return record;
}

void RunRecord::remove(const std::string& file) {
  if (unlink(path_of(file).c_str()) == 0) {
    sync_name(state_folder(file), O_RDONLY | O_DIRECTORY);
  } else if (errno != ENOENT) {
    throw PlatformError(fmt::format("{}: {}", path_of(file), std::strerror(errno)));
  }
}

void RunRecord::write(const std::string& file) const {
  const std::string path = path_of(file);
  const std::string made = path + ".new";
  {
    std::ofstream out(made, std::ios::trunc);
    out << kFirstLine << '\n'
        << run << '\n'
        << kEnds[static_cast<std::size_t>(end)] << '\n'
        << cluster.mode << '\n'
        << cluster.log << '\n'
        << cluster.domain << '\n'
        << fmt::format("{} {} {:d} {:d} {} {} {}\n", node, cluster.size, cluster.ddio, is_complete,
                       size, cluster.files.size(), pages.size());
    for (const std::string& name : cluster.files) out << name << '\n';
    for (const std::uint64_t sum : pages) out << fmt::format("{:x}\n", sum);
    out << kLastLine << '\n';
    out.close();
    if (!out) {
      unlink(made.c_str());
      throw PlatformError(
          fmt::format("{}: cannot be written; is its file system full? The next run compares the "
                      "files",
                      path));
    }
  }
  sync_name(made, O_RDONLY);
  if (rename(made.c_str(), path.c_str()) != 0) {
    throw PlatformError(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  sync_name(state_folder(file), O_RDONLY | O_DIRECTORY);
}

void RunRecord::note_contents(const std::string& file) {
  if (!is_there(file)) return;
  pages = checksums(file);
  size = fs::file_size(file);
}

bool RunRecord::is_unchanged(const std::string& file) const {
  return end != End::anew && end != End::open && is_there(file) && fs::file_size(file) == size &&
         checksums(file) == pages;
}

}  // namespace perdura::preload
