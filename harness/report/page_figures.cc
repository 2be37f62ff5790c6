#include <fmt/format.h>

#include <set>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"
#include "harness/schema/columns.h"
#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

/// "While a head was being cleaned ...": what the eye cannot read off.
std::string course(const std::vector<TimelineRow>& rows) {
  const auto summary = summarize(rows);
  if (!summary) return "";
  const auto cells = [](const std::optional<double>& mean, const std::optional<double>& max) {
    return fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td>",
                       mean ? shown_number(*mean) : "–", max ? shown_number(*max) : "–");
  };
  return fmt::format(
      "<div class=\"scroll\"><table>\n<thead><tr><th>Latency, µs</th><th class=\"n\">mean</th>"
      "<th class=\"n\">largest</th></tr></thead>\n<tbody>\n"
      "<tr><td>while something is being cleaned</td>{}</tr>\n<tr><td>otherwise</td>{}</tr>\n"
      "</tbody></table></div>\n<p class=\"small\">{:.0f} cleaning{}, in {:.0f} % of the intervals."
      "</p>\n",
      cells(summary->mean_cleaning_us, summary->max_cleaning_us),
      cells(summary->mean_otherwise_us, summary->max_otherwise_us), summary->cleanings,
      summary->cleanings == 1 ? "" : "s", summary->cleaning_percent);
}

/// The figure's files beside the page.
std::string file_links(const FigureResult& figure) {
  std::string links = fmt::format("<a href=\"figures/{}.csv\">data</a>", figure.name);
  if (figure.svg.empty()) return links;
  return links + fmt::format(
                     " · <a href=\"figures/{0}.svg\">SVG</a> · "
                     "<a href=\"figures/{0}.png\">PNG</a> · "
                     "<a href=\"plots/{1}.gp\">gnuplot script</a>",
                     figure.name, figure.spec.plot);
}

}  // namespace

std::string constants(const Points& points, const std::vector<std::size_t>& rows) {
  if (rows.empty()) return "";
  std::vector<std::string> parts;
  for (const Column& column : points.schema().columns()) {
    if (column.role != Column::Role::parameter) continue;
    std::set<std::string> values;
    for (const std::size_t row : rows) values.insert(points.text(row, column.name));
    if (values.size() != 1 || values.begin()->empty() || *values.begin() == column.usual) continue;
    const Quantity& quantity = column.shown;
    parts.push_back(fmt::format("{} {}{}{}", quantity.noun,
                                shown_value(column.name, *values.begin()),
                                quantity.unit.empty() ? "" : " ", quantity.unit));
  }
  std::set<std::string> repetitions;
  for (const std::size_t row : rows) repetitions.insert(points.text(row, "repetition"));
  parts.push_back(repetitions.size() == 1
                      ? "1 repetition"
                      : fmt::format("mean of {} repetitions with 95 % confidence interval",
                                    repetitions.size()));
  return joined(parts, ", ");
}

std::string unfinished_line(const ResultFolder& folder) {
  const std::string words = folder.unfinished();
  if (words.empty()) return "";
  return fmt::format("<p><b>unfinished: {}</b></p>\n", escaped(words));
}

/// The mark of the figure's scripts, said in words.
std::string noise_line(const FigureResult& figure) {
  std::size_t noisy = 0;
  for (const auto& [where, point] : figure.data.points) noisy += point.noisy > 0 ? 1 : 0;
  if (noisy == 0) return "";
  return fmt::format(
      "<p class=\"small\">* {} of {} points: measured while the host was busy with other things, "
      "or "
      "had fewer cores than busy threads (column <code>noise</code>).</p>\n",
      noisy, figure.data.points.size());
}

std::string figure_block(const FigureResult& figure, const std::vector<std::string>& note_anchors) {
  const std::string label = figure_label(figure);
  std::string html = fmt::format(
      "<figure id=\"fig-{}\">\n<figcaption><h3>{} {}</h3>{}</figcaption>\n", figure.name,
      escaped(label.empty() ? figure.spec.title : label), badge(figure.origin),
      label.empty() ? "" : "<p>" + escaped(figure.spec.title) + "</p>");
  html += unfinished_line(*figure.folder);
  if (figure.svg.empty()) {
    html +=
        fmt::format("<p class=\"none\">Nothing to draw: {}.</p>\n",
                    figure.data.omitted.empty()
                        ? "no row of points.csv is what the figure asks for"
                        : fmt::format("none of the {} rows is valid", figure.data.omitted.size()));
  } else {
    html += figure.svg + "\n";
    if (figure.data.guarantees_differ()) {
      html +=
          "<p class=\"small\">The series <a href=\"#guarantees\">guarantee different things when "
          "the power fails</a>.</p>\n";
    }
    html += fmt::format("<p class=\"small\">{}.</p>\n",
                        escaped(constants(figure.folder->points, figure.data.rows)));
    html += noise_line(figure);
    html += figure.timeline.empty()
                ? comparison_table({figure.comparison}, figure.origin, figure.spec)
                : course(figure.timeline);
  }
  std::string remarks = note_links(note_anchors);
  if (!figure.data.omitted.empty() && !figure.svg.empty()) {
    remarks += fmt::format("<a href=\"#not-drawn\">{} row{} not drawn</a> · ",
                           figure.data.omitted.size(), figure.data.omitted.size() == 1 ? "" : "s");
  }
  return html +
         fmt::format("<p class=\"small\">{}{}</p>\n</figure>\n", remarks, file_links(figure));
}

}  // namespace perdura::report
