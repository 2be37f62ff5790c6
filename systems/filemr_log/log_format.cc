#include "systems/filemr_log/log_format.h"

#include "systems/remote_log/log_format.h"

namespace perdura::systems::filemr_log {

Persistence persistence_of(const methods::Method& method) {
  if (method.uses(pmem::StepKind::flush)) return Persistence::message;
  const bool flushes = method.uses(pmem::StepKind::flush_visibility) ||
                       method.uses(pmem::StepKind::flush_persistence) ||
                       method.uses(pmem::StepKind::read);
  return flushes ? Persistence::flush : Persistence::none;
}

Bytes record_size(Bytes payload) {
  return round_up(sizeof(remote_log::RecordHeader) + payload, kWord);
}

}  // namespace perdura::systems::filemr_log
