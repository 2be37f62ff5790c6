#include <fmt/format.h>

#include <atomic>

#include "library/choice.h"
#include "platform/base/error.h"
#include "platform/base/node_runs.h"
#include "systems/remote_log/log_server.h"

namespace perdura {

namespace {

constexpr Picoseconds kCollect = Microseconds(50);
constexpr Picoseconds kLook = Milliseconds(1);

}  // namespace

class LogServer::Impl {
 public:
  Impl(const LogOptions& options, Apply apply)
      : options_(library::log_options(options)),
        job_(options.job),
        stop_timeout_(library::picoseconds(options.stop_timeout)),
        apply_(std::move(apply)),
        platform_(library::shm_options(options, library::kServer)) {}

  void run() {
    platform_.start(library::kServer, library::kPort, CompletionMode::event,
                    [this](Thread& thread) { return serve(thread); });
    try {
      platform_.run();
    } catch (const Stopped&) {
    } catch (const systems::remote_log::LogDiffers& problem) {
      throw OptionsDiffer(
          fmt::format("the log '{}' was made with other options: {}; give the server the same, or "
                      "remove the log",
                      job_, library::differing_options(problem, options_, "in the log")));
    } catch (const methods::OptionsDiffer& problem) {
      throw OptionsDiffer(problem.what());
    } catch (const PlatformError& problem) {
      throw std::runtime_error(problem.what());
    } catch (const UsageError& problem) {
      throw std::runtime_error(problem.what());
    }
  }
  void stop() noexcept { stopping_ = true; }

 private:
  struct Stopped {};

  Task<> serve(Thread& thread) {
    systems::remote_log::LogServer* log = nullptr;
    systems::remote_log::LogServer server(
        thread, library::kRegion, options_,
        [&](std::uint64_t number, std::span<const std::byte> payload) {
          apply_(number, {reinterpret_cast<const char*>(payload.data()), payload.size()});
          if (stopping_) log->begin_end();
        });
    log = &server;
    thread.executor.spawn(server.serve());
    thread.executor.spawn(server.collect(kCollect));
    while (!stopping_) co_await sleep_for(kLook);
    // Everything that has been applied is acknowledged before the server ends.
    server.begin_end();
    const Time deadline = thread.executor.now() + stop_timeout_;
    while (server.has_client() && thread.executor.now() < deadline) co_await yield();
    throw Stopped{};
  }

  systems::remote_log::LogOptions options_;
  std::string job_;
  Picoseconds stop_timeout_;
  Apply apply_;
  ShmPlatform platform_;
  std::atomic<bool> stopping_{false};
};

LogServer::LogServer(const LogOptions& options, Apply apply) try
    : impl_(std::make_unique<Impl>(options, std::move(apply))) {
} catch (const NodeRuns&) {
  throw std::runtime_error(fmt::format(
      "the log '{}' is being served already; end that server first, or name another job",
      options.job));
}
LogServer::~LogServer() = default;
void LogServer::run() { impl_->run(); }
void LogServer::stop() noexcept { impl_->stop(); }

}  // namespace perdura
