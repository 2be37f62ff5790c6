// Filebench's personalities, after their definitions (workloads/varmail.f, fileserver.f and
// webserver.f of Filebench 1.5).
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <span>

#include "bench/fs/file_set.h"
#include "bench/fs/file_workload.h"

namespace perdura::bench {
namespace {

using enum FileAction;

// The operations that each lane repeats.
constexpr std::array kVarmail{unlink,                                    //
                              create, append,     fsync,  close,         //
                              open,   read_whole, append, fsync, close,  //
                              open,   read_whole, close};
constexpr std::array kFileserver{create, write_whole, close,  //
                                 open,   append,      close,  //
                                 open,   read_whole,  close,  //
                                 unlink, stat};
constexpr auto kWebserver = [] {
  std::array<FileAction, 31> actions{};
  for (std::size_t i = 0; i < 10; ++i) {
    actions[3 * i] = open;
    actions[3 * i + 1] = read_whole;
    actions[3 * i + 2] = close;
  }
  actions.back() = append;  // to the log
  return actions;
}();

struct Definition {
  std::string_view name;
  std::span<const FileAction> actions;
  std::uint64_t exist_percent;
  bool has_log;
};
constexpr Definition kDefinitions[] = {
    {"varmail", kVarmail, 80, false},
    {"fileserver", kFileserver, 80, false},
    {"webserver", kWebserver, 100, true},
};

const Definition& definition_of(const harness::PointSettings& settings) {
  const std::string name = settings.text("workload");
  for (const Definition& each : kDefinitions) {
    if (each.name == name) return each;
  }
  throw std::logic_error("no such personality");
}

class Personality final : public FileWorkload {
 public:
  explicit Personality(const harness::Point& point)
      : definition_(definition_of(point.settings)),
        seed_(point.seed),
        lanes_(lanes_of(point)),
        append_size_(point.settings.number("append_size")),
        files_({.name = "bigfileset",
                .files = point.settings.number("files"),
                .mean_width = point.settings.number("directory_width"),
                .mean_size = point.settings.number("file_size"),
                .exist_percent = definition_.exist_percent},
               point.seed),
        sizes_(std::make_unique<std::atomic<Bytes>[]>(files_.files())) {
    for (FileSet::Id id = 0; id < files_.files(); ++id) {
      if (files_.existed_at_first(id)) sizes_[id] = files_.size(id);
    }
    if (!definition_.has_log) return;
    log_.emplace(FileSetShape{.name = "logfiles",
                              .files = 1,
                              .mean_width = point.settings.number("directory_width"),
                              .mean_size = point.settings.number("file_size")},
                 point.seed + 1);
    log_size_ = log_->size(0);
  }

  std::vector<std::string> directories() const override {
    std::vector<std::string> all = files_.directories();
    if (log_) all.insert(all.end(), log_->directories().begin(), log_->directories().end());
    return all;
  }
  std::vector<NewFile> files(std::uint32_t lane) const override {
    std::vector<NewFile> all;
    for (FileSet::Id id = lane; id < files_.files(); id += lanes_) {
      if (files_.existed_at_first(id)) all.push_back({files_.path(id), files_.size(id)});
    }
    if (log_ && lane == 0) all.push_back({log_->path(0), log_->size(0)});
    return all;
  }
  std::vector<std::string> kept_files(std::uint32_t) const override {
    return log_ ? std::vector{std::string(log_->path(0))} : std::vector<std::string>{};
  }
  std::unique_ptr<FileLane> lane(std::uint32_t lane) override;

  std::vector<NewFile> remains() const override {
    std::vector<NewFile> all;
    for (FileSet::Id id = 0; id < files_.files(); ++id) {
      if (files_.exists(id)) all.push_back({files_.path(id), sizes_[id]});
    }
    if (log_) all.push_back({log_->path(0), log_size_});
    return all;
  }

 private:
  class Lane;

  const Definition& definition_;
  std::uint64_t seed_;
  std::uint32_t lanes_;
  Bytes append_size_;
  FileSet files_;
  std::unique_ptr<std::atomic<Bytes>[]> sizes_;  // sizes that the files should have
  std::optional<FileSet> log_;                   // a single file
  std::atomic<Bytes> log_size_{0};
};

class Personality::Lane final : public FileLane {
 public:
  Lane(Personality& personality, std::uint32_t lane)
      : all_(personality), random_(personality.seed_, lane + 1) {}

  std::optional<FileOperation> next() override {
    FileAction action{};
    // A deletion that is skipped because the file is open does not count as an operation.
    do {
      action = all_.definition_.actions[step_];
      if (++step_ == all_.definition_.actions.size()) step_ = 0;
      if (needs_file(action) && !take(action)) return std::nullopt;
    } while (action == unlink && id_ == FileSet::kInUse);
    FileOperation operation{.action = action, .path = path_, .id = id_};
    if (action == append) {
      operation.length = random_.uniform_below(all_.append_size_);
      if (all_.log_) operation.file = OpenFile::kept;
    }
    if (action == write_whole) operation.length = all_.files_.size(id_);
    return operation;
  }

  void performed(const FileOperation& operation) override {
    switch (operation.action) {
      case unlink:
        all_.files_.deleted(operation.id);
        break;
      case create:
        all_.sizes_[operation.id] = 0;
        all_.files_.created(operation.id);
        break;
      case append:
      case write_whole:
        (operation.file == OpenFile::kept ? all_.log_size_ : all_.sizes_[operation.id]) +=
            operation.length;
        break;
      case close:
      case stat:
        all_.files_.used(operation.id);
        break;
      default:
        break;
    }
  }

  std::string why() const override {
    return fmt::format("no file is left to {}; raise files", missing_);
  }

 private:
  static bool needs_file(FileAction action) {
    return action == unlink || action == create || action == open || action == stat;
  }
  bool take(FileAction action) {
    const auto id = action == create   ? all_.files_.take_to_create()
                    : action == unlink ? all_.files_.take_to_delete()
                                       : all_.files_.take_to_use();
    if (!id) {
      missing_ = to_string(action);
      return false;
    }
    id_ = *id;
    if (id_ == FileSet::kInUse) return true;
    path_ = all_.files_.path(id_);
    return true;
  }

  Personality& all_;
  Random random_;  // draws the lengths of appends
  std::size_t step_ = 0;
  FileSet::Id id_ = 0;  // the file that was taken last
  std::string path_;
  std::string_view missing_;
};

std::unique_ptr<FileLane> Personality::lane(std::uint32_t lane) {
  return std::make_unique<Lane>(*this, lane);
}

}  // namespace

std::unique_ptr<FileWorkload> create_personality(const harness::Point& point) {
  return std::make_unique<Personality>(point);
}

}  // namespace perdura::bench
