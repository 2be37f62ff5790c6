#include "bench/log/log_run.h"

#include <fmt/format.h>

#include "bench/log/log_driver.h"
#include "harness/run/interrupt.h"
#include "harness/workload/value.h"
#include "platform/base/error.h"

namespace perdura::bench {

namespace {

constexpr NodeId kServer = 0;
constexpr NodeId kClient = 1;

// All that is there.
void settle(LogServer& server) {
  while (server.apply_some(1) == 1) {
  }
}

}  // namespace

LogRun::LogRun(Platform& platform, const harness::Point& point)
    : platform_(platform),
      point_(point),
      options_(log_options(point)),
      costs_(platform.node_count(), platform.modelled()) {}

harness::Measurement LogRun::execute() {
  barrier_ = platform_.create_barrier(2);
  if (platform_.local_node(kServer) != nullptr) {
    platform_.start_service(kServer, 0, point_.settings.server_completion,
                            [this](Thread& thread) { return serve(thread); });
  }
  if (platform_.local_node(kClient) != nullptr) {
    platform_.start(kClient, 0, point_.settings.client_completion,
                    [this](Thread& thread) { return use(thread); });
  }
  platform_.run();
  harness::Measurement result = std::move(client_);
  result.merge(server_);
  // Virtual time does not pass while the harness works.
  if (platform_.modelled()) result.harness_per_operation = Picoseconds{};
  costs_.add_to(result, kServer);
  return result;
}

void LogRun::note(std::exception_ptr problem, std::string_view who,
                  harness::Measurement& measurement) {
  try {
    std::rethrow_exception(std::move(problem));
  } catch (const UsageError& error) {
    measurement.usage_error = error.what();
  } catch (const std::exception& error) {
    measurement.judge(harness::Verdict::failed, fmt::format("{}: {}", who, error.what()));
  }
}

Task<> LogRun::serve(Thread& thread) {
  std::unique_ptr<LogServer> server;
  std::uint64_t last = 0;
  const LogOptions options = options_.on(thread.endpoint.capabilities());
  server_.method = options.method_name();
  try {
    server = std::make_unique<LogServer>(thread, "log", options, [&](std::uint64_t number, auto) {
      if (number != ++last) {
        server_.judge(harness::Verdict::invalid,
                      fmt::format("record {} follows on {}", number, last - 1));
      }
    });
    thread.executor.spawn(server->serve());
    thread.executor.spawn(server->collect(collect_interval(point_)));
  } catch (...) {
    note(std::current_exception(), "server", server_);
  }
  co_await wait_for_all();  // open
  co_await wait_for_all();  // warmed up
  if (server) settle(*server);
  co_await wait_for_all();  // settled
  for (const Interval interval : {Interval::empty, Interval::measured}) {
    costs_.begin(thread.node);
    co_await wait_for_all();  // counted
    co_await wait_for_all();  // operations done
    if (server) settle(*server);
    co_await wait_for_all();  // settled
    costs_.end(thread.node, interval);
    co_await wait_for_all();  // counted
  }
  WaitList forever;
  co_await wait(forever);
}

Task<> LogRun::use(Thread& thread) {
  co_await wait_for_all();  // open
  std::unique_ptr<RemoteLog> log;
  client_.kinds[workload::OperationKind::insert];  // so that nothing is allocated while measuring
  std::exception_ptr problem;
  const LogOptions options = options_.on(thread.endpoint.capabilities());
  client_.method = options.method_name();
  try {
    // A server that could not open its log does not listen, and has said why.
    persistence::check(options.setup(), thread.endpoint.capabilities());
    if (server_.usage_error.empty())
      log = co_await RemoteLog::connect(thread, {kServer, 0}, options);
  } catch (...) {
    problem = std::current_exception();
  }
  if (problem) note(problem, "client", client_);
  if (log) co_await append(*log, point_.settings.warmup, false);
  co_await wait_for_all();  // warmed up
  co_await wait_for_all();  // settled
  for (const Interval interval : {Interval::empty, Interval::measured}) {
    costs_.begin(thread.node);
    co_await wait_for_all();  // counted
    if (log && interval == Interval::measured) {
      co_await append(*log, point_.workload.operation_count, true);
    }
    co_await wait_for_all();  // operations done
    co_await wait_for_all();  // settled
    costs_.end(thread.node, interval);
    co_await wait_for_all();  // counted
  }
}

Task<> LogRun::append(RemoteLog& log, std::uint64_t records, bool measured) {
  harness::KindMeasurement& kind = client_.kinds[workload::OperationKind::insert];
  std::vector<std::byte> record(options_.largest_record);
  Executor& executor = Executor::current();
  Time first{};
  Time end{};
  for (std::uint64_t i = 0; i < records && client_.verdict == harness::Verdict::valid; ++i) {
    if (harness::interrupted()) [[unlikely]] {
      client_.interrupted = true;
      break;
    }
    workload::fill_value(record, log.tail() + 1, 0);
    const Time start = executor.begin();
    const auto appended = co_await log.append(record);
    end = executor.now();
    if (i == 0) first = start;
    if (measured) ++kind.operations;
    if (!appended) {
      if (measured) ++kind.errors;
      client_.judge(harness::Verdict::failed,
                    fmt::format("append {} ended with '{}'", i + 1, to_string(appended.error())));
    } else if (measured) {
      const auto latency = std::chrono::duration_cast<Nanoseconds>(end - start);
      kind.latency.record(static_cast<std::uint64_t>(latency.count()));
    }
  }
  if (measured && first < end) {
    client_.elapsed = end - first;
    client_.at_work = {{0, first, end, kind.operations}};
  }
}

}  // namespace perdura::bench
