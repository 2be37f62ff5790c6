// perdura report: figures, tables and an HTML page from result folders.
#include "report/report.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/perdura/commands.h"
#include "bench/perdura/counted.h"
#include "harness/run/long_work.h"
#include "platform/base/error.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::string input;
  std::string output;
  std::string gnuplot = "gnuplot";
  bool as_json = false;
};

void print_json(const report::ReportResult& written) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const fs::path& file : written.files) files.push_back(file.string());
  const nlohmann::ordered_json json{{"page", written.page.string()},
                                    {"figures", written.figures},
                                    {"tables", written.tables},
                                    {"rows_not_drawn", written.rows_not_drawn},
                                    {"files", std::move(files)}};
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

ExitCode report(const ReportArguments& arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return ExitCode::done;
  check_result_folder("report", arguments.input);
  std::optional<LongWork> work;
  const auto written = report::write_report(
      {.input = arguments.input,
       .plots = context.locations.plots(),
       .claims = context.locations.first_existing(fs::path("results") / "claims.csv"),
       .notes = context.locations.first_existing(fs::path("results") / "reported"),
       .output = arguments.output,
       .gnuplot = arguments.gnuplot,
       .progress =
           [&](const std::string& title, std::size_t drawn, std::size_t all) {
             if (drawn > 0) work->skip();
             if (!work) work.emplace(all, context.ranks);
             work->begin(title);
             work->within(title, 0);
           },
       .while_drawing = LongWork::stop_if_interrupted});
  work.reset();
  if (!written && written.error().work_failed) throw PlatformError(written.error().message);
  if (!written) throw UsageError(written.error().message);
  for (const std::string& note : written->notes) fmt::print(stderr, "perdura: note: {}\n", note);
  if (arguments.as_json) {
    print_json(*written);
    return ExitCode::done;
  }
  fmt::print("{}\n", written->page.string());
  const std::string left_out =
      written->rows_not_drawn == 0
          ? ""
          : fmt::format("; {} not valid and left out", counted(written->rows_not_drawn, "row"));
  fmt::print(stderr, "{}, {}{}\n", counted(written->figures, "figure"),
             counted(written->tables, "table"), left_out);
  return ExitCode::done;
}

}  // namespace

void add_report(CLI::App& app, CommandContext& context, Action& action) {
  const auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command =
      app.add_subcommand("report", "Draws the figures and tables of a result folder");
  command
      ->add_option("folder", arguments->input,
                   "A folder that 'perdura run' wrote, or a folder of such folders")
      ->required();
  command->add_option("-o,--out", arguments->output, "Where to write (default: FOLDER/report)");
  command->add_option("--gnuplot", arguments->gnuplot, "The gnuplot program");
  command->add_flag("--json", arguments->as_json, "Writes the names of the files as JSON");
  command->callback([arguments, &context, &action] {
    action = [arguments, &context] { return report(*arguments, context); };
  });
}

}  // namespace perdura::harness
