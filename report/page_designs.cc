// The table of designs at the beginning of the page.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/schema/quantity.h"
#include "report/page_data.h"

namespace perdura::report {
namespace {

/// For each design, by its name in the table of guarantees: on how many kinds of servers no
/// acknowledged write was lost, out of those that were explored.
std::map<std::string, std::string> kept_by(const GuaranteeTable& table) {
  std::map<std::string, std::string> kept;
  for (const CsvRow& row : table.cells.rows) {
    const auto count = std::count_if(
        row.cells.begin() + 1, row.cells.end(),
        [](const std::string& cell) { return cell == "durable" || cell == "durable-writes"; });
    kept[row.cells.front()] = fmt::format("{} of {}", count, row.cells.size() - 1);
  }
  return kept;
}

std::string servers_of(const Found& found) {
  return fmt::format("{} on {}", found.guarantee, fmt::join(found.servers, ", "));
}

Cell guarantee_cell(const DesignRow& row) {
  if (row.guarantees.empty()) return {"–", "apart"};
  const Found& weakest = row.guarantees.front();
  const std::string css = guarantee_class(weakest.guarantee) + " apart";
  if (row.guarantees.size() == 1) {
    return {.text = weakest.guarantee, .css = css, .hint = servers_of(weakest)};
  }
  std::vector<std::string> others;
  for (auto found = row.guarantees.begin() + 1; found != row.guarantees.end(); ++found) {
    others.push_back(servers_of(*found));
  }
  return {.text = servers_of(weakest),
          .css = css,
          .below = fmt::format("{}", fmt::join(others, "; ")),
          .below_css = "yes"};
}

/// A link to the first figure or table of the run that shows the column, or else to the run's rows.
std::string link_of(const Contents& contents, const Paid& paid, const Origin& origin,
                    std::string_view column, const PageFolder& page) {
  for (const bool same_column : {true, false}) {
    const auto fits = [&](const auto& result) {
      const std::string_view y = result.spec.y;
      const auto family = [](std::string_view name) { return name.substr(0, name.find('_')); };
      return result.folder == paid.run && result.origin == origin &&
             (same_column ? y == column : family(y) == family(column));
    };
    for (const Section& section : contents.sections) {
      for (const FigureResult& figure : section.figures) {
        if (fits(figure)) return "#fig-" + figure.name;
      }
      for (const TableResult& table : section.tables) {
        if (fits(table)) return "#" + table.name;
      }
    }
  }
  return link_to(*paid.run, "points.csv", page);
}

class Prices {
 public:
  Prices(const DesignGroup& group, const DesignRow& row, const Contents& contents,
         const PageFolder& page)
      : group_(group), row_(row), contents_(contents), page_(page) {}

  Cell of(const Price& price) const {
    const auto paid = row_.prices.find(price);
    if (paid == row_.prices.end()) return {"–", "n"};
    const Paid& found = paid->second;
    const std::string low = shown_number(found.low);
    const std::string high = shown_number(found.high);
    return {.text = shown_number(found.value),
            .css = "n",
            .hint = fmt::format("{} of {}{}", count_of(found.points, "point"), found.run->name,
                                low == high ? "" : fmt::format(": {} to {}", low, high)),
            .link = link_of(contents_, found, group_.origin, price.column, page_)};
  }

  Cell latency(const std::string& operation) const {
    Cell cell = of({kMedian, operation});
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
  above.cells.push_back({.text = "Latency, median / 99th percentile (µs)",
                         .css = "over apart",
                         .columns = designs.operations.size()});
  for (const std::string& operation : designs.operations) {
    below.cells.push_back({operation == "all" ? "any operation" : shown_name(operation), "n"});
  }
  const Schema& schema = designs.groups.front().runs.front()->points.schema();
  for (const std::string_view column : kOthers) {
    const bool most = schema.find(column)->better == Column::Better::more;
    above.cells.push_back({.css = "over"});
    below.cells.push_back(
        {(most ? "Highest " : "") + schema.quantity(column).axis_with_unit(), "n"});
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
      const Prices prices(group, row, contents, page);
      for (const std::string& operation : designs.operations) {
        shown.cells.push_back(prices.latency(operation));
      }
      for (const std::string_view column : kOthers)
        shown.cells.push_back(prices.of({column, "all"}));
    }
  }
  return table;
}

}  // namespace perdura::report
