#include "platform/verbs/verbs_node.h"

#include <fmt/core.h>

#include "platform/base/error.h"
#include "platform/fabric/tcp/endpoint.h"
#include "platform/pmem/mapped/anonymous.h"

namespace perdura {

void VerbsNode::try_flush_persistence() {
  constexpr std::string_view kName = "flush-trial";
  remove_region(kName);  // remains of a process that died in the middle of this
  auto region = create_region(kName, 4096, pmem::Medium::pm);
  memory_->try_flush_persistence(*region);
  region.reset();
  remove_region(kName);
}

std::unique_ptr<fabric::Endpoint> VerbsNode::create_socket_endpoint(Thread& thread,
                                                                    fabric::Port port) {
  if (rendezvous_ == nullptr) {
    throw PlatformError("in a job that processes join and leave there are no socket endpoints");
  }
  return fabric::tcp::create_endpoint(*this, thread, port, rendezvous_, connection_timeout_);
}

HostNode::Dram VerbsNode::create_dram(std::string_view name, Bytes size, pmem::Pages pages) {
  if (size == 0) throw UsageError(fmt::format("region {}: a region has at least one byte", name));
  return {pmem::mapped::map_anonymous(fmt::format("region {}", name), size, pages)};
}

std::shared_ptr<void> VerbsNode::adopt(const std::string& path, pmem::Medium medium,
                                       std::shared_ptr<pmem::mapped::Mapping> mapping) {
  std::byte* const base = mapping->data();
  memory_->add(base, mapping->size(), medium, path);
  // When the region is released, its registrations are removed before its pages.
  return {base, [mapping, memory = memory_](void* memory_base) {
            memory->remove(static_cast<std::byte*>(memory_base));
          }};
}

}  // namespace perdura
