#include "bench/fs/octopus_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/fs/file_workload.h"
#include "platform/base/error.h"
#include "platform/runtime/executor.h"
#include "systems/octopus/file_system.h"
#include "systems/octopus/octopus.h"

namespace perdura::bench {

using systems::octopus::Client;
using tl::unexpected;

namespace {

// Nanoseconds since the start of the platform.
std::uint64_t time_of_change() {
  return static_cast<std::uint64_t>(Executor::current().now().time_since_epoch().count()) / 1000;
}

// An open file is its path. Opening asks for its attributes, as published.
class OctopusTarget final : public FileTarget {
 public:
  explicit OctopusTarget(std::unique_ptr<Client> client) : client_(std::move(client)) {}

  Task<Result<void>> make_directory(std::string_view path) override {
    return client_->make_directory(path, time_of_change());
  }
  Task<Result<void>> remove_directory(std::string_view path) override {
    return client_->remove_directory(path, time_of_change());
  }
  Task<Result<Handle>> create(std::string_view path) override {
    const auto made = co_await client_->create(path, time_of_change());
    if (!made) co_return unexpected(made.error());
    co_return handle_of(path);
  }
  Task<Result<Handle>> open(std::string_view path) override {
    const auto found = co_await client_->stat(path);
    if (!found) co_return unexpected(found.error());
    co_return handle_of(path);
  }
  Task<Result<void>> close(Handle file) override {
    free_.push_back(static_cast<std::size_t>(file));
    co_return Result<void>();
  }
  Task<Result<Bytes>> read(Handle file, Bytes offset, std::span<std::byte> into) override {
    return client_->read(path_of(file), offset, into);
  }
  Task<Result<void>> write(Handle file, Bytes offset, std::span<const std::byte> data) override {
    return client_->write(path_of(file), offset, data, time_of_change());
  }
  Task<Result<void>> append(Handle file, std::span<const std::byte> data) override {
    const auto where = co_await client_->append(path_of(file), data, time_of_change());
    if (!where) co_return unexpected(where.error());
    co_return Result<void>();
  }
  Task<Result<void>> sync(Handle file) override { return client_->sync(path_of(file)); }
  Task<Result<Bytes>> size(std::string_view path) override {
    const auto found = co_await client_->stat(path);
    if (!found) co_return unexpected(found.error());
    co_return found->size;
  }
  // check_octopus() has refused what needs it.
  Task<Result<void>> rename(std::string_view, std::string_view) override {
    co_return unexpected(std::errc::operation_not_supported);
  }
  Task<Result<void>> unlink(std::string_view path) override {
    return client_->unlink(path, time_of_change());
  }
  Task<Result<void>> set_times(Handle file) override {
    return client_->set_times(path_of(file), time_of_change());
  }
  std::vector<double> metrics() const override { return client_->metrics(); }

 private:
  Handle handle_of(std::string_view path) {
    std::size_t index = open_.size();
    if (free_.empty()) {
      open_.emplace_back(std::make_unique<std::string>());
    } else {
      index = free_.back();
      free_.pop_back();
    }
    *open_[index] = path;
    return Handle{index};
  }
  std::string_view path_of(Handle file) const { return *open_[static_cast<std::size_t>(file)]; }

  std::unique_ptr<Client> client_;
  // By handle; operations under way refer to the strings.
  std::vector<std::unique_ptr<std::string>> open_;
  std::vector<std::size_t> free_;
};

[[noreturn]] void refuse_on_octopus(const std::string& why) { throw UsageError("octopus: " + why); }

// The largest size that a file of the workload will have.
Bytes largest_file(const harness::Point& point) {
  const harness::PointSettings& settings = point.settings;
  if (settings.text("workload") != "append")
    return settings.number_if_given("file_size").value_or(0);
  const std::uint64_t files = settings.number("shared_file") != 0 ? 1 : lanes_of(point);
  return (point.operations + files - 1) / files * settings.number("append_size");
}

}  // namespace

std::unique_ptr<FileTarget> create_target(fs::FileSystem& files, Thread& thread) {
  if (auto* const paths = dynamic_cast<systems::octopus::FileSystem*>(&files)) {
    return std::make_unique<OctopusTarget>(paths->connect(thread));
  }
  return std::make_unique<SessionTarget>(files.attach(thread));
}

void check_octopus(const harness::Point& point, const fs::FsConfig& config) {
  const harness::PointSettings& settings = point.settings;
  if (settings.system.text != systems::kOctopus.info.name) return;
  const std::string workload = settings.text("workload");
  if (workload == "rename") {
    refuse_on_octopus("it renames nothing; leave out the workload rename");
  }
  if (workload == "varmail" || workload == "fileserver" || workload == "webserver") {
    refuse_on_octopus(
        fmt::format("its files and directories have a fixed size, and those of {} any; leave out "
                    "the workload",
                    workload));
  }
  const auto limits = systems::octopus::Parameters::of(config);
  if (const Bytes size = largest_file(point); size > limits.extent_bytes) {
    refuse_on_octopus(
        fmt::format("a file of {} bytes does not fit into its extent; raise extent_bytes, "
                    "which is {}, or make files smaller",
                    size, limits.extent_bytes));
  }
  const std::uint64_t entries = settings.number_if_given("directory_width").value_or(0) +
                                settings.number_if_given("branching").value_or(0);
  if (entries > limits.directory_entries) {
    refuse_on_octopus(
        fmt::format("a directory has no room for {} entries; raise directory_entries, which is "
                    "{}, or lower directory_width",
                    entries, limits.directory_entries));
  }
}

}  // namespace perdura::bench
