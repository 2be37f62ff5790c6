#include "systems/filemr_log/log_format.h"

#include "platform/fabric/needs.h"
#include "systems/remote_log/log_format.h"

namespace perdura::systems::filemr_log {

Persistence persistence_of(const methods::Method& method) {
  if (method.uses(pmem::StepKind::flush)) return Persistence::message;
  if (method.uses(pmem::StepKind::flush_persistence)) return Persistence::commit;
  const bool flushes =
      method.uses(pmem::StepKind::flush_visibility) || method.uses(pmem::StepKind::read);
  return flushes ? Persistence::flush : Persistence::none;
}

void check_device(Persistence persistence, const fabric::Capabilities& device) {
  fabric::check_needs({.commits = persistence == Persistence::commit}, device,
                      "filemr-log with commits");
}

Bytes record_size(Bytes payload) {
  return round_up(sizeof(remote_log::RecordHeader) + payload, kWord);
}

}  // namespace perdura::systems::filemr_log
