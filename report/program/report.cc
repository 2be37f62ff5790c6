// perdura report: figures, tables and an HTML page from result folders.
#include "report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "harness/program/command_line.h"
#include "harness/text/counted.h"
#include "harness/text/output_place.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "platform/base/path_kind.h"
#include "report/program/commands.h"

namespace perdura::report {
namespace {

using harness::counted;
using harness::ExitCode;
namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> inputs;
  std::string output;
  std::string gnuplot = "gnuplot";
  bool as_json = false;
};

void print_json(const ReportResult& written) {
  Json files = Json::array();
  for (const fs::path& file : written.files) files.push_back(file.string());
  const Json json{{"page", written.page.string()},
                  {"figures", written.figures},
                  {"tables", written.tables},
                  {"not_drawn", written.not_drawn},
                  {"rows_not_drawn", written.rows_not_drawn},
                  {"files", std::move(files)}};
  fmt::print("{}\n", json.dump(2));
}

// True if there is something in the folder, and it is no report, which the page and its figures
// would replace. Every report begins with a copy of the plots' style.
bool holds_something_else(const fs::path& folder) {
  return is_folder(folder) && !names_in(folder).empty() && !is_there(folder / "plots" / "style.gp");
}

void check_output(const ReportArguments& arguments) {
  const fs::path beside = fs::path(arguments.inputs.front()) / "report";
  try {
    if (!arguments.output.empty()) {
      check_output_folder("report", arguments.output);
      if (!holds_something_else(arguments.output)) return;
      throw UsageError(
          fmt::format("report: --out {}: is not empty, and holds no report; name another folder",
                      arguments.output));
    }
    if (holds_something_else(beside)) {
      throw UsageError(fmt::format(
          "report: {}: is not empty, and holds no report; name another folder with --out",
          beside.string()));
    }
    const std::string problem = harness::problem_with_output_folder(beside);
    if (problem.empty()) return;
    throw UsageError(
        fmt::format("report: {}: {}; name another folder with --out", beside.string(), problem));
  } catch (const PlatformError& unreadable) {
    throw UsageError(fmt::format("report: {}", unreadable.what()));
  }
}

ExitCode report(const ReportArguments& arguments, const Surroundings& around) {
  if (arguments.inputs.size() > 1) {
    const std::string all = fmt::format("{}", fmt::join(arguments.inputs, " "));
    throw UsageError(fmt::format(
        "report {}: give one folder; to draw several on one page, put them into a folder of their "
        "own, or compare two of one experiment (perdura compare)",
        all));
  }
  const std::string& input = arguments.inputs.front();
  check_result_folder("report", input);
  check_output(arguments);
  std::unique_ptr<harness::WorkWatch> work;
  const auto written =
      write_report({.input = input,
                    .plots = around.data.plots(),
                    .claims = around.data.first_existing(fs::path("results") / "claims.csv"),
                    .notes = around.data.first_existing(fs::path("results") / "reported"),
                    .output = arguments.output,
                    .gnuplot = arguments.gnuplot,
                    .progress =
                        [&](const std::string& title, std::size_t drawn, std::size_t all) {
                          if (drawn > 0) work->skip();
                          if (!work) work = around.watch(all);
                          work->begin(title);
                          work->within(title, 0);
                        },
                    .while_drawing = around.while_drawing});
  work.reset();
  if (!written && written.error().work_failed) throw PlatformError(written.error().message);
  if (!written) throw UsageError(written.error().message);
  for (const std::string& note : written->notes) fmt::print(stderr, "perdura: note: {}\n", note);
  const auto finish = [&] {
    if (written->not_drawn.empty()) return ExitCode::done;
    return harness::complain(
        true, ExitCode::failed,
        fmt::format("{} cannot be drawn, and the page says why: {}",
                    counted(written->not_drawn.size(), "figure"), written->not_drawn.front()));
  };
  if (arguments.as_json) {
    print_json(*written);
    return finish();
  }
  fmt::print("{}\n", written->page.string());
  const std::string left_out = written->rows_not_drawn == 0
                                   ? ""
                                   : fmt::format("; {} left out, and the page says why",
                                                 counted(written->rows_not_drawn, "row"));
  fmt::print(stderr, "{}, {}{}\n", counted(written->figures, "figure"),
             counted(written->tables, "table"), left_out);
  return finish();
}

}  // namespace

Work declare_report(harness::Command& command) {
  const auto arguments = std::make_shared<ReportArguments>();
  command
      .option("folder", arguments->inputs,
              "A folder that 'perdura run' wrote, or a folder of such folders")
      .required();
  command.option("-o,--out", arguments->output, "Where to write (default: FOLDER/report)");
  command.option("--gnuplot", arguments->gnuplot, "The gnuplot program");
  command.flag("--json", arguments->as_json, "Writes the names of the files as JSON");
  return [arguments](const Surroundings& around) { return report(*arguments, around); };
}

}  // namespace perdura::report
