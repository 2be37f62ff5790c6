// A thread of the application in a run: it mounts the file system if it is the first one of its node,
// makes the files, and performs the operations of its part of the workload, several at a time if the
// queue depth says so.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bench/driver/systems.h"
#include "bench/fs/fs_run.h"
#include "platform/runtime/sync.h"

namespace perdura::bench {

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
  static constexpr std::size_t kActions = static_cast<std::size_t>(FileAction::utimens) + 1;
  // Writes start at varying offsets of the same data, so that no two in a row are equal.
  static constexpr Bytes kShifts = 4 * KiB;

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

}  // namespace perdura::bench
