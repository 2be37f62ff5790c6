#include "systems/remote_log/expected_latency.h"

#include <memory>
#include <vector>

#include "methods/remote_persister.h"
#include "methods/responder.h"
#include "platform/base/error.h"
#include "platform/sim/sim_platform.h"

namespace perdura::systems::remote_log {

namespace {

using methods::PersisterSetup;
using methods::RemotePersister;
using methods::Responder;

constexpr fabric::NodeId kResponder = 0;
constexpr fabric::NodeId kRequester = 1;
constexpr int kWarmUp = 20;
constexpr int kUpdates = 200;

Task<> respond(Thread& thread, PersisterSetup setup, Bytes size) {
  const auto region = thread.node.create_region("target", size, pmem::Medium::pm);
  const auto responder = std::make_shared<Responder>(thread, *region, setup);
  co_await responder->serve();
}

Task<> request(Thread& thread, PersisterSetup setup, Picoseconds* mean) {
  const auto persister = co_await RemotePersister::connect(thread, {kResponder, 0}, 0, setup);
  const std::vector<std::byte> data(std::max(setup.largest_a, setup.largest_b), std::byte{1});
  const std::span<const std::byte> bytes(data);
  methods::UpdateRequest update{.a = {0, bytes.first(setup.largest_a)}};
  // Each update of a link expects the one before it.
  std::uint64_t link = 0;
  const bool publishes = setup.method.update == methods::Update::publish;
  if (setup.method.update != methods::Update::single) {
    update.b = {round_up(setup.largest_a, kCacheLine),
                publishes ? std::as_bytes(std::span(&link, 1)) : bytes.first(setup.largest_b)};
  }
  Time start{};
  for (int i = 0; i < kWarmUp + kUpdates; ++i) {
    if (i == kWarmUp) start = thread.executor.now();
    update.expected = link++;
    const auto done = co_await persister->update(update);
    if (!done) throw PlatformError(std::string(to_string(done.error())));
  }
  *mean = (thread.executor.now() - start) / kUpdates;
}

}  // namespace

Picoseconds expected_latency(const methods::Method& method, sim::Profile profile,
                             const methods::Configuration& configuration,
                             const methods::UpdateNeeds& needs,
                             const methods::DeviceFeatures& features) {
  profile.ddio = configuration.model.ddio;
  const auto give_features = [&](sim::NicProfile& nic) {
    nic.flush = features.flush;
    nic.flush_persistence = features.flush_persistence;
    nic.atomic_write = features.atomic_write;
  };
  give_features(profile.nic);
  for (sim::RoleProfile& role : profile.roles) give_features(role.profile.nic);
  PersisterSetup setup;
  setup.method = method;
  setup.largest_a = static_cast<std::uint32_t>(needs.size);
  setup.largest_b = static_cast<std::uint32_t>(needs.second_size);
  setup.receive_medium = configuration.receive_buffers;
  const Bytes size = round_up(needs.size, kCacheLine) + round_up(needs.second_size, kCacheLine);
  Picoseconds mean{};
  sim::SimPlatform platform(std::move(profile), 2);
  platform.start_service(kResponder, 0, CompletionMode::polling,
                         [&](Thread& thread) { return respond(thread, setup, size); });
  platform.start(kRequester, 0, CompletionMode::polling,
                 [&](Thread& thread) { return request(thread, setup, &mean); });
  platform.run();
  return mean;
}

}  // namespace perdura::systems::remote_log
