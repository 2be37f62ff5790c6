#include "bench/log/log_run.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "bench/driver/systems.h"
#include "harness/run/interrupt.h"
#include "services/kv/value.h"

namespace perdura::bench {

LogRun::LogRun(Platform& platform, const harness::Point& point, LogLoad load,
               const LogTarget& target)
    : platform_(platform),
      point_(point),
      load_(std::move(load)),
      target_(target),
      server_node_(point.roles.node("server")),
      client_node_(point.roles.node("client")) {}

harness::Measurement LogRun::execute() {
  phases_.emplace(platform_, 2);
  if (platform_.local_node(server_node_) != nullptr) {
    platform_.start_service(server_node_, 0, point_.settings.completion("server"),
                            [this](Thread& thread) { return serve(thread); });
  }
  if (platform_.local_node(client_node_) != nullptr) {
    platform_.start(client_node_, 0, point_.settings.completion("client"),
                    [this](Thread& thread) { return use(thread); });
  }
  platform_.run();
  harness::Measurement result = std::move(client_);
  result.merge(server_);
  // Virtual time does not pass while the harness works.
  if (platform_.modelled()) result.harness_per_operation = Picoseconds{};
  phases_->costs().add_to(result, point_.roles);
  return result;
}

class LogRun::Server final : public harness::PhaseWork {
 public:
  Server(LogRun& run, Thread& thread) : run_(run), thread_(thread) {}

  Task<> prepare() override {
    harness::Measurement& result = run_.server_;
    result.method = run_.target_.method_name(thread_.endpoint.capabilities());
    if (run_.target_.is_local()) co_return;
    store_ = run_.target_.open(thread_, [this, &result](std::uint64_t number, auto) {
      if (number != ++last_) {
        result.judge(harness::Verdict::invalid,
                     fmt::format("record {} follows on {}", number, last_ - 1));
      }
    });
    thread_.executor.spawn(store_->serve());
    co_return;
  }
  void failed(std::exception_ptr problem) override {
    note(std::move(problem), "server", run_.server_);
  }
  Task<> settle() override {
    if (store_) co_await store_->apply_all();
  }

 private:
  LogRun& run_;
  Thread& thread_;
  std::uint64_t last_ = 0;  // number of the record that was applied last
  std::unique_ptr<services::LogStore> store_;
};

class LogRun::Client final : public harness::PhaseWork {
 public:
  Client(LogRun& run, Thread& thread)
      : run_(run), thread_(thread), yields_(run.platform_.modelled() && run.target_.is_local()) {}

  // The client connects after the server has opened its log, and does not if opening failed.
  Task<> warm_up() override {
    harness::Measurement& result = run_.client_;
    // Created now, so that nothing is allocated while measuring.
    result.kinds[run_.load_.kind];
    result.method = run_.target_.method_name(thread_.endpoint.capabilities());
    std::exception_ptr problem;
    try {
      if (run_.server_.usage_error.empty()) {
        log_ = co_await run_.target_.connect(thread_, {run_.server_node_, 0});
      }
    } catch (...) {
      problem = std::current_exception();
    }
    if (problem) note(problem, "client", result);
    if (log_) co_await append(run_.load_.warmup, false);
  }
  Task<> operate() override {
    if (log_) co_await append(run_.load_.operations, true);
  }

 private:
  Task<> append(std::uint64_t records, bool measured);

  LogRun& run_;
  Thread& thread_;
  const bool yields_;
  std::unique_ptr<services::LogWriter> log_;
};

Task<> LogRun::serve(Thread& thread) {
  Server server(*this, thread);
  co_await phases_->serve(thread, server, true);
}

Task<> LogRun::use(Thread& thread) {
  Client client(*this, thread);
  co_await phases_->take_part(thread, client, true);
}

Task<> LogRun::Client::append(std::uint64_t records, bool measured) {
  harness::Measurement& result = run_.client_;
  harness::KindMeasurement& kind = result.kinds[run_.load_.kind];
  std::vector<std::byte> record(run_.load_.record_size);
  Executor& executor = Executor::current();
  Time first{};
  Time end{};
  for (std::uint64_t i = 0; i < records && result.verdict == harness::Verdict::valid; ++i) {
    if (harness::interrupted()) [[unlikely]] {
      result.interrupted = true;
      break;
    }
    // Modelled time passes when a task waits, and a local append never does.
    if (yields_) co_await yield();
    kv::fill_value(record, log_->tail() + 1, 0);
    const Time start = executor.begin();
    const auto appended = co_await log_->append(record);
    end = executor.now();
    if (i == 0) first = start;
    if (measured) ++kind.operations;
    if (!appended) {
      if (measured) ++kind.errors;
      result.judge(harness::Verdict::failed,
                   fmt::format("append {} ended with '{}'", i + 1, to_string(appended.error())));
    } else if (measured) {
      const auto latency = std::chrono::duration_cast<Nanoseconds>(end - start);
      kind.latency.record(static_cast<std::uint64_t>(latency.count()));
    }
  }
  if (measured && first < end) {
    result.elapsed = end - first;
    result.at_work = {{0, first, end, kind.operations}};
  }
}

}  // namespace perdura::bench
