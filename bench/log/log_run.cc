#include "bench/log/log_run.h"

#include <fmt/format.h>

#include "bench/driver/systems.h"
#include "bench/log/log_driver.h"
#include "bench/operation_kinds.h"
#include "bench/ycsb/point_workload.h"
#include "harness/run/interrupt.h"
#include "platform/base/error.h"
#include "services/kv/value.h"

namespace perdura::bench {

LogRun::LogRun(Platform& platform, const harness::Point& point)
    : platform_(platform),
      point_(point),
      server_node_(point.roles.node("server")),
      client_node_(point.roles.node("client")),
      options_(log_options(point)) {}

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
    const systems::remote_log::LogOptions options =
        run_.options_.on(thread_.endpoint.capabilities());
    result.method = options.method_name();
    server_.emplace(thread_, "log", options, [this, &result](std::uint64_t number, auto) {
      if (number != ++last_) {
        result.judge(harness::Verdict::invalid,
                     fmt::format("record {} follows on {}", number, last_ - 1));
      }
    });
    thread_.executor.spawn(server_->serve());
    thread_.executor.spawn(server_->collect(collect_interval(run_.point_)));
    co_return;
  }
  void failed(std::exception_ptr problem) override {
    note(std::move(problem), "server", run_.server_);
  }
  Task<> settle() override {
    while (server_ && server_->apply_some(1) == 1) {
    }
    co_return;
  }

 private:
  LogRun& run_;
  Thread& thread_;
  std::uint64_t last_ = 0;  // number of the record that was applied last
  std::optional<systems::remote_log::LogServer> server_;
};

class LogRun::Client final : public harness::PhaseWork {
 public:
  Client(LogRun& run, Thread& thread) : run_(run), thread_(thread) {}

  // The client connects after the server has opened its log, and does not if opening failed.
  Task<> warm_up() override {
    harness::Measurement& result = run_.client_;
    // Created now, so that nothing is allocated while measuring.
    result.kinds[kind_of(ycsb::OperationKind::insert)];
    const systems::remote_log::LogOptions options =
        run_.options_.on(thread_.endpoint.capabilities());
    result.method = options.method_name();
    std::exception_ptr problem;
    try {
      methods::check(options.setup(), thread_.endpoint.capabilities());
      if (run_.server_.usage_error.empty()) {
        log_ = co_await systems::remote_log::RemoteLog::connect(thread_, {run_.server_node_, 0},
                                                                options);
      }
    } catch (...) {
      problem = std::current_exception();
    }
    if (problem) note(problem, "client", result);
    if (log_) co_await append(run_.point_.settings.number("warmup"), false);
  }
  Task<> operate() override {
    if (log_) co_await append(workload_of(run_.point_).operation_count, true);
  }

 private:
  Task<> append(std::uint64_t records, bool measured);

  LogRun& run_;
  Thread& thread_;
  std::unique_ptr<systems::remote_log::RemoteLog> log_;
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
  harness::KindMeasurement& kind = result.kinds[kind_of(ycsb::OperationKind::insert)];
  std::vector<std::byte> record(run_.options_.largest_record);
  Executor& executor = Executor::current();
  Time first{};
  Time end{};
  for (std::uint64_t i = 0; i < records && result.verdict == harness::Verdict::valid; ++i) {
    if (harness::interrupted()) [[unlikely]] {
      result.interrupted = true;
      break;
    }
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
