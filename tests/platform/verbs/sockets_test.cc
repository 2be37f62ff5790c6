// Socket endpoints of processes that find each other over the control plane, which needs no device.
#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "platform/base/error.h"
#include "platform/fabric/tcp/endpoint.h"
#include "platform/verbs/verbs_rendezvous.h"

namespace perdura {
namespace {

using fabric::Address;
using fabric::Status;
using fabric::tcp::TcpEndpoint;
using fabric::verbs::ControlListener;
using fabric::verbs::FixedJob;
using fabric::verbs::FixedJobOptions;

constexpr Address kServer{2, 7};
constexpr Address kClient{1, 7};

// A process of a job, as VerbsPlatform sets it up.
struct Process {
  Process(NodeId node, std::shared_ptr<ControlListener> listener, const std::string& coordinator)
      : rendezvous(std::make_shared<VerbsRendezvous>(
            VerbsRendezvous::job_of(listener.get(), coordinator))),
        control(FixedJobOptions{
            .node_count = 3,
            .local_nodes = {node},
            .listener = std::move(listener),
            .coordinator = coordinator,
            .announced = [this](const auto& message) { rendezvous->take(message); }}) {
    rendezvous->set_control(control);
  }

  // Runs a thread with an endpoint until its body has ended.
  void run(Address address, const std::function<Task<>(fabric::Endpoint&)>& body) {
    runtime::EventDoorbell doorbell;
    std::exception_ptr error;
    host::ThreadExecutor executor(control.clock(), CompletionMode::event, doorbell.bell(),
                                  [&](std::exception_ptr thrown) {
                                    error = std::move(thrown);
                                    executor.stop();
                                  });
    fabric::TrafficMeter traffic;
    ThreadUse use;
    TcpEndpoint endpoint({.rendezvous = rendezvous,
                          .traffic = traffic,
                          .waker = use,
                          .executor = executor,
                          .connection_timeout = std::chrono::seconds(20)},
                         address);
    executor.spawn([](auto* run_body, TcpEndpoint* on, host::ThreadExecutor* until) -> Task<> {
      co_await (*run_body)(*on);
      until->stop();
    }(&body, &endpoint, &executor));
    executor.run();
    if (error != nullptr) std::rethrow_exception(error);
  }

  std::shared_ptr<VerbsRendezvous> rendezvous;
  FixedJob control;
};

// An array of bytes as a region of the test's own.
std::unique_ptr<pmem::Region> make_region() {
  auto memory = std::make_shared<std::vector<std::uint64_t>>(512);
  auto* const base = reinterpret_cast<std::byte*>(memory->data());
  return std::make_unique<pmem::Region>("memory", pmem::Medium::dram, base, 4096, nullptr,
                                        std::move(memory));
}

// Node 0 coordinates only: what node 2 announces reaches node 1 through it.
TEST(VerbsSockets, ProcessesFindEachOtherOverTheControlPlane) {
  auto listener = std::make_shared<ControlListener>();
  const std::string coordinator = listener->address();
  const auto process = [&](NodeId node) {
    return std::async(std::launch::async, [&, node] {
      return std::make_unique<Process>(node, node == 0 ? listener : nullptr,
                                       node == 0 ? "" : coordinator);
    });
  };
  auto first = process(0);
  auto second = process(1);
  auto third = process(2);
  const auto at_0 = first.get();
  const auto at_1 = second.get();
  const auto at_2 = third.get();
  auto server = std::async(std::launch::async, [&] {
    at_2->run(kServer, [](fabric::Endpoint& endpoint) -> Task<> {
      const auto region = make_region();
      const auto memory = endpoint.register_memory(*region, fabric::Access::remote_all);
      const auto receives = endpoint.create_receive_queue(1);
      receives->post(memory.local(0, 8), 1);
      fabric::CompletionQueue completions;
      auto request = co_await endpoint.next_connection();
      EXPECT_EQ(request->from(), kClient);
      auto peer =
          request->accept({.receive_queue = receives.get(), .completions = &completions}, {});
      EXPECT_EQ((co_await completions.next()).status, Status::success);
      EXPECT_EQ(region->load(0), 77U);
      EXPECT_EQ((co_await completions.next()).status, Status::disconnected);
    });
  });
  at_1->run(kClient, [](fabric::Endpoint& endpoint) -> Task<> {
    const auto region = make_region();
    const auto memory = endpoint.register_memory(*region, fabric::Access::local);
    region->store(0, 77);
    const fabric::Connection connection = co_await endpoint.connect(kServer, {}, {});
    EXPECT_EQ(connection.status, Status::success);
    if (connection.status != Status::success) co_return;
    EXPECT_TRUE(co_await connection.queue_pair->send(memory.local(0, 8)));
  });
  server.get();
  // The server no longer listens, and all come to know that.
  for (const auto* const each : {at_0.get(), at_1.get(), at_2.get()}) {
    while (each->rendezvous->find(kServer)) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace perdura
