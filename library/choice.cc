#include "library/choice.h"

#include <fmt/format.h>

#include "methods/detection.h"
#include "methods/responder_descriptor.h"
#include "platform/base/error.h"

namespace perdura {

namespace library {

namespace {

using methods::ResponderDescriptor;

pmem::PersistenceDomain domain_of(Domain domain) {
  switch (domain) {
    case Domain::dmp:
      return pmem::PersistenceDomain::dmp;
    case Domain::mhp:
      return pmem::PersistenceDomain::mhp;
    case Domain::wsp:
      return pmem::PersistenceDomain::wsp;
  }
  throw std::invalid_argument("a configuration's domain is none of dmp, mhp and wsp");
}

Domain domain_of(pmem::PersistenceDomain domain) {
  return domain == pmem::PersistenceDomain::dmp   ? Domain::dmp
         : domain == pmem::PersistenceDomain::mhp ? Domain::mhp
                                                  : Domain::wsp;
}

pmem::Transport transport_of(Transport transport) {
  return transport == Transport::iwarp ? pmem::Transport::iwarp : pmem::Transport::infiniband;
}

// A value that the user states takes the place of the one that was detected.
template <class DetectedValue, class Given>
void state(methods::Detected<DetectedValue>& property, const std::optional<Given>& given,
           const auto& meaning) {
  if (given) property = {meaning(*given), "stated"};
}

void state(ResponderDescriptor& responder, const Configuration& given) {
  const auto as_it_is = [](bool value) { return value; };
  state(responder.domain, given.domain, [](Domain domain) { return domain_of(domain); });
  state(responder.ddio, given.ddio, as_it_is);
  state(responder.receive_buffers, given.receive_buffers_in_pm,
        [](bool in_pm) { return in_pm ? pmem::Medium::pm : pmem::Medium::dram; });
  state(responder.transport, given.transport, transport_of);
  state(responder.flush, given.flush, as_it_is);
  state(responder.flush_persistence, given.flush_persistence, as_it_is);
  state(responder.atomic_write, given.atomic_write, as_it_is);
}

// A program chooses where its receive buffers are, so they cannot be detected; the library places
// them in DRAM unless it is told otherwise.
ResponderDescriptor described_here(const methods::Detection& found, const Configuration& given) {
  ResponderDescriptor responder = methods::describe(found);
  responder.receive_buffers = {pmem::Medium::dram, "the library places them there"};
  state(responder, given);
  return responder;
}

methods::Advice advise_for(const ResponderDescriptor& responder, const Update& update,
                           const methods::DeviceFeatures& features) {
  constexpr std::size_t kLargest = std::size_t{1} << 40;
  for (const std::size_t size : {update.size, update.second_size}) {
    if (size == 0 || size > kLargest) {
      throw std::invalid_argument("an update has 1 byte to 1 TiB");
    }
  }
  methods::UpdateNeeds needs;
  needs.update = update.publish != Publish::no ? methods::Update::publish
                 : update.ordered              ? methods::Update::ordered
                                               : methods::Update::single;
  needs.link = update.publish == Publish::by_write ? methods::Link::write : methods::Link::cas;
  needs.size = update.size;
  needs.second_size = update.second_size;
  needs.responder_cpu = update.responder_cpu;
  needs.replay = update.replay;
  const auto configurations = methods::configurations(responder);
  methods::Advice advice = methods::advise(configurations, needs, features);
  if (advice.choices.empty()) {
    throw Refused(methods::why_nothing(configurations, needs, advice));
  }
  return advice;
}

// The features that the user states; of the others, those that a method may use.
methods::DeviceFeatures with(const Configuration& given, methods::DeviceFeatures features) {
  features.flush = given.flush.value_or(features.flush);
  features.flush_persistence = given.flush_persistence.value_or(features.flush_persistence);
  features.atomic_write = given.atomic_write.value_or(features.atomic_write);
  features.atomics = given.atomics.value_or(features.atomics);
  return features;
}

}  // namespace

methods::Advice advise(const Configuration& configuration, const Update& update) {
  const methods::Detection found = methods::detect();
  return advise_for(described_here(found, configuration), update,
                    with(configuration, methods::usable_features(found)));
}

}  // namespace library

namespace {

Agent agent_of(const pmem::Agent& agent) {
  if (methods::role_of(agent) == methods::Role::writer) {
    return agent.responder ? Agent::responder : Agent::requester;
  }
  return agent.responder ? Agent::responder_of_reader : Agent::reader;
}

Action action_of(pmem::StepKind kind) {
  using pmem::StepKind;
  switch (kind) {
    case StepKind::write:
      return Action::write;
    case StepKind::write_immediate:
      return Action::write_immediate;
    case StepKind::send:
      return Action::send;
    case StepKind::send_names:
      return Action::send_names;
    case StepKind::atomic_write:
      return Action::atomic_write;
    case StepKind::compare_and_swap:
      return Action::compare_and_swap;
    case StepKind::await:
      return Action::read_link;
    case StepKind::read:
      return Action::read;
    case StepKind::flush_visibility:
      return Action::flush_visibility;
    case StepKind::flush_persistence:
      return Action::flush_persistence;
    case StepKind::completion:
      return Action::completion;
    case StepKind::receive_ack:
      return Action::receive_ack;
    case StepKind::receive:
      return Action::receive;
    case StepKind::copy:
      return Action::copy;
    case StepKind::flush:
      return Action::flush;
    case StepKind::send_ack:
      return Action::send_ack;
    default:
      // The steps of other kinds occur only in proofs, never in the methods of the taxonomy.
      throw std::logic_error("a method of the taxonomy has a step that cannot be run");
  }
}

Step step_of(const pmem::Program& program, const pmem::Agent& agent, const pmem::Step& step,
             const std::string& reason) {
  Step result{.agent = std::string(methods::name_of(agent)),
              .text = to_string(program, step),
              .reason = reason,
              .of = agent_of(agent),
              .action = action_of(step.kind)};
  for (const pmem::Step::VariableChange& change : step.changes) {
    (change.variable == 0 ? result.first : result.second) = true;
    result.unmarks =
        result.unmarks || (step.kind != pmem::StepKind::await && methods::is_unmarked(change));
  }
  result.fenced = step.fenced;
  return result;
}

std::vector<Choice> choices_of(const methods::Advice& advice) {
  std::vector<Choice> choices;
  for (const methods::Choice& right : advice.choices) {
    Choice& choice = choices.emplace_back();
    choice.method = right.method.name;
    choice.wasteful = right.wasteful;
    if (right.method.update == methods::Update::publish) {
      choice.marks = right.method.marks();
      choice.readers = to_string(right.method.readers_duty());
    }
    std::size_t i = 0;
    for (const pmem::Agent& agent : right.method.program.agents) {
      for (const pmem::Step& step : agent.steps) {
        choice.steps.push_back(step_of(right.method.program, agent, step, right.reasons[i++]));
      }
    }
  }
  return choices;
}

// These functions convert between the suite's description of a responder and the library's.
methods::ResponderDescriptor descriptor_of(const Responder& responder) {
  methods::ResponderDescriptor result;
  result.host = responder.host;
  result.device = responder.device;
  library::state(result, responder.configuration);
  return result;
}

Responder responder_of(const methods::ResponderDescriptor& descriptor) {
  Responder result;
  result.host = descriptor.host;
  result.device = descriptor.device;
  Configuration& configuration = result.configuration;
  if (descriptor.domain.value) configuration.domain = library::domain_of(*descriptor.domain.value);
  configuration.ddio = descriptor.ddio.value;
  if (descriptor.receive_buffers.value) {
    configuration.receive_buffers_in_pm = *descriptor.receive_buffers.value == pmem::Medium::pm;
  }
  if (descriptor.transport.value) {
    configuration.transport = *descriptor.transport.value == pmem::Transport::iwarp
                                  ? Transport::iwarp
                                  : Transport::infiniband;
  }
  configuration.flush = descriptor.flush.value;
  configuration.flush_persistence = descriptor.flush_persistence.value;
  configuration.atomic_write = descriptor.atomic_write.value;
  return result;
}

}  // namespace

std::vector<Choice> choose(const Configuration& configuration, const Update& update) {
  return choices_of(library::advise(configuration, update));
}

Responder this_responder() { return responder_of(methods::describe(methods::detect())); }

std::string to_json(const Responder& responder) {
  return methods::to_json(descriptor_of(responder));
}

Responder responder_from_json(std::string_view text) {
  try {
    return responder_of(methods::responder_from_json(text));
  } catch (const UsageError& error) {
    throw std::invalid_argument(error.what());
  }
}

Features features_of_device(const std::string& device) {
  if (device.empty()) {
    const methods::Detection found = methods::detect();
    return {.flush = found.flush.value.value_or(false),
            .flush_persistence = found.flush_persistence.value.value_or(false),
            .atomic_write = found.atomic_write.value.value_or(false)};
  }
  const auto features = methods::query_rdma_device(device);
  if (!features) throw std::invalid_argument(features.error());
  return {.flush = features->flush,
          .flush_persistence = features->flush_persistence,
          .atomic_write = features->atomic_write,
          .atomics = features->atomics};
}

std::vector<Choice> choose(const Responder& responder, const Update& update,
                           const Features& requester) {
  const methods::ResponderDescriptor descriptor = descriptor_of(responder);
  methods::DeviceFeatures features = methods::usable_features(descriptor);
  features.flush &= requester.flush;
  features.flush_persistence &= requester.flush_persistence;
  features.atomic_write &= requester.atomic_write;
  features.atomics = requester.atomics && responder.configuration.atomics.value_or(true);
  return choices_of(library::advise_for(descriptor, update, features));
}

}  // namespace perdura
