#include "bench/remote_file/remote_file_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "bench/client_server.h"
#include "bench/driver/systems.h"
#include "bench/remote_file/emulations.h"
#include "bench/remote_file/remote_file_run.h"
#include "bench/remote_file/served_files.h"
#include "platform/base/error.h"
#include "systems/registry/registry.h"

namespace perdura::bench {

using harness::Point;

namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 40;

constexpr Parameter kParameters[] = {
    {.name = "operations", .type = Count{1, kMost}, .what = "writes that are measured"},
    {.name = "warmup", .type = Count{0, kMost}, .usual = 0, .what = "writes before that"},
    {.name = "value_size",
     .type = Count{16, 1 << 20},
     .usual = 1024,
     .identifies = true,
     .unit = "bytes",
     .what = "bytes of a write; they begin at a multiple of it"},
    {.name = "file_size",
     .type = Count{4096, std::uint64_t{1} << 32},
     .usual = 16 * MiB,
     .identifies = true,
     .noun = "file size",
     .title = "File size",
     .unit = "bytes",
     .what = "size of the file; a multiple of value_size"},
    {.name = "size",
     .type = Count{1 << 20, kMost},
     .usual = 64 * MiB,
     .unit = "bytes",
     .what = "persistent memory that a file system has"},
    {.name = "system_call_ns",
     .type = Count{0, 1'000'000},
     .usual = 0,
     .unit = "ns",
     .what = "time of a system call, which emulations make; of sim only"},
};

constexpr services::Metric kIndirection[] = {
    {"indirection_us_per_op", "time before the device has the WRITE",
     "Time before the device has the WRITE", "us"},
};

struct EmulatedSystem {
  std::string_view name;
  std::string_view title;
  Emulation emulation;
};
constexpr std::array kEmulations{
    EmulatedSystem{"local-mmap", "Local mmap", Emulation::local_mmap},
    EmulatedSystem{"mojim-emu", "Mojim-Emu", Emulation::mojim},
    EmulatedSystem{"lite-emu", "LITE-Emu", Emulation::lite},
    EmulatedSystem{"orion-emu", "Orion-Emu", Emulation::orion},
};

// The real systems.
const std::array<const fs::FsSystem*, 2>& file_systems() {
  static const std::array<const fs::FsSystem*, 2> all{&systems::find_fs_system("novad"),
                                                      &systems::find_fs_system("orion")};
  return all;
}
const services::MemorySystem& mojim() { return systems::find_memory_system("m-sync"); }

using AnySystem =
    std::variant<const EmulatedSystem*, const fs::FsSystem*, const services::MemorySystem*>;

// Returns nothing if there is no such system.
std::optional<AnySystem> find(std::string_view name) {
  for (const EmulatedSystem& each : kEmulations) {
    if (each.name == name) return &each;
  }
  for (const fs::FsSystem* each : file_systems()) {
    if (each->info.name == name) return each;
  }
  if (mojim().info.name == name) return &mojim();
  return std::nullopt;
}

AnySystem system_of(const Point& point) {
  if (const auto found = find(point.settings.system.text)) return *found;
  std::vector<std::string_view> known;
  for (const EmulatedSystem& each : kEmulations) known.push_back(each.name);
  for (const fs::FsSystem* each : file_systems()) known.push_back(each->info.name);
  known.push_back(mojim().info.name);
  throw UsageError(no_such_system(point, known));
}

RemoteFileOptions options_of(const Point& point) {
  const harness::PointSettings& settings = point.settings;
  return {.file_size = settings.number("file_size"),
          .write_size = settings.number("value_size"),
          .volume_size = settings.number("size"),
          .system_call = Nanoseconds(settings.number("system_call_ns")),
          .client = point.roles.node("client")};
}

}  // namespace

std::span<const Parameter> RemoteFileDriver::parameters() const { return kParameters; }

std::vector<harness::DriverDeclarations::System> RemoteFileDriver::systems() const {
  std::vector<harness::DriverDeclarations::System> declared;
  for (const EmulatedSystem& each : kEmulations) declared.push_back({each.name, {}, each.title});
  for (const fs::FsSystem* each : file_systems()) {
    declared.push_back({each->info.name, each->info.parameters, each->info.title});
  }
  declared.push_back({mojim().info.name, mojim().info.parameters, mojim().info.title});
  return declared;
}

void RemoteFileDriver::prepare(Point& point, const harness::Locations&) const {
  point.operations = point.settings.number("operations") + point.settings.number("warmup");
}

void RemoteFileDriver::check(const Point& point) const {
  const harness::PointSettings& settings = point.settings;
  if (point.timeline_interval > Nanoseconds{}) {
    throw UsageError(
        fmt::format("{}: writes to a file are not recorded over time; remove [timeline]",
                    settings.system.where));
  }
  const RemoteFileOptions options = options_of(point);
  if (options.file_size % options.write_size != 0) {
    throw UsageError(
        fmt::format("{}: a file of {} bytes is no multiple of writes of {}; make it one",
                    settings.where("value_size"), options.file_size, options.write_size));
  }
  const AnySystem system = system_of(point);
  try {
    if (const auto* files = std::get_if<const fs::FsSystem*>(&system)) {
      (*files)->check(config_of(**files, options, point.parameters));
    } else if (const auto* memory = std::get_if<const services::MemorySystem*>(&system)) {
      (*memory)->check(config_of(options, settings.completion("client"), point.parameters));
    }
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", settings.system.where, error.what()));
  }
}

void RemoteFileDriver::check_platform_of(const Point& point, std::string_view platform,
                                         const std::string& where) const {
  if (platform == "sim") return;
  if (point.settings.number("system_call_ns") != 0) {
    throw UsageError(fmt::format("{}: system calls take real time on {}; remove system_call_ns",
                                 point.settings.where("system_call_ns"), platform));
  }
  if (platform != "shm" && point.settings.system.text == "lite-emu") {
    throw UsageError(
        fmt::format("{}: the daemon of lite-emu shares memory with its client, which {} does not "
                    "have; use shm or sim",
                    where, platform));
  }
}

harness::Roles RemoteFileDriver::roles(const harness::PointSettings& settings, NodeId) const {
  const auto system = find(settings.system.text);
  const auto* const files = system ? std::get_if<const fs::FsSystem*>(&*system) : nullptr;
  return client_server(
      1, files != nullptr ? static_cast<NodeId>((*files)->cluster->small.size()) : NodeId{1});
}

std::vector<schema::Column> RemoteFileDriver::columns(std::string_view) const {
  std::vector<schema::Column> columns;
  add_columns(kIndirection, columns);
  return columns;
}

harness::Measurement RemoteFileDriver::run(Platform& platform, const Point& point) const {
  const AnySystem system = system_of(point);
  const RemoteFileOptions options = options_of(point);
  std::unique_ptr<RemoteFile> file;
  if (const auto* const emulated = std::get_if<const EmulatedSystem*>(&system)) {
    file = emulate((*emulated)->emulation, options, platform.modelled());
  } else if (const auto* const files = std::get_if<const fs::FsSystem*>(&system)) {
    file = file_of(platform, **files, options, point.parameters);
  } else {
    file = memory_of(*std::get<const services::MemorySystem*>(system), options,
                     point.settings.completion("client"), point.parameters);
  }
  return RemoteFileRun(platform, point, *file, options).execute();
}

}  // namespace perdura::bench
