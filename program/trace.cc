// perdura trace: shows traces of file accesses, makes them of text, and replays them against the
// translations of NICs (docs/traces.md).
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "bench/trace/scheme_table.h"
#include "harness/text/output_place.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "program/commands.h"
#include "program/translation_options.h"
#include "services/fs/trace/trace_text.h"

namespace perdura::program {
namespace {

using perdura::fs::kTraceWords;
using perdura::fs::TracedFile;
using perdura::fs::TraceKind;
using perdura::fs::TraceReader;
using perdura::fs::TraceRecord;
using perdura::fs::TraceWriter;

struct TraceArguments {
  std::string file;
  std::string made;
  bool records = false;
  TranslationOptions translation;
  std::optional<Bytes> extent;
  std::optional<Bytes> growth;
  std::string profile;
  bool as_json = false;
};

void show_records(TraceReader& trace) {
  const TracedFile none;
  while (const std::optional<TraceRecord> record = trace.next()) {
    const bool is_file = record->kind == TraceKind::file;
    fmt::print("{}\n", trace_line(*record, is_file ? trace.files().back() : none));
  }
}

harness::ExitCode show(const TraceArguments& arguments) {
  TraceReader trace(arguments.file);
  if (arguments.records) {
    show_records(trace);
    return harness::ExitCode::done;
  }
  std::array<std::uint64_t, kTraceWords.size()> counts{};
  std::array<Bytes, kTraceWords.size()> bytes{};
  while (const std::optional<TraceRecord> record = trace.next()) {
    const auto kind = static_cast<std::size_t>(record->kind);
    ++counts[kind];
    bytes[kind] += record->kind == TraceKind::file ? record->offset : record->length;
  }
  fmt::print("records {}\n", trace.records());
  for (std::size_t i = 1; i < counts.size(); ++i) {
    const auto kind = static_cast<TraceKind>(i);
    fmt::print("{} {}", kTraceWords[i], counts[i]);
    if (is_access(kind)) fmt::print(", {} bytes", bytes[i]);
    if (kind == TraceKind::file) fmt::print(", {} bytes when they first occur", bytes[i]);
    fmt::print("\n");
  }
  return harness::ExitCode::done;
}

harness::ExitCode pack(const TraceArguments& arguments) {
  const std::string problem = harness::problem_with_output_file(arguments.made);
  if (!problem.empty()) throw UsageError(fmt::format("trace: {}: {}", arguments.made, problem));
  // A trace that was there before stays until the new one is whole.
  const bool is_plain = kind_of(arguments.made) != PathKind::other;
  const std::string made = arguments.made + (is_plain ? ".tmp" : "");
  TraceWriter writer(made);
  try {
    add_trace_lines(arguments.file, writer);
    writer.finish();
  } catch (const UsageError& error) {
    if (is_plain) std::remove(made.c_str());
    throw UsageError(fmt::format("trace: {}", error.what()));
  } catch (...) {
    if (is_plain) std::remove(made.c_str());
    throw;
  }
  if (is_plain && std::rename(made.c_str(), arguments.made.c_str()) != 0) {
    std::remove(made.c_str());
    throw PlatformError(fmt::format("{}: cannot be replaced", arguments.made));
  }
  fmt::print("{}: {} files, {} records\n", arguments.made, writer.files(), writer.records());
  return harness::ExitCode::done;
}

harness::ExitCode replay(const TraceArguments& arguments, const CommandContext& context) {
  std::vector<bench::TranslationReplay> replays = arguments.translation.replays(
      "trace", {.extent = arguments.extent.value_or(0), .growth = arguments.growth.value_or(0)});
  const auto costs = translation_costs("trace", arguments.profile, context);
  TraceReader trace(arguments.file);
  replay_trace(trace, replays);
  if (arguments.as_json) {
    Json result = Json::object();
    result["files"] = trace.files().size();
    result["records"] = trace.records();
    result["schemes"] = scheme_json(replays, costs);
    fmt::print("{}\n", result.dump(2));
    return harness::ExitCode::done;
  }
  const bench::TranslationCounts counts = replays.front().counts();
  fmt::print("{} files, {} records, {} accesses; a cache of {} entries, {} ways\n",
             trace.files().size(), trace.records(), counts.accesses,
             arguments.translation.cache_entries, arguments.translation.cache_ways);
  fmt::print("{}", scheme_table(replays, costs));
  if (counts.in_holes > 0) {
    fmt::print("{} accesses touch holes, which have no translation\n", counts.in_holes);
  }
  return harness::ExitCode::done;
}

void add_replay(harness::Command& command, const std::shared_ptr<TraceArguments>& arguments,
                CommandContext& context) {
  harness::Command& replaying = command.subcommand(
      "replay",
      "Counts the translations that a NIC needs for the accesses, in pages and in ranges");
  replaying.option("trace", arguments->file, "The trace").required();
  arguments->translation.add_to(replaying);
  replaying
      .option("--extent", arguments->extent,
              "How much of a file adjoins in memory: 64KiB; if not given, all of it")
      .size_with_unit();
  replaying
      .option("--growth", arguments->growth,
              "Files that grow get memory in multiples of this size: 1MiB; if not given, no more "
              "than they need")
      .size_with_unit();
  replaying.option("--profile", arguments->profile,
                   "A profile with [translation], for the times of registering and of misses");
  replaying.flag("--json", arguments->as_json, "Writes JSON");
  replaying.does([arguments, &context] { return replay(*arguments, context); });
}

}  // namespace

void add_trace(harness::Command& program, CommandContext& context) {
  harness::Command& command = program.subcommand(
      "trace", "Shows and makes traces of file accesses, and replays them as a NIC translates");
  command.require_subcommand();
  const auto arguments = std::make_shared<TraceArguments>();

  harness::Command& showing = command.subcommand("show", "Says what is in a trace");
  showing.option("trace", arguments->file, "The trace, as perdura fs mount --trace makes it")
      .required();
  showing.flag("--records", arguments->records, "Prints its records instead, as lines of text");
  showing.does([arguments] { return show(*arguments); });

  harness::Command& packing =
      command.subcommand("pack", "Makes a trace of the lines that 'show --records' prints");
  packing.option("text", arguments->file, "The lines").required();
  packing.option("trace", arguments->made, "The trace that is to be made").required();
  packing.does([arguments] { return pack(*arguments); });

  add_replay(command, arguments, context);
}

}  // namespace perdura::program
