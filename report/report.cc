#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "harness/schema/quantity.h"
#include "harness/text/whole_file.h"
#include "report/contents.h"
#include "report/designs.h"
#include "report/drawing.h"
#include "report/output_file.h"
#include "report/page.h"
#include "report/svg.h"

namespace perdura::report {
namespace {

namespace fs = std::filesystem;

schema::Expected<void> check_scripts(const std::vector<ResultFolder>& folders,
                                     const fs::path& plots) {
  for (const ResultFolder& folder : folders) {
    if (auto there = schema::check_plots(folder.specs, plots); !there) return there;
  }
  return {};
}

std::string y_label(const schema::FigureSpec& spec) {
  const schema::Quantity quantity = spec.schema.quantity(spec.y);
  // The axis shows means and maxima, so no single quantity names it.
  if (spec.data == schema::FigureSpec::Data::timeline) return "Latency (µs)";
  if (!spec.normalize) return quantity.axis_with_unit();
  return fmt::format("{}, {} = 1", schema::capitalized(quantity.noun),
                     spec.shown_series(spec.normalize->any_of[0]));
}

class Writer {
 public:
  Writer(const ReportOptions& options, fs::path output)
      : output_(std::move(output)),
        place_{output_ / "figures", options.plots, output_ / "plots", options.gnuplot,
               options.while_drawing} {}

  schema::Expected<void> write(const fs::path& relative, const std::string& text) {
    const fs::path file = output_ / relative;
    std::error_code problem;
    fs::create_directories(file.parent_path(), problem);
    if (auto written = write_file(file, text); !written) return written;
    result_.files.push_back(file);
    return {};
  }

  schema::Expected<void> copy_scripts() { return keep(report::copy_scripts(place_)); }

  schema::Expected<void> draw(FigureResult& figure) {
    if (figure.empty()) {
      return write(fs::path("figures") / (figure.name + ".csv"), figure_csv(figure));
    }
    auto drawn = report::draw({.name = figure.name,
                               .script = figure.spec.plot,
                               .csv = figure_csv(figure),
                               .title = figure_title(figure),
                               .x_label = figure.spec.shown_position_axis(),
                               .y_label = y_label(figure.spec),
                               .origin = figure.origin.words(),
                               .title_in_svg = false},
                              place_);
    if (!drawn) return tl::unexpected(drawn.error());
    if (drawn->problem) {
      figure.problem = drawn->problem->message;
      result_.not_drawn.push_back(
          fmt::format("figure {} of {}: {}", figure.spec.id, figure.folder->name, figure.problem));
    }
    if (const auto svg = harness::read_whole(place_.figures / (figure.name + ".svg"))) {
      figure.svg = inline_svg(*svg, "f" + figure.name);
      ++result_.figures;
    }
    return keep(drawn->files);
  }

  ReportResult& result() { return result_; }

 private:
  schema::Expected<void> keep(const schema::Expected<std::vector<fs::path>>& files) {
    if (!files) return tl::unexpected(files.error());
    result_.files.insert(result_.files.end(), files->begin(), files->end());
    return {};
  }

  fs::path output_;
  DrawingPlace place_;
  ReportResult result_;
};

}  // namespace

schema::Expected<ReportResult> write_report(const ReportOptions& options) {
  auto folders = read_result_folders(options.input);
  if (!folders) return tl::unexpected(folders.error());
  if (std::all_of(folders->begin(), folders->end(),
                  [](const ResultFolder& folder) { return folder.probed; })) {
    return schema::fail(
        fmt::format("{}: 'perdura probe' wrote it and has drawn its figures there; "
                    "'perdura report' draws what 'perdura run' writes",
                    options.input.string()));
  }
  if (auto complete = check_scripts(*folders, options.plots); !complete) {
    return tl::unexpected(complete.error());
  }
  Papers compared;
  if (const auto names = papers_of(*folders); !names.empty()) {
    auto papers = read_papers(options.claims, options.notes, names, OtherPapers::leave_out);
    if (!papers) return tl::unexpected(papers.error());
    compared = std::move(*papers);
  }
  auto contents = gather(*folders, compared);
  if (!contents) return tl::unexpected(contents.error());

  auto guarantees = read_guarantees(options.input);
  if (!guarantees) return tl::unexpected(guarantees.error());
  contents->guarantees = std::move(*guarantees);
  std::ifstream remarks(options.input / "remarks.txt");
  for (std::string line; std::getline(remarks, line);) contents->remarks.push_back(line);
  if (remarks.bad()) {
    return schema::fail(fmt::format("{} cannot be read", (options.input / "remarks.txt").string()));
  }

  const fs::path output = options.output.empty() ? options.input / "report" : options.output;
  Writer writer(options, output);
  if (auto copied = writer.copy_scripts(); !copied) return tl::unexpected(copied.error());
  std::size_t figures = 0;
  for (const Section& section : contents->sections) figures += section.figures.size();
  for (Section& section : contents->sections) {
    for (FigureResult& figure : section.figures) {
      if (options.progress) options.progress(figure.spec.title, writer.result().figures, figures);
      if (auto drawn = writer.draw(figure); !drawn) return tl::unexpected(drawn.error());
      if (figure.empty()) {
        writer.result().notes.push_back(fmt::format("figure {} of {} is empty: {}", figure.spec.id,
                                                    figure.folder->name, why_empty(figure)));
      }
    }
    for (const TableResult& table : section.tables) {
      auto written = writer.write(fs::path("figures") / (table.name + ".csv"), table_csv(table));
      if (!written) return tl::unexpected(written.error());
      ++writer.result().tables;
    }
  }
  const Designs designs = gather_designs(*folders);
  if (!designs.groups.empty()) {
    auto written = writer.write("designs.csv", designs_csv(designs));
    if (!written) return tl::unexpected(written.error());
  }
  const Page page = make_page(*contents, designs, *folders, compared, output);
  if (auto written = writer.write("index.html", page.html); !written) {
    return tl::unexpected(written.error());
  }
  writer.result().page = writer.result().files.back();
  writer.result().rows_not_drawn = page.rows_not_drawn;
  for (const ResultFolder& folder : *folders) {
    if (!folder.note.empty()) writer.result().notes.push_back(folder.note);
  }
  return writer.result();
}

}  // namespace perdura::report
