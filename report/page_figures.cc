#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/schema/columns.h"
#include "harness/schema/quantity.h"
#include "report/page_data.h"

namespace perdura::report {
namespace {

/// Values of a figure over time that cannot be read off the figure.
ShownTable course_table(const TimelineSummary& summary) {
  const auto row = [](const char* when, const std::optional<double>& mean,
                      const std::optional<double>& max) {
    return ShownRow{{{when},
                     {mean ? schema::shown_number(*mean) : "–", "n"},
                     {max ? schema::shown_number(*max) : "–", "n"}}};
  };
  return {.head = {{{{"Latency, µs"}, {"mean", "n"}, {"largest", "n"}}}},
          .rows = {row("while something is being cleaned", summary.mean_cleaning_us,
                       summary.max_cleaning_us),
                   row("otherwise", summary.mean_otherwise_us, summary.max_otherwise_us)}};
}

/// The paper's statements about this figure, without averages, which the comparison contains.
ShownTable statements_table(const FigureResult& figure, const Claims& claims) {
  ShownTable table{.head = {{{{"What the paper states"},
                              {"paper", "n"},
                              {"this run", "apart"},
                              {"verdict", "apart"}}}},
                   .css = "statements"};
  for (const ClaimResult& result : claims) {
    const Claim& claim = *result.claim;
    if (claim.paper != figure.spec.paper || !claim.is_about(figure.spec.id)) continue;
    if (result.run != figure.folder->name || result.origin != figure.origin) continue;
    const auto& compared = figure.comparison.rows;
    if (std::any_of(compared.begin(), compared.end(),
                    [&](const Compared& row) { return row.paper == &claim; })) {
      continue;
    }
    table.rows.push_back({{{.text = result.quantity, .hint = claim.note},
                           {shown_reported(claim), "n"},
                           {result.measured, "apart"},
                           verdict_cell(result)}});
  }
  return table;
}

/// Explains the mark for noise in the figure.
std::string noise_words(const FigureResult& figure) {
  const auto noisy = std::count_if(figure.data.points.begin(), figure.data.points.end(),
                                   [](const auto& point) { return point.second.noisy > 0; });
  return noisy == 0 ? "" : fmt::format("{} of {} points", noisy, figure.data.points.size());
}

std::vector<Link> links_of(const FigureResult& figure, const Papers& papers) {
  std::vector<Link> links = links_to_notes(figure.spec, papers);
  const std::size_t omitted = figure.data.omitted.size();
  if (omitted > 0 && !figure.empty()) {
    links.push_back({"#not-drawn", count_of(omitted, "row") + " not drawn"});
  }
  const std::string base = "figures/" + figure.name;
  links.push_back({base + ".csv", "data"});
  if (figure.empty()) return links;
  if (figure.svg) links.push_back({base + ".svg", "SVG"});
  if (figure.problem.empty()) links.push_back({base + ".png", "PNG"});
  links.push_back({base + ".gp", "gnuplot script"});
  return links;
}

}  // namespace

std::string constants(const Points& points, const std::vector<std::size_t>& rows) {
  if (rows.empty()) return "";
  std::vector<std::string> parts;
  for (const schema::Column& column : points.schema().columns()) {
    if (column.role != schema::Column::Role::parameter) continue;
    std::set<std::string> values;
    for (const std::size_t row : rows) values.insert(points.text(row, column.name));
    if (values.size() != 1 || values.begin()->empty() || *values.begin() == column.usual) continue;
    const schema::Quantity& quantity = column.shown;
    parts.push_back(fmt::format("{} {}{}{}", quantity.noun,
                                points.schema().shown(column.name, *values.begin()),
                                quantity.unit.empty() ? "" : " ", quantity.unit));
  }
  std::set<std::string> repetitions;
  for (const std::size_t row : rows) repetitions.insert(points.text(row, "repetition"));
  parts.push_back(repetitions.size() == 1
                      ? "1 repetition"
                      : fmt::format("mean of {} repetitions with 95 % confidence interval",
                                    repetitions.size()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Data figure_data(const FigureResult& figure, const Papers& papers, const Claims& claims) {
  const std::string label = figure_label(figure);
  Data data;
  data["name"] = figure.name;
  data["label"] = label.empty() ? figure.spec.title : label;
  data["caption"] = false;
  if (!label.empty()) data["caption"] = figure.spec.title;
  data["modelled"] = figure.origin.modelled();
  data["unfinished"] = false;
  if (!figure.folder->unfinished().empty()) data["unfinished"] = figure.folder->unfinished();
  data["links"] = data_of(links_of(figure, papers));
  if (figure.empty()) {
    data["nothing"] = why_empty(figure);
    return data;
  }
  data["problem"] = false;
  if (!figure.problem.empty()) data["problem"] = figure.problem;
  Data drawn;
  drawn["image"] = false;
  if (figure.svg) {
    Data image;
    image["view_box"] = figure.svg->view_box;
    image["svg_title"] = figure_title(figure);
    image["svg"] = figure.svg->body;
    drawn["image"] = std::move(image);
  }
  drawn["guarantees_differ"] = figure.data.guarantees_differ();
  const Points& points = figure.folder->points;
  drawn["guarantees_with_flush"] =
      std::any_of(figure.data.rows.begin(), figure.data.rows.end(),
                  [&](std::size_t row) { return points.guarantees_with_flush(row); });
  drawn["constants"] = constants(figure.folder->points, figure.data.rows);
  if (const std::string noisy = noise_words(figure); !noisy.empty()) drawn["noisy"] = noisy;
  DataList tables;
  const auto add = [&tables](const ShownTable& table) {
    if (!table.rows.empty()) tables.push_back(data_of(table));
  };
  if (figure.timeline.empty()) {
    add(comparison_table({figure.comparison}, figure.spec));
    drawn["remarks"] = comparison_remarks({figure.comparison}, figure.origin);
  } else if (const auto summary = summarize(figure.timeline)) {
    add(course_table(*summary));
    DataList remarks;
    remarks.push_back(fmt::format("Cleanings: {:.0f}, in {:.0f} % of the intervals.",
                                  summary->cleanings, summary->cleaning_percent));
    drawn["remarks"] = remarks;
  }
  add(statements_table(figure, claims));
  drawn["figure_tables"] = tables;
  data["drawn"] = std::move(drawn);
  return data;
}

}  // namespace perdura::report
