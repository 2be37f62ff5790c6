#include "program/probe_path.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>

#include "bench/trace/file_extents.h"
#include "bench/trace/file_registration.h"
#include "bench/trace/scheme_table.h"
#include "harness/schema/csv_table.h"
#include "harness/text/atomic_file.h"
#include "harness/text/output_place.h"
#include "harness/text/text_table.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"

namespace perdura::program {
namespace {

using bench::TranslationReplay;
using Costs = std::optional<sim::TranslationProfile>;

// All that was found below the directory.
struct FilesBelow {
  bench::DirectoryExtents sum;
  std::vector<TranslationReplay> counted;  // all files
  std::string registered;
  std::map<std::string, std::vector<bench::FileExtent>> extents;  // kept for a trace
  std::string csv;
};

FilesBelow read_files(const PathProbe& probe) {
  FilesBelow below;
  below.counted = probe.translation.replays("probe");
  below.csv = "file,bytes,extents,pages_4_kib,pages_2_mib,ranges\n";
  bench::FileRegistration registration(probe.device);
  below.sum = bench::read_extents(probe.path, [&](const bench::LaidOutFile& file) {
    std::string line =
        fmt::format("{},{},{}", schema::csv_cell(file.name), file.size, file.extents.size());
    for (TranslationReplay& each : below.counted) {
      line += fmt::format(",{}", each.count_file(file.extents));
    }
    if (!probe.out.empty()) below.csv += line + "\n";
    registration.add(std::filesystem::path(probe.path) / file.name, file.size);
    if (!probe.trace.empty()) below.extents[file.name] = file.extents;
  });
  below.registered = registration.text();
  return below;
}

std::string entries_table(const std::vector<TranslationReplay>& counted, const Costs& costs) {
  return harness::text_table([&](const harness::AddLine& add) {
    std::vector<std::string> cells{"translation", "entries", "saved"};
    if (costs) cells.emplace_back("registering (ms)");
    add(cells);
    const auto pages = static_cast<double>(counted.front().counts().entries);
    for (const TranslationReplay& each : counted) {
      const bench::TranslationCounts counts = each.counts();
      const double kept = pages == 0 ? 1 : static_cast<double>(counts.entries) / pages;
      cells = {each.scheme().name, std::to_string(counts.entries),
               fmt::format("{:.2f} %", 100 * (1 - kept))};
      if (costs) {
        cells.push_back(
            fmt::format("{:.3f}", to_microseconds(registration_time(counts, *costs)) / 1000));
      }
      add(cells);
    }
  });
}

struct TracedBelow {
  std::vector<TranslationReplay> replays;
  std::uint64_t missing = 0;  // files of the trace that are not there
};

TracedBelow replay_below(const PathProbe& probe, const FilesBelow& below,
                         perdura::fs::TraceReader& trace) {
  TracedBelow traced{probe.translation.replays("probe"), 0};
  replay_trace(trace, traced.replays, [&](const perdura::fs::TracedFile& file) {
    const auto known = below.extents.find(file.name);
    if (known != below.extents.end()) return std::optional(known->second);
    ++traced.missing;
    return std::optional<std::vector<bench::FileExtent>>();
  });
  return traced;
}

void print_text(const PathProbe& probe, const FilesBelow& below, const Costs& costs) {
  const bench::DirectoryExtents& sum = below.sum;
  fmt::print("{}: {} files, {} bytes, {} extents\n", probe.path, sum.files, sum.bytes, sum.extents);
  if (sum.without_place > 0) {
    fmt::print("{} of these extents are within inodes, and have no entry\n", sum.without_place);
  }
  if (sum.unreadable > 0) fmt::print("{} files or folders may not be read\n", sum.unreadable);
  fmt::print("{}{}\n", entries_table(below.counted, costs), below.registered);
}

Json json_of(const PathProbe& probe, const FilesBelow& below, const Costs& costs) {
  return {{"path", probe.path},
          {"files", below.sum.files},
          {"bytes", below.sum.bytes},
          {"extents", below.sum.extents},
          {"extents_without_place", below.sum.without_place},
          {"unreadable", below.sum.unreadable},
          {"schemes", scheme_json(below.counted, costs)},
          {"registration", below.registered}};
}

}  // namespace

harness::ExitCode probe_path(const PathProbe& probe, const CommandContext& context) {
  if (!context.ranks.is_root()) return harness::ExitCode::done;
  const Costs costs = translation_costs("probe", probe.profile, context);
  if (!probe.out.empty()) {
    const std::string problem = harness::problem_with_output_folder(probe.out);
    if (!problem.empty()) throw UsageError(fmt::format("probe: --out {}: {}", probe.out, problem));
    if (is_folder(probe.out) && !names_in(probe.out).empty()) {
      throw UsageError(
          fmt::format("probe: --out {}: is not empty; choose a new folder", probe.out));
    }
  }
  std::optional<perdura::fs::TraceReader> trace;
  if (!probe.trace.empty()) trace.emplace(probe.trace);
  const FilesBelow below = read_files(probe);
  std::optional<TracedBelow> traced;
  if (trace) traced = replay_below(probe, below, *trace);
  if (!probe.out.empty()) {
    std::filesystem::create_directories(probe.out);
    harness::write_atomically(std::filesystem::path(probe.out) / "extents.csv", below.csv);
  }
  if (probe.as_json) {
    Json result = json_of(probe, below, costs);
    if (traced) {
      result["trace"] = {{"files_not_there", traced->missing},
                         {"schemes", scheme_json(traced->replays, costs)}};
    }
    fmt::print("{}\n", result.dump(2));
    return harness::ExitCode::done;
  }
  print_text(probe, below, costs);
  if (!traced) return harness::ExitCode::done;
  fmt::print("under {}, {} files of {} are not there and taken as one range each:\n{}", probe.trace,
             traced->missing, trace->files().size(), scheme_table(traced->replays, costs));
  return harness::ExitCode::done;
}

}  // namespace perdura::program
