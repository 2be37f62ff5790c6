// The specification as a file system that threads can use. Nothing in it is persistent.
#pragma once

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "services/fs/model/model.h"
#include "services/fs/tree.h"

namespace perdura::fs {

class ModelFileSystem final : public FileSystem {
 public:
  explicit ModelFileSystem(Model model = Model()) : model_(std::move(model)) {}

  std::unique_ptr<Session> attach(Thread& thread) override;
  std::unique_ptr<Session> attach();  // the thread does not matter to a model
  Task<> unmount() override { co_return; }
  Task<std::string> audit() override;

  Model model() const;  // a copy of the current state

 private:
  friend class ModelSession;

  mutable std::mutex mutex_;
  Model model_;
};

class ModelSession final : public Session {
 public:
  explicit ModelSession(ModelFileSystem& files) : files_(files) {}

  Task<Result<Attributes>> look_up(InodeNumber directory, std::string_view name) override;
  Task<Result<InodeNumber>> parent(InodeNumber directory) override;
  Task<Result<Attributes>> create(InodeNumber directory, std::string_view name,
                                  const NewInode& inode, Timestamp now) override;
  Task<Result<Attributes>> create_unnamed(const NewInode& inode, Timestamp now) override;
  Task<Result<Attributes>> link(InodeNumber inode, InodeNumber directory, std::string_view name,
                                Timestamp now) override;
  Task<Result<void>> unlink(InodeNumber directory, std::string_view name, Timestamp now) override;
  Task<Result<void>> remove_directory(InodeNumber directory, std::string_view name,
                                      Timestamp now) override;
  Task<Result<void>> rename(InodeNumber from, std::string_view name, InodeNumber to,
                            std::string_view new_name, RenameMode mode, Timestamp now) override;
  Task<Result<std::vector<DirectoryEntry>>> entries(InodeNumber directory, std::uint64_t cookie,
                                                    std::size_t most) override;
  Task<Result<std::uint64_t>> last_cookie(InodeNumber directory) override;
  Task<Result<std::string>> read_link(InodeNumber inode) override;
  Task<Result<Attributes>> attributes(InodeNumber inode) override;
  Task<Result<Attributes>> change(InodeNumber inode, const AttributeChange& change) override;
  Task<Result<std::vector<std::byte>>> extended(InodeNumber inode, std::string_view name) override;
  Task<Result<std::vector<std::string>>> extended_names(InodeNumber inode) override;
  Task<Result<void>> set_extended(InodeNumber inode, std::string_view name,
                                  std::span<const std::byte> value, AttributeMode mode,
                                  Timestamp now) override;
  Task<Result<void>> remove_extended(InodeNumber inode, std::string_view name,
                                     Timestamp now) override;
  Task<Result<Bytes>> read(InodeNumber inode, Bytes offset, std::span<std::byte> into) override;
  Task<Result<void>> write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                           const WriteOptions& options) override;
  Task<Result<Bytes>> append(InodeNumber inode, std::span<const std::byte> data,
                             const WriteOptions& options) override;
  Task<Result<void>> truncate(InodeNumber inode, Bytes size, const WriteOptions& options) override;
  Task<Result<void>> allocate(InodeNumber inode, AllocationMode mode, Bytes offset, Bytes length,
                              const WriteOptions& options) override;
  Task<Result<Bytes>> seek(InodeNumber inode, Bytes offset, Seek what) override;
  Task<Result<void>> sync(InodeNumber inode) override;
  Task<Result<void>> sync_all() override;
  Task<Result<void>> hold(InodeNumber inode) override;
  Task<> release(InodeNumber inode, std::uint64_t holds) override;
  Task<Result<Statistics>> statistics() override;

 private:
  // Calls a function of the model under the lock.
  template <class Function, class... Arguments>
  auto call(Function function, const Arguments&... arguments) {
    const std::lock_guard lock(files_.mutex_);
    return (files_.model_.*function)(arguments...);
  }

  ModelFileSystem& files_;
};

// Runs a task that never waits, such as a model's, outside of any executor. Throws logic_error if
// it waits.
template <class T>
T run_at_once(Task<T> task) {
  task.handle().resume();
  if (!task.handle().done()) throw std::logic_error("the task waits");
  return task.handle().promise().take();
}

Tree tree_of(Model model, const TreeOptions& options = {});

}  // namespace perdura::fs
