#include "library/choice.h"

#include "systems/persistence/detection.h"

namespace perdura {

namespace library {

namespace {

pmem::PersistenceDomain domain_of(Domain domain) {
  switch (domain) {
    case Domain::dmp:
      return pmem::PersistenceDomain::dmp;
    case Domain::mhp:
      return pmem::PersistenceDomain::mhp;
    case Domain::wsp:
      break;
  }
  return pmem::PersistenceDomain::wsp;
}

std::optional<pmem::Transport> transport_of(const Configuration& configuration) {
  if (!configuration.transport) return std::nullopt;
  return *configuration.transport == Transport::iwarp ? pmem::Transport::iwarp
                                                      : pmem::Transport::infiniband;
}

// All that the responder may be.
std::vector<persistence::Configuration> possible(const Configuration& given,
                                                 const persistence::Detection& found) {
  const auto domain = given.domain ? std::optional(domain_of(*given.domain)) : found.domain.value;
  const auto ddio = given.ddio ? given.ddio : found.ddio.value;
  const auto transport = given.transport ? transport_of(given) : found.transport.value;
  // Buffers are the program's own; the library places them in DRAM unless it is told otherwise.
  const pmem::Medium buffers =
      given.receive_buffers_in_pm.value_or(false) ? pmem::Medium::pm : pmem::Medium::dram;
  std::vector<persistence::Configuration> result;
  for (const auto each : {pmem::Transport::infiniband, pmem::Transport::iwarp}) {
    if (transport && *transport != each) continue;
    for (const auto& configuration : persistence::configurations(each)) {
      if ((!domain || configuration.model.domain == *domain) &&
          (!ddio || configuration.model.ddio == *ddio) &&
          configuration.receive_buffers == buffers) {
        result.push_back(configuration);
      }
    }
  }
  return result;
}

persistence::Advice advise_for(const std::vector<persistence::Configuration>& configurations,
                               const Update& update, const Configuration& given,
                               persistence::DeviceFeatures features) {
  features.flush = given.flush.value_or(features.flush);
  features.flush_persistence = given.flush_persistence.value_or(features.flush_persistence);
  features.atomic_write = given.atomic_write.value_or(features.atomic_write);
  persistence::UpdateNeeds needs;
  needs.update = update.ordered ? persistence::Update::ordered : persistence::Update::single;
  needs.size = update.size;
  needs.second_size = update.second_size;
  needs.responder_cpu = update.responder_cpu;
  needs.replay = update.replay;
  persistence::Advice advice = persistence::advise(configurations, needs, features);
  if (advice.choices.empty()) {
    throw Refused(persistence::why_nothing(configurations, needs, advice));
  }
  return advice;
}

}  // namespace

persistence::Advice advise(const Configuration& configuration, const Update& update) {
  const persistence::Detection found = persistence::detect();
  return advise_for(possible(configuration, found), update, configuration,
                    persistence::usable_features(found));
}

bench::LogOptions log_options(const LogOptions& options) {
  // The log's devices are shared memory, whatever RDMA devices there are.
  const persistence::Advice advice = advise_for(
      possible(options.configuration, persistence::detect()),
      {.ordered = options.ordered, .size = options.largest_record}, options.configuration, {});
  bench::LogOptions result;
  result.method = advice.choices.front().method;
  result.slots = options.records;
  result.largest_record = static_cast<std::uint32_t>(options.largest_record);
  result.receive_medium = options.configuration.receive_buffers_in_pm.value_or(false)
                              ? pmem::Medium::pm
                              : pmem::Medium::dram;
  return result;
}

ShmOptions shm_options(const LogOptions& options, std::uint32_t node) {
  ShmOptions result;
  result.job = options.job;
  result.node_count = 2;
  result.local_nodes = {node};
  result.pm_directory = options.directory;
  return result;
}

}  // namespace library

std::vector<Choice> choose(const Configuration& configuration, const Update& update) {
  std::vector<Choice> choices;
  for (const persistence::Choice& right : library::advise(configuration, update).choices) {
    Choice& choice = choices.emplace_back();
    choice.method = right.method.name;
    choice.wasteful = right.wasteful;
    std::size_t i = 0;
    for (const pmem::Agent& agent : right.method.program.agents) {
      for (const pmem::Step& step : agent.steps) {
        choice.steps.push_back({to_string(right.method.program, agent),
                                to_string(right.method.program, step), right.reasons[i++]});
      }
    }
  }
  return choices;
}

}  // namespace perdura
