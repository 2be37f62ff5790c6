#include "bench/fs/file_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/fs/gamma.h"
#include "bench/ycsb/portable_math.h"

namespace perdura::bench {
namespace {

constexpr double kShape = 1.5;  // Filebench's dirgamma and sizegamma

}  // namespace

FileSet::FileSet(const FileSetShape& shape, std::uint64_t seed) : shape_(shape) {
  Random random(seed, 0);
  const auto files = static_cast<double>(shape.files);
  if (shape.files > 1) {
    mean_depth_ =
        ycsb::portable_log(files) / ycsb::portable_log(static_cast<double>(shape.mean_width));
  }
  files_.reserve(shape.files);
  const std::uint32_t root = add_directory(shape.name);
  // The root is never a leaf.
  for (std::uint64_t i = 1; files_.size() < shape_.files; ++i) {
    populate(add_directory(fmt::format("{}/{:08}", directories_[root], i)), 2, random);
  }
  states_ = std::make_unique<std::atomic<std::uint32_t>[]>(files_.size());
  for (std::size_t id = 0; id < files_.size(); ++id) {
    files_[id].existed = random.uniform_below(100) < shape_.exist_percent;
    states_[id] = files_[id].existed ? kExists : kMissing;
  }
}

std::uint32_t FileSet::add_directory(const std::string& path) {
  directories_.push_back(path);
  return static_cast<std::uint32_t>(directories_.size() - 1);
}

void FileSet::populate(std::uint32_t directory, double depth, Random& random) {
  const double leaf_depth =
      mean_depth_ > 0
          ? static_cast<double>(static_cast<std::uint64_t>(draw_gamma(random, kShape, mean_depth_)))
          : 0;
  const double width = draw_gamma(random, kShape, static_cast<double>(shape_.mean_width));
  const bool is_leaf = depth >= std::max(leaf_depth, 1.0);
  for (std::uint32_t i = 1; i < width + 1 && files_.size() < shape_.files; ++i) {
    if (is_leaf) {
      const double size = draw_gamma(random, kShape, static_cast<double>(shape_.mean_size));
      files_.push_back({.directory = directory, .number = i, .size = static_cast<Bytes>(size)});
    } else {
      const std::string path = fmt::format("{}/{:08}", directories_[directory], i);
      populate(add_directory(path), depth + 1, random);
    }
  }
}

std::string FileSet::path(Id id) const {
  return fmt::format("{}/{:08}", directories_[files_[id].directory], files_[id].number);
}

template <class Next>
std::optional<FileSet::Id> FileSet::take(Rotor& rotor, Next next) {
  for (;;) {
    std::uint64_t at = rotor.load(std::memory_order_relaxed);
    std::optional<Id> found;
    for (std::uint64_t tried = 0; !found && tried < files_.size(); ++tried) {
      const Id id = (at + tried) % files_.size();
      if (next(states_[id].load(std::memory_order_relaxed))) found = id;
    }
    if (!found) return std::nullopt;
    // If another thread has moved the rotor, or changed the file meanwhile, the search starts
    // again.
    if (!rotor.compare_exchange_weak(at, *found + 1, std::memory_order_relaxed)) continue;
    std::uint32_t state = states_[*found].load(std::memory_order_relaxed);
    for (auto wanted = next(state); wanted; wanted = next(state)) {
      if (states_[*found].compare_exchange_weak(state, *wanted, std::memory_order_acquire)) {
        return found;
      }
    }
  }
}

std::optional<FileSet::Id> FileSet::take_to_use() {
  return take(existing_rotor_, [](std::uint32_t state) {
    return state >= kExists ? std::optional(state + 1) : std::nullopt;
  });
}

std::optional<FileSet::Id> FileSet::take_to_delete() {
  bool is_in_use = false;
  const auto id = take(existing_rotor_, [&](std::uint32_t state) {
    is_in_use = state > kExists;
    return state < kExists ? std::nullopt : std::optional(is_in_use ? state : kBusy);
  });
  return id && is_in_use ? kInUse : id;
}

std::optional<FileSet::Id> FileSet::take_to_create() {
  return take(missing_rotor_, [](std::uint32_t state) {
    return state == kMissing ? std::optional(kBusy) : std::nullopt;
  });
}

void FileSet::used(Id id) { states_[id].fetch_sub(1, std::memory_order_release); }
void FileSet::deleted(Id id) { states_[id].store(kMissing, std::memory_order_release); }
void FileSet::created(Id id) { states_[id].store(kExists + 1, std::memory_order_release); }
bool FileSet::exists(Id id) const { return states_[id].load() >= kExists; }

}  // namespace perdura::bench
