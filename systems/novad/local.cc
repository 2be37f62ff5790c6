#include "systems/novad/local.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "systems/novad/session.h"

namespace perdura::systems::novad {

using tl::unexpected;

namespace {

using ServerKey = std::pair<const Node*, std::string>;

// Threads of several simulations may run at once, so this is no lock of a node.
std::mutex& servers_mutex() {
  static std::mutex mutex;
  return mutex;
}
std::map<ServerKey, std::weak_ptr<Server>>& servers() {
  static std::map<ServerKey, std::weak_ptr<Server>> all;
  return all;
}

// Holds and releases as a client does.
class LocalSession final : public Session {
 public:
  LocalSession(std::shared_ptr<FileSystem> files, std::shared_ptr<Server> server, Thread& thread)
      : Session(std::move(files), thread, Purpose::local),
        server_(std::move(server)),
        volume_(server_->attach(thread)) {}

  Task<Result<fs::Attributes>> look_up(InodeNumber directory, std::string_view name) override {
    return told(volume_->look_up(directory, name));
  }
  Task<Result<InodeNumber>> parent(InodeNumber directory) override {
    return told(volume_->parent(directory));
  }
  Task<Result<fs::Attributes>> create(InodeNumber directory, std::string_view name,
                                      const fs::NewInode& inode, Timestamp now) override {
    return told(volume_->create(directory, name, inode, now));
  }
  Task<Result<fs::Attributes>> link(InodeNumber inode, InodeNumber directory, std::string_view name,
                                    Timestamp now) override {
    return told(volume_->link(inode, directory, name, now));
  }
  Task<Result<void>> unlink(InodeNumber directory, std::string_view name, Timestamp now) override {
    return told(volume_->unlink(directory, name, now));
  }
  Task<Result<void>> remove_directory(InodeNumber directory, std::string_view name,
                                      Timestamp now) override {
    return told(volume_->remove_directory(directory, name, now));
  }
  Task<Result<void>> rename(InodeNumber from, std::string_view name, InodeNumber to,
                            std::string_view new_name, fs::RenameMode mode,
                            Timestamp now) override {
    return told(volume_->rename(from, name, to, new_name, mode, now));
  }
  Task<Result<std::vector<fs::DirectoryEntry>>> entries(InodeNumber directory, std::uint64_t cookie,
                                                        std::size_t most) override {
    return told(volume_->entries(directory, cookie, most));
  }
  Task<Result<std::uint64_t>> last_cookie(InodeNumber directory) override {
    return told(volume_->last_cookie(directory));
  }
  Task<Result<std::string>> read_link(InodeNumber inode) override {
    return told(volume_->read_link(inode));
  }

  Task<Result<fs::Attributes>> attributes(InodeNumber inode) override {
    return told(volume_->attributes(inode));
  }
  Task<Result<fs::Attributes>> change(InodeNumber inode,
                                      const fs::AttributeChange& change) override {
    return told(volume_->change(inode, change));
  }
  Task<Result<std::vector<std::byte>>> extended(InodeNumber inode, std::string_view name) override {
    return told(volume_->extended(inode, name));
  }
  Task<Result<std::vector<std::string>>> extended_names(InodeNumber inode) override {
    return told(volume_->extended_names(inode));
  }
  Task<Result<void>> set_extended(InodeNumber inode, std::string_view name,
                                  std::span<const std::byte> value, fs::AttributeMode mode,
                                  Timestamp now) override {
    return told(volume_->set_extended(inode, name, value, mode, now));
  }
  Task<Result<void>> remove_extended(InodeNumber inode, std::string_view name,
                                     Timestamp now) override {
    return told(volume_->remove_extended(inode, name, now));
  }

  Task<Result<Bytes>> read(InodeNumber inode, Bytes offset, std::span<std::byte> into) override {
    return told(volume_->read(inode, offset, into));
  }
  Task<Result<void>> write(InodeNumber inode, Bytes offset, std::span<const std::byte> data,
                           const fs::WriteOptions& options) override {
    return told(volume_->write(inode, offset, data, options));
  }
  Task<Result<Bytes>> append(InodeNumber inode, std::span<const std::byte> data,
                             const fs::WriteOptions& options) override {
    return told(volume_->append(inode, data, options));
  }
  Task<Result<void>> truncate(InodeNumber inode, Bytes size,
                              const fs::WriteOptions& options) override {
    return told(volume_->truncate(inode, size, options));
  }
  Task<Result<void>> allocate(InodeNumber inode, fs::AllocationMode mode, Bytes offset,
                              Bytes length, const fs::WriteOptions& options) override {
    return told(volume_->allocate(inode, mode, offset, length, options));
  }
  Task<Result<Bytes>> seek(InodeNumber inode, Bytes offset, Seek what) override {
    return told(volume_->seek(inode, offset, what));
  }
  Task<Result<void>> sync(InodeNumber inode) override { return told(volume_->sync(inode)); }
  Task<Result<void>> sync_all() override { return told(volume_->sync_all()); }
  Task<Result<std::unique_ptr<fs::FileMapping>>> map(InodeNumber inode, Bytes offset,
                                                     Bytes length) override {
    return told(volume_->map(inode, offset, length));
  }

  Task<Result<fs::Statistics>> statistics() override { return told(volume_->statistics()); }

 private:
  // Executes an operation on the volume, unless the server has given up what this mount holds.
  template <class T>
  Task<Result<T>> told(Task<Result<T>> operation) {
    const bool is_connected = co_await connection().connected();
    if (!is_connected) co_return unexpected(std::errc::not_connected);
    Result<T> result = co_await std::move(operation);
    if (server_->is_settled()) co_return result;
    const auto answer = co_await connection().call(Request::settle, 0, {});
    if (!answer) co_return unexpected(std::errc::not_connected);
    co_return result;
  }

  std::shared_ptr<Server> server_;
  std::unique_ptr<fs::Session> volume_;
};

}  // namespace

void note_server(const Node& node, const std::string& name, std::weak_ptr<Server> server) {
  const std::lock_guard guard(servers_mutex());
  std::erase_if(servers(), [](const auto& each) { return each.second.expired(); });
  servers()[{&node, name}] = std::move(server);
}

std::shared_ptr<Server> server_of(const Node& node, const std::string& name) {
  const std::lock_guard guard(servers_mutex());
  const auto found = servers().find({&node, name});
  return found == servers().end() ? nullptr : found->second.lock();
}

std::unique_ptr<fs::Session> LocalFileSystem::attach(Thread& thread) {
  return std::make_unique<LocalSession>(shared_from_this(), server_, thread);
}

}  // namespace perdura::systems::novad
