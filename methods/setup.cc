#include "methods/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

#include "methods/message.h"
#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::methods {

namespace {

using pmem::Step;
using pmem::StepKind;

bool is_known(const Step& step, bool responder) {
  switch (step.kind) {
    case StepKind::write:
    case StepKind::write_immediate:
    case StepKind::atomic_write:
      return !responder && step.changes.size() == 1;
    case StepKind::compare_and_swap:
    case StepKind::await:
      return !responder && step.changes.size() == 1 && step.changes[0].variable == 1;
    case StepKind::send:
    case StepKind::send_names:
    case StepKind::read:
    case StepKind::flush_visibility:
    case StepKind::completion:
    case StepKind::receive_ack:
      return !responder;
    case StepKind::flush_persistence:
      return !responder && step.changes.size() == 1;
    case StepKind::receive:
    case StepKind::copy:
    case StepKind::flush:
    case StepKind::send_ack:
      return responder;
    default:
      return false;
  }
}

void check_steps(const Method& method) {
  for (const pmem::Agent& agent : method.program.agents) {
    for (const Step& step : agent.steps) {
      if (is_known(step, agent.responder) && !step.relaxed) continue;
      throw UsageError(fmt::format(
          "method '{}': \"{}\" of the {} can be proved, but not run; see taxonomy.methods for "
          "steps "
          "that can",
          method.name, to_string(method.program, step), to_string(method.program, agent)));
    }
  }
  for (const std::vector<Step>& responder : {method.responder(), method.responder_of_reader()}) {
    if (!responder.empty() && responder[0].kind != StepKind::receive) {
      throw UsageError(
          fmt::format("method '{}': the responder's first step must be \"receive\"", method.name));
    }
  }
  const auto is_await = [](const Step& step) { return step.kind == StepKind::await; };
  const std::vector<Step>& reader = method.reader();
  const bool reads_first =
      reader.empty() ||
      (is_await(reader[0]) && std::none_of(reader.begin() + 1, reader.end(), is_await));
  const bool others_read =
      std::any_of(method.requester().begin(), method.requester().end(), is_await);
  if (!reads_first || others_read) {
    throw UsageError(fmt::format(
        "method '{}': \"await b\" must be the first step of a reader, and no other", method.name));
  }
  if (method.update != Update::publish && method.uses(StepKind::compare_and_swap)) {
    throw UsageError(fmt::format(
        "method '{}': \"cas b\" can be run only by a method that publishes; add \"requester 2\", "
        "its readers",
        method.name));
  }
}

void need(const Method& method, StepKind kind, bool available, std::string_view operation,
          std::string_view advice) {
  if (available || !method.uses(kind)) return;
  throw UsageError(fmt::format("method '{}' needs {}, which this device does not have; {}",
                               method.name, operation, advice));
}

}  // namespace

Bytes PersisterSetup::buffer_size() const {
  return message_room(largest_a, method.update != Update::single ? largest_b : 0);
}

std::uint32_t PersisterSetup::method_checksum() const {
  std::string text;
  for (const pmem::Agent& agent : method.program.agents) {
    for (const Step& step : agent.steps) text += to_string(method.program, step) + ";";
    text += "\n";
  }
  return crc32(0, std::as_bytes(std::span(text)));
}

bool is_applied_later(const Method& method) {
  return method.uses(StepKind::send) && !method.uses(StepKind::copy);
}

void check(const PersisterSetup& setup, const fabric::Capabilities& device) {
  const Method& method = setup.method;
  check_steps(method);
  need(method, StepKind::flush_visibility, device.flush, "FLUSH for global visibility",
       "emulate it by READ, or choose another method");
  need(method, StepKind::flush_persistence, device.flush_persistence, "FLUSH for persistence",
       "choose another method");
  need(method, StepKind::atomic_write, device.atomic_write, "ATOMIC WRITE",
       "choose another method");
  need(method, StepKind::compare_and_swap, device.atomics, "atomics (iWARP has none)",
       "choose a method that publishes by WRITE");
  need(method, StepKind::write_immediate, device.write_with_immediate,
       "WRITE_WITH_IMM (iWARP has none)", "choose a method that sends instead");
  if (setup.largest_a == 0 || (method.update != Update::single && setup.largest_b == 0)) {
    throw UsageError("the largest update must have at least one byte");
  }
  const bool publishes = method.update == Update::publish;
  if ((publishes || method.uses(StepKind::atomic_write)) && setup.largest_b != kWord) {
    throw UsageError(fmt::format("method '{}' {}, which takes 8 bytes, not {}", method.name,
                                 publishes ? "sets \"b\", a link" : "writes \"b\" by ATOMIC WRITE",
                                 setup.largest_b));
  }
  if (setup.buffer_size() > device.max_message) {
    throw UsageError(fmt::format("updates of {} bytes need messages of {}; this device takes {}",
                                 setup.largest_a, setup.buffer_size(), device.max_message));
  }
  if (setup.receive_buffers == 0 || setup.sessions == 0) {
    throw UsageError("a responder needs at least one session and one receive buffer for it");
  }
}

void check_region(const PersisterSetup& setup, Bytes region_size) {
  if (!setup.method.uses(StepKind::write_immediate) || region_size <= kLargestImmediateRegion) {
    return;
  }
  throw UsageError(
      fmt::format("an immediate names places in at most {} bytes, and the region has "
                  "{}; make it smaller, or choose a method without WRITE_WITH_IMM",
                  kLargestImmediateRegion, region_size));
}

}  // namespace perdura::methods
