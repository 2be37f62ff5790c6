#include "harness/results/interrupted_sweep.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <set>

#include "harness/schema/file_record.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/path_kind.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

constexpr char kSession = 's';
constexpr char kPoint = 'p';
constexpr std::size_t kWordsBeforeMeasurement = 2;

bool has_status(const fs::path& folder, RunStatus status) {
  const auto json = Json::parse_or_null(read_if_there(folder / "manifest.json"));
  return json.is_object() && json.value("status", "") == to_string(status);
}

FinishedPoint point_of(std::string_view bytes) {
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  if (words.size() < kWordsBeforeMeasurement) throw PlatformError("a point was cut off");
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint64_t));
  return {words[0], std::chrono::nanoseconds(words[1]),
          Measurement::deserialize(std::span(words).subspan(kWordsBeforeMeasurement))};
}

// The folder in which the first session ran. A journal of another build may have none; such a
// journal is refused later.
fs::path first_directory(const std::vector<std::string>& records) {
  if (records.size() < 2 || !records[1].starts_with(kSession)) return {};
  try {
    return start_of_json(records[1].substr(1)).directory;
  } catch (const std::exception&) {
    return {};
  }
}

// A folder of another user that this one may not read is a wrong folder, and no failed sweep.
void check_readable(const fs::path& folder) {
  for (const fs::path& file :
       {journal_file(folder), folder / "manifest.json", folder / "experiment.toml"}) {
    const PathKind kind = kind_of(file);
    if (kind == PathKind::nothing || (kind == PathKind::file && std::ifstream(file))) continue;
    throw UsageError(fmt::format("--continue {}: {}: {}", folder.string(), file.filename().string(),
                                 not_a_file(file)));
  }
}

}  // namespace

fs::path journal_file(const fs::path& folder) { return folder / "journal"; }

bool is_running(const fs::path& folder) { return has_status(folder, RunStatus::running); }

std::string journal_record(const ProgramStart& session) { return kSession + to_json(session); }

std::string journal_record(const FinishedPoint& point) {
  std::vector<std::uint64_t> words{point.index, static_cast<std::uint64_t>(point.wall.count())};
  const auto measurement = point.measurement.serialize();
  words.insert(words.end(), measurement.begin(), measurement.end());
  std::string record(1 + words.size() * sizeof(std::uint64_t), kPoint);
  std::memcpy(record.data() + 1, words.data(), words.size() * sizeof(std::uint64_t));
  return record;
}

std::optional<InterruptedSweep> open_interrupted(const fs::path& folder, IfDamaged if_damaged) {
  if (kind_of(folder) != PathKind::folder) {
    throw UsageError(fmt::format("--continue {}: {}; give one that 'perdura run' began",
                                 folder.string(), not_a_folder(folder)));
  }
  check_readable(folder);
  // A process that was killed at the very end leaves both the complete results and the journal.
  if (has_status(folder, RunStatus::complete)) {
    std::error_code ignored;
    fs::remove(journal_file(folder), ignored);
    if (const auto sound = schema::check_against_manifest(folder); !sound) {
      throw UsageError(fmt::format("--continue {}: the sweep is complete, but {}", folder.string(),
                                   sound.error().message));
    }
    return std::nullopt;
  }
  if (!is_there(journal_file(folder))) {
    throw UsageError(
        fmt::format("--continue {}: has no journal of an unfinished sweep; run the experiment "
                    "again in a new folder",
                    folder.string()));
  }
  InterruptedSweep sweep{Journal::open(journal_file(folder), if_damaged), {}, {}, {}};
  if (!sweep.journal.cut_back().empty()) sweep.notes.push_back(sweep.journal.cut_back());
  const auto sound =
      schema::check_against_manifest(folder, "it is written anew from the points in the journal");
  if (!sound) sweep.notes.push_back(sound.error().message);
  sweep.identity = identity_of_text(sweep.journal.records().front(), journal_file(folder));
  sweep.directory = first_directory(sweep.journal.records());
  return sweep;
}

JournalContents contents_of(const InterruptedSweep& sweep, const fs::path& folder) {
  JournalContents contents;
  std::set<std::size_t> seen;
  const auto& records = sweep.journal.records();
  for (std::size_t i = 1; i < records.size(); ++i) {
    const std::string_view content = records[i];
    try {
      if (content.starts_with(kSession)) {
        contents.sessions.push_back(start_of_json(std::string(content.substr(1))));
        continue;
      }
      if (!content.starts_with(kPoint)) throw PlatformError("it is of no known kind");
      contents.points.push_back(point_of(content.substr(1)));
      if (!seen.insert(contents.points.back().index).second) {
        throw PlatformError("its point is there twice");
      }
    } catch (const std::exception& problem) {
      throw UsageError(
          fmt::format("{}: record {} cannot be used: {}; run the experiment again in a new folder",
                      journal_file(folder).string(), i, problem.what()));
    }
  }
  return contents;
}

}  // namespace perdura::harness
