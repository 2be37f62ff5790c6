// The tables of all services and of all systems of each service.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "services/fs/fs.h"
#include "services/kv/kv.h"
#include "services/log/log.h"
#include "services/memory/memory.h"
#include "services/objects/objects.h"
#include "services/service.h"

namespace perdura::systems {

std::span<const services::Service* const> all_services();
// The systems of all services, in the order of the tables.
std::vector<services::ServedSystem> all_systems();
std::optional<services::ServedSystem> find_system(std::string_view name);

std::span<const kv::KvSystem> kv_systems();
// Throws UsageError, which lists the known names, if none has this name.
const kv::KvSystem& find_kv_system(std::string_view name);

std::span<const objects::System> object_systems();
const objects::System& find_object_system(std::string_view name);  // throws likewise

std::span<const services::LogSystem> log_systems();

std::span<const services::MemorySystem> memory_systems();
const services::MemorySystem& find_memory_system(std::string_view name);  // throws likewise

std::span<const fs::FsSystem> fs_systems();
const fs::FsSystem& find_fs_system(std::string_view name);  // throws likewise

}  // namespace perdura::systems
