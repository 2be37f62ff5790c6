#include "services/fs/trace/recorder.h"

#include "platform/base/error.h"

namespace perdura::fs {

template <class Work>
void TraceRecorder::record(Work work) {
  if (!problem_.empty()) return;
  try {
    work();
  } catch (const PlatformError& error) {
    problem_ = error.what();
  }
}

void TraceRecorder::found(InodeNumber directory, std::string_view name, InodeNumber inode) {
  const std::lock_guard guard(mutex_);
  const NameInDirectory key{directory, std::string(name)};
  inodes_[key] = inode;
  names_[inode] = key;
}

void TraceRecorder::renamed(InodeNumber from, std::string_view name, InodeNumber to,
                            std::string_view new_name, RenameMode mode) {
  const std::lock_guard guard(mutex_);
  const NameInDirectory before{from, std::string(name)};
  const NameInDirectory after{to, std::string(new_name)};
  auto moved = inodes_.extract(before);
  auto replaced = inodes_.extract(after);
  if (!moved.empty()) {
    names_[moved.mapped()] = after;
    moved.key() = after;
    inodes_.insert(std::move(moved));
  }
  if (mode == RenameMode::exchange && !replaced.empty()) {
    names_[replaced.mapped()] = before;
    replaced.key() = before;
    inodes_.insert(std::move(replaced));
  }
}

void TraceRecorder::met(const Attributes& file) {
  if (!file.is_regular()) return;
  const std::lock_guard guard(mutex_);
  const auto known = files_.find(file.inode);
  if (known != files_.end() && known->second.generation == file.generation) return;
  record([&] {
    const std::uint32_t number = writer_.add_file(path_of(file.inode), file.size);
    files_[file.inode] = {number, file.generation};
  });
}

void TraceRecorder::add(TraceKind kind, InodeNumber inode, Bytes offset, Bytes length) {
  const std::lock_guard guard(mutex_);
  const auto known = files_.find(inode);
  if (known == files_.end()) return;
  record([&] { writer_.add({kind, known->second.number, offset, length}); });
}

void TraceRecorder::finish() {
  const std::lock_guard guard(mutex_);
  if (!problem_.empty()) throw PlatformError(problem_);
  writer_.finish();
}

// From the root of the mount on; empty if a part of it is not known, or if it is too long.
std::string TraceRecorder::path_of(InodeNumber inode) const {
  std::string path;
  while (inode != kRootInode) {
    const auto name = names_.find(inode);
    if (name == names_.end()) return "";
    path = path.empty() ? name->second.name : name->second.name + "/" + path;
    if (path.size() > kLongestTracedName) return "";
    inode = name->second.directory;
  }
  return path;
}

}  // namespace perdura::fs
