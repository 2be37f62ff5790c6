// The table of designs at the beginning of the page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/schema/quantity.h"
#include "report/page_data.h"

namespace perdura::report {
namespace {

/// For each design, by its name in the table of guarantees: the number of kinds of servers on which
/// no acknowledged write was lost, of those on which it can run, and how many refuse it.
std::map<std::string, std::string> kept_by(const GuaranteeTable& table) {
  std::map<std::string, std::string> kept;
  for (const schema::CsvRow& row : table.cells.rows) {
    const auto count = std::count_if(
        row.cells.begin() + 1, row.cells.end(),
        [](const std::string& cell) { return cell == "durable" || cell == "durable-writes"; });
    const auto refused =
        std::count_if(row.cells.begin() + 1, row.cells.end(),
                      [](const std::string& cell) { return cell.starts_with("refused"); });
    kept[row.cells.front()] = fmt::format(
        "{} of {}{}", count, static_cast<std::ptrdiff_t>(row.cells.size()) - 1 - refused,
        refused == 0 ? "" : fmt::format(", {} refused", refused));
  }
  return kept;
}

std::string servers_of(const FoundGuarantee& found) {
  return fmt::format("{} on {}", found.guarantee, fmt::join(found.servers, ", "));
}

Cell guarantee_cell(const DesignRow& row) {
  if (row.guarantees.empty()) return {"–", "apart"};
  const FoundGuarantee& weakest = row.guarantees.front();
  const std::string css = guarantee_class(weakest.guarantee) + " apart";
  const bool with_flush = std::any_of(row.guarantees.begin(), row.guarantees.end(),
                                      [](const FoundGuarantee& found) { return found.with_flush; });
  const std::string condition = with_flush ? "with FLUSH, for which READ stood" : "";
  if (row.guarantees.size() == 1) {
    return {.text = weakest.guarantee,
            .css = css,
            .hint = servers_of(weakest),
            .below = condition,
            .below_css = "yes"};
  }
  std::vector<std::string> others;
  for (auto found = row.guarantees.begin() + 1; found != row.guarantees.end(); ++found) {
    others.push_back(servers_of(*found));
  }
  if (with_flush) others.push_back(condition);
  return {.text = servers_of(weakest),
          .css = css,
          .below = fmt::format("{}", fmt::join(others, "; ")),
          .below_css = "yes"};
}

/// A link to the first figure of the run that shows this very number of the design, or else to the
/// rows of the run.
std::string link_of(const Contents& contents, const MeasuredCost& cost, const Design& design,
                    const Origin& origin, std::string_view column, const PageFolder& page) {
  const auto shows = [&](const FigureResult& figure) {
    if (figure.folder != cost.run || figure.origin != origin || figure.spec.y != column ||
        figure.spec.normalize) {
      return false;
    }
    return std::any_of(figure.data.points.begin(), figure.data.points.end(),
                       [&](const auto& drawn) {
                         return drawn.first.first == design.system &&
                                std::abs(drawn.second.mean - cost.value) <= 1e-9 * cost.value;
                       });
  };
  for (const Section& section : contents.sections) {
    for (const FigureResult& figure : section.figures) {
      if (shows(figure)) return "#fig-" + figure.name;
    }
  }
  return link_to(*cost.run, "points.csv", page);
}

class CostCells {
 public:
  CostCells(const DesignGroup& group, const DesignRow& row, const Contents& contents,
            const PageFolder& page)
      : group_(group), row_(row), contents_(contents), page_(page) {}

  Cell of(const Metric& metric) const {
    const auto cost = row_.costs.find(metric);
    if (cost == row_.costs.end()) return {"–", "n"};
    const MeasuredCost& found = cost->second;
    return {.text = schema::shown_number(found.value),
            .css = "n",
            .hint = found.run->name,
            .link = link_of(contents_, found, row_.design, group_.origin, metric.column, page_),
            .below = found.point};
  }

  Cell latency(const std::string& operation) const {
    Cell cell = of({kMean, operation});
    const Cell tail = of({kTail, operation});
    if (!cell.link.empty()) cell.text += " / " + tail.text;
    return cell;
  }

 private:
  const DesignGroup& group_;
  const DesignRow& row_;
  const Contents& contents_;
  const PageFolder& page_;
};

std::vector<ShownRow> header(const Designs& designs, bool kept) {
  ShownRow above{{{.css = "over", .columns = kept ? 3U : 2U}}};
  ShownRow below{{{"Design"}, {"Guarantee", "apart"}}};
  if (kept) below.cells.push_back({"Servers that keep all writes", "n"});
  above.cells.push_back({.text = "Latency, mean / 99th percentile (µs)",
                         .css = "over apart",
                         .columns = designs.operations.size()});
  for (const std::string& operation : designs.operations) {
    below.cells.push_back(
        {operation == "all" ? "any operation" : schema::shown_name(operation), "n"});
  }
  const schema::Schema& schema = designs.groups.front().runs.front()->points.schema();
  for (const std::string_view column : kOthers) {
    above.cells.push_back({.css = "over"});
    below.cells.push_back({schema.quantity(column).axis_with_unit(), "n"});
  }
  return {above, below};
}

}  // namespace

ShownTable designs_table(const Designs& designs, const Contents& contents, const PageFolder& page) {
  const auto explored =
      std::find_if(contents.guarantees.begin(), contents.guarantees.end(),
                   [](const GuaranteeTable& table) { return table.name == "systems"; });
  const bool has_kept = explored != contents.guarantees.end();
  const auto kept = has_kept ? kept_by(*explored) : std::map<std::string, std::string>();
  ShownTable table{.head = header(designs, has_kept), .css = "designs"};
  table.fold = ShownTable::Fold::never;
  for (const DesignGroup& group : designs.groups) {
    Cell heading{
        .text = group.origin.title(),
        .columns = 2 + (has_kept ? 1U : 0U) + designs.operations.size() + std::size(kOthers)};
    for (const ResultFolder* run : group.runs) {
      heading.links.push_back({link_to(*run, "points.csv", page), run->name});
    }
    table.rows.push_back({{heading}, true});
    for (const DesignRow& row : group.rows) {
      ShownRow& shown = table.rows.emplace_back();
      shown.cells = {{row.title}, guarantee_cell(row)};
      if (has_kept) {
        const bool paper = row.design.persistence != "correct";
        const auto of_it = kept.find(row.design.system + (paper ? "" : ", persistence = correct"));
        Cell cell{"–", "n"};
        if (of_it != kept.end())
          cell = {.text = of_it->second, .css = "n", .link = "#guarantees-systems"};
        shown.cells.push_back(std::move(cell));
      }
      const CostCells costs(group, row, contents, page);
      for (const std::string& operation : designs.operations) {
        shown.cells.push_back(costs.latency(operation));
      }
      for (const std::string_view column : kOthers)
        shown.cells.push_back(costs.of({column, "all"}));
    }
  }
  return table;
}

}  // namespace perdura::report
