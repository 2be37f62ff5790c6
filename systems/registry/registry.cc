// A new system or service needs one line here.
#include "systems/registry/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "platform/base/error.h"
#include "services/fs/crash/service.h"
#include "services/kv/service.h"
#include "services/log/service.h"
#include "services/memory/service.h"
#include "services/objects/service.h"
#include "systems/continuity/continuity.h"
#include "systems/erda/erda.h"
#include "systems/filemr_log/filemr_log.h"
#include "systems/level/level.h"
#include "systems/mcas/mcas.h"
#include "systems/mojim/mojim.h"
#include "systems/nova/nova.h"
#include "systems/novad/novad.h"
#include "systems/orion/orion.h"
#include "systems/pfarm/pfarm.h"
#include "systems/read_after_write/read_after_write.h"
#include "systems/redo_logging/redo_logging.h"
#include "systems/remote_log/system.h"
#include "systems/rpc_log/rpc_log.h"

namespace perdura::systems {

namespace {

template <class System, class NameOf>
const System& find_in(std::span<const System> table, std::string_view name, NameOf name_of) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const System& system) { return name_of(system) == name; });
  if (found != table.end()) return *found;
  std::vector<std::string_view> names;
  for (const System& system : table) names.push_back(name_of(system));
  throw UsageError(fmt::format("unknown system '{}'; known are: {}", name, fmt::join(names, ", ")));
}

}  // namespace

std::span<const kv::KvSystem> kv_systems() {
  static const std::array table{
      kErda, kRedoLogging, kReadAfterWrite, kContinuity, kLevel, kPFarmKv, kMcas,
  };
  return table;
}

std::span<const services::LogSystem> log_systems() {
  static const std::array table{kRemoteLog, kFileMrLog, kRpcLog};
  return table;
}

std::span<const services::MemorySystem> memory_systems() { return mojim_modes(); }

const kv::KvSystem& find_kv_system(std::string_view name) {
  return find_in(kv_systems(), name, [](const kv::KvSystem& system) { return system.name; });
}

std::span<const objects::System> object_systems() {
  static const std::array table{kMcasObjects};
  return table;
}

const objects::System& find_object_system(std::string_view name) {
  return find_in(object_systems(), name,
                 [](const objects::System& system) { return system.info.name; });
}

const services::MemorySystem& find_memory_system(std::string_view name) {
  return find_in(memory_systems(), name,
                 [](const services::MemorySystem& system) { return system.info.name; });
}

std::span<const fs::FsSystem> fs_systems() {
  static const std::array table{kNova, kOrion, kNovad};
  return table;
}

const fs::FsSystem& find_fs_system(std::string_view name) {
  return find_in(fs_systems(), name, [](const fs::FsSystem& system) { return system.info.name; });
}

std::span<const services::Service* const> all_services() {
  static const services::KvService kv(kv_systems());
  static const services::LogService log(log_systems());
  static const services::MemoryService memory(memory_systems());
  static const fs::FsService files(fs_systems());
  static const services::ObjectsService pools(object_systems());
  static const std::array<const services::Service*, 5> table{&kv, &log, &memory, &files, &pools};
  return table;
}

std::vector<services::ServedSystem> all_systems() {
  std::vector<services::ServedSystem> all;
  for (const services::Service* service : all_services()) {
    for (const services::SystemInfo& info : service->systems()) all.push_back({service, info});
  }
  return all;
}

std::optional<services::ServedSystem> find_system(std::string_view name) {
  for (const services::ServedSystem& system : all_systems()) {
    if (system.info.name == name) return system;
  }
  return std::nullopt;
}

}  // namespace perdura::systems
