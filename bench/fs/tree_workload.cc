// mdtest's phases: each lane makes a tree of directories, creates files in each of them, stats them
// all, reads them all, removes them all, and removes the tree; then it starts again.
#include <fmt/format.h>

#include "bench/fs/file_workload.h"

namespace perdura::bench {
namespace {

struct Shape {
  std::uint64_t depth = 0;
  std::uint64_t branching = 0;
  std::uint64_t width = 0;  // files in each directory
  Bytes file_size = 0;
};

std::string root_of(std::uint32_t lane) { return fmt::format("{:04}", lane); }

class TreeLane final : public FileLane {
 public:
  TreeLane(const Shape& shape, std::uint32_t lane) : shape_(shape) {
    directories_.push_back(root_of(lane));
    // Level by level, so that each directory comes after its parent.
    std::size_t first = 0;
    for (std::uint64_t level = 0; level < shape.depth; ++level) {
      const std::size_t last = directories_.size();
      for (; first < last; ++first) {
        for (std::uint64_t i = 0; i < shape.branching; ++i) {
          directories_.push_back(fmt::format("{}/d{}", directories_[first], i));
        }
      }
    }
  }

  std::optional<FileOperation> next() override {
    constexpr FileAction kOfFiles[] = {FileAction::create, FileAction::stat,
                                       FileAction::open_read_close, FileAction::unlink};
    const std::size_t made = directories_.size() - 1;  // all but the root
    const std::uint64_t files = directories_.size() * shape_.width;
    if (step_ == 2 * made + std::size(kOfFiles) * files) step_ = 0;
    const std::uint64_t step = step_++;
    FileOperation operation;
    if (step < made) {
      operation.action = FileAction::mkdir;
      path_ = directories_[step + 1];
    } else if (step < made + std::size(kOfFiles) * files) {
      const std::uint64_t phase = (step - made) / files;
      const std::uint64_t file = (step - made) % files;
      operation.action = kOfFiles[phase];
      operation.closes = phase == 0;
      operation.length = phase == 0 ? shape_.file_size : 0;
      path_ = fmt::format("{}/f{}", directories_[file / shape_.width], file % shape_.width);
    } else {
      operation.action = FileAction::rmdir;
      path_ = directories_[2 * made + std::size(kOfFiles) * files - step];
    }
    operation.path = path_;
    return operation;
  }

 private:
  Shape shape_;
  std::vector<std::string> directories_;  // the root first
  std::uint64_t step_ = 0;                // within a round
  std::string path_;
};

class TreeWorkload final : public FileWorkload {
 public:
  explicit TreeWorkload(const harness::Point& point)
      : shape_{.depth = point.settings.number("depth"),
               .branching = point.settings.number("branching"),
               .width = point.settings.number("directory_width"),
               .file_size = point.settings.number("file_size")},
        lanes_(lanes_of(point)) {}

  std::vector<std::string> directories() const override {
    std::vector<std::string> roots;
    for (std::uint32_t lane = 0; lane < lanes_; ++lane) roots.push_back(root_of(lane));
    return roots;
  }
  std::vector<NewFile> files(std::uint32_t) const override { return {}; }
  std::unique_ptr<FileLane> lane(std::uint32_t lane) override {
    return std::make_unique<TreeLane>(shape_, lane);
  }

 private:
  Shape shape_;
  std::uint32_t lanes_;
};

}  // namespace

std::uint64_t operations_of_tree(std::uint64_t depth, std::uint64_t branching,
                                 std::uint64_t width) {
  std::uint64_t directories = 1;
  std::uint64_t of_level = 1;
  for (std::uint64_t level = 0; level < depth; ++level) directories += of_level *= branching;
  return 2 * (directories - 1) + 4 * directories * width;
}

std::unique_ptr<FileWorkload> create_tree_workload(const harness::Point& point) {
  return std::make_unique<TreeWorkload>(point);
}

}  // namespace perdura::bench
