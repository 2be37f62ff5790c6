#include "bench/fs/replication.h"
#include "bench/fs/target.h"

namespace perdura::bench {
namespace {

// Syncs all changes before an operation returns.
class ReplicatedTarget final : public FileTarget {
 public:
  ReplicatedTarget(std::unique_ptr<fs::Session> session, Replication& replication,
                   std::uint32_t index)
      : target_(std::move(session)), replication_(replication), index_(index) {}

  Task<Result<void>> make_directory(std::string_view path) override {
    return synced(target_.make_directory(path));
  }
  Task<Result<void>> remove_directory(std::string_view path) override {
    return synced(target_.remove_directory(path));
  }
  Task<Result<Handle>> create(std::string_view path) override {
    return synced(target_.create(path));
  }
  Task<Result<Handle>> open(std::string_view path) override { return target_.open(path); }
  Task<Result<void>> close(Handle file) override { return synced(target_.close(file)); }
  Task<Result<Bytes>> read(Handle file, Bytes offset, std::span<std::byte> into) override {
    return target_.read(file, offset, into);
  }
  Task<Result<void>> write(Handle file, Bytes offset, std::span<const std::byte> data) override {
    return synced(target_.write(file, offset, data));
  }
  Task<Result<void>> append(Handle file, std::span<const std::byte> data) override {
    return synced(target_.append(file, data));
  }
  Task<Result<void>> sync(Handle file) override { return synced(target_.sync(file)); }
  Task<Result<Bytes>> size(std::string_view path) override { return target_.size(path); }
  Task<Result<void>> rename(std::string_view path, std::string_view new_path) override {
    return synced(target_.rename(path, new_path));
  }
  Task<Result<void>> unlink(std::string_view path) override { return synced(target_.unlink(path)); }
  Task<Result<void>> set_times(Handle file) override { return synced(target_.set_times(file)); }
  std::vector<double> metrics() const override { return target_.metrics(); }

 private:
  template <class T>
  Task<Result<T>> synced(Task<Result<T>> operation) {
    auto done = co_await std::move(operation);
    const auto replicated = co_await replication_.sync(index_);
    if (done && !replicated) co_return tl::unexpected(replicated.error());
    co_return done;
  }

  SessionTarget target_;
  Replication& replication_;
  std::uint32_t index_;
};

}  // namespace

std::unique_ptr<FileTarget> create_replicated_target(std::unique_ptr<fs::Session> session,
                                                     Replication& replication,
                                                     std::uint32_t index) {
  return std::make_unique<ReplicatedTarget>(std::move(session), replication, index);
}

}  // namespace perdura::bench
