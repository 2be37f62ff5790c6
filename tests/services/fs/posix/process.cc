// Processes, their descriptors, and the resolution of paths.
#include "tests/services/fs/posix/process.h"

#include <utility>

#include "tests/services/fs/posix/look_up.h"

namespace perdura::fs::test {

Process::Process(Session& session, Credentials who, Clock clock, Options with, LockTable* locks)
    : credentials(std::move(who)),
      options(with),
      session_(session),
      clock_(std::move(clock)),
      locks_(locks) {}

Task<std::unique_ptr<Process>> Process::fork() {
  auto child = std::make_unique<Process>(session_, credentials, clock_, options, locks_);
  child->descriptors_ = descriptors_;
  for (const auto& [descriptor, file] : descriptors_) ++file->descriptors;
  if (current_) {
    co_await session_.hold(*current_);
    child->current_ = current_;
  }
  co_return child;
}

Task<> Process::exit() {
  for (const auto& [descriptor, file] : std::exchange(descriptors_, {})) {
    co_await close_file(file);
  }
  if (current_) co_await session_.release(*current_);
  current_.reset();
}

// --- descriptors

Result<Process::OpenFile*> Process::find_open(int descriptor) const {
  const auto found = descriptors_.find(descriptor);
  if (found == descriptors_.end()) return tl::unexpected(std::errc::bad_file_descriptor);
  return found->second.get();
}

int Process::add_descriptor(std::shared_ptr<OpenFile> file) {
  int lowest = 0;
  for (const auto& [descriptor, other] : descriptors_) {
    if (descriptor != lowest) break;
    ++lowest;
  }
  ++file->descriptors;
  descriptors_[lowest] = std::move(file);
  return lowest;
}

Result<int> Process::dup(int descriptor) {
  const auto found = descriptors_.find(descriptor);
  if (found == descriptors_.end()) return tl::unexpected(std::errc::bad_file_descriptor);
  return add_descriptor(found->second);
}

Task<Result<void>> Process::close(int descriptor) {
  const auto found = descriptors_.find(descriptor);
  if (found == descriptors_.end()) co_return tl::unexpected(std::errc::bad_file_descriptor);
  const std::shared_ptr<OpenFile> file = std::move(found->second);
  descriptors_.erase(found);
  co_await close_file(file);
  co_return Result<void>();
}

Task<> Process::close_file(std::shared_ptr<OpenFile> file) {
  if (locks_ != nullptr) locks_->release(file->inode, this);
  if (--file->descriptors > 0) co_return;
  if (locks_ != nullptr) locks_->release(file->inode, file.get());
  co_await session_.release(file->inode);
}

// --- paths

Task<Result<Process::Walk>> Process::begin(std::string_view path) {
  if (path.empty()) co_return tl::unexpected(std::errc::no_such_file_or_directory);
  if (path.size() > kLongestPath) co_return tl::unexpected(std::errc::filename_too_long);
  const InodeNumber start = path.front() == '/' ? kRootInode : current_.value_or(kRootInode);
  co_await session_.hold(start);
  const Result<Attributes> at = co_await session_.attributes(start);
  co_return Walk{.at = *at, .rest = std::string(path)};
}

Task<Result<Attributes>> Process::parent_of(const Attributes& directory) {
  const Result<InodeNumber> parent = co_await session_.parent(directory.inode);
  if (!parent) co_return tl::unexpected(parent.error());
  const Result<void> held = co_await session_.hold(*parent);
  if (!held) co_return tl::unexpected(held.error());
  co_return co_await session_.attributes(*parent);
}

Task<Result<void>> Process::follow(Walk& walk, const Attributes& in, InodeNumber symlink,
                                   std::string_view behind) {
  if (++walk.symlinks > kMostSymlinks) {
    co_return tl::unexpected(std::errc::too_many_symbolic_link_levels);
  }
  const Result<std::string> target = co_await session_.read_link(symlink);
  if (!target) co_return tl::unexpected(target.error());
  const Result<Attributes> attributes = co_await session_.attributes(symlink);
  if (attributes) co_await note_access(*attributes);
  const bool from_root = target->front() == '/';
  const InodeNumber start = from_root ? kRootInode : in.inode;
  const Result<Attributes> at = co_await session_.attributes(start);
  if (!at) co_return tl::unexpected(at.error());
  co_await session_.hold(start);
  co_await session_.release(in.inode);
  walk.at = *at;
  walk.rest = *target + std::string(behind);
  co_return Result<void>();
}

Task<Result<Process::PathEnd>> Process::walk(Walk& walk) {
  std::errc error{};
  while (true) {
    const std::size_t begin = walk.rest.find_first_not_of('/');
    if (begin == std::string::npos) {
      // The path is the root, or a symbolic link to it.
      co_return PathEnd{.directory = walk.at, .name = ".", .is_normal = false, .slash = true};
    }
    const bool searchable = co_await may(walk.at, kMayExecute);
    if (!searchable) {
      error = std::errc::permission_denied;
      break;
    }
    const std::size_t end = std::min(walk.rest.find('/', begin), walk.rest.size());
    const std::string name = walk.rest.substr(begin, end - begin);
    const std::size_t next = walk.rest.find_first_not_of('/', end);
    if (next == std::string::npos) {
      co_return PathEnd{.directory = walk.at,
                        .name = name,
                        .is_normal = name != "." && name != "..",
                        .slash = end < walk.rest.size()};
    }
    const std::string behind = walk.rest.substr(next);
    const PathEnd step{
        .directory = walk.at, .name = name, .is_normal = name != "." && name != ".."};
    const Result<Attributes> found = co_await find_at(step);
    if (!found) {
      error = found.error();
      break;
    }
    if (found->is_symlink()) {
      const std::string rest = "/" + behind;
      const Result<void> followed = co_await follow(walk, walk.at, found->inode, rest);
      co_await session_.release(found->inode);
      if (followed) continue;
      error = followed.error();
      break;
    }
    if (!found->is_directory()) {
      co_await session_.release(found->inode);
      error = std::errc::not_a_directory;
      break;
    }
    co_await session_.release(walk.at.inode);
    walk.at = *found;
    walk.rest = behind;
  }
  co_await session_.release(walk.at.inode);
  co_return tl::unexpected(error);
}

Task<Result<Attributes>> Process::find_at(const PathEnd& end) {
  if (end.name == "..") co_return co_await parent_of(end.directory);
  if (end.name == ".") {
    co_await session_.hold(end.directory.inode);
    co_return co_await session_.attributes(end.directory.inode);
  }
  co_return co_await look_up_and_hold(session_, end.directory.inode, end.name);
}

Task<Result<Attributes>> Process::find(std::string_view path, bool follow_last) {
  Result<Walk> walk = co_await begin(path);
  if (!walk) co_return tl::unexpected(walk.error());
  while (true) {
    const Result<PathEnd> end = co_await this->walk(*walk);
    if (!end) co_return tl::unexpected(end.error());
    const InodeNumber directory = end->directory.inode;
    const Result<Attributes> found = co_await find_at(*end);
    if (!found) {
      co_await session_.release(directory);
      co_return found;
    }
    if (found->is_symlink() && (follow_last || end->slash)) {
      const std::string_view behind = end->slash ? "/" : "";
      const Result<void> followed = co_await follow(*walk, end->directory, found->inode, behind);
      co_await session_.release(found->inode);
      if (followed) continue;
      co_await session_.release(directory);
      co_return tl::unexpected(followed.error());
    }
    co_await session_.release(directory);
    if (end->slash && !found->is_directory()) {
      co_await session_.release(found->inode);
      co_return tl::unexpected(std::errc::not_a_directory);
    }
    co_return found;
  }
}

Task<Result<Attributes>> Process::find(Where where, bool without_opening) {
  if (!where.descriptor) co_return co_await find(where.path, where.follow);
  const Result<OpenFile*> file = find_open(*where.descriptor);
  if (!file) co_return tl::unexpected(file.error());
  if (!without_opening && ((*file)->flags & O_PATH) != 0) {
    co_return tl::unexpected(std::errc::bad_file_descriptor);
  }
  co_await session_.hold((*file)->inode);
  co_return co_await session_.attributes((*file)->inode);
}

Task<Result<Process::PathEnd>> Process::find_end(std::string_view path) {
  Result<Walk> walk = co_await begin(path);
  if (!walk) co_return tl::unexpected(walk.error());
  co_return co_await this->walk(*walk);
}

Task<Result<void>> Process::chdir(Where where) {
  const Result<Attributes> found = co_await find(where, true);
  if (!found) co_return tl::unexpected(found.error());
  std::errc error{};
  if (!found->is_directory()) {
    error = std::errc::not_a_directory;
  } else {
    const bool searchable = co_await may(*found, kMayExecute);
    if (!searchable) error = std::errc::permission_denied;
  }
  if (error != std::errc{}) {
    co_await session_.release(found->inode);
    co_return tl::unexpected(error);
  }
  if (current_) co_await session_.release(*current_);
  current_ = found->inode;
  co_return Result<void>();
}

// --- rules

Task<std::optional<AccessList>> Process::list_of(const Attributes& inode, std::string_view name) {
  if (inode.is_symlink()) co_return std::nullopt;
  const auto value = co_await session_.extended(inode.inode, name);
  if (!value) co_return std::nullopt;
  const Result<std::optional<AccessList>> list = AccessList::parse(*value);
  if (!list || !*list || !(*list)->is_valid()) co_return std::nullopt;
  co_return *list;
}

Task<bool> Process::may(const Attributes& inode, std::uint32_t wanted) {
  std::optional<AccessList> list;
  if (!credentials.is_privileged() && credentials.uid != inode.uid) {
    list = co_await list_of(inode, kAccessList);
  }
  co_return may_access(credentials, inode, list, wanted);
}

Task<> Process::note_access(const Attributes& inode) {
  const Timestamp time = now();
  if (!updates_accessed(inode, time)) co_return;
  const AttributeChange change{.accessed = time};
  co_await session_.change(inode.inode, change);
}

}  // namespace perdura::fs::test
