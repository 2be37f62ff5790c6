#include "report/result_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/schema/file_record.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/path_kind.h"

namespace perdura::report {
namespace {

namespace fs = std::filesystem;

schema::Expected<std::string> read_text(const fs::path& file) {
  std::optional<std::string> text = harness::read_whole(file);
  if (!text) {
    return schema::fail(fmt::format("{}: {}; run the experiment again, or restore the file",
                                    file.string(), not_a_file(file)));
  }
  return std::move(*text);
}

/// Text without quotes; any other value as JSON.
std::string shown(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Appends the leaves of a value, each with its path in it, such as "sessions.0.started"; an empty
/// array or object becomes null.
void flatten(const std::string& place, const Json& value,
             std::vector<std::pair<std::string, std::string>>& parts) {
  const auto within = [&](std::string_view name) {
    return place.empty() ? std::string(name) : fmt::format("{}.{}", place, name);
  };
  if (value.empty() && !value.is_null()) {  // an array or object that is empty is not null
    if (!place.empty()) parts.emplace_back(place, "null");
  } else if (value.is_object()) {
    for (const auto& [name, member] : value.items()) flatten(within(name), member, parts);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      flatten(within(std::to_string(i)), value[i], parts);
    }
  } else {
    parts.emplace_back(place, shown(value));
  }
}

/// Moves the input files, with their texts, out of the manifest.
std::vector<InputFile> take_workloads(Json& manifest) {
  std::vector<InputFile> files;
  Json* const workloads = manifest.find("workloads");
  if (workloads == nullptr || !workloads->is_array()) return files;
  for (Json& workload : *workloads) {
    if (!workload.is_object()) continue;
    InputFile& file = files.emplace_back();
    const auto text = [&](const char* key) {
      const Json* const found = workload.find(key);
      return found != nullptr && found->is_string() ? found->get<std::string>() : "";
    };
    file.name = text("name");
    file.text = text("text");
    const Json* const settings = workload.find("settings");
    if (settings == nullptr || !settings->is_object()) continue;
    file.settings.emplace();
    for (const auto& [key, value] : settings->items()) {
      (*file.settings)[key] = shown(value);
    }
    workload.erase("settings");
  }
  return files;
}

/// Fills in everything that comes from the manifest.
schema::Expected<void> read_manifest(const fs::path& file, ResultFolder& folder) {
  const auto text = read_text(file);
  if (!text) return tl::unexpected(text.error());
  Json document;
  try {
    document = Json::parse(*text);
  } catch (const JsonError& problem) {
    const auto end =
        text->begin() + static_cast<std::ptrdiff_t>(std::min(problem.position, text->size()));
    return schema::fail(
        fmt::format("{}:{}: not JSON; run the experiment again, or restore the file", file.string(),
                    1 + std::count(text->begin(), end, '\n')));
  }
  if (!document.is_object()) {
    return schema::fail(
        fmt::format("{}:1: must be a JSON object; run the experiment again", file.string()));
  }
  // The records of files are checked separately (file_record.h) and not shown.
  document.erase("files");
  document.erase("files_before");
  // The same holds for the names of columns and values (Schema::beside).
  document.erase("words");
  folder.workloads = take_workloads(document);
  flatten("", document, folder.manifest);
  return {};
}

schema::Expected<ResultFolder> read_folder(const fs::path& path, Rows rows) {
  ResultFolder folder;
  folder.path = path;
  const fs::path whole = fs::absolute(path).lexically_normal();
  folder.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  folder.probed = !is_there(path / "points.csv");
  if (rows == Rows::keep) {
    auto points = folder.probed ? Points::read_probes(path / "probes.csv")
                                : Points::read(path / "points.csv");
    if (!points) return tl::unexpected(points.error());
    folder.points = std::move(*points);
  }
  if (rows == Rows::keep && is_there(path / "timeline.csv")) {
    auto timelines = Timelines::read(path / "timeline.csv");
    if (!timelines) return tl::unexpected(timelines.error());
    folder.timelines = std::move(*timelines);
  }
  if (!folder.probed) {  // a probe's folder has no figures for the report, either
    auto text = read_text(path / "experiment.toml");
    if (!text) return tl::unexpected(text.error());
    folder.experiment_text = std::move(*text);
    auto schema = schema::Schema::beside(path / "points.csv");
    if (!schema) return tl::unexpected(schema.error());
    auto specs = schema::read_specs(path / "experiment.toml", *schema);
    if (!specs) return tl::unexpected(specs.error());
    folder.specs = std::move(*specs);
  }
  const auto manifest = read_manifest(path / "manifest.json", folder);
  if (!manifest) return tl::unexpected(manifest.error());
  // This check comes last, since syntax errors in a file are better reported with their line.
  auto note = schema::check_against_manifest(path);
  if (!note) return tl::unexpected(note.error());
  folder.note = std::move(*note);
  return folder;
}

schema::Expected<std::vector<ResultFolder>> read_all(
    const fs::path& input, Rows rows, const std::function<void(const fs::path&)>& reading) {
  const auto has_results = [](const fs::path& path) {
    return is_there(path / "points.csv") || is_there(path / "probes.csv");
  };
  std::vector<fs::path> paths;
  if (has_results(input)) {
    paths.push_back(input);
  } else {
    for (const fs::path& path : names_in(input)) {
      if (has_results(path)) paths.push_back(path);
    }
  }
  if (paths.empty()) {
    return schema::fail(
        fmt::format("{}: no points.csv here or one folder below; give a folder that "
                    "'perdura run' wrote",
                    input.string()));
  }
  std::sort(paths.begin(), paths.end());
  std::vector<ResultFolder> folders;
  for (const fs::path& path : paths) {
    if (reading) reading(path);
    auto folder = read_folder(path, rows);
    if (!folder) return tl::unexpected(folder.error());
    folders.push_back(std::move(*folder));
  }
  return folders;
}

}  // namespace

std::string ResultFolder::from_manifest(const std::string& name_in_manifest) const {
  for (const auto& [key, value] : manifest) {
    if (key == name_in_manifest) return value;
  }
  return "";
}

std::string ResultFolder::unfinished() const {
  const std::string status = from_manifest("status");
  if (status.empty() || status == "complete") return "";
  return fmt::format("{} of {} points", from_manifest("points_done"), from_manifest("points"));
}

schema::Expected<std::vector<ResultFolder>> read_result_folders(
    const fs::path& input, Rows rows, const std::function<void(const fs::path&)>& reading) {
  try {
    return read_all(input, rows, reading);
  } catch (const PlatformError& unreadable) {
    return schema::fail(unreadable.what());
  }
}

}  // namespace perdura::report
