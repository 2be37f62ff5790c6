#include "platform/host/host_node.h"

#include <fmt/core.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <filesystem>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/base/plain_name.h"
#include "platform/host/child_process.h"
#include "platform/host/host_background.h"
#include "platform/host/numa.h"
#include "platform/pmem/mapped/dax_device.h"
#include "platform/pmem/mapped/file_write_back.h"
#include "platform/pmem/mapped/pool_file.h"

namespace perdura {
namespace {

using pmem::mapped::Allocation;

Picoseconds read_clock(clockid_t clock) {
  timespec t{};
  if (::clock_gettime(clock, &t) != 0) return Picoseconds(0);
  return std::chrono::seconds(t.tv_sec) + Nanoseconds(t.tv_nsec);
}

}  // namespace

void ThreadUse::begin() {
  const std::scoped_lock lock(mutex);
  thread = ::pthread_self();
  running = true;
  current_thread_use = this;
}

void ThreadUse::end() {
  writes.publish(pmem::thread_write_meter().writes());
  const std::scoped_lock lock(mutex);
  cpu_time = read_clock(CLOCK_THREAD_CPUTIME_ID);
  running = false;
  current_thread_use = nullptr;
}

Picoseconds ThreadUse::cpu_time_so_far() {
  const std::scoped_lock lock(mutex);
  clockid_t clock;
  if (!running || ::pthread_getcpuclockid(thread, &clock) != 0) return cpu_time;
  return read_clock(clock);
}

bool pin_this_thread(const std::vector<unsigned>& cores) {
  if (cores.empty()) return true;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned core : cores) {
    if (core < CPU_SETSIZE) CPU_SET(core, &set);
  }
  return ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set) == 0;
}

std::string HostNode::directory_of(const std::string& job_directory, NodeId machine) {
  return fmt::format("{}/node-{}", job_directory, machine);
}

HostNode::HostNode(const runtime::HostClock& clock, NodeId id, NodeId machine,
                   const std::string& pm_directory, const std::string& disk_directory,
                   pmem::WriteMeter::Level accounting, Placement placement)
    : clock_(clock),
      id_(id),
      machine_(machine),
      pm_directory_(pm_directory),
      disk_directory_(disk_directory.empty() ? pm_directory_ + "/.disk"
                                             : directory_of(disk_directory, machine)),
      accounting_(accounting),
      placement_(std::move(placement)) {
  if (!pm_directory_.empty()) pmem::mapped::create_pool_directory(pm_directory_);
}

void HostNode::check_name(std::string_view name) {
  if (!is_visible_name(name)) {
    throw UsageError(fmt::format(
        "'{}' cannot name a region; give it a name without '/' that does not begin with '.'",
        name));
  }
}

std::string HostNode::path_of(std::string_view name, pmem::Medium medium) const {
  check_name(name);
  if (pm_directory_.empty()) {
    throw UsageError(fmt::format("region '{}': node {} has no persistent memory", name, id_));
  }
  return fmt::format("{}/{}", medium == pmem::Medium::disk ? disk_directory_ : pm_directory_, name);
}

pmem::Medium HostNode::medium_of(std::string_view name) const {
  const bool is_on_disk = is_there(path_of(name, pmem::Medium::disk));
  return is_on_disk ? pmem::Medium::disk : pmem::Medium::pm;
}

std::unique_ptr<pmem::Region> HostNode::create_region(std::string_view name, Bytes size,
                                                      pmem::Medium medium) {
  return create_region_at({}, name, size, medium);
}

std::unique_ptr<pmem::Region> HostNode::create_region_at(MemoryPlace place, std::string_view name,
                                                         Bytes size, pmem::Medium medium) {
  const bool pages_only = medium == pmem::Medium::dram && !place.remote && !place.one_dimm;
  if (place != MemoryPlace{} && !pages_only) {
    return Node::create_region_at(place, name, size, medium);
  }
  // Applies to the memory that is allocated here.
  const MemoryBinding binding(placement_.numa_node);
  if (medium != pmem::Medium::dram) {
    const std::string path = path_of(name, medium);
    if (medium == pmem::Medium::disk) {
      if (pmem::mapped::device_path(path)) {
        throw UsageError(fmt::format(
            "{}: a DAX device is no disk; use a DAX file system as pm_directory", path));
      }
      pmem::mapped::create_pool_directory(disk_directory_);
    }
    auto file = pmem::mapped::create_pool_file(path, size, Allocation::now);
    return make_region(std::string(name), medium, path, std::move(file.mapping));
  }
  Dram dram = create_dram(name, size, place.pages);
  return make_region(std::string(name), medium, dram.path, std::move(dram.mapping));
}

std::unique_ptr<pmem::Region> HostNode::open_region(std::string_view name) {
  const pmem::Medium medium = medium_of(name);
  const std::string path = path_of(name, medium);
  auto file = pmem::mapped::open_pool_file(path, access_);
  if (!file) return nullptr;
  return make_region(std::string(name), medium, path, std::move(file->mapping));
}

void HostNode::remove_region(std::string_view name) {
  pmem::mapped::remove_pool_file(path_of(name, medium_of(name)));
  memory_use_.removed_persistent(name);
}

std::shared_ptr<void> HostNode::own_region(std::string_view name, std::uint32_t part) {
  auto lock = pmem::mapped::lock_pool_file(path_of(name, medium_of(name)),
                                           pmem::mapped::PoolLock::ownership, access_, part);
  return lock ? std::make_shared<pmem::mapped::File>(std::move(*lock)) : nullptr;
}

std::unique_ptr<pmem::Region> HostNode::make_region(
    std::string name, pmem::Medium medium, const std::string& path,
    std::shared_ptr<pmem::mapped::Mapping> mapping) {
  std::byte* base = mapping->data();
  const Bytes size = mapping->size();
  const auto durable = mapping->granularity() == pmem::mapped::Granularity::byte
                           ? pmem::Durable::when_visible
                           : pmem::Durable::when_flushed;
  bind_memory(base, mapping->mapped_size(), placement_.numa_node);
  std::shared_ptr<void> keeper = adopt(path, medium, std::move(mapping));
  if (medium == pmem::Medium::dram) {
    keeper = memory_use_.hold_dram(size, std::move(keeper));
  } else if (medium == pmem::Medium::pm) {
    memory_use_.found_persistent(name, size);
  }
  const auto disk = medium == pmem::Medium::disk ? pmem::mapped::write_back_of(path) : nullptr;
  return std::make_unique<pmem::Region>(std::move(name), medium, base, size, nullptr,
                                        std::move(keeper), durable, disk);
}

std::unique_ptr<BackgroundThread> HostNode::start_background_thread(
    std::optional<fabric::Port> port, CompletionMode mode) {
  return std::make_unique<HostBackgroundThread>(*this, port, mode);
}

Task<std::unique_ptr<ChildProcess>> HostNode::start_child(ChildProgram program, ChildOrder order) {
  std::string path = path_of(order.memory, pmem::Medium::pm);
  return start_host_child(clock_, std::move(program.file), std::move(path), std::move(order));
}

Picoseconds HostNode::cpu_time() const {
  const std::scoped_lock lock(mutex_);
  Picoseconds sum{0};
  for (ThreadUse& use : threads_) sum += use.cpu_time_so_far();
  return sum;
}

pmem::Writes HostNode::pm_writes() const {
  if (current_thread_use != nullptr) {
    current_thread_use->writes.publish(pmem::thread_write_meter().writes());
  }
  const std::scoped_lock lock(mutex_);
  pmem::Writes sum;
  for (const ThreadUse& use : threads_) sum += use.writes.read();
  return sum;
}

ThreadUse& HostNode::add_thread() {
  const std::scoped_lock lock(mutex_);
  return threads_.emplace_back();
}

}  // namespace perdura
