#include "program/finding_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "harness/text/atomic_file.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/path_kind.h"
#include "program/crash_arguments.h"
#include "systems/registry/registry.h"

namespace perdura::program {
namespace {

using services::GuaranteeLevel;

// Version of the streams of choices (explore/generated_run.h, explore/history_loss.h). To be
// incremented when the same choices would result in a different run.
constexpr int kStreams = 6;

constexpr const char* kPicture = ".svg";

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

// The parameters of a setting that the table of guarantees does not have are written as on the
// command line.
constexpr const char* kParameters = "parameters";

std::optional<explore::ExploredSetting> setting_in(const Json& found,
                                                   const services::SystemInfo& system) {
  const auto name = found.at("setting").get<std::string>();
  if (found.contains(kParameters)) {
    const auto given = found.at(kParameters).get<std::vector<std::string>>();
    explore::ExploredSetting setting = explore::given_setting(
        system, parameters_in(system, given, "parameter"), found.at("correct").get<bool>());
    return setting.name == name ? std::optional(std::move(setting)) : std::nullopt;
  }
  for (explore::ExploredSetting& setting : explore::explored_settings(system)) {
    if (setting.name == name) return std::move(setting);
  }
  return std::nullopt;
}

// The system, setting and server that a file names, and the guarantee expected when it was written.
explore::SoakCase case_in(const Json& found) {
  const auto name = found.at("system").get<std::string>();
  const auto system = systems::find_system(name);
  if (!system) throw UsageError(fmt::format("there is no system '{}'", name));
  const auto setting = setting_in(found, system->info);
  const auto server = found.at("server").get<std::string>();
  for (const pmem::PersistenceModel& model : explore::explored_models()) {
    if (setting && explore::explored_name(model) == server) {
      return {*system, *setting, model, level_in(found, "expected"),
              found.at("late_placements").get<bool>()};
    }
  }
  throw UsageError(fmt::format("{} has no setting '{}' on server '{}'", name,
                               found.at("setting").get<std::string>(), server));
}

std::string lines_in(const Json& found) {
  return fmt::format("{}\n", fmt::join(found.at("found").get<std::vector<std::string>>(), "\n"));
}

explore::SoakFinding drawn_in(const Json& found) {
  explore::SoakFinding finding;
  finding.where = case_in(found);
  finding.run.kept = level_in(found, "kept");
  finding.seed = found.at("seed").get<std::uint64_t>();
  finding.schedule = found.at("schedule").get<std::uint64_t>();
  finding.tape = found.at("choices").get<std::string>();
  pmem::Tape::parse(finding.tape);  // throws if it is damaged
  finding.run.loss = lines_in(found);
  return finding;
}

// A member that only the files of fixed histories have: the name of the history, or how long its
// sequence of operations is.
constexpr const char* kHistory = "history";

explore::HistoryLoss history_loss_in(const Json& found) {
  explore::HistoryLoss loss;
  loss.where = case_in(found);
  if (conditions_of(loss.where.expected).empty()) {
    throw UsageError(
        fmt::format("expected: no run keeps less than {}", to_string(loss.where.expected)));
  }
  loss.kept = level_in(found, "kept");
  loss.seed = found.at("seed").get<std::uint64_t>();
  const auto history = found.at(kHistory).get<std::string>();
  const auto strategy = strategy_of(history);
  if (strategy && strategy->sequences) {
    loss.run.kind = *strategy->sequences;
  } else {
    loss.run.schedule = history;
  }
  take_streams(pmem::Tape::streams_in(found.at("choices").get<std::string>()), loss.run);
  loss.run.image.name = found.at("image").get<std::string>();
  loss.text = lines_in(found);
  history_of(loss.where.system, loss.setup(), loss.run);  // throws if there is none
  return loss;
}

FindingFile finding_in(const Json& found) {
  const bool is_drawn = !found.contains(kHistory);
  const auto streams = found.at("streams").get<int>();
  if (streams != kStreams) {
    throw UsageError(
        fmt::format("its choices are of kind {}, and this perdura has kind {}: let perdura {} find "
                    "it again",
                    streams, kStreams, is_drawn ? "soak" : "crash"));
  }
  FindingFile read;
  if (is_drawn) {
    read.finding = drawn_in(found);
  } else {
    read.finding = history_loss_in(found);
  }
  read.profile = found.at("profile").get<std::string>();
  return read;
}

Json members_of_setting(const explore::SoakCase& where) {
  Json text{{"system", where.system.info.name}, {"setting", where.setting.name}};
  for (const explore::ExploredSetting& known : explore::explored_settings(where.system.info)) {
    if (known.name == where.setting.name) return text;
  }
  std::vector<std::string> parameters;
  for (const auto& [name, value] : where.setting.parameters) {
    parameters.push_back(fmt::format("{}={}", name, value.to_text()));
  }
  text[kParameters] = parameters;
  text["correct"] = where.setting.correct;
  return text;
}

// `run`: the members that depend on the kind of finding.
Json file_text(const explore::SoakCase& where, const std::string& profile, GuaranteeLevel kept,
               const Json& run, const std::string& found) {
  Json text = members_of_setting(where);
  text.update(Json{{"server", explore::explored_name(where.model)},
                   {"profile", profile},
                   {"late_placements", where.late_placements},
                   {"expected", to_string(where.expected)},
                   {"kept", to_string(kept)}});
  text.update(run);
  text.update(Json{{"streams", kStreams}, {"found", lines_of(found)}});
  return text;
}

std::filesystem::path write_file(const std::filesystem::path& folder, std::string name,
                                 const Json& text, const std::optional<explore::Diagram>& diagram) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) throw UsageError(fmt::format("--out {}: {}", folder.string(), problem.message()));
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '-';
  }
  const std::filesystem::path file = folder / (name + ".json");
  harness::write_atomically(file, text.dump(2) + "\n");
  std::filesystem::path picture = file;
  picture.replace_extension(kPicture);
  if (diagram) {
    harness::write_atomically(picture, as_svg(*diagram));
  } else {
    std::filesystem::remove(picture, problem);  // that of an earlier finding
  }
  return file;
}

}  // namespace

std::filesystem::path write_finding(const explore::SoakFinding& finding, const std::string& profile,
                                    const sim::Profile& model,
                                    const std::filesystem::path& folder) {
  const Json run{{"seed", finding.seed}, {"schedule", finding.schedule}, {"choices", finding.tape}};
  pmem::Tape tape = pmem::Tape::parse(finding.tape);
  return write_file(
      folder, fmt::format("{}-seed-{}-{}", finding.where.name(), finding.seed, finding.schedule),
      file_text(finding.where, profile, finding.run.kept, run, finding.run.loss),
      explain(finding.where, model, tape));
}

std::filesystem::path write_finding(const explore::HistoryLoss& loss, const std::string& profile,
                                    const sim::Profile& model,
                                    const std::filesystem::path& folder) {
  const explore::LosingRun& run = loss.run;
  const std::string history = run.schedule.empty() ? text_of(run.kind) : run.schedule;
  const Json members{{"seed", loss.seed},
                     {kHistory, history},
                     {"image", run.image.name},
                     {"choices", pmem::to_string(streams_of(run))}};
  std::string name = fmt::format("{}-seed-{}-{}", loss.where.name(), loss.seed, history);
  if (run.schedule.empty()) name += fmt::format("-{}", run.sequence);
  if (!(run.failing == explore::WhatFails{})) {
    name += fmt::format("-{}", to_string(run.failing.kind));
  }
  return write_file(folder, std::move(name),
                    file_text(loss.where, profile, loss.kept, members, loss.text),
                    explain(loss, model));
}

std::string text_of_file(const std::filesystem::path& file) {
  std::filesystem::path picture = file;
  picture.replace_extension(kPicture);
  return fmt::format("perdura crash --replay {} repeats and explains it{}", file.string(),
                     is_there(picture) ? "; beside it is a diagram" : "");
}

sim::Profile profile_named(const std::string& name, const std::string& option,
                           const CommandContext& context) {
  return sim::load_profile(
      context.locations.find(harness::FileKind::profile, {name, option}).string());
}

FindingFile read_finding(const std::string& file) {
  const auto text = harness::read_whole(file);
  if (!text) throw UsageError(fmt::format("crash: --replay {}: {}", file, not_a_file(file)));
  try {
    return finding_in(Json::parse(*text));
  } catch (const JsonError& error) {
    throw UsageError(
        fmt::format("crash: --replay {}: not a finding of perdura soak or crash, or damaged: {}",
                    file, error.what()));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("crash: --replay {}: {}", file, error.what()));
  }
}

}  // namespace perdura::program
