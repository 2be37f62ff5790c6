#include "bench/remote_file/remote_file_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/driver/systems.h"
#include "harness/run/interrupt.h"
#include "platform/base/random.h"
#include "services/kv/value.h"

namespace perdura::bench {

using harness::Verdict;

RemoteFileRun::RemoteFileRun(Platform& platform, const harness::Point& point, RemoteFile& file,
                             const RemoteFileOptions& options)
    : platform_(platform),
      point_(point),
      file_(file),
      options_(options),
      servers_(options.client) {}

harness::Measurement RemoteFileRun::execute() {
  std::uint32_t workers = 0;
  for (NodeId node = 0; node < options_.client; ++node) workers += file_.workers(node);
  phases_.emplace(platform_, workers + 1);
  opened_ = platform_.create_barrier(workers);
  for (NodeId node = 0; node < options_.client; ++node) {
    if (platform_.local_node(node) == nullptr) continue;
    for (std::uint32_t worker = 0; worker < file_.workers(node); ++worker) {
      platform_.start_service(node, static_cast<fabric::Port>(worker),
                              point_.settings.completion("server"),
                              [this](Thread& thread) { return serve(thread); });
    }
  }
  if (platform_.local_node(options_.client) != nullptr) {
    platform_.start(options_.client, 0, point_.settings.completion("client"),
                    [this](Thread& thread) { return use(thread); });
  }
  platform_.run();
  harness::Measurement result = std::move(client_);
  for (const harness::Measurement& each : servers_) result.merge(each);
  // Virtual time does not pass while the harness works.
  if (platform_.modelled()) result.harness_per_operation = Picoseconds{};
  phases_->costs().add_to(result, point_.roles);
  return result;
}

class RemoteFileRun::Server final : public harness::PhaseWork {
 public:
  Server(RemoteFileRun& run, Thread& thread) : run_(run), thread_(thread) {}

  bool is_first() const { return thread_.endpoint.address().port == 0; }
  Task<> prepare() override {
    std::exception_ptr problem;
    try {
      if (is_first()) co_await run_.file_.open(thread_);
    } catch (...) {
      problem = std::current_exception();
    }
    co_await run_.opened_->arrive_and_wait();
    if (problem) std::rethrow_exception(problem);
    thread_.executor.spawn(run_.file_.serve(thread_));
  }
  void failed(std::exception_ptr problem) override {
    note(std::move(problem), "a server", run_.servers_[thread_.node.id()]);
  }

 private:
  RemoteFileRun& run_;
  Thread& thread_;
};

class RemoteFileRun::Client final : public harness::PhaseWork {
 public:
  Client(RemoteFileRun& run, Thread& thread)
      : run_(run),
        thread_(thread),
        random_(run.point_.seed),
        versions_(run.options_.file_size / run.options_.write_size) {}

  Task<> warm_up() override {
    // Created now, so that nothing is allocated while measuring.
    run_.client_.kinds[kFileWrite];
    std::exception_ptr problem;
    try {
      writer_ = co_await run_.file_.connect(thread_);
    } catch (...) {
      problem = std::current_exception();
    }
    if (problem) note(problem, "the client", run_.client_);
    if (writer_) co_await write_often("warmup", false);
  }
  Task<> operate() override {
    if (!writer_) co_return;
    const Picoseconds before = writer_->indirection();
    co_await write_often("operations", true);
    if (writer_->indirection() == Picoseconds{}) co_return;
    run_.client_.declared["indirection_us_per_op"] =
        to_microseconds(writer_->indirection() - before);
  }
  // After the phases, while the servers still serve.
  Task<> leave() {
    if (!writer_) co_return;
    co_await check();
    co_await writer_->leave();
  }

 private:
  Task<> write_often(std::string_view number, bool measured);
  Task<> check();
  void fail(std::string_view what, const std::string& why) {
    run_.client_.judge(Verdict::failed, fmt::format("{} ended with '{}'", what, why));
  }

  RemoteFileRun& run_;
  Thread& thread_;
  Random random_;
  std::unique_ptr<FileWriter> writer_;
  std::vector<std::uint64_t> versions_;  // by place in the file: of the last write; 0: none
  std::uint64_t version_ = 0;
};

Task<> RemoteFileRun::Client::write_often(std::string_view number, bool measured) {
  harness::Measurement& result = run_.client_;
  harness::KindMeasurement& kind = result.kinds[kFileWrite];
  const std::uint64_t operations = run_.point_.settings.number(number);
  Executor& executor = Executor::current();
  Time first{};
  Time end{};
  for (std::uint64_t i = 0; i < operations && result.verdict == Verdict::valid; ++i) {
    if (harness::interrupted()) [[unlikely]] {
      result.interrupted = true;
      break;
    }
    // Modelled time passes when a task waits, and a local write never does.
    if (run_.platform_.modelled()) co_await yield();
    const std::uint64_t place = random_.uniform_below(versions_.size());
    versions_[place] = ++version_;
    kv::fill_value(writer_->buffer(), place, version_);
    const Time start = executor.begin();
    const std::string problem = co_await writer_->write(place * run_.options_.write_size);
    end = executor.now();
    if (i == 0) first = start;
    if (measured) ++kind.operations;
    if (!problem.empty()) {
      if (measured) ++kind.errors;
      fail("a write", problem);
    } else if (measured) {
      kind.latency.record(
          static_cast<std::uint64_t>(std::chrono::duration_cast<Nanoseconds>(end - start).count()));
    }
  }
  if (measured && first < end) {
    result.elapsed = end - first;
    result.at_work = {{0, first, end, kind.operations}};
  }
}

Task<> RemoteFileRun::Client::check() {
  harness::Measurement& result = run_.client_;
  for (std::uint64_t place = 0; place < versions_.size(); ++place) {
    if (result.verdict != Verdict::valid || harness::interrupted()) co_return;
    const Bytes offset = place * run_.options_.write_size;
    const std::string problem = co_await writer_->read(offset);
    if (!problem.empty()) {
      fail("a read", problem);
      co_return;
    }
    const auto buffer = writer_->buffer();
    const bool right = versions_[place] > 0
                           ? kv::check_value(buffer, place) == versions_[place]
                           : std::all_of(buffer.begin(), buffer.end(),
                                         [](std::byte b) { return b == std::byte{}; });
    if (right) continue;
    result.judge(Verdict::invalid,
                 fmt::format("the file does not have at {} what was written there last", offset));
  }
}

Task<> RemoteFileRun::serve(Thread& thread) {
  Server server(*this, thread);
  co_await phases_->serve(thread, server, server.is_first());
}

Task<> RemoteFileRun::use(Thread& thread) {
  Client client(*this, thread);
  co_await phases_->take_part(thread, client, true);
  co_await client.leave();
}

}  // namespace perdura::bench
