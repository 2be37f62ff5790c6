#include "platform/sim/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "platform/base/error.h"
#include "platform/pmem/sim/region_memory.h"

namespace perdura::sim {

namespace {

// A simulated thread that runs tasks given to it by another thread.
class SimBackgroundThread final : public BackgroundThread {
 public:
  SimBackgroundThread(SimNode& node, std::optional<fabric::Port> port)
      : thread_(node.add_thread(CompletionMode::event)) {
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

Bytes size_of(pmem::Pages pages) {
  if (pages == pmem::Pages::any) return 0;
  return pages == pmem::Pages::small ? 4 * KiB : 2 * MiB;
}

std::vector<pmem::sim::MemoryController> controllers_of(const MemoryProfile& memory,
                                                        const Profile& profile) {
  std::vector<pmem::sim::MemoryController> controllers;
  controllers.emplace_back(memory);
  if (profile.numa) controllers.emplace_back(memory, &*profile.numa);
  return controllers;
}

}  // namespace

SimNode::SimNode(Engine& engine, const Profile& profile, const NodeProfile& kind, NodeId id,
                 fabric::sim::Network& network, fabric::sim::Directory& directory,
                 std::exception_ptr& failure)
    : engine_(engine),
      testbed_(profile),
      profile_(kind),
      id_(id),
      network_(network),
      directory_(directory),
      failure_(failure),
      cores_(profile_.cores),
      dram_(controllers_of(profile.dram, profile)),
      pm_(controllers_of(profile.pm, profile)),
      nic_(profile) {}

SimNode::~SimNode() = default;

SimNode::Block SimNode::allocate(std::string_view name, Bytes size, pmem::Medium medium,
                                 MemoryPlace place) {
  Block block;
  block.mapping = pmem::sim::allocate_region(name, size);
  block.base = static_cast<std::byte*>(block.mapping.get());
  block.size = size;
  block.controller = &(medium == pmem::Medium::pm ? pm_ : dram_)[place.remote ? 1 : 0];
  block.address = block.controller->allocate(size, place.one_dimm);
  block.page = size_of(place.pages);
  block.model = make_model(block, medium);
  return block;
}

std::shared_ptr<pmem::sim::SimRegion> SimNode::make_model(const Block& block, pmem::Medium medium) {
  const bool persistent = medium == pmem::Medium::pm;
  auto model = std::make_shared<pmem::sim::SimRegion>(engine_, *block.controller, block.address,
                                                      persistent ? &meter_ : nullptr, block.base,
                                                      block.mapping);
  model->identify(++regions_, block.page);
  if (persistent && journal_ != nullptr) model->track(journal_);
  return model;
}

void SimNode::track(pmem::sim::Durability& durability) {
  durability_ = &durability;
  journal_ = std::make_shared<pmem::sim::Journal>(engine_, durability);
  nic_.journal = journal_;
  for (auto& [name, block] : persistent_) block.model->track(journal_);
}

void SimNode::cut_power(pmem::Choices& choices) {
  if (journal_ == nullptr) {
    throw UsageError(fmt::format("node {}: call track_durability() before the run", id_));
  }
  survivors_ = journal_->image(choices);
  journal_->power_off();
}

void SimNode::restore_power() {
  nic_.remove_all();
  for (auto& [name, block] : persistent_) {
    for (const auto& survivor : survivors_) {
      if (survivor.place.region != block.model->id()) continue;
      std::copy(survivor.bytes.begin(), survivor.bytes.end(), block.base + survivor.place.offset);
    }
  }
  survivors_.clear();
  // All that has survived the failure is durable.
  journal_.reset();
  for (auto& [name, block] : persistent_) block.model = make_model(block, pmem::Medium::pm);
  track(*durability_);
}

std::unique_ptr<pmem::Region> SimNode::create_region(std::string_view name, Bytes size,
                                                     pmem::Medium medium) {
  return create_region_at({}, name, size, medium);
}

std::unique_ptr<pmem::Region> SimNode::create_region_at(MemoryPlace place, std::string_view name,
                                                        Bytes size, pmem::Medium medium) {
  if (place.pages != pmem::Pages::any && !testbed_.translation) {
    throw UsageError(
        fmt::format("region '{}': profile {} has no page sizes; add [translation] for them", name,
                    testbed_.name));
  }
  if (place.remote && !testbed_.numa) {
    throw UsageError(fmt::format(
        "profile {}: its machines have one NUMA node; add [numa] for another", testbed_.name));
  }
  if (medium == pmem::Medium::pm && persistent_.contains(name)) {
    throw UsageError(fmt::format("node {} has a region '{}' already", id_, name));
  }
  Block block = allocate(name, size, medium, place);
  std::shared_ptr<void> keeper = block.mapping;
  if (medium == pmem::Medium::dram) {
    keeper = memory_.hold_dram(size, std::move(keeper));
  } else {
    memory_.found_persistent(name, size);
  }
  auto region = std::make_unique<pmem::Region>(std::string(name), medium, block.base, size,
                                               block.model, std::move(keeper));
  if (medium == pmem::Medium::pm) persistent_.emplace(name, std::move(block));
  return region;
}

std::unique_ptr<pmem::Region> SimNode::open_region(std::string_view name) {
  const auto found = persistent_.find(name);
  if (found == persistent_.end()) return nullptr;
  const Block& block = found->second;
  return std::make_unique<pmem::Region>(std::string(name), pmem::Medium::pm, block.base, block.size,
                                        block.model, block.mapping);
}

void SimNode::remove_region(std::string_view name) {
  if (const auto found = persistent_.find(name); found != persistent_.end()) {
    persistent_.erase(found);
    memory_.removed_persistent(name);
  }
}

std::unique_ptr<BackgroundThread> SimNode::start_background_thread(
    std::optional<fabric::Port> port) {
  return std::make_unique<SimBackgroundThread>(*this, port);
}

Picoseconds SimNode::cpu_time() const {
  Picoseconds sum{};
  for (const SimThread& thread : threads_) sum = limited(sum + thread.cpu_time());
  return sum;
}

SimThread& SimNode::add_thread(CompletionMode mode) {
  SimThread& thread =
      threads_.emplace_back(engine_, cores_, testbed_.cpu, profile_.wait, mode, failure_);
  const auto stalls = stalls_.find(threads_added_++);
  if (stalls != stalls_.end()) thread.stall(stalls->second);
  return thread;
}

std::unique_ptr<fabric::sim::SimEndpoint> SimNode::make_endpoint(SimThread& thread,
                                                                 fabric::Port port) {
  return std::make_unique<fabric::sim::SimEndpoint>(network_, directory_, nic_, thread,
                                                    fabric::Address{id_, port});
}

}  // namespace perdura::sim
