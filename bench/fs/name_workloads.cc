// Workloads of a single operation on names: create, mkdir, unlink, rmdir, stat, rename,
// open-read-close, and utimens, whose files are open. Each lane has directories of its own, with as
// many entries as the point says.
#include <fmt/format.h>

#include "bench/fs/file_workload.h"
#include "bench/ycsb/workload_spec.h"
#include "platform/base/random.h"

namespace perdura::bench {
namespace {

// The paths of the lanes' entries.
class Places {
 public:
  explicit Places(const harness::PointSettings& settings)
      : width_(settings.number("directory_width")), depth_(settings.number("depth")) {}

  // Adds the directories that this many entries need, parents first.
  void add_directories(std::uint32_t lane, std::uint64_t entries,
                       std::vector<std::string>& directories) const {
    for (std::uint64_t number = 0; number * width_ < entries; ++number) {
      std::string path = first_directory(lane, number);
      directories.push_back(path);
      for (std::uint64_t level = 1; level < depth_; ++level) {
        path += "/d";
        directories.push_back(path);
      }
    }
  }
  std::string entry(std::uint32_t lane, std::uint64_t index) const {
    std::string path = first_directory(lane, index / width_);
    for (std::uint64_t level = 1; level < depth_; ++level) path += "/d";
    fmt::format_to(std::back_inserter(path), "/{:08}", index);
    return path;
  }

 private:
  static std::string first_directory(std::uint32_t lane, std::uint64_t number) {
    return fmt::format("{:04}-{:06}", lane, number);
  }

  std::uint64_t width_;
  std::uint64_t depth_;
};

FileAction action_of(std::string_view workload) {
  for (const FileAction action :
       {FileAction::create, FileAction::mkdir, FileAction::unlink, FileAction::rmdir,
        FileAction::stat, FileAction::rename, FileAction::utimens}) {
    if (to_string(action) == workload) return action;
  }
  return FileAction::open_read_close;
}

class NameWorkload final : public FileWorkload {
 public:
  explicit NameWorkload(const harness::Point& point)
      : settings_(point.settings),
        seed_(point.seed),
        action_(action_of(settings_.text("workload"))),
        places_(settings_),
        lanes_(lanes_of(point)) {}

  std::vector<std::string> directories() const override {
    std::vector<std::string> all;
    for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
      places_.add_directories(lane, entries(lane), all);
      if (action_ != FileAction::rmdir) continue;
      for (std::uint64_t i = 0; i < entries(lane); ++i) all.push_back(places_.entry(lane, i));
    }
    return all;
  }
  std::vector<NewFile> files(std::uint32_t lane) const override {
    std::vector<NewFile> files;
    if (action_ == FileAction::create || makes_directories()) return files;
    const Bytes size = action_ == FileAction::open_read_close ? settings_.number("file_size") : 0;
    for (std::uint64_t i = 0; i < entries(lane); ++i) {
      files.push_back({places_.entry(lane, i), size});
    }
    return files;
  }
  std::vector<std::string> kept_files(std::uint32_t lane) const override {
    std::vector<std::string> kept;
    if (action_ != FileAction::utimens) return kept;
    for (std::uint64_t i = 0; i < entries(lane); ++i) kept.push_back(places_.entry(lane, i));
    return kept;
  }
  std::unique_ptr<FileLane> lane(std::uint32_t lane) override;

 private:
  class Lane;

  bool makes_directories() const {
    return action_ == FileAction::mkdir || action_ == FileAction::rmdir;
  }
  bool takes_each_once() const {
    return makes_directories() || action_ == FileAction::create || action_ == FileAction::unlink;
  }
  // The number of entries that the lane's operations need or make.
  std::uint64_t entries(std::uint32_t lane) const {
    if (!takes_each_once()) return settings_.number("files");
    std::uint64_t all = 0;
    for (const char* const number : {"warmup", "operations"}) {
      all += ycsb::operations_of_client(settings_.number(number), lane, lanes_);
    }
    return all;
  }

  harness::PointSettings settings_;
  std::uint64_t seed_;
  FileAction action_;
  Places places_;
  std::uint32_t lanes_;
};

class NameWorkload::Lane final : public FileLane {
 public:
  Lane(const NameWorkload& workload, std::uint32_t lane)
      : workload_(workload),
        lane_(lane),
        entries_(workload.entries(lane)),
        random_(workload.seed_, lane + 1) {}

  std::optional<FileOperation> next() override {
    const FileAction action = workload_.action_;
    FileOperation operation{.action = action, .closes = action == FileAction::create};
    if (workload_.takes_each_once()) {
      if (taken_ == entries_) return std::nullopt;
      path_ = workload_.places_.entry(lane_, taken_++);
    } else if (action == FileAction::rename) {
      path_ = workload_.places_.entry(lane_, taken_);
      new_path_ = path_ + ".renamed";
      if (renamed_) path_.swap(new_path_);
      operation.new_path = new_path_;
      if (++taken_ == entries_) {
        taken_ = 0;
        renamed_ = !renamed_;
      }
    } else if (action == FileAction::utimens) {
      operation.file = OpenFile::kept;
      operation.kept = taken_++ % entries_;
    } else {
      path_ = workload_.places_.entry(lane_, random_.uniform_below(entries_));
    }
    operation.path = path_;
    return operation;
  }

 private:
  const NameWorkload& workload_;
  std::uint32_t lane_;
  std::uint64_t entries_;
  std::uint64_t taken_ = 0;
  bool renamed_ = false;  // the entries from taken_ on have their new names
  Random random_;
  std::string path_;
  std::string new_path_;
};

std::unique_ptr<FileLane> NameWorkload::lane(std::uint32_t lane) {
  return std::make_unique<Lane>(*this, lane);
}

}  // namespace

std::unique_ptr<FileWorkload> create_name_workload(const harness::Point& point) {
  return std::make_unique<NameWorkload>(point);
}

}  // namespace perdura::bench
