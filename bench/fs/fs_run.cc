#include "bench/fs/fs_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "bench/driver/server.h"
#include "bench/driver/systems.h"
#include "bench/fs/octopus_target.h"
#include "bench/ycsb/workload_spec.h"
#include "harness/run/interrupt.h"
#include "methods/chooser.h"
#include "platform/base/error.h"
#include "platform/base/random.h"
#include "platform/runtime/sync.h"

namespace perdura::bench {

using harness::Verdict;
using ycsb::operations_of_client;

namespace {

constexpr std::size_t kActions = static_cast<std::size_t>(FileAction::utimens) + 1;
// Writes start at varying offsets of the same data, so that no two in a row are equal.
constexpr Bytes kShifts = 4 * KiB;

std::string in_words(std::errc error) { return std::make_error_code(error).message(); }

}  // namespace

fs::FsConfig fs_config(const harness::Point& point, const fs::FsSystem& system) {
  fs::FsConfig config;
  config.size = point.settings.number("size");
  config.threads = static_cast<std::uint32_t>(point.settings.number("threads"));
  config.parameters = point.parameters;
  config.servers = servers_of(point);
  if (system.cluster != nullptr && point.settings.text("persistence") == "correct") {
    config.data_method = methods::choose(methods::configurations(stated_server(point.settings)),
                                         *system.cluster->update, {});
    if (system.cluster->mirror_update) {
      config.mirror_method = methods::choose(methods::configurations(stated_server(point.settings)),
                                             *system.cluster->mirror_update, {});
    }
  }
  return config;
}

std::vector<NodeId> application_nodes(const harness::Point& point) {
  const std::string_view role =
      point.roles.nodes_of("application") > 0 ? "application" : to_string(fs::FsRole::store);
  std::vector<NodeId> nodes(
      std::min<std::uint64_t>(point.roles.nodes_of(role), point.settings.number("threads")));
  for (NodeId index = 0; index < nodes.size(); ++index)
    nodes[index] = point.roles.node(role, index);
  return nodes;
}

std::string path_of(const harness::Point& point) {
  const auto path = point.parameters.find("path");
  return path == point.parameters.end() ? "" : path->second.text();
}

FsRun::FsRun(Platform& platform, const harness::Point& point, const fs::FsSystem* system,
             const services::MemorySystem* memory)
    : platform_(platform),
      point_(point),
      system_(system),
      threads_(static_cast<std::uint32_t>(point.settings.number("threads"))),
      think_(Microseconds(point.settings.number("think_us"))),
      workload_(create_file_workload(point)),
      nodes_(application_nodes(point)),
      mounts_(nodes_.size()),
      applications_(threads_),
      first_starts_(threads_, Time::max()),
      last_ends_(threads_, Time::min()),
      operations_at_work_(threads_),
      session_metrics_(threads_),
      copies_(point.roles.node_count()),
      server_metrics_(point.roles.node_count()) {
  if (system != nullptr && system->cluster != nullptr) {
    servers_.emplace(platform, *system, fs_config(point, *system));
  }
  if (memory == nullptr) return;
  services::MemoryConfig config;
  config.size = round_up(point.settings.number("size"), kMediaLine);
  config.threads = threads_;
  config.nodes.resize(point.roles.node_count());
  std::iota(config.nodes.begin(), config.nodes.end(), NodeId{0});
  config.completion = point.settings.completion("application");
  replication_.emplace(*memory, std::move(config), threads_);
}

harness::Measurement FsRun::execute() {
  std::uint32_t all = threads_;
  if (replication_) all += (point_.roles.node_count() - 1) * replication_->workers();
  if (servers_) all += servers_->threads();
  if (replication_ || servers_) {
    opened_ = platform_.create_barrier(all);
    served_ = platform_.create_barrier(all);
  }
  if (servers_) left_ = platform_.create_barrier(all);
  phases_.emplace(platform_, all);
  barrier_ = platform_.create_barrier(threads_);
  if (replication_ || servers_) check_is_one_process();
  start_copies();
  start_servers();
  if (platform_.local_node(nodes_.front()) == nullptr) {
    platform_.run();
    return {};
  }
  if (system_ == nullptr) folder_.emplace(path_of(point_));
  crew_.emplace(threads_ * static_cast<std::uint32_t>(point_.settings.number("queue_depth")));
  for (std::uint32_t index = 0; index < threads_; ++index) {
    const NodeId node = nodes_[index % nodes_.size()];
    const bool is_server = point_.roles.nodes_of("application") == 0;
    const std::uint32_t port = index / nodes_.size() + (is_server ? servers_->workers(node) : 0);
    platform_.start(node, static_cast<fabric::Port>(port),
                    point_.settings.completion("application"),
                    [this, index](Thread& thread) { return use(thread, index); });
  }
  platform_.run();
  return collect();
}

harness::Measurement FsRun::collect() const {
  harness::Measurement result;
  std::uint64_t operations_at_work = 0;
  for (std::uint32_t i = 0; i < threads_; ++i) {
    result.merge(applications_[i]);
    operations_at_work += operations_at_work_[i];
  }
  const std::uint64_t clock = platform_.modelled() ? 0 : measure::clock_of_this_host();
  result.at_work = {crew_->at_work(clock, operations_at_work)};
  const Time first = *std::min_element(first_starts_.begin(), first_starts_.end());
  const Time last = *std::max_element(last_ends_.begin(), last_ends_.end());
  if (first < last) result.elapsed = last - first;
  if (platform_.modelled()) result.harness_per_operation = Picoseconds{};
  harness::Measurement costs;
  phases_->costs().add_to(costs, point_.roles);
  for (const harness::Measurement& of_copy : copies_) result.merge(of_copy);
  if (system_ == nullptr) {
    // The writes of a kernel's file system to memory are not known.
    constexpr std::string_view kCpu = "application_cpu_us_per_op";
    result.declared[std::string(kCpu)] += costs.declared.find(kCpu)->second;
    if (costs.noise) result.note_noise(*costs.noise);
  } else {
    result.merge(costs);
    add_counted(system_->session_metrics, session_metrics_, result);
    if (servers_) add_counted(system_->cluster->server_metrics, server_metrics_, result);
  }
  return result;
}

// A thread of the application.
class FsRun::Application final : public harness::PhaseWork {
 public:
  Application(FsRun& run, Thread& thread, std::uint32_t index);

  Task<> prepare() override;
  void failed(std::exception_ptr problem) override {
    run_.stop_ = true;
    note(std::move(problem), "the application", result_);
  }
  Task<> warm_up() override { return run("warmup", nullptr); }
  Task<> operate() override {
    if (!target_) co_return;
    const std::vector<double> before = target_->metrics();
    co_await run("operations", &*run_.crew_);
    run_.session_metrics_[index_] = services::metrics_since(target_->metrics(), before);
  }
  Task<> settle() override {
    if (run_.replication_ && target_) co_await run_.replication_->settle(index_);
  }
  // After the phases: checks the files that remain, and unmounts.
  Task<> leave();

 private:
  struct Lane {
    std::uint32_t number = 0;  // among all lanes of the point
    std::unique_ptr<FileLane> work;
    FileTarget::Handle current{};
    std::vector<FileTarget::Handle> kept;  // in the order of FileWorkload::kept_files
    std::vector<std::byte> buffer;         // for reads
    std::uint64_t writes = 0;
    Bytes read = 0;  // bytes since the stretch began
    Bytes written = 0;
  };

  Task<> map();
  Task<> mount();
  Task<> unmount(bool whole);
  Task<> leave_servers();
  bool is_first_on_node() const { return run_.is_first_on_node(index_); }
  // The mount of the node.
  std::shared_ptr<fs::FileSystem>& files() { return run_.mounts_[index_ % run_.mounts_.size()]; }
  void fail(std::string_view what, std::string_view path, std::errc error);
  Task<> make_files();
  Task<> run(std::string_view number, Crew* crew);
  Task<> run_lane(Lane& lane, std::uint64_t operations, Crew* crew);
  // Returns the number of bytes read or written.
  Task<fs::Result<Bytes>> perform(Lane& lane, const FileOperation& operation);
  Task<fs::Result<Bytes>> read_whole(Lane& lane, FileTarget::Handle file);
  Task<fs::Result<Bytes>> write_pieces(Lane& lane, FileTarget::Handle file, Bytes length);
  std::span<const std::byte> data(Lane& lane, Bytes length) {
    return std::span(data_).subspan(lane.writes++ * kCacheLine % kShifts, length);
  }
  harness::KindMeasurement& kind(FileAction action) {
    auto*& found = kinds_[static_cast<std::size_t>(action)];
    if (found == nullptr) found = &result_.kinds[kind_of(action)];
    return *found;
  }

  FsRun& run_;
  Thread& thread_;
  Thread* file_system_thread_ = &thread_;  // the thread that the file system sees
  std::uint32_t index_;
  harness::Measurement& result_;
  Bytes piece_ = 0;  // size of the largest read or write
  std::vector<Lane> lanes_;
  std::vector<std::byte> data_;  // data to write
  std::unique_ptr<FileTarget> target_;
  std::array<harness::KindMeasurement*, kActions> kinds_{};
  bool yields_ = false;
  std::size_t lanes_at_work_ = 0;
  WaitList lanes_ended_;
};

FsRun::Application::Application(FsRun& run, Thread& thread, std::uint32_t index)
    : run_(run), thread_(thread), index_(index), result_(run.applications_[index]) {
  const harness::PointSettings& settings = run.point_.settings;
  for (const char* const size : {"io_size", "append_size"}) {
    piece_ = std::max(piece_, settings.number_if_given(size).value_or(1));
  }
  data_.resize(piece_ + kShifts);
  Random random(run.point_.seed, ~std::uint64_t{index});
  for (std::byte& byte : data_) byte = static_cast<std::byte>(random() & 0xff);
  const auto depth = static_cast<std::uint32_t>(settings.number("queue_depth"));
  lanes_.resize(depth);
  for (std::uint32_t i = 0; i < depth; ++i) {
    lanes_[i].number = index * depth + i;
    lanes_[i].work = run.workload_->lane(lanes_[i].number);
    lanes_[i].buffer.resize(piece_);
  }
  // An operation that does not wait lets no simulated time pass for others, and no other lane run.
  yields_ = run.platform_.modelled() || depth > 1;
}

void FsRun::Application::fail(std::string_view what, std::string_view path, std::errc error) {
  const bool full = error == std::errc::no_space_on_device;
  std::string_view advice;
  if (full) {
    advice = run_.system_ != nullptr ? "; raise size, or lower what the workload writes"
                                     : "; lower what the workload writes";
  }
  const std::string_view space = path.empty() ? "" : " ";
  result_.judge(Verdict::failed,
                fmt::format("{}{}{}: {}{}", what, space, path, in_words(error), advice));
  run_.stop_ = true;
}

Task<> FsRun::Application::mount() {
  const fs::FsConfig config = fs_config(run_.point_, *run_.system_);
  if (!run_.servers_) co_await run_.system_->make(*file_system_thread_, FileServers::kName, config);
  files() = co_await run_.system_->mount(*file_system_thread_, FileServers::kName, config);
  if (config.data_method) {
    result_.method =
        methods::name_in_results(*config.data_method, !thread_.endpoint.capabilities().flush);
  }
  if (!run_.replication_) co_return;
  const auto synced = co_await run_.replication_->sync(index_);
  if (!synced) fail("making the file system", "", synced.error());
}

Task<> FsRun::Application::map() {
  std::exception_ptr problem;
  try {
    if (index_ == 0) run_.replication_->open(thread_);
  } catch (...) {
    problem = std::current_exception();
    run_.stop_ = true;
  }
  co_await run_.opened_->arrive_and_wait();
  co_await run_.served_->arrive_and_wait();
  if (problem) std::rethrow_exception(problem);
  if (!run_.stop_) file_system_thread_ = co_await run_.replication_->map(thread_, index_);
}

Task<> FsRun::Application::prepare() {
  std::exception_ptr problem;
  try {
    if (run_.replication_) co_await map();
  } catch (...) {
    problem = std::current_exception();
    run_.stop_ = true;
  }
  if (run_.servers_) {
    co_await run_.opened_->arrive_and_wait();
    co_await run_.served_->arrive_and_wait();
  }
  if (is_first_on_node() && run_.system_ != nullptr && !run_.stop_) {
    try {
      co_await mount();
    } catch (...) {
      problem = std::current_exception();
      run_.stop_ = true;
    }
  }
  co_await run_.barrier_->arrive_and_wait();
  if (files() && !run_.stop_) {
    if (run_.replication_) {
      auto session = files()->attach(*file_system_thread_);
      target_ = create_replicated_target(std::move(session), *run_.replication_, index_);
    } else {
      target_ = create_target(*files(), *file_system_thread_);
    }
  } else if (run_.folder_) {
    target_ = create_path_target(*run_.folder_);
  }
  if (index_ == 0 && target_) {
    for (const std::string& path : run_.workload_->directories()) {
      const auto made = co_await target_->make_directory(path);
      if (made) continue;
      fail("making directory", path, made.error());
      break;
    }
  }
  co_await run_.barrier_->arrive_and_wait();
  if (!run_.stop_) co_await make_files();
  co_await run_.barrier_->arrive_and_wait();
  if (problem) std::rethrow_exception(problem);
  for (Lane& lane : lanes_) {
    if (run_.stop_) break;
    const std::vector<std::string> paths = run_.workload_->kept_files(lane.number);
    for (const std::string& path : paths) {
      const auto opened = co_await target_->open(path);
      if (!opened) {
        fail("opening", path, opened.error());
        break;
      }
      lane.kept.push_back(*opened);
    }
  }
}

Task<> FsRun::Application::make_files() {
  for (Lane& lane : lanes_) {
    const std::vector<NewFile> files = run_.workload_->files(lane.number);
    for (const NewFile& file : files) {
      if (run_.stop_ || harness::interrupted()) co_return;
      const auto created = co_await target_->create(file.path);
      if (!created) {
        fail("making", file.path, created.error());
        co_return;
      }
      const auto written = co_await write_pieces(lane, *created, file.size);
      if (!written) fail("filling", file.path, written.error());
      const auto closed = co_await target_->close(*created);
      if (!closed) fail("closing", file.path, closed.error());
    }
  }
}

Task<> FsRun::Application::run(std::string_view number, Crew* crew) {
  const std::uint64_t all = run_.point_.settings.number(number);
  const std::uint32_t lanes = lanes_of(run_.point_);
  for (Lane& lane : lanes_) lane.read = lane.written = 0;
  lanes_at_work_ = lanes_.size();
  for (Lane& lane : lanes_) {
    const std::uint64_t operations = operations_of_client(all, lane.number, lanes);
    if (lanes_.size() > 1) {
      thread_.executor.spawn(run_lane(lane, operations, crew));
    } else {
      co_await run_lane(lane, operations, crew);
    }
  }
  while (lanes_at_work_ > 0) co_await wait(lanes_ended_);
  if (crew == nullptr) co_return;
  for (const Lane& lane : lanes_) {
    result_.declared["read_bytes_per_op"] += static_cast<double>(lane.read);
    result_.declared["written_bytes_per_op"] += static_cast<double>(lane.written);
  }
}

Task<> FsRun::Application::run_lane(Lane& lane, std::uint64_t operations, Crew* crew) {
  Executor& executor = Executor::current();
  Time end = executor.now();
  if (crew != nullptr) crew->begin(end);
  for (std::uint64_t i = 0; i < operations && !run_.stop_.load(std::memory_order_relaxed); ++i) {
    if (harness::interrupted()) [[unlikely]] {
      result_.interrupted = true;
      break;
    }
    const std::optional<FileOperation> operation = lane.work->next();
    if (!operation) {
      result_.judge(Verdict::failed, lane.work->why());
      run_.stop_ = true;
      break;
    }
    if (run_.think_ > Picoseconds{}) {
      co_await sleep_for(run_.think_);
    } else if (yields_) {
      co_await yield();
    }
    const Time start = executor.begin();
    const auto done = co_await perform(lane, *operation);
    end = executor.now();
    if (crew != nullptr) {
      run_.first_starts_[index_] = std::min(run_.first_starts_[index_], start);
      run_.last_ends_[index_] = std::max(run_.last_ends_[index_], end);
      harness::KindMeasurement& measured = kind(operation->action);
      ++measured.operations;
      if (done) {
        measured.latency.record(static_cast<std::uint64_t>((end - start).count()) / 1000);
        if (crew->were_at_work(end)) ++run_.operations_at_work_[index_];
      } else {
        ++measured.errors;
      }
    }
    if (!done) {
      fail(to_string(operation->action), operation->path, done.error());
      break;
    }
    lane.work->performed(*operation);
  }
  if (crew != nullptr) crew->end(end);
  if (--lanes_at_work_ == 0) lanes_ended_.wake_all();
}

Task<fs::Result<Bytes>> FsRun::Application::read_whole(Lane& lane, FileTarget::Handle file) {
  const Bytes piece = run_.point_.settings.number("io_size");
  Bytes offset = 0;
  while (true) {
    const auto read = co_await target_->read(file, offset, std::span(lane.buffer).first(piece));
    if (!read) co_return read;
    if (*read == 0) break;
    offset += *read;
  }
  lane.read += offset;
  co_return offset;
}

Task<fs::Result<Bytes>> FsRun::Application::write_pieces(Lane& lane, FileTarget::Handle file,
                                                         Bytes length) {
  for (Bytes offset = 0; offset < length;) {
    const Bytes piece = std::min(piece_, length - offset);
    const auto written = co_await target_->write(file, offset, data(lane, piece));
    if (!written) co_return tl::unexpected(written.error());
    offset += piece;
  }
  lane.written += length;
  co_return length;
}

Task<fs::Result<Bytes>> FsRun::Application::perform(Lane& lane, const FileOperation& operation) {
  FileTarget& target = *target_;
  FileTarget::Handle& file =
      operation.file == OpenFile::kept ? lane.kept[operation.kept] : lane.current;
  fs::Result<void> done;
  switch (operation.action) {
    case FileAction::create: {
      const auto created = co_await target.create(operation.path);
      if (!created) co_return tl::unexpected(created.error());
      file = *created;
      if (operation.length > 0) {
        const auto written = co_await write_pieces(lane, file, operation.length);
        if (!written) co_return written;
      }
      if (operation.closes) done = co_await target.close(file);
      break;
    }
    case FileAction::open: {
      const auto opened = co_await target.open(operation.path);
      if (!opened) co_return tl::unexpected(opened.error());
      file = *opened;
      break;
    }
    case FileAction::open_read_close: {
      const auto opened = co_await target.open(operation.path);
      if (!opened) co_return tl::unexpected(opened.error());
      const auto read = co_await read_whole(lane, *opened);
      done = co_await target.close(*opened);
      if (!read) co_return read;
      break;
    }
    case FileAction::read: {
      const auto read = co_await target.read(file, operation.offset,
                                             std::span(lane.buffer).first(operation.length));
      if (!read) co_return read;
      // The whole range was written before, so it must be there.
      if (*read != operation.length) co_return tl::unexpected(std::errc::io_error);
      lane.read += *read;
      break;
    }
    case FileAction::write:
      done = co_await target.write(file, operation.offset, data(lane, operation.length));
      lane.written += operation.length;
      break;
    case FileAction::append:
      if (operation.length > 0) done = co_await target.append(file, data(lane, operation.length));
      lane.written += operation.length;
      break;
    case FileAction::read_whole:
      co_return co_await read_whole(lane, file);
    case FileAction::write_whole:
      co_return co_await write_pieces(lane, file, operation.length);
    case FileAction::close:
      done = co_await target.close(file);
      break;
    case FileAction::fsync:
      done = co_await target.sync(file);
      break;
    case FileAction::stat:
      co_return co_await target.size(operation.path);
    case FileAction::mkdir:
      done = co_await target.make_directory(operation.path);
      break;
    case FileAction::rename:
      done = co_await target.rename(operation.path, operation.new_path);
      break;
    case FileAction::unlink:
      done = co_await target.unlink(operation.path);
      break;
    case FileAction::utimens:
      done = co_await target.set_times(file);
      break;
    case FileAction::rmdir:
      done = co_await target.remove_directory(operation.path);
      break;
  }
  if (!done) co_return tl::unexpected(done.error());
  co_return Bytes{0};
}

Task<> FsRun::Application::leave() {
  for (Lane& lane : lanes_) {
    for (const FileTarget::Handle file : lane.kept) {
      const auto closed = co_await target_->close(file);
      if (!closed) fail("closing", "a kept file", closed.error());
    }
  }
  co_await run_.barrier_->arrive_and_wait();
  const bool whole = !run_.stop_ && !harness::interrupted();
  if (index_ == 0 && whole) {
    for (const NewFile& file : run_.workload_->remains()) {
      const auto size = co_await target_->size(file.path);
      if (size && *size == file.size) continue;
      result_.judge(Verdict::invalid,
                    fmt::format("{} must have {} bytes, and {}", file.path, file.size,
                                size ? fmt::format("has {}", *size) : in_words(size.error())));
      break;
    }
  }
  target_.reset();
  co_await run_.barrier_->arrive_and_wait();
  if (is_first_on_node() && files()) co_await unmount(whole);
  if (run_.servers_) co_await leave_servers();
  if (!run_.replication_) co_return;
  co_await run_.barrier_->arrive_and_wait();
  run_.replication_->unmap(index_);
}

Task<> FsRun::Application::unmount(bool whole) {
  if (whole) {
    const std::string contradiction = co_await files()->audit();
    if (!contradiction.empty()) result_.judge(Verdict::invalid, contradiction);
    co_await files()->unmount();
  }
  files().reset();
  if (!run_.replication_ || !whole) co_return;
  const auto synced = co_await run_.replication_->sync(index_);
  if (!synced) fail("unmounting", "", synced.error());
  co_await run_.replication_->settle(index_);
}

// Waits until the servers have audited what they hold. A run that has failed is not audited.
Task<> FsRun::Application::leave_servers() {
  co_await run_.left_->arrive_and_wait();
  co_await run_.left_->arrive_and_wait();
}

// A thread of a node that holds a copy of the region.
class FsRun::Copy final : public harness::PhaseWork {
 public:
  Copy(FsRun& run, Thread& thread) : run_(run), thread_(thread) {}

  Task<> prepare() override {
    std::exception_ptr problem;
    try {
      if (is_first()) run_.replication_->open(thread_);
    } catch (...) {
      problem = std::current_exception();
      run_.stop_ = true;
    }
    co_await run_.opened_->arrive_and_wait();
    if (!run_.stop_) thread_.executor.spawn(run_.replication_->serve(thread_));
    co_await run_.served_->arrive_and_wait();
    if (problem) std::rethrow_exception(problem);
  }
  void failed(std::exception_ptr problem) override {
    note(std::move(problem), "a copy", run_.copies_[thread_.node.id()]);
  }
  Task<> settle() override {
    constexpr Picoseconds kLook = Microseconds(20);
    constexpr Picoseconds kPatience = std::chrono::seconds(20);
    const Time since = Executor::current().now();
    while (is_first() && !run_.stop_ && !run_.replication_->has_all(thread_.node.id())) {
      if (Executor::current().now() - since > kPatience) {
        run_.copies_[thread_.node.id()].judge(Verdict::invalid,
                                              "a copy does not get what has been synced");
        co_return;
      }
      co_await sleep_for(kLook);
    }
  }

 private:
  bool is_first() const { return thread_.endpoint.address().port == 0; }

  FsRun& run_;
  Thread& thread_;
};

// A thread of a server.
class FsRun::Server final : public harness::PhaseWork {
 public:
  Server(FsRun& run, Thread& thread) : run_(run), thread_(thread) {}

  Task<> prepare() override {
    std::exception_ptr problem;
    try {
      if (is_first()) co_await run_.servers_->open(thread_);
    } catch (...) {
      problem = std::current_exception();
      run_.stop_ = true;
    }
    co_await run_.opened_->arrive_and_wait();
    if (!run_.stop_) thread_.executor.spawn(run_.servers_->serve(thread_));
    co_await run_.served_->arrive_and_wait();
    if (problem) std::rethrow_exception(problem);
  }
  void failed(std::exception_ptr problem) override {
    run_.stop_ = true;
    note(std::move(problem), "a server", result());
  }
  Task<> operate() override {
    if (is_first() && !run_.stop_) before_ = part().metrics();
    co_return;
  }
  void collect() override {
    if (!is_first() || run_.stop_) return;
    run_.server_metrics_[thread_.node.id()] = services::metrics_since(part().metrics(), before_);
  }
  // After the phases, when nobody has it mounted any more.
  Task<> audit() {
    co_await run_.left_->arrive_and_wait();
    if (is_first() && !run_.stop_ && !harness::interrupted()) {
      const std::string contradiction = co_await part().audit();
      if (!contradiction.empty()) result().judge(Verdict::invalid, contradiction);
    }
    co_await run_.left_->arrive_and_wait();
  }
  bool is_first() const { return thread_.endpoint.address().port == 0; }

 private:
  fs::FsServer& part() { return run_.servers_->part(thread_.node.id()); }
  harness::Measurement& result() { return run_.copies_[thread_.node.id()]; }

  FsRun& run_;
  Thread& thread_;
  std::vector<double> before_;
};

// The threads of a workload share its state, and so do copies and those who sync them.
void FsRun::check_is_one_process() const {
  for (NodeId node = 0; node < point_.roles.node_count(); ++node) {
    if (platform_.local_node(node) != nullptr) continue;
    throw UsageError(fmt::format("a {} file system is measured in one process; leave out mpirun",
                                 replication_ ? "replicated" : "distributed"));
  }
}

void FsRun::start_servers() {
  if (!servers_) return;
  for (const fs::FsServerNode& server : servers_->nodes()) {
    const CompletionMode mode = point_.settings.completion(to_string(server.role));
    for (std::uint32_t worker = 0; worker < servers_->workers(server.node); ++worker) {
      platform_.start_service(server.node, static_cast<fabric::Port>(worker), mode,
                              [this](Thread& thread) { return serve_part(thread); });
    }
  }
}

Task<> FsRun::serve_part(Thread& thread) {
  Server server(*this, thread);
  co_await phases_->take_part(thread, server, server.is_first());
  co_await server.audit();
  WaitList forever;
  co_await wait(forever);
}

void FsRun::start_copies() {
  if (!replication_) return;
  for (NodeId node = 1; node < point_.roles.node_count(); ++node) {
    const CompletionMode mode =
        point_.settings.completion(point_.roles.assignment_of(node).role.name);
    for (std::uint32_t worker = 0; worker < replication_->workers(); ++worker) {
      platform_.start_service(node, static_cast<fabric::Port>(worker), mode,
                              [this](Thread& thread) { return serve(thread); });
    }
  }
}

Task<> FsRun::serve(Thread& thread) {
  Copy copy(*this, thread);
  co_await phases_->serve(thread, copy, thread.endpoint.address().port == 0);
}

Task<> FsRun::use(Thread& thread, std::uint32_t index) {
  Application application(*this, thread, index);
  // On a server's node one of its own threads measures the costs.
  const bool takes_costs = is_first_on_node(index) && point_.roles.nodes_of("application") > 0;
  co_await phases_->take_part(thread, application, takes_costs);
  co_await application.leave();
}

}  // namespace perdura::bench
