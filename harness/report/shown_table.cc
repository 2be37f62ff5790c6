#include "harness/report/shown_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace perdura::report {
namespace {

void set_if_any(Data& data, const char* name, const std::string& text) {
  if (!text.empty()) data[name] = text;
}

// The names are those of cells alone: what a cell lacks must not be found in what is around it.
Data data_of(const Cell& cell, bool heading) {
  Data data;
  data["tag"] = heading ? "th" : "td";
  data["text"] = cell.text;
  set_if_any(data, "cell_class", cell.css);
  set_if_any(data, "cell_hint", cell.hint);
  set_if_any(data, "cell_link", cell.link);
  set_if_any(data, "below", cell.below);
  data["below_class"] = cell.below_css;
  if (cell.columns > 1) data["columns"] = fmt::to_string(cell.columns);
  data["strong"] = cell.strong;
  data["as_written"] = cell.as_written;
  DataList links;
  for (const Link& link : cell.links) {
    Data each;
    each["to"] = link.to;
    each["name"] = link.text;
    links.push_back(std::move(each));
  }
  data["cell_links"] = links;
  return data;
}

Data part_of(const char* part, const std::vector<ShownRow>& rows, bool all_headings,
             bool first_is_heading) {
  Data data;
  data["part"] = part;
  DataList list;
  for (const ShownRow& row : rows) {
    Data each;
    each["group"] = row.group;
    DataList cells;
    for (const Cell& cell : row.cells) {
      const bool heading =
          all_headings || row.group || (first_is_heading && &cell == &row.cells.front());
      cells.push_back(data_of(cell, heading));
    }
    each["cells"] = cells;
    list.push_back(std::move(each));
  }
  data["rows"] = list;
  return data;
}

}  // namespace

std::string count_of(std::size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

Data data_of(const ShownTable& table) {
  const auto count = static_cast<std::size_t>(
      std::count_if(table.rows.begin(), table.rows.end(), [](const auto& row) { return !row.group; }));
  Data data;
  const bool folds = table.fold == ShownTable::Fold::long_ones
                         ? count > kRowsShown
                         : table.fold != ShownTable::Fold::never;
  data["folds"] = folds;
  data["open"] = table.fold == ShownTable::Fold::open;
  data["summary"] = table.summary.empty() ? count_of(count, "row") : table.summary;
  data["table_class"] = table.css;
  DataList parts;
  if (!table.head.empty()) parts.push_back(part_of("thead", table.head, true, false));
  parts.push_back(part_of("tbody", table.rows, false, table.first_is_heading));
  data["parts"] = parts;
  return data;
}

Data data_of(const std::vector<Link>& links) {
  DataList list;
  for (const Link& link : links) {
    Data each;
    each["to"] = link.to;
    each["name"] = link.text;
    each["more"] = &link != &links.back();
    list.push_back(std::move(each));
  }
  return list;
}

}  // namespace perdura::report
