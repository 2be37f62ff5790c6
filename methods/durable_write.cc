#include "methods/durable_write.h"

#include <fmt/format.h>

#include "platform/base/error.h"

namespace perdura::methods {

using fabric::Opcode;
using pmem::StepKind;

DurableWrite::DurableWrite(const Method& method, const fabric::Capabilities& capabilities) {
  bool fits = method.update == Update::single && method.carrier == Carrier::write;
  for (const pmem::Step& step : method.requester()) {
    switch (step.kind) {
      case StepKind::write:
      case StepKind::completion:
      case StepKind::receive_ack:
        break;
      case StepKind::send_names:
        asks_responder_ = true;
        break;
      case StepKind::read:
        behind_ = {.opcode = Opcode::read};
        break;
      case StepKind::flush_visibility:
        behind_ = {.opcode = capabilities.flush ? Opcode::flush : Opcode::read};
        break;
      case StepKind::flush_persistence:
        if (!capabilities.flush_persistence) {
          throw UsageError(fmt::format(
              "method '{}' needs FLUSH for persistence, which the device lacks", method.name));
        }
        behind_ = {.opcode = Opcode::flush, .placement = fabric::Placement::persistence};
        break;
      default:
        fits = false;
        break;
    }
  }
  if (!fits) {
    throw UsageError(
        fmt::format("method '{}' is not one for a single update by WRITE", method.name));
  }
}

Task<bool> DurableWrite::write(fabric::QueuePair& queue_pair, fabric::LocalBuffer data,
                               fabric::RemoteAddress place, fabric::LocalBuffer word) const {
  fabric::WorkRequest write{.opcode = Opcode::write, .local = data, .remote = place};
  if (asks_responder_) {
    queue_pair.post_unsignaled(write);
    co_return queue_pair.connected();
  }
  fabric::RdmaOperation written(queue_pair, write);
  if (!behind_) co_return static_cast<bool>(co_await written);
  fabric::WorkRequest request = *behind_;
  request.remote = place;
  if (request.opcode == Opcode::read) {
    request.local = word;
  } else {
    request.flush_length = data.length;
  }
  fabric::RdmaOperation behind(queue_pair, request);
  written.post();
  behind.post();
  const bool arrived = static_cast<bool>(co_await written);
  const bool forced = static_cast<bool>(co_await behind);
  co_return arrived&& forced;
}

}  // namespace perdura::methods
