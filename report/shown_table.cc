#include "report/shown_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace perdura::report {
namespace {

// The names of a cell's fields must differ from all names around it: the template would otherwise
// look up a field that the cell lacks in its surroundings.
Data data_of(const Cell& cell, bool heading) {
  Data data;
  data["tag"] = heading ? "th" : "td";
  data["text"] = cell.text;
  if (!cell.css.empty()) data["cell_class"] = cell.css;
  if (!cell.hint.empty()) data["cell_hint"] = cell.hint;
  if (!cell.link.empty()) data["cell_link"] = cell.link;
  if (!cell.below.empty()) data["below"] = cell.below;
  data["below_class"] = cell.below_css;
  if (cell.columns > 1) data["columns"] = fmt::to_string(cell.columns);
  data["strong"] = cell.strong;
  data["as_written"] = cell.as_written;
  data["cell_links"] = data_of(cell.links);
  return data;
}

Data part_of(const char* part, const std::vector<ShownRow>& rows, bool first_is_heading) {
  Data data;
  data["part"] = part;
  data["rows"] = list_of(rows, [&](const ShownRow& row) {
    Data shown;
    shown["group"] = row.group;
    shown["cells"] = list_of(row.cells, [&](const Cell& cell) {
      const bool first = first_is_heading && &cell == &row.cells.front();
      return data_of(cell, row.group || first || std::string_view(part) == "thead");
    });
    return shown;
  });
  return data;
}

}  // namespace

std::string count_of(std::size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

Data data_of(const ShownTable& table) {
  const auto count = static_cast<std::size_t>(std::count_if(
      table.rows.begin(), table.rows.end(), [](const auto& row) { return !row.group; }));
  Data data;
  const bool folds = table.fold == ShownTable::Fold::long_ones
                         ? count > kRowsShown
                         : table.fold != ShownTable::Fold::never;
  data["folds"] = folds;
  data["open"] = table.fold == ShownTable::Fold::open;
  data["summary"] = table.summary.empty() ? count_of(count, "row") : table.summary;
  data["table_class"] = table.css;
  DataList parts;
  if (!table.head.empty()) parts.push_back(part_of("thead", table.head, false));
  parts.push_back(part_of("tbody", table.rows, table.first_is_heading));
  data["parts"] = parts;
  return data;
}

Data data_of(const std::vector<Link>& links) {
  return list_of(links, [&](const Link& link) {
    Data shown;
    shown["to"] = link.to;
    shown["name"] = link.text;
    shown["more"] = &link != &links.back();
    return shown;
  });
}

}  // namespace perdura::report
