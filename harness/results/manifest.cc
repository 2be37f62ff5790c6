#include "harness/results/manifest.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "harness/results/build_info.h"
#include "harness/results/points.h"

namespace perdura::harness {
namespace {

std::string_view to_string(RunStatus status) {
  switch (status) {
    case RunStatus::running:
      return "running";
    case RunStatus::complete:
      return "complete";
    case RunStatus::interrupted:
      return "interrupted";
    case RunStatus::failed:
      return "failed";
  }
  return "failed";
}

std::string cpu_model() {
  std::ifstream input("/proc/cpuinfo");
  for (std::string line; std::getline(input, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
  return static_cast<unsigned>(CPU_COUNT(&set));
}

}  // namespace

MachineInfo this_machine() {
  MachineInfo machine;
  utsname names{};
  if (uname(&names) == 0) {
    machine.host = names.nodename;
    machine.kernel = fmt::format("{} {}", names.sysname, names.release);
  }
  machine.cpu = cpu_model();
  machine.cores = usable_cores();
  std::ifstream governor("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!std::getline(governor, machine.governor)) machine.governor = "unknown";
  return machine;
}

std::string to_json(const Manifest& manifest) {
  const BuildInfo& build = build_info();
  nlohmann::ordered_json json;
  json["schema_version"] = kSchemaVersion;
  json["version"] = build.version;
  json["git_revision"] = build.git_revision;
  json["git_dirty"] = build.git_dirty;
  json["compiler"] = build.compiler;
  json["flags"] = build.flags;
  json["build_type"] = build.build_type;
  json["status"] = to_string(manifest.status);
  json["started"] = manifest.started;
  json["command_line"] = manifest.command_line;
  json["experiment"] = manifest.experiment;
  json["platform"] = manifest.platform;
  json["provenance"] = manifest.modelled ? "modelled" : "measured";
  json["points"] = manifest.points;
  json["points_done"] = manifest.points_done;
  json["seed"] = manifest.seed;
  json["repetitions"] = manifest.repetitions;
  json["mpi_ranks"] = manifest.mpi_ranks;
  json["machine"] = {{"host", manifest.machine.host},
                     {"kernel", manifest.machine.kernel},
                     {"cpu", manifest.machine.cpu},
                     {"cores", manifest.machine.cores},
                     {"governor", manifest.machine.governor}};
  json["profile"] = {{"name", manifest.profile}, {"text", manifest.profile_text}};
  using nlohmann::ordered_json;
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace perdura::harness
