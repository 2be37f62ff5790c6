#include "program/experiment_options.h"

#include <fmt/format.h>

#include <array>

#include "bench/connections/connections_driver.h"
#include "bench/fan_out/fan_out_driver.h"
#include "bench/fs/fs_driver.h"
#include "bench/kv/kv_driver.h"
#include "bench/lmdb/lmdb_driver.h"
#include "bench/log/log_driver.h"
#include "bench/log/remote_log_driver.h"
#include "bench/memory/memory_driver.h"
#include "bench/objects/objects_driver.h"
#include "bench/remote_file/remote_file_driver.h"
#include "bench/trace/translation_driver.h"
#include "harness/config/override.h"
#include "services/kv/kv.h"
#include "systems/registry/registry.h"

namespace perdura::program {

harness::Option ExperimentOptions::add_to(harness::Command& command) {
  const harness::Option experiment =
      command.option("experiment", experiment_, "Name or path of an experiment");
  options_ = {
      command.option("--platform", platform_, "Platform to use instead of the experiment's"),
      command.option("--profile", profile_,
                     "Testbed of platform sim to use instead of the experiment's"),
      command.option("--seed", seed_, "Seed to use instead of the experiment's"),
      command.option("--site", site_,
                     "Name or path of a site: hosts, cores, where persistent memory is"),
      command
          .option("--set", settings_,
                  "SECTION.KEY=VALUE, overrides one value of the experiment; VALUE as in TOML")
          .one_value_at_a_time(),
      command.option("--path", path_,
                     "Directory of a mounted file system in which an experiment of driver fs or "
                     "lmdb works by system calls, instead of on its systems")};
  return experiment;
}

harness::ExperimentRequest ExperimentOptions::request() const {
  harness::ExperimentRequest request;
  request.experiment = experiment_;
  request.site = site_;
  const auto quoted = [](const std::string& text) { return fmt::format("\"{}\"", text); };
  const auto override_with = [&](std::string_view key, const std::string& given,
                                 const std::string& value) {
    if (given.empty()) return;
    request.overrides.push_back({std::string(key), value, fmt::format("--{} {}", key, given)});
  };
  override_with("platform", platform_, quoted(platform_));
  override_with("profile", profile_, quoted(profile_));
  override_with("seed", seed_, seed_);
  if (!path_.empty()) {
    const std::string label = "--path " + path_;
    request.overrides.push_back({"systems.path.path", quoted(path_), label});
    request.overrides.push_back({"matrix.system", "[\"path\"]", label});
    if (platform_.empty()) {
      request.overrides.push_back({"platform", "\"shm\"", label});
    }
  }
  for (const std::string& setting : settings_) {
    request.overrides.push_back(harness::parse_override(setting));
    const harness::Override& made = request.overrides.back();
    if (!path_.empty() && (made.key == "workload.size" || made.key == "matrix.size")) {
      throw UsageError(fmt::format("{}: size has no effect on what is mounted at a path; remove it",
                                   made.label));
    }
  }
  return request;
}

std::span<const harness::Driver* const> all_drivers() {
  static const bench::KvDriver kv(systems::kv_systems());
  static const bench::RemoteLogDriver remote_log;
  static const bench::LogDriver log(systems::log_systems());
  static const bench::MemoryDriver memory(systems::memory_systems());
  static const bench::LmdbDriver lmdb(systems::memory_systems());
  static const bench::FsDriver fs(systems::fs_systems(), systems::memory_systems());
  static const bench::ObjectsDriver objects(systems::object_systems());
  static const bench::TranslationDriver translation;
  static const bench::RemoteFileDriver remote_file;
  static const bench::FanOutDriver fan_out;
  static const bench::ConnectionsDriver connections;
  static const std::array<const harness::Driver*, 11> drivers{
      &kv,      &remote_log,  &log,         &memory,  &lmdb,       &fs,
      &objects, &translation, &remote_file, &fan_out, &connections};
  return drivers;
}

}  // namespace perdura::program
