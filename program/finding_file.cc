#include "program/finding_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <vector>

#include "harness/text/atomic_file.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/path_kind.h"
#include "systems/registry/registry.h"

namespace perdura::program {
namespace {

using services::GuaranteeLevel;

// Version of the streams of a tape (explore/generated_run.h). To be incremented when the same
// tape would result in a different run.
constexpr int kStreams = 6;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

GuaranteeLevel level_in(const Json& found, const char* name) {
  const auto word = found.at(name).get<std::string>();
  const auto level = services::guarantee_of_word(word);
  if (!level) throw UsageError(fmt::format("{}: there is no level '{}'", name, word));
  return *level;
}

// The system, setting and server that a file names, and the guarantee expected when it was written.
explore::SoakCase case_in(const Json& found) {
  const auto name = found.at("system").get<std::string>();
  const auto system = systems::find_system(name);
  if (!system) throw UsageError(fmt::format("there is no system '{}'", name));
  const auto setting_name = found.at("setting").get<std::string>();
  const auto server = found.at("server").get<std::string>();
  for (const explore::ExploredSetting& setting : explore::explored_settings(system->info)) {
    for (const pmem::PersistenceModel& model : explore::explored_models()) {
      if (setting.name == setting_name && explore::explored_name(model) == server) {
        return {*system, setting, model, level_in(found, "expected"),
                found.at("late_placements").get<bool>()};
      }
    }
  }
  throw UsageError(
      fmt::format("{} has no setting '{}' on server '{}'", name, setting_name, server));
}

FindingFile finding_in(const Json& found) {
  const auto streams = found.at("streams").get<int>();
  if (streams != kStreams) {
    throw UsageError(
        fmt::format("its choices are of kind {}, and this perdura has kind {}: let "
                    "perdura soak find it again",
                    streams, kStreams));
  }
  FindingFile read;
  read.finding.where = case_in(found);
  read.finding.run.kept = level_in(found, "kept");
  read.finding.seed = found.at("seed").get<std::uint64_t>();
  read.finding.schedule = found.at("schedule").get<std::uint64_t>();
  read.finding.tape = found.at("choices").get<std::string>();
  pmem::Tape::parse(read.finding.tape);  // throws if it is damaged
  read.finding.run.loss =
      fmt::format("{}\n", fmt::join(found.at("found").get<std::vector<std::string>>(), "\n"));
  read.profile = found.at("profile").get<std::string>();
  return read;
}

std::string file_name(const explore::SoakFinding& finding) {
  std::string name =
      fmt::format("{}-seed-{}-{}", finding.where.name(), finding.seed, finding.schedule);
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '-';
  }
  return name + ".json";
}

std::string text_of(const explore::SoakFinding& finding, const std::string& profile) {
  const explore::SoakCase& where = finding.where;
  const Json text{{"system", where.system.info.name},
                  {"setting", where.setting.name},
                  {"server", explore::explored_name(where.model)},
                  {"profile", profile},
                  {"late_placements", where.late_placements},
                  {"expected", to_string(where.expected)},
                  {"kept", to_string(finding.run.kept)},
                  {"seed", finding.seed},
                  {"schedule", finding.schedule},
                  {"streams", kStreams},
                  {"choices", finding.tape},
                  {"found", lines_of(finding.run.loss)}};
  return text.dump(2) + "\n";
}

}  // namespace

std::filesystem::path write_finding(const explore::SoakFinding& finding, const std::string& profile,
                                    const sim::Profile& model,
                                    const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) throw UsageError(fmt::format("--out {}: {}", folder.string(), problem.message()));
  const std::filesystem::path file = folder / file_name(finding);
  harness::write_atomically(file, text_of(finding, profile));
  pmem::Tape tape = pmem::Tape::parse(finding.tape);
  std::filesystem::path picture = file;
  picture.replace_extension(".svg");
  harness::write_atomically(picture, as_svg(explain(finding.where, model, tape)));
  return file;
}

FindingFile read_finding(const std::string& file) {
  const auto text = harness::read_whole(file);
  if (!text) throw UsageError(fmt::format("crash: --replay {}: {}", file, not_a_file(file)));
  try {
    return finding_in(Json::parse(*text));
  } catch (const JsonError& error) {
    throw UsageError(fmt::format(
        "crash: --replay {}: not a finding of perdura soak, or damaged: {}", file, error.what()));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("crash: --replay {}: {}", file, error.what()));
  }
}

}  // namespace perdura::program
