#include "platform/sim/node.h"

#include <future>

#include "platform/base/error.h"

namespace perdura::sim {

namespace {

// A simulated thread that runs tasks given to it by another thread.
class SimBackgroundThread final : public BackgroundThread {
 public:
  SimBackgroundThread(SimNode& node, std::optional<fabric::Port> port, CompletionMode mode)
      : thread_(node.add_thread(mode)) {
    if (!port) return;
    endpoint_ = node.make_endpoint(thread_, *port);
    context_.emplace(Thread{node, thread_, *endpoint_});
  }
  ~SimBackgroundThread() override { thread_.stop(); }

  Thread& thread() override {
    if (!context_) throw UsageError("a background thread has an endpoint if it is given a port");
    return *context_;
  }

  Task<> run(Task<> work) override {
    const auto done = std::make_shared<Done>();
    thread_.spawn(perform(std::move(work), Teller(done)));
    while (!done->ended) co_await wait(done->waiting);
    if (done->problem) std::rethrow_exception(done->problem);
  }

 private:
  struct Done {
    bool ended = false;
    std::exception_ptr problem =
        std::make_exception_ptr(std::future_error(std::future_errc::broken_promise));
    WaitList waiting;
  };
  // Tells the caller that the task is gone, even if it was destroyed because the thread was
  // stopped.
  struct Teller {
    std::shared_ptr<Done> done;
    explicit Teller(std::shared_ptr<Done> of) : done(std::move(of)) {}
    Teller(Teller&&) = default;
    Teller& operator=(Teller&&) = delete;
    ~Teller() {
      if (done == nullptr) return;
      done->ended = true;
      done->waiting.wake_all();
    }
  };

  static Task<> perform(Task<> work, Teller of_caller) {
    const Teller teller = std::move(of_caller);
    try {
      co_await std::move(work);
      teller.done->problem = nullptr;
    } catch (...) {
      teller.done->problem = std::current_exception();
    }
  }

  SimThread& thread_;
  std::unique_ptr<fabric::sim::SimEndpoint> endpoint_;
  std::optional<Thread> context_;
};

}  // namespace

SimNode::SimNode(Engine& engine, Machine& machine, NodeId id, fabric::sim::Network& network,
                 fabric::sim::Directory& directory, fabric::sim::Directory& sockets,
                 std::exception_ptr& failure)
    : engine_(engine),
      machine_(machine),
      id_(id),
      network_(network),
      directory_(directory),
      sockets_(sockets),
      failure_(failure) {}

SimNode::~SimNode() = default;

std::unique_ptr<pmem::Region> SimNode::create_region(std::string_view name, Bytes size,
                                                     pmem::Medium medium) {
  return machine_.create_region({}, name, size, medium, memory_);
}

std::unique_ptr<pmem::Region> SimNode::create_region_at(MemoryPlace place, std::string_view name,
                                                        Bytes size, pmem::Medium medium) {
  return machine_.create_region(place, name, size, medium, memory_);
}

std::unique_ptr<pmem::Region> SimNode::open_region(std::string_view name) {
  return machine_.open_region(name);
}

void SimNode::remove_region(std::string_view name) {
  if (machine_.remove_region(name)) memory_.removed_persistent(name);
}

pmem::Writes SimNode::pm_writes() const {
  return id_ == machine() ? machine_.meter().writes() : pmem::Writes{};
}

fabric::TrafficByNode SimNode::traffic() const {
  if (id_ != machine()) return {};
  fabric::Traffic traffic = machine_.nic().traffic;
  traffic += machine_.ethernet().traffic;
  return {{id_, traffic}};
}

std::unique_ptr<fabric::Endpoint> SimNode::create_socket_endpoint(Thread& thread,
                                                                  fabric::Port port) {
  return std::make_unique<fabric::sim::SimEndpoint>(network_, sockets_, machine_.ethernet(),
                                                    static_cast<SimThread&>(thread.executor),
                                                    fabric::Address{id_, port});
}

std::unique_ptr<BackgroundThread> SimNode::start_background_thread(std::optional<fabric::Port> port,
                                                                   CompletionMode mode) {
  return std::make_unique<SimBackgroundThread>(*this, port, mode);
}

Picoseconds SimNode::cpu_time() const {
  Picoseconds sum{};
  for (const SimThread& thread : threads_) sum = limited(sum + thread.cpu_time());
  return sum;
}

SimThread& SimNode::add_thread(CompletionMode mode) {
  SimThread& thread = threads_.emplace_back(engine_, machine_.cores(), machine_.testbed().cpu,
                                            machine_.profile().wait, mode, failure_);
  const auto stalls = stalls_.find(threads_added_++);
  if (stalls != stalls_.end()) thread.stall(stalls->second);
  thread.choose_schedule(choices_);
  return thread;
}

std::unique_ptr<fabric::sim::SimEndpoint> SimNode::make_endpoint(SimThread& thread,
                                                                 fabric::Port port) {
  return std::make_unique<fabric::sim::SimEndpoint>(network_, directory_, machine_.nic(), thread,
                                                    fabric::Address{id_, port});
}

}  // namespace perdura::sim
