// perdura report: figures, tables and an HTML page from result folders.
#include "harness/report/report.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "bench/perdura/commands.h"
#include "harness/run/long_work.h"
#include "platform/error.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::string input;
  std::string output;
  std::string gnuplot = "gnuplot";
};

ExitCode report(const ReportArguments& arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return ExitCode::done;
  if (!std::filesystem::is_directory(arguments.input)) {
    throw UsageError(fmt::format(
        "report {}: there is no such folder; give one that 'perdura run' wrote", arguments.input));
  }
  std::optional<LongWork> work;
  const auto written = report::write_report(
      {.input = arguments.input,
       .plots = context.locations.first_existing("plots"),
       .claims = context.locations.first_existing(fs::path("results") / "claims.csv"),
       .notes = context.locations.first_existing(fs::path("results") / "reported"),
       .output = arguments.output,
       .gnuplot = arguments.gnuplot,
       .progress = [&](const std::string& title, std::size_t drawn, std::size_t all) {
         if (drawn > 0) work->skip();
         if (!work) work.emplace(all, context.ranks);
         work->begin(title);
         work->within(title, 0);
       }});
  work.reset();
  if (!written && written.error().work_failed) throw PlatformError(written.error().message);
  if (!written) throw UsageError(written.error().message);
  fmt::print("{}\n", written->page.string());
  fmt::print(stderr, "{} figures, {} tables; {} rows were not valid and are not drawn\n",
             written->figures, written->tables, written->rows_not_drawn);
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
  command->add_option("--out", arguments->output, "Where to write (default: FOLDER/report)");
  command->add_option("--gnuplot", arguments->gnuplot, "The gnuplot program");
  command->callback([arguments, &context, &action] {
    action = [arguments, &context] { return report(*arguments, context); };
  });
}

}  // namespace perdura::harness
