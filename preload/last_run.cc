#include "preload/last_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "preload/mapped_file.h"
#include "preload/requests.h"
#include "preload/shared_readers.h"

namespace perdura::preload {

namespace fs = std::filesystem;

namespace {

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte one) { return one == std::byte{}; });
}

// Returns the file that was changed last, as a hint for the user; nothing is decided by it.
std::string newer(const std::string& a, const std::string& b) {
  std::error_code error;
  const auto of_a = fs::last_write_time(a, error);
  if (error) return b;
  const auto of_b = fs::last_write_time(b, error);
  return error || of_a > of_b ? a : b;
}

std::string describe(const std::string& a, const std::string& b) {
  const Difference found = difference(a, b);
  if (found.bytes == 0) return fmt::format("{} and {} are equal", a, b);
  return fmt::format(
      "{} and {} differ in {} bytes, in pages: {}, the first at offset {}; {} was written to last",
      a, b, found.bytes, found.pages, found.first, newer(a, b));
}

void remove_logs(const std::string& file) {
  const fs::path folder = state_folder(file);
  const std::string name = std::string(kRegion) + ".logs";
  fs::remove(folder / "log" / name);
  fs::remove(folder / name);
}

// Copies the contents into the existing file, so that this keeps its other names.
void copy_contents(const std::string& from, const std::string& to) {
  const MappedFile source(from);
  const auto bytes = source.bytes();
  const int descriptor = open(to.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  bool is_done = descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(bytes.size())) == 0;
  for (Bytes at = 0; is_done && at < bytes.size();) {
    const ssize_t length =
        pwrite(descriptor, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    is_done = length > 0;
    if (is_done) at += static_cast<Bytes>(length);
  }
  is_done = is_done && fsync(descriptor) == 0;
  const int problem = errno;
  if (descriptor >= 0) close(descriptor);
  if (!is_done) throw PlatformError(fmt::format("{}: {}", to, std::strerror(problem)));
}

// The files of a cluster as a run finds them.
class ClusterFiles {
 public:
  explicit ClusterFiles(const Cluster& cluster) : files_(cluster.files) {
    for (const std::string& file : files_) {
      records_.push_back(RunRecord::read(file));
      is_blank_.push_back(!records_.back() && is_zero(MappedFile(file).bytes()));
    }
  }

  // Returns the reason why the contents of the files do not follow from what the last run has left;
  // nothing if they do.
  std::optional<std::string> why_unclear() {
    if (std::all_of(is_blank_.begin() + 1, is_blank_.end(), [](bool blank) { return blank; })) {
      return why_alone_unclear();
    }
    if (is_blank_[0]) return fmt::format("{} is empty, or does not exist", files_[0]);
    for (NodeId node = 0; node < files_.size(); ++node) {
      if (is_blank_[node]) continue;
      if (const auto why = why_unclear(node)) return why;
    }
    // The copy that has what was synced cannot be distinguished from a new one.
    if (has_new_copy() && records_[0]->end != RunRecord::End::settled) {
      return fmt::format("the last run of {} has failed, and a copy is new", files_[0]);
    }
    return std::nullopt;
  }
  // True if a run has left the primary's file, and some copy is new, without contents.
  bool has_new_copy() const {
    return records_[0] && std::count(is_blank_.begin() + 1, is_blank_.end(), true) > 0;
  }
  bool has_other_roles() const {
    for (NodeId node = 0; node < files_.size(); ++node) {
      if (records_[node] && (records_[node]->node == 0) != (node == 0)) return true;
    }
    return false;
  }
  bool has_other_size(Bytes size) const {
    return std::any_of(records_.begin(), records_.end(),
                       [&](const auto& record) { return record && record->cluster.size != size; });
  }
  // True if the files are equal, not counting copies that are new or would be given the whole file
  // anyway. If there are no others, nothing says that the primary's file has what was synced,
  // unless the last run has ended.
  bool are_equal() const {
    bool is_known = !records_[0] || records_[0]->end == RunRecord::End::settled;
    for (NodeId node = 1; node < files_.size(); ++node) {
      const std::optional<RunRecord>& record = records_[node];
      const bool is_given_all =
          record && record->end != RunRecord::End::anew && !record->is_complete;
      if (is_blank_[node] || is_given_all) continue;
      if (difference(files_[0], files_[node]).bytes != 0) return false;
      is_known = true;
    }
    return is_known && !is_blank_[0];
  }
  // Applies the sync points that had arrived at copies of a run that did not end.
  void complete_copies() {
    for (NodeId node = 0; node < files_.size(); ++node) {
      std::optional<RunRecord>& record = records_[node];
      if (!record || record->end != RunRecord::End::open || record->node == 0) continue;
      if (!is_there(files_[node])) continue;
      Cluster cluster = record->cluster;
      cluster.files[record->node] = files_[node];
      record->is_complete = recover_copy(cluster, record->node, false);
    }
  }
  const std::optional<RunRecord>& record(NodeId node) const { return records_[node]; }

  // Describes how the primary's file differs from the first copy that has other contents.
  std::string describe_difference() const {
    NodeId other = 1;
    for (NodeId node = 1; node < files_.size(); ++node) {
      if (!is_blank_[node] && difference(files_[0], files_[node]).bytes == 0) continue;
      other = node;
      break;
    }
    return describe(files_[0], files_[other]);
  }

 private:
  std::optional<std::string> why_alone_unclear() const {
    if (files_.size() == 1 || !records_[0]) return std::nullopt;
    if (has_other_roles()) return why_other_role(0);
    const RunRecord& record = *records_[0];
    if (record.cluster.files.size() == 1 || record.end == RunRecord::End::settled) {
      return std::nullopt;
    }
    return fmt::format(
        "no copy of {} is there that the last run has left, and it may lack what "
        "they had",
        files_[0]);
  }
  std::string why_other_role(NodeId node) const {
    return fmt::format(
        "{} was {} in the last run (what lies beside it, such as SQLite's journal, is not "
        "replicated)",
        files_[node], records_[node]->node == 0 ? "the primary" : "a copy");
  }
  std::optional<std::string> why_unclear(NodeId node) const {
    const std::string& file = files_[node];
    const std::optional<RunRecord>& record = records_[node];
    if (!record) return fmt::format("no run has left {}", file);
    if ((record->node == 0) != (node == 0)) return why_other_role(node);
    if (!records_[0] || record->run != records_[0]->run) {
      return fmt::format("the last run of {} was another one than that of {}", file, files_[0]);
    }
    if (record->end == RunRecord::End::anew) {
      return fmt::format(
          "the last run was killed, or the power failed, while it gave {} to the copies",
          record->cluster.files[0]);
    }
    if (record->end == RunRecord::End::open) {
      return std::string(
          "the last run was killed, or the power failed: its copies hold what was "
          "synced, unless it has said that it went on without them");
    }
    if (record->end == RunRecord::End::unequal) {
      return std::string("the last run has left files that differ");
    }
    if (!record->is_unchanged(file)) {
      return fmt::format("{} is not as the last run has left it", file);
    }
    return std::nullopt;
  }

  std::vector<std::string> files_;
  std::vector<std::optional<RunRecord>> records_;
  std::vector<bool> is_blank_;
};

}  // namespace

Difference difference(const std::string& a, const std::string& b) {
  const MappedFile of_a(a);
  const MappedFile of_b(b);
  const std::span<const std::byte> one = of_a.bytes();
  const std::span<const std::byte> other = of_b.bytes();
  const auto at = [](std::span<const std::byte> bytes, Bytes offset) {
    return offset < bytes.size() ? bytes[offset] : std::byte{};
  };
  Difference found;
  const Bytes size = std::max(one.size(), other.size());
  for (Bytes page = 0; page < size; page += MappedFile::kPage) {
    const Bytes end = std::min(page + MappedFile::kPage, size);
    if (end <= one.size() && end <= other.size() &&
        std::memcmp(one.data() + page, other.data() + page, end - page) == 0) {
      continue;
    }
    Bytes bytes = 0;
    for (Bytes offset = page; offset < end; ++offset) {
      if (at(one, offset) == at(other, offset)) continue;
      if (found.bytes + bytes == 0) found.first = offset;
      ++bytes;
    }
    found.bytes += bytes;
    if (bytes > 0) ++found.pages;
  }
  return found;
}

namespace {

// Adds up the room that files need on each file system.
class Needs {
 public:
  // Counts a file that is to have this size, but for the room that it takes already.
  void add(const std::string& file, Bytes size) {
    struct stat found {};
    Bytes has = 0;
    if (stat(file.c_str(), &found) == 0) {
      constexpr Bytes kBlock = 512;
      has = static_cast<Bytes>(found.st_blocks) * kBlock;
    } else if (stat(nearest_folder(file).c_str(), &found) != 0) {
      return;
    }
    Need& need = needs_[found.st_dev];
    if (need.file.empty() || has == 0) need.file = file;
    need.bytes += size - std::min(has, size);
  }
  void check() const {
    for (const auto& [device, need] : needs_) {
      struct statvfs disk {};
      if (statvfs(nearest_folder(need.file).c_str(), &disk) != 0) continue;
      const Bytes free = static_cast<Bytes>(disk.f_bavail) * disk.f_frsize;
      if (need.bytes <= free) continue;
      throw UsageError(
          fmt::format("{}: there is no room: the files of --size and their logs take {} bytes more "
                      "on this file system, and {} are free",
                      need.file, need.bytes, free));
    }
  }

 private:
  struct Need {
    Bytes bytes = 0;
    std::string file;
  };
  static std::string nearest_folder(const fs::path& file) {
    fs::path folder = file.parent_path();
    while (folder.has_relative_path() && !is_there(folder)) folder = folder.parent_path();
    return folder;
  }

  std::map<dev_t, Need> needs_;
};

// The room that a node's folder needs besides the logs: for the record of the run twice, while it
// is replaced, and for memory that processes share.
Bytes for_folder(const Cluster& cluster) {
  constexpr Bytes kOfPage = 17;  // a checksum, as text
  return 2 * (cluster.size / MappedFile::kPage * kOfPage + 16 * KiB) + sizeof(SharedRequests) +
         sizeof(SharedReaders);
}

}  // namespace

void check_sizes(const Cluster& cluster, std::optional<Take> take) {
  Needs needs;
  const Bytes logs = cluster.system().log_bytes(cluster.config());
  for (NodeId node = 0; node < cluster.files.size(); ++node) {
    const std::string& file = cluster.files[node];
    struct stat found {};
    const bool has_file = is_there(file) && stat(file.c_str(), &found) == 0;
    const auto size = has_file ? static_cast<Bytes>(found.st_size) : 0;
    if (size > cluster.size) {
      throw UsageError(fmt::format("{}: has {} bytes, and the region has {}; raise --size", file,
                                   size, cluster.size));
    }
    const auto record = RunRecord::read(file);
    if (record && record->cluster.size != cluster.size && !take) {
      throw UsageError(
          fmt::format("{}: is replicated with --size {}; it grows only with --take "
                      "primary or --take mirror, by which all copies begin anew",
                      file, record->cluster.size));
    }
    needs.add(file, cluster.size);
    const fs::path folder = state_folder(file);
    needs.add(folder / "run.new", for_folder(cluster));
    fs::path of_logs = folder;
    if (is_there(folder / "log")) of_logs /= "log";
    if (node == 1 && !cluster.log.empty()) of_logs = cluster.log;
    needs.add(of_logs / (std::string(kRegion) + ".logs"), logs);
  }
  needs.check();
}

bool begin_where_last_run_ended(const Cluster& cluster, std::optional<Take> take) {
  ClusterFiles files(cluster);
  const auto unclear = files.why_unclear();
  if (cluster.files.size() == 1) return false;
  // According to Mojim's logs the copies have what the primary is to load, but a new one would give
  // it zeros.
  if (!unclear && !take) return files.has_new_copy();
  files.complete_copies();
  if (files.are_equal() && !files.has_other_roles()) {
    return unclear.has_value() || files.has_other_size(cluster.size);
  }
  const std::string& primary = cluster.files[0];
  if (!take) {
    throw UsageError(fmt::format("{}; {}; say which to go on with: --take primary or --take mirror",
                                 *unclear, files.describe_difference()));
  }
  const NodeId taken = *take == Take::primary ? 0 : 1;
  if (taken >= cluster.files.size()) {
    throw UsageError("--take mirror: there is no mirror; add --mirror FILE");
  }
  const std::string& source = cluster.files[taken];
  const auto& record = files.record(taken);
  if (record && record->node != 0 && !record->is_complete) {
    throw UsageError(
        fmt::format("{} is incomplete: it lacks a part of the file; take the other one", source));
  }
  if (!is_there(source)) throw UsageError(fmt::format("{}: there is no such file", source));
  if (taken == 1) copy_contents(source, primary);
  return true;
}

void make_copies(const Cluster& cluster) {
  std::vector<std::string> made;
  for (const std::string& file : cluster.files) {
    if (!is_there(file)) made.push_back(file);
  }
  try {
    for (NodeId node = 1; node < cluster.files.size(); ++node) prepare_files(cluster, node);
  } catch (...) {
    std::error_code error;
    for (const std::string& file : made) {
      fs::remove_all(state_folder(file), error);
      fs::remove(file, error);
    }
    throw;
  }
}

ThisRun::ThisRun(const Cluster& cluster, bool anew) : cluster_(cluster) {
  for (NodeId node = 0; node < cluster_.files.size(); ++node) {
    const std::string& file = cluster_.files[node];
    before_.push_back(RunRecord::read(file));
    RunRecord record = record_of(node, anew ? RunRecord::End::anew : RunRecord::End::open);
    record.is_complete = node == 0 || !anew;
    record.write(file);
  }
  if (!anew) return;
  prepare_files(cluster_, 0);  // it is replicated from the beginning
  for (const std::string& file : cluster_.files) remove_logs(file);
}

RunRecord ThisRun::record_of(NodeId node, RunRecord::End end) const {
  return RunRecord{.run = run_, .node = node, .cluster = cluster_, .end = end};
}

void ThisRun::note_serving() {
  for (NodeId node = 0; node < cluster_.files.size(); ++node) {
    record_of(node, RunRecord::End::open).write(cluster_.files[node]);
  }
}

void ThisRun::forget() {
  for (NodeId node = 0; node < cluster_.files.size(); ++node) {
    if (before_[node]) {
      before_[node]->write(cluster_.files[node]);
    } else {
      RunRecord::remove(cluster_.files[node]);
    }
  }
}

void ThisRun::end(RunRecord::End end, const std::vector<bool>& complete) {
  for (NodeId node = 0; node < cluster_.files.size(); ++node) {
    RunRecord record = record_of(node, end);
    record.is_complete = complete[node];
    record.note_contents(cluster_.files[node]);
    record.write(cluster_.files[node]);
  }
}

}  // namespace perdura::preload
