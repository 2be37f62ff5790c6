// perdura compare: decides whether one run is worse than another. Exit codes: 0 nothing got worse,
// 1 something got worse or was lost (or the work failed), 2 wrong usage, or too few repetitions to
// decide.
#include "report/compare/comparison.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "harness/text/printable.h"
#include "platform/base/error.h"
#include "report/compare/output.h"
#include "report/program/commands.h"
#include "report/result_folder.h"

namespace perdura::report {
namespace {

using harness::ExitCode;
using harness::printable;
namespace fs = std::filesystem;

struct CompareArguments {
  std::string a;
  std::string b;
  compare::Options options;
  std::vector<std::string> quantities;
  bool ignore_missing = false;
  bool as_json = false;
  std::string output;
  std::string gnuplot = "gnuplot";
};

// Shows in the progress line which file is being read; a signal ends the reading.
auto reading(harness::WorkWatch& work) {
  return [&work](const fs::path& path) { work.within(path.string(), 0); };
}

std::vector<ResultFolder> read(const std::string& folder, harness::WorkWatch& work) {
  check_result_folder("compare", folder);
  auto folders = read_result_folders(folder, Rows::leave_out, reading(work));
  work.skip();
  if (!folders) throw UsageError(fmt::format("compare: {}", folders.error().message));
  std::erase_if(*folders, [](const ResultFolder& each) { return each.probed; });
  for (const ResultFolder& each : *folders) {
    if (!each.note.empty()) fmt::print(stderr, "perdura: note: {}\n", printable(each.note));
  }
  if (folders->empty()) {
    throw UsageError(fmt::format(
        "compare: {}: holds probes only; give a folder that 'perdura run' wrote", folder));
  }
  return std::move(*folders);
}

std::vector<fs::path> points_of(const std::vector<ResultFolder>& folders) {
  std::vector<fs::path> files;
  for (const ResultFolder& each : folders) files.push_back(each.path / "points.csv");
  return files;
}

void draw(const compare::Comparison& comparison, const CompareArguments& arguments,
          const Surroundings& around) {
  std::error_code problem;
  fs::create_directories(arguments.output, problem);
  if (problem) {
    throw UsageError(fmt::format("compare: --out {}: {}; give a folder that can be written",
                                 arguments.output, problem.message()));
  }
  const auto drawn = compare::draw(
      comparison, {.plots = around.data.plots(),
                   .out = arguments.output,
                   .title = fmt::format("{} (A) and {} (B)", arguments.a, arguments.b),
                   .gnuplot = arguments.gnuplot,
                   .while_drawing = around.while_drawing});
  if (!drawn && drawn.error().work_failed) throw PlatformError(drawn.error().message);
  if (!drawn) throw UsageError(fmt::format("compare: {}", drawn.error().message));
}

ExitCode run_comparison(const CompareArguments& arguments, const Surroundings& around) {
  if (!arguments.output.empty()) check_output_folder("compare", arguments.output);
  const auto watch = around.watch(3);  // three steps: reading A, reading B, comparing
  harness::WorkWatch& work = *watch;
  const std::vector<ResultFolder> a = read(arguments.a, work);
  const std::vector<ResultFolder> b = read(arguments.b, work);
  auto differing = compare::differing_configurations(a, b);
  auto matching = compare::match(
      points_of(a), points_of(b),
      arguments.quantities.empty() ? compare::default_quantities() : arguments.quantities,
      reading(work));
  work.skip();
  if (!matching) throw UsageError(fmt::format("compare: {}", matching.error().message));
  matching->differing = std::move(differing);
  const compare::Comparison comparison = compare::compare(std::move(*matching), arguments.options);
  work.close();
  if (arguments.as_json) {
    fmt::print("{}", compare::as_json(comparison));
  } else {
    fmt::print("A: {}\nB: {}\n{}", printable(arguments.a), printable(arguments.b),
               compare::as_text(comparison));
  }
  const bool nothing_compared = comparison.entries.empty();
  if (!arguments.output.empty() && !nothing_compared) draw(comparison, arguments, around);
  around.while_drawing();
  const std::string lost = compare::lost_points(comparison, arguments.ignore_missing);
  if (!lost.empty()) fmt::print(stderr, "perdura: compare: {}\n", lost);
  const std::string too_few = compare::too_few_repetitions(comparison);
  if (!too_few.empty()) fmt::print(stderr, "perdura: compare: {}\n", too_few);
  if (!lost.empty() || comparison.count(compare::ChangeKind::worse) > 0) return ExitCode::failed;
  if (nothing_compared) {
    throw UsageError(
        "compare: A and B have no point in common; compare runs of the same experiment");
  }
  return too_few.empty() ? ExitCode::done : ExitCode::usage;
}

}  // namespace

Work declare_compare(harness::Command& command) {
  const auto arguments = std::make_shared<CompareArguments>();
  command
      .option("A", arguments->a, "A folder that 'perdura run' wrote, or a folder of such folders")
      .required();
  command.option("B", arguments->b, "The run that may have got worse").required();
  command
      .option("--threshold", arguments->options.threshold_percent,
              "Smallest change that counts, in percent (default: 2)")
      .number(0, 1000);
  command
      .option("--alpha", arguments->options.alpha,
              "Probability of a false alarm, all comparisons together (default: 0.01)")
      .number(1e-9, 0.5);
  command
      .option("--quantity", arguments->quantities,
              "Column of points.csv to compare; may be repeated (default: throughput, "
              "latency and, of open loops, response time mean, p50 and p99, server CPU)")
      .one_value_at_a_time();
  command.flag("--ignore-missing", arguments->ignore_missing,
               "Points of A that B lacks are not a failure: the sweeps differ");
  command.flag("--json", arguments->as_json, "Writes JSON");
  command.option("-o,--out", arguments->output,
                 "Folder for a figure of all changes (comparison.svg, .png, .csv, .gp)");
  command.option("--gnuplot", arguments->gnuplot, "The gnuplot program");
  return [arguments](const Surroundings& around) { return run_comparison(*arguments, around); };
}

}  // namespace perdura::report
