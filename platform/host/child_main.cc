#include "platform/host/child_main.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/host/child_shared.h"
#include "platform/host/confinement.h"
#include "platform/host/host_node.h"
#include "platform/host/thread_executor.h"
#include "platform/pmem/instructions.h"
#include "platform/pmem/mapped/mapping.h"
#include "platform/pmem/mapped/parts.h"

namespace perdura {

namespace {

using namespace host;
using pmem::mapped::File;
using pmem::mapped::Mapping;

class Context final : public ChildContext,
                      public PeerProcess,
                      public std::enable_shared_from_this<Context> {
 public:
  Context(std::shared_ptr<Mapping> mapping, Start start, std::shared_ptr<Mapping> memory)
      : mapping_(std::move(mapping)),
        start_(std::move(start)),
        region_(start_.order.memory, pmem::Medium::pm, memory->data(), start_.size, nullptr, memory,
                start_.durable),
        layout_(shared().messages, shared().order_length),
        peer_(ring(layout_.to_parent), ring(layout_.to_child), never_) {}

  Shared& shared() const { return *reinterpret_cast<Shared*>(mapping_->data()); }
  const ChildOrder& order() const { return start_.order; }

  const std::vector<std::string>& arguments() const override { return start_.order.arguments; }
  pmem::Region& memory() override { return region_; }
  std::shared_ptr<PeerProcess> parent() override { return shared_from_this(); }
  void ready() override {
    shared().ready.exchange(1, std::memory_order_seq_cst);
    wake_parent(shared());
  }

 private:
  static void wake_parent(Shared& shared) {
    const bool sleeps = shared.parent_sleeps.load(std::memory_order_seq_cst) != 0;
    if (sleeps && shared.parent_sleeps.exchange(0) != 0) ::eventfd_write(kWakeParent, 1);
  }
  MappedRing ring(Bytes offset) {
    return {mapping_->data() + offset, shared().messages, mapping_,
            [&shared = shared()](RingEnd&) { wake_parent(shared); }};
  }

  Bytes longest_message() const override { return shared().messages.message_size; }
  bool try_send(std::span<const std::byte> message) override { return peer_.try_send(message); }
  Task<> send(std::span<const std::byte> message) override { return peer_.send(message); }
  Task<std::optional<Bytes>> receive(std::span<std::byte> into) override {
    return peer_.receive(into);
  }

  std::shared_ptr<Mapping> mapping_;
  Start start_;
  pmem::Region region_;
  Layout layout_;
  std::atomic<bool> never_{false};  // a child dies with its parent, so the parent is never gone
  Peer peer_;
};

void end_with(int parent) {
  // A change of the user clears this setting, so it is made after that.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

std::shared_ptr<Mapping> map_shared() {
  const File file(kShared);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || info.st_size < static_cast<off_t>(sizeof(Shared))) {
    throw PlatformError("this program is started by others (docs/systems/mcas.md)");
  }
  return pmem::mapped::map_file(file.get(), "the memory that is shared with the parent");
}

// On failure, `problem` receives the reason.
int run(const ChildProgram& program, const std::shared_ptr<Mapping>& mapping,
        std::exception_ptr& problem) {
  auto& shared = *reinterpret_cast<Shared*>(mapping->data());
  if (shared.version != kVersion) {
    throw PlatformError(
        fmt::format("{} is of another version than what has started it; install "
                    "both anew",
                    program.file));
  }
  Start start = decoded({reinterpret_cast<const char*>(&shared + 1), shared.order_length});
  end_with(start.parent);
  if (!pin_this_thread(start.order.limits.cores)) {
    throw PlatformError("the process may use none of the cores that it is given");
  }
  pmem::set_write_latency(start.write_latency);
  std::shared_ptr<Mapping> memory;
  {
    const File file(kMemory);
    std::vector<pmem::mapped::Extent> parts;
    for (const MemoryPart& part : start.order.parts) parts.push_back({part.offset, part.length});
    memory =
        pmem::mapped::map_parts(file.get(), {start.offset, start.size}, parts, start.order.memory);
  }
  if (start.order.limits.isolation == Isolation::full) {
    const int parent = start.parent;
    confine(start.order.limits, [parent] { end_with(parent); });
  }
  const auto context = std::make_shared<Context>(mapping, std::move(start), std::move(memory));
  host::ThreadExecutor* running = nullptr;
  host::ThreadExecutor executor(shared.clock, context->order().mode, shared.bell,
                                [&](std::exception_ptr error) {
                                  problem = std::move(error);
                                  running->stop();
                                });
  running = &executor;
  executor.spawn(
      [](const ChildProgram& what, ChildContext& with, host::ThreadExecutor& on) -> Task<> {
        co_await what.body(with);
        on.stop();
      }(program, *context, executor));
  executor.run();
  return problem == nullptr ? 0 : 1;
}

std::string text_of(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const std::exception& error) {
    return problem_text(error);
  } catch (...) {
    return "an exception of an unknown kind";
  }
}

}  // namespace

int run_child(const ChildProgram& program) {
  std::shared_ptr<Mapping> mapping;
  std::exception_ptr problem;
  try {
    mapping = map_shared();
    run(program, mapping, problem);
  } catch (...) {
    problem = std::current_exception();
  }
  if (problem == nullptr) return 0;
  const std::string text = text_of(problem);
  if (mapping == nullptr) {
    fmt::print(stderr, "{}: {}\n", program.file, text);
    return 2;
  }
  auto& shared = *reinterpret_cast<Shared*>(mapping->data());
  const std::size_t length = std::min(text.size(), shared.problem.size() - 1);
  std::copy_n(text.begin(), length, shared.problem.begin());
  return 1;
}

}  // namespace perdura
