#include "harness/results/manifest.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <string_view>

#include "harness/program/build_info.h"
#include "harness/schema/columns.h"
#include "platform/base/json.h"

namespace perdura::harness {

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

namespace {

Json json_of(const ProgramStart& session) {
  Json machines = Json::array();
  for (const std::string& machine : session.machines) {
    machines.push_back(Json::parse(machine));
  }
  return {{"started", session.started},
          {"directory", session.directory},
          {"command_line", session.command_line},
          {"mpi_ranks", session.mpi_ranks},
          {"machines", machines}};
}

Json json_of(const std::map<std::string, schema::FileRecord>& files) {
  Json json = Json::object();
  for (const auto& [name, file] : files) {
    json[name] = {{"rows", file.rows}, {"bytes", file.bytes}, {"crc32", file.crc32}};
  }
  return json;
}

}  // namespace

std::string to_json(const ProgramStart& session) { return json_of(session).dump(); }

ProgramStart start_of_json(const std::string& text) {
  const auto json = Json::parse(text);
  ProgramStart session{json.at("started").get<std::string>(),
                       json.at("directory").get<std::string>(),
                       json.at("command_line").get<std::string>(),
                       json.at("mpi_ranks").get<int>(),
                       {}};
  for (const Json& machine : json.at("machines")) {
    session.machines.push_back(machine.dump());
  }
  return session;
}

std::string to_json(const Manifest& manifest) {
  const BuildInfo& build = build_info();
  Json json;
  json["schema_version"] = schema::kSchemaVersion;
  json["version"] = build.version;
  json["git_revision"] = build.git_revision;
  json["git_dirty"] = build.git_dirty;
  json["compiler"] = build.compiler;
  json["flags"] = build.flags;
  json["build_type"] = build.build_type;
  json["status"] = to_string(manifest.status);
  json["experiment"] = manifest.experiment;
  json["platform"] = manifest.platform;
  json["provenance"] = manifest.modelled ? "modelled" : "measured";
  json["points"] = manifest.points;
  json["points_done"] = manifest.points_done;
  if (!manifest.nodes.empty()) json["nodes"] = manifest.nodes;
  if (!manifest.schema.declared().empty()) json["columns"] = manifest.schema.to_json();
  const Json words = manifest.schema.words_to_json();
  if (!words.empty()) json["words"] = words;
  if (!manifest.files.empty()) json["files"] = json_of(manifest.files);
  if (!manifest.files_before.empty()) json["files_before"] = json_of(manifest.files_before);
  json["seed"] = manifest.seed;
  json["repetitions"] = manifest.repetitions;
  json["sessions"] = Json::array();
  for (const ProgramStart& session : manifest.sessions)
    json["sessions"].push_back(json_of(session));
  json["profile"] = {{"name", manifest.profile}, {"text", manifest.profile_text}};
  json["workloads"] = Json::array();
  for (const InputFile& file : manifest.workloads) {
    json["workloads"].push_back(
        {{"name", file.name}, {"text", file.text}, {"settings", Json(file.settings)}});
  }
  if (const auto& memory = manifest.persistent_memory) {
    json["persistent_memory"] = {{"directory", memory->directory.string()},
                                 {"mount_point", memory->mount_point},
                                 {"file_system", memory->type},
                                 {"mount_options", memory->mount_options},
                                 {"dax", memory->dax},
                                 {"granularity", memory->granularity},
                                 {"promise", memory->promise}};
  }
  if (const auto& writes = manifest.media_writes) {
    if (writes->bytes) {
      json["media_writes"] = {{"bytes", *writes->bytes}};
    } else {
      json["media_writes"] = {{"not_available", writes->not_available}};
    }
  }
  if (!manifest.site_text.empty()) json["site"] = {{"text", manifest.site_text}};
  return json.dump(2) + '\n';
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace perdura::harness
