#include "platform/shm/shm_node.h"

#include <fmt/core.h>
#include <unistd.h>

#include "platform/base/error.h"
#include "platform/fabric/tcp/endpoint.h"
#include "platform/pmem/mapped/pool_file.h"
#include "platform/shm/shm_ring.h"

namespace perdura {

ShmNode::ShmNode(fabric::shm::Job& job, NodeId id, NodeId machine, const std::string& pm_directory,
                 const std::string& disk_directory, pmem::WriteMeter::Level accounting,
                 Placement placement, std::shared_ptr<fabric::tcp::Rendezvous> rendezvous,
                 Picoseconds connection_timeout)
    : HostNode(job.control().clock, id, machine, pm_directory, disk_directory, accounting,
               std::move(placement)),
      job_(job),
      memory_(std::make_shared<fabric::shm::NodeMemory>(job.node(id))),
      rendezvous_(std::move(rendezvous)),
      connection_timeout_(connection_timeout) {}

HostNode::Dram ShmNode::create_dram(std::string_view name, Bytes size, pmem::Pages pages) {
  if (pages != pmem::Pages::any) {
    throw UsageError(fmt::format(
        "region '{}': the pages of memory that processes share are the kernel's choice; on verbs "
        "they can be chosen",
        name));
  }
  const std::string path = fmt::format("{}.dram-{}", job_.node_path(id()), next_dram_.fetch_add(1));
  auto file = pmem::mapped::create_pool_file(path, size, pmem::mapped::Allocation::on_touch);
  return {std::move(file.mapping), path};
}

std::shared_ptr<void> ShmNode::adopt(const std::string& path, pmem::Medium medium,
                                     std::shared_ptr<pmem::mapped::Mapping> mapping) {
  std::byte* const base = mapping->data();
  memory_->add(base, path, medium);
  // When the region is released, its registrations are removed, and, if it was DRAM, its file.
  return {base, [mapping, memory = memory_, path, medium](void* memory_base) {
            memory->remove(static_cast<std::byte*>(memory_base));
            if (medium == pmem::Medium::dram) ::unlink(path.c_str());
          }};
}

std::unique_ptr<fabric::Endpoint> ShmNode::create_socket_endpoint(Thread& thread,
                                                                  fabric::Port port) {
  return fabric::tcp::create_endpoint(*this, thread, port, rendezvous_, connection_timeout_);
}

// The ring belongs to the machine, not to the node: a node's files are removed when another process
// takes its place.
std::string ShmNode::ring_path(std::string_view name) const {
  check_name(name);
  return fmt::format("{}/ring-{}-{}", job_.directory(), machine(), name);
}

std::uint64_t ShmNode::life() const {
  return fabric::shm::life_of(job_.node(id())->generation.load(), id());
}

std::unique_ptr<RingProducer> ShmNode::open_producer(std::string_view name, RingShape shape) {
  return open_shm_producer(job_, life(), ring_path(name), name, shape);
}

std::unique_ptr<RingConsumer> ShmNode::open_consumer(std::string_view name, RingShape shape) {
  return open_shm_consumer(job_, life(), ring_path(name), name, shape);
}

}  // namespace perdura
