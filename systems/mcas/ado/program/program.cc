#include "systems/mcas/ado/program/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "platform/base/error.h"
#include "systems/mcas/ado/plugins/plugins.h"
#include "systems/mcas/ado/process.h"

namespace perdura::systems::mcas::ado {

namespace {

constexpr const char* kFlushing = "flush";

class LaunchedChild final : public Launched {
 public:
  explicit LaunchedChild(std::shared_ptr<ChildProcess> child) : child_(std::move(child)) {}
  ~LaunchedChild() override { child_->end(); }
  std::shared_ptr<PeerProcess> process() const override { return child_; }
  std::string end() override { return child_->end(); }

 private:
  std::shared_ptr<ChildProcess> child_;
};

class ChildLauncher final : public Launcher {
 public:
  ChildLauncher(Thread& thread, LaunchOptions options)
      : thread_(thread), options_(std::move(options)) {}

  Task<std::unique_ptr<Launched>> launch(LaunchOrder order) override {
    const std::string pool = order.pool;
    std::string problem;
    try {
      ChildOrder of_child = child_order(std::move(order));
      ChildProcesses& processes = child_processes_of(thread_.node);
      auto child = co_await processes.start_child(ado_program(), std::move(of_child));
      co_return std::make_unique<LaunchedChild>(std::move(child));
    } catch (const std::exception& error) {
      problem = error.what();
    }
    throw PlatformError(
        fmt::format("the process of pool {}'s active data objects: {}", pool, problem));
  }

 private:
  ChildOrder child_order(LaunchOrder order) const {
    ChildOrder child{.memory = std::move(order.memory),
                     .messages = kQueue,
                     .mode = options_.mode,
                     .limits = options_.limits};
    std::sort(order.parts.begin(), order.parts.end(),
              [](ByteRange a, ByteRange b) { return a.offset < b.offset; });
    for (const ByteRange part : order.parts) child.parts.push_back({part.offset, part.length});
    child.arguments = {std::to_string(kProtocolVersion),
                       options_.flushing == Flushing::lines ? kFlushing : ""};
    for (std::string& plugin : order.plugins) {
      if (auto path = path_of(plugin)) child.limits.readable.push_back(std::move(*path));
      child.arguments.push_back(std::move(plugin));
    }
    return child;
  }

  Thread& thread_;
  LaunchOptions options_;
};

Task<> serve(ChildContext& self) {
  const std::vector<std::string>& arguments = self.arguments();
  if (arguments.size() < 2 || arguments[0] != std::to_string(kProtocolVersion)) {
    throw UsageError(
        fmt::format("{} has version {} of the messages, and its shard another one; "
                    "install both anew",
                    ado_program().file, kProtocolVersion));
  }
  const Flushing flushing = arguments[1] == kFlushing ? Flushing::lines : Flushing::none;
  Process process(self.memory(), self.parent(), flushing,
                  open_plugins({arguments.begin() + 2, arguments.end()}));
  self.ready();
  co_await process.serve();
}

}  // namespace

std::shared_ptr<Launcher> make_launcher(Thread& thread, LaunchOptions options) {
  return std::make_shared<ChildLauncher>(thread, std::move(options));
}

ChildProgram ado_program() { return {"perdura-ado", serve}; }

}  // namespace perdura::systems::mcas::ado
