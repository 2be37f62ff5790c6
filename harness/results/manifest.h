// manifest.json: what makes the rows of a result folder reproducible (docs/results.md). It is the
// only file of the folder with a date, and times.csv is the only one with real time on `sim`; so
// all other files are equal in runs that give equal results.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/results/file_system.h"
#include "harness/results/media_writes.h"
#include "harness/schema/file_record.h"
#include "harness/schema/schema.h"

namespace perdura::harness {

enum class RunStatus : std::uint8_t { running, complete, interrupted, failed };
// The name of the status in the manifest.
std::string_view to_string(RunStatus status);

// One start of the program: a sweep that was interrupted and continued has several.
struct ProgramStart {
  std::string started{};    // UTC, ISO 8601
  std::string directory{};  // the current folder, to which paths are relative
  std::string command_line{};
  int mpi_ranks = 1;
  std::vector<std::string> machines{};  // one description per host (harness/results/machine.h)
};

// The record of a start in the journal.
std::string to_json(const ProgramStart& session);
// Throws std::exception if the text is not a start of the program.
ProgramStart start_of_json(const std::string& text);

// The content of a file as its driver understands it, a value for each key. Two files with the same
// meaning have the same settings, however they are written.
using FileSettings = std::map<std::string, std::string, std::less<>>;

// A file that points were made from.
struct InputFile {
  std::string name{};
  std::string text{};
  FileSettings settings{};
};

struct Manifest {
  std::string experiment{};
  std::string platform{};
  bool modelled = false;
  std::string profile{};       // "host" on real platforms
  std::string profile_text{};  // the profile's file; empty on real platforms
  std::string site_text{};     // the site's file; empty without one
  std::vector<InputFile> workloads{};
  std::optional<FileSystem> persistent_memory{};  // on real platforms only
  // On real platforms, at the end of the last session.
  std::optional<MediaWrites> media_writes{};
  std::uint64_t seed = 0;
  std::uint64_t repetitions = 1;
  std::size_t points = 0;  // points of the sweep, repetitions included
  std::size_t points_done = 0;
  schema::Schema schema{};  // columns of points.csv
  // The roles of the points' nodes in words, "a server and 2 clients", without duplicates.
  std::vector<std::string> nodes{};
  RunStatus status = RunStatus::running;
  // Records of the folder's tables, by name; readers compare the files with them. times.csv is
  // excluded: it holds no results, and differs from run to run.
  std::map<std::string, schema::FileRecord> files{};
  // While the files are being rewritten, the records of their previous contents.
  std::map<std::string, schema::FileRecord> files_before{};
  // The only part that differs between a continued sweep and an uninterrupted one.
  std::vector<ProgramStart> sessions{};
};

std::string to_json(const Manifest& manifest);

// The current time in the format of ProgramStart::started.
std::string utc_now();

}  // namespace perdura::harness
