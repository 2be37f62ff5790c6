#include "bench/fs/target.h"
#include "platform/runtime/executor.h"

namespace perdura::bench {

using fs::InodeNumber;
using tl::unexpected;

namespace {

// The actual time does not matter, so it counts from the start of the platform.
fs::Timestamp now() {
  constexpr std::int64_t kSecond = 1'000'000'000'000;  // picoseconds
  const std::int64_t time = Executor::current().now().time_since_epoch().count();
  return {time / kSecond, static_cast<std::uint32_t>(time % kSecond / 1000)};
}

InodeNumber inode(FileTarget::Handle file) { return static_cast<InodeNumber>(file); }

Task<fs::Result<void>> without_value(Task<fs::Result<fs::Attributes>> task) {
  const auto done = co_await std::move(task);
  if (!done) co_return unexpected(done.error());
  co_return fs::Result<void>();
}

}  // namespace

auto SessionTarget::find(std::string_view path) -> Task<Result<PathEnd>> {
  PathEnd end{fs::kRootInode, path};
  for (auto slash = path.find('/'); slash != path.npos; slash = end.name.find('/')) {
    const auto found = co_await session_->look_up(end.directory, end.name.substr(0, slash));
    if (!found) co_return unexpected(found.error());
    end.directory = found->inode;
    end.name.remove_prefix(slash + 1);
  }
  co_return end;
}

Task<fs::Result<void>> SessionTarget::make_directory(std::string_view path) {
  const auto end = co_await find(path);
  if (!end) co_return unexpected(end.error());
  const fs::NewInode directory{.mode = S_IFDIR | 0755};
  co_return co_await without_value(session_->create(end->directory, end->name, directory, now()));
}

Task<fs::Result<void>> SessionTarget::remove_directory(std::string_view path) {
  const auto end = co_await find(path);
  if (!end) co_return unexpected(end.error());
  co_return co_await session_->remove_directory(end->directory, end->name, now());
}

auto SessionTarget::create(std::string_view path) -> Task<Result<Handle>> {
  const auto end = co_await find(path);
  if (!end) co_return unexpected(end.error());
  const fs::NewInode file{.mode = S_IFREG | 0644};
  const auto made = co_await session_->create(end->directory, end->name, file, now());
  if (!made) co_return unexpected(made.error());
  const auto held = co_await session_->hold(made->inode);
  if (!held) co_return unexpected(held.error());
  co_return static_cast<Handle>(made->inode);
}

auto SessionTarget::open(std::string_view path) -> Task<Result<Handle>> {
  const auto end = co_await find(path);
  if (!end) co_return unexpected(end.error());
  const auto found = co_await session_->look_up(end->directory, end->name);
  if (!found) co_return unexpected(found.error());
  const auto held = co_await session_->hold(found->inode);
  if (!held) co_return unexpected(held.error());
  co_return static_cast<Handle>(found->inode);
}

Task<fs::Result<void>> SessionTarget::close(Handle file) {
  co_await session_->release(inode(file));
  co_return Result<void>();
}

Task<fs::Result<Bytes>> SessionTarget::read(Handle file, Bytes offset, std::span<std::byte> into) {
  return session_->read(inode(file), offset, into);
}

Task<fs::Result<void>> SessionTarget::write(Handle file, Bytes offset,
                                            std::span<const std::byte> data) {
  const fs::WriteOptions options{.now = now()};
  co_return co_await session_->write(inode(file), offset, data, options);
}

Task<fs::Result<void>> SessionTarget::append(Handle file, std::span<const std::byte> data) {
  const fs::WriteOptions options{.now = now()};
  const auto where = co_await session_->append(inode(file), data, options);
  if (!where) co_return unexpected(where.error());
  co_return Result<void>();
}

Task<fs::Result<void>> SessionTarget::sync(Handle file) { return session_->sync(inode(file)); }

Task<fs::Result<Bytes>> SessionTarget::size(std::string_view path) {
  const auto end = co_await find(path);
  if (!end) co_return unexpected(end.error());
  const auto found = co_await session_->look_up(end->directory, end->name);
  if (!found) co_return unexpected(found.error());
  co_return found->size;
}

Task<fs::Result<void>> SessionTarget::rename(std::string_view path, std::string_view new_path) {
  const auto from = co_await find(path);
  if (!from) co_return unexpected(from.error());
  const auto to = co_await find(new_path);
  if (!to) co_return unexpected(to.error());
  co_return co_await session_->rename(from->directory, from->name, to->directory, to->name,
                                      fs::RenameMode::replace, now());
}

Task<fs::Result<void>> SessionTarget::set_times(Handle file) {
  const fs::Timestamp time = now();
  const fs::AttributeChange change{.accessed = time, .modified = time, .changed = time};
  co_return co_await without_value(session_->change(inode(file), change));
}

Task<fs::Result<void>> SessionTarget::unlink(std::string_view path) {
  const auto end = co_await find(path);
  if (!end) co_return unexpected(end.error());
  co_return co_await session_->unlink(end->directory, end->name, now());
}

}  // namespace perdura::bench
