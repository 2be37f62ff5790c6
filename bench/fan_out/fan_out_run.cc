#include "bench/fan_out/fan_out_run.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "bench/driver/systems.h"
#include "harness/run/interrupt.h"
#include "platform/fabric/sim/multicast.h"
#include "platform/runtime/sync.h"
#include "services/kv/value.h"

namespace perdura::bench {

using harness::Verdict;

namespace {

// Registered memory in which each write under way has a place.
class ReplicaFile final : public VerbsFile {
 public:
  using VerbsFile::VerbsFile;
  Task<std::unique_ptr<FileWriter>> connect(Thread&) override { co_return nullptr; }
};

}  // namespace

FanOutRun::FanOutRun(Platform& platform, const harness::Point& point, bool is_multicast)
    : platform_(platform),
      point_(point),
      is_multicast_(is_multicast),
      size_(point.settings.number("value_size")),
      depth_(static_cast<std::uint32_t>(point.settings.number("queue_depth"))),
      replicas_(static_cast<NodeId>(point.roles.nodes_of("server"))) {}

harness::Measurement FanOutRun::execute() {
  phases_.emplace(platform_, replicas_ + 1);
  for (NodeId replica = 0; replica < replicas_; ++replica) {
    files_.push_back(std::make_unique<ReplicaFile>(round_up(depth_ * size_, kCacheLine)));
    platform_.start_service(replica, 0, point_.settings.completion("server"),
                            [this](Thread& thread) { return serve(thread); });
  }
  platform_.start(replicas_, 0, point_.settings.completion("client"),
                  [this](Thread& thread) { return use(thread); });
  platform_.run();
  result_.harness_per_operation = Picoseconds{};
  phases_->costs().add_to(result_, point_.roles);
  return std::move(result_);
}

class FanOutRun::Replica final : public harness::PhaseWork {
 public:
  Replica(FanOutRun& run, Thread& thread) : run_(run), thread_(thread) {}

  Task<> prepare() override {
    VerbsFile& file = *run_.files_[thread_.node.id()];
    co_await file.open(thread_);
    thread_.executor.spawn(file.serve(thread_));
  }
  void failed(std::exception_ptr problem) override {
    note(std::move(problem), "a replica", run_.result_);
  }

 private:
  FanOutRun& run_;
  Thread& thread_;
};

class FanOutRun::Client final : public harness::PhaseWork {
 public:
  Client(FanOutRun& run, Thread& thread)
      : run_(run),
        thread_(thread),
        memory_(thread.node.create_region("client", round_up(run.depth_ * run.size_, kCacheLine),
                                          pmem::Medium::dram)),
        registered_(thread.endpoint.register_memory(*memory_, fabric::Access::local)),
        versions_(run.depth_) {}

  Task<> warm_up() override {
    run_.result_.kinds[kReplicatedWrite];
    std::exception_ptr problem;
    try {
      for (NodeId replica = 0; replica < run_.replicas_; ++replica) {
        connections_.push_back(co_await connect_to_file(thread_, replica));
      }
    } catch (...) {
      problem = std::current_exception();
    }
    if (problem) note(std::move(problem), "the client", run_.result_);
    co_await write_often("warmup", false);
  }
  Task<> operate() override { return write_often("operations", true); }
  // After the phases: each replica must have the last write of each place.
  Task<> check();

 private:
  fabric::LocalBuffer place(std::uint32_t lane) const {
    return registered_.local(lane * run_.size_, static_cast<std::uint32_t>(run_.size_));
  }
  Task<> write_often(std::string_view number, bool measured);
  Task<> write_lane(std::uint32_t lane, bool measured);
  Task<fabric::Status> write_to_all(std::uint32_t lane);

  FanOutRun& run_;
  Thread& thread_;
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  std::vector<FileConnection> connections_;  // by replica
  std::vector<std::uint64_t> versions_;      // by lane: of the last write
  std::uint64_t left_ = 0;                   // writes that have not begun
  std::uint32_t at_work_ = 0;                // lanes
  WaitList ended_;
};

Task<fabric::Status> FanOutRun::Client::write_to_all(std::uint32_t lane) {
  std::deque<fabric::RdmaOperation> writes;
  for (FileConnection& each : connections_) {
    writes.emplace_back(*each.queue_pair,
                        fabric::WorkRequest{.opcode = fabric::Opcode::write,
                                            .local = place(lane),
                                            .remote = each.file.at(lane * run_.size_)});
  }
  if (run_.is_multicast_) {
    const fabric::sim::Multicast group;
    for (fabric::RdmaOperation& write : writes) write.post();
  } else {
    for (fabric::RdmaOperation& write : writes) write.post();
  }
  auto status = fabric::Status::success;
  for (fabric::RdmaOperation& write : writes) {
    const fabric::Completion completion = co_await write;
    if (!completion) status = completion.status;
  }
  co_return status;
}

Task<> FanOutRun::Client::write_lane(std::uint32_t lane, bool measured) {
  harness::Measurement& result = run_.result_;
  harness::KindMeasurement& kind = result.kinds[kReplicatedWrite];
  Executor& executor = Executor::current();
  while (left_ > 0 && result.verdict == Verdict::valid) {
    if (harness::interrupted()) [[unlikely]] {
      result.interrupted = true;
      break;
    }
    --left_;
    kv::fill_value(place(lane).bytes(), lane, ++versions_[lane]);
    const Time start = executor.begin();
    const fabric::Status status = co_await write_to_all(lane);
    const Time end = executor.now();
    if (measured) ++kind.operations;
    if (status != fabric::Status::success) {
      if (measured) ++kind.errors;
      result.judge(Verdict::failed, fmt::format("a write ended with '{}'", to_string(status)));
    } else if (measured) {
      kind.latency.record(
          static_cast<std::uint64_t>(std::chrono::duration_cast<Nanoseconds>(end - start).count()));
    }
  }
  if (--at_work_ == 0) ended_.wake_all();
}

Task<> FanOutRun::Client::write_often(std::string_view number, bool measured) {
  left_ = run_.point_.settings.number(number);
  at_work_ = run_.depth_;
  const Time first = thread_.executor.now();
  for (std::uint32_t lane = 0; lane < run_.depth_; ++lane) {
    thread_.executor.spawn(write_lane(lane, measured));
  }
  while (at_work_ > 0) co_await wait(ended_);
  const Time end = thread_.executor.now();
  if (!measured || end <= first) co_return;
  run_.result_.elapsed = end - first;
  run_.result_.at_work = {{0, first, end, run_.result_.kinds[kReplicatedWrite].operations}};
}

Task<> FanOutRun::Client::check() {
  for (FileConnection& each : connections_) {
    for (std::uint32_t lane = 0; lane < run_.depth_; ++lane) {
      if (run_.result_.verdict != Verdict::valid) co_return;
      const auto read =
          co_await each.queue_pair->read(place(lane), each.file.at(lane * run_.size_));
      const bool right =
          versions_[lane] == 0 || kv::check_value(place(lane).bytes(), lane) == versions_[lane];
      if (read && right) continue;
      run_.result_.judge(Verdict::invalid, "a replica does not have what was written last");
    }
  }
}

Task<> FanOutRun::serve(Thread& thread) {
  Replica replica(*this, thread);
  co_await phases_->serve(thread, replica, true);
}

Task<> FanOutRun::use(Thread& thread) {
  Client client(*this, thread);
  co_await phases_->take_part(thread, client, true);
  co_await client.check();
}

}  // namespace perdura::bench
