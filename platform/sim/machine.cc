#include "platform/sim/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"
#include "platform/pmem/sim/region_memory.h"

namespace perdura::sim {

namespace {

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

// The testbed as connections over TCP see it: the kernel's stack takes the place of the device.
// Data still in the stack when a connection is closed never reaches memory, so the way through
// the stack counts as part of the wire.
Profile with_ethernet(Profile profile) {
  profile.link = profile.ethernet.link;
  profile.link.propagation += profile.ethernet.stack;
  profile.nic.message = {};
  profile.nic.processing = {};
  profile.nic.max_inline = 64 * KiB;  // a system call copies what is sent
  profile.nic.flush = false;
  profile.nic.flush_persistence = false;
  profile.nic.atomic_write = false;
  profile.cpu.post = profile.ethernet.system_call;
  profile.ddio = true;  // the CPU's caches
  profile.translation.reset();
  return profile;
}

}  // namespace

Machine::Machine(Engine& engine, const Profile& profile, const NodeProfile& kind, NodeId id)
    : engine_(engine),
      testbed_(profile),
      profile_(kind),
      id_(id),
      cores_(profile_.cores),
      dram_(controllers_of(profile.dram, profile)),
      pm_(controllers_of(profile.pm, profile)),
      disk_(profile.disk),
      nic_(profile),
      ethernet_profile_(with_ethernet(profile)),
      ethernet_(ethernet_profile_, true) {}

Machine::Block Machine::allocate(Bytes size, pmem::Medium medium, MemoryPlace place) {
  Block block;
  block.mapping = pmem::sim::allocate_region(size);
  block.base = static_cast<std::byte*>(block.mapping.get());
  block.size = size;
  block.medium = medium;
  block.controller = &(medium == pmem::Medium::pm ? pm_ : dram_)[place.remote ? 1 : 0];
  block.address = block.controller->allocate(size, place.one_dimm);
  block.page = size_of(place.pages);
  block.model = make_model(block, true);
  return block;
}

std::shared_ptr<pmem::sim::SimRegion> Machine::make_model(const Block& block, bool is_new) {
  std::unique_ptr<pmem::sim::CachedFile> file;
  if (block.medium == pmem::Medium::disk) {
    file = std::make_unique<pmem::sim::CachedFile>(disk_, block.size, is_new);
  }
  auto model =
      std::make_shared<pmem::sim::SimRegion>(engine_, *block.controller, block.address,
                                             block.medium == pmem::Medium::pm ? &meter_ : nullptr,
                                             block.base, block.mapping, std::move(file));
  model->identify(++regions_, block.page);
  if (block.medium != pmem::Medium::dram && journal_ != nullptr) model->track(journal_);
  return model;
}

void Machine::track(pmem::sim::Durability& durability) {
  durability_ = &durability;
  journal_ = std::make_shared<pmem::sim::Journal>(engine_, durability, id_);
  nic_.journal = journal_;
  ethernet_.journal = journal_;
  for (auto& [name, block] : persistent_) block.model->track(journal_);
}

void Machine::cut_power(pmem::Choices& choices) {
  if (journal_ == nullptr) {
    throw UsageError(fmt::format("node {}: call track_durability() before the run", id_));
  }
  survivors_ = journal_->image(choices);
  journal_->power_off();
}

void Machine::restore_power() {
  nic_.remove_all();
  ethernet_.remove_all();
  rings_.clear();
  owned_.clear();
  for (auto& [name, block] : persistent_) {
    for (const auto& survivor : survivors_) {
      if (survivor.place.region != block.model->id()) continue;
      std::copy(survivor.bytes.begin(), survivor.bytes.end(), block.base + survivor.place.offset);
    }
  }
  survivors_.clear();
  // Everything that has survived the failure is durable.
  journal_.reset();
  for (auto& [name, block] : persistent_) block.model = make_model(block, false);
  track(*durability_);
  for (const auto& [name, block] : persistent_) observe_attached(name, block);
}

void Machine::observe_attached(std::string_view name, const Block& block) const {
  if (durability_ == nullptr || durability_->observer == nullptr) return;
  durability_->observer->attached(id_, block.model->id(), name);
}

pmem::ImageSpace Machine::images() {
  if (journal_ == nullptr) {
    throw UsageError(fmt::format("node {}: call track_durability() before the run", id_));
  }
  return journal_->images();
}

pmem::sim::CrashedMemory Machine::crashed(const pmem::ImageSpace& images) const {
  pmem::sim::CrashedMemory memory;
  for (const auto& [name, block] : persistent_) {
    memory.regions.emplace_back(name, block.medium, block.size, block.base, block.model->id(),
                                images);
  }
  return memory;
}

std::string Machine::persistent_state() {
  std::string state = fmt::format("{}", journal_ == nullptr ? 0 : journal_->changes());
  for (const auto& [name, block] : persistent_) {
    state += fmt::format(" {}#{}", name, block.model->number());
  }
  return state;
}

void Machine::adopt(pmem::sim::CrashedMemory& memory) {
  for (pmem::sim::CrashedRegion& region : memory.regions) {
    Block block;
    block.mapping = region.mapping();
    block.base = region.base();
    block.size = region.size();
    block.medium = region.medium();
    block.controller = &(block.medium == pmem::Medium::pm ? pm_ : dram_).front();
    block.address = block.controller->allocate(block.size, false);
    block.model = make_model(block, false);
    block.model->recover(region);
    persistent_.emplace(region.name(), std::move(block));
  }
}

std::unique_ptr<pmem::Region> Machine::create_region(MemoryPlace place, std::string_view name,
                                                     Bytes size, pmem::Medium medium,
                                                     pmem::MemoryMeter& user) {
  if (place.pages != pmem::Pages::any && !testbed_.translation) {
    throw UsageError(
        fmt::format("region '{}': profile {} has no page sizes; add [translation] for them", name,
                    testbed_.name));
  }
  if (place.remote && !testbed_.numa) {
    throw UsageError(fmt::format(
        "profile {}: its machines have one NUMA node; add [numa] for another", testbed_.name));
  }
  if (medium != pmem::Medium::dram && persistent_.contains(name)) {
    throw UsageError(fmt::format("node {} has a region '{}' already", id_, name));
  }
  Block block = allocate(size, medium, place);
  std::shared_ptr<void> keeper = block.mapping;
  if (medium == pmem::Medium::dram) {
    keeper = user.hold_dram(size, std::move(keeper));
  } else if (medium == pmem::Medium::pm) {
    user.found_persistent(name, size);
  }
  auto region = std::make_unique<pmem::Region>(std::string(name), medium, block.base, size,
                                               block.model, std::move(keeper));
  if (medium != pmem::Medium::dram) {
    observe_attached(name, block);
    persistent_.emplace(name, std::move(block));
  }
  return region;
}

std::unique_ptr<pmem::Region> Machine::open_region(std::string_view name) {
  const auto found = persistent_.find(name);
  if (found == persistent_.end()) return nullptr;
  const Block& block = found->second;
  return std::make_unique<pmem::Region>(std::string(name), block.medium, block.base, block.size,
                                        block.model, block.mapping);
}

bool Machine::remove_region(std::string_view name) {
  const auto found = persistent_.find(name);
  if (found == persistent_.end()) return false;
  persistent_.erase(found);
  return true;
}

std::shared_ptr<void> Machine::own_region(std::string_view name, std::uint32_t part,
                                          NodeId process) {
  if (!persistent_.contains(name)) {
    throw UsageError(fmt::format("node {} has no region '{}'", id_, name));
  }
  Ownership& ownership = owned_[{std::string(name), part}];
  if (!ownership.held.expired()) return nullptr;
  auto held = std::make_shared<NodeId>(process);
  ownership = {process, held};
  return held;
}

SimRing& Machine::ring(std::string_view name, RingShape shape) {
  auto found = rings_.find(name);
  if (found == rings_.end()) {
    found = rings_.emplace(name, std::make_shared<SimRing>(name, shape)).first;
  }
  SimRing& ring = *found->second;
  if (ring.shape() == shape) return ring;
  throw UsageError(fmt::format("ring '{}' has {} slots for messages of up to {} bytes", name,
                               ring.shape().slots, ring.shape().message_size));
}

void Machine::remove_ring(std::string_view name) {
  const auto found = rings_.find(name);
  if (found != rings_.end()) rings_.erase(found);
}

void Machine::begin_death(const std::vector<const SimThread*>& threads) {
  for (const SimThread* thread : threads) {
    const Time from = std::max(engine_.now(), thread->storing().seen_until);
    for (auto& [name, block] : persistent_) block.model->withdraw(*thread, from);
    for (auto& [name, ring] : rings_) ring->withdraw(*thread, from);
    if (journal_ == nullptr) continue;
    journal_->withdraw(thread, from);
    journal_->withdraw(&thread->storing(), from);  // the stores whose write-back to disk it has
                                                   // requested
  }
  // Others may have seen stores made before `from`, though these lay ahead of the engine's time.
  if (journal_ != nullptr) {
    std::vector<pmem::sim::Journal::Writer> writers(threads.begin(), threads.end());
    for (const SimThread* thread : threads) writers.push_back(&thread->storing());
    journal_->hasten(writers);
  }
  for (auto& [name, block] : persistent_) block.model->ignore_stores(true);
}

void Machine::end_death(NodeId process) {
  for (auto& [name, block] : persistent_) block.model->ignore_stores(false);
  std::erase_if(owned_, [&](const auto& each) { return each.second.process == process; });
  nic_.remove_all_of(process);
  ethernet_.remove_all_of(process);
}

}  // namespace perdura::sim
