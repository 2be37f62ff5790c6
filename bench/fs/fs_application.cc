#include "bench/fs/fs_application.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/fs/octopus_target.h"
#include "bench/ycsb/workload_spec.h"
#include "harness/run/interrupt.h"
#include "platform/base/error.h"
#include "platform/base/random.h"

namespace perdura::bench {

using harness::Verdict;
using ycsb::operations_of_client;

namespace {

std::string in_words(std::errc error) { return std::make_error_code(error).message(); }

}  // namespace

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

}  // namespace perdura::bench
