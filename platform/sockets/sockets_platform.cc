#include "platform/sockets/sockets_platform.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "platform/fabric/tcp/endpoint.h"
#include "platform/pmem/mapped/anonymous.h"
#include "platform/runtime/doorbell.h"

namespace perdura {
namespace {

class SocketsNode final : public HostNode {
 public:
  SocketsNode(const runtime::HostClock& clock, NodeId id, const std::string& pm_directory,
              pmem::WriteMeter::Level accounting, Placement placement)
      : HostNode(clock, id, id, pm_directory, "", accounting, std::move(placement)) {}

 private:
  Dram create_dram(std::string_view name, Bytes size, pmem::Pages pages) override {
    if (size == 0) throw UsageError(fmt::format("region {}: a region has at least one byte", name));
    return {pmem::mapped::map_anonymous(fmt::format("region {}", name), size, pages)};
  }
  // Endpoints copy from and to a region as long as it exists, and need nothing else of it.
  std::shared_ptr<void> adopt(const std::string& /*path*/, pmem::Medium /*medium*/,
                              std::shared_ptr<pmem::mapped::Mapping> mapping) override {
    std::byte* const base = mapping->data();
    return {base, [mapping](void*) {}};
  }
};

}  // namespace

SocketsPlatform::SocketsPlatform(SocketsOptions options)
    : HostPlatform(options.node + 1, {options.node}, options.accounting),
      options_(std::move(options)),
      clock_(runtime::HostClock::start()),
      rendezvous_(std::make_shared<SocketsRendezvous>(options_.job, options_.addresses)) {
  if (options_.ports > 0) rendezvous_->listen(options_.node, options_.ports);
  add_node(std::make_unique<SocketsNode>(clock_, options_.node, options_.pm_directory,
                                         options_.accounting, options_.placement));
}

void SocketsPlatform::with_endpoint(HostNode& node, fabric::Port port, CompletionMode mode,
                                    const RunThread& run) {
  runtime::EventDoorbell doorbell;
  host::ThreadExecutor executor(clock_, mode, doorbell.bell(),
                                [this](std::exception_ptr error) { fail(std::move(error)); });
  // A poller of the executor from here on.
  fabric::tcp::TcpEndpoint endpoint({.rendezvous = rendezvous_,
                                     .traffic = node.traffic_meter(),
                                     .waker = node.add_thread(),
                                     .executor = executor,
                                     .connection_timeout = options_.connection_timeout},
                                    {node.id(), port});
  run(executor, endpoint);
}

std::unique_ptr<Platform::Barrier> SocketsPlatform::create_barrier(std::uint32_t /*participants*/) {
  throw UsageError("on sockets processes come and go, and nobody meets at a barrier");
}

}  // namespace perdura
