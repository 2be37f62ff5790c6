#include <algorithm>

#include "report/page_data.h"

namespace perdura::report {

// The class follows from the words of the cell; the color only repeats them.
std::string guarantee_class(std::string_view cell) {
  const std::string_view word = cell.substr(0, cell.find_first_of(":,; "));
  if (word == "right" || word == "durable") return "right";
  if (word == "wasteful" || word == "ordered" || word == "durable-writes") return "wasteful";
  for (const std::string_view wrong : {"lost", "torn", "out", "never", "none", "atomic"}) {
    if (word == wrong) return "wrong";
  }
  return "";
}

bool has_guarantees(const Contents& contents) {
  if (!contents.guarantees.empty()) return true;
  for (const Section& section : contents.sections) {
    for (const FigureResult& figure : section.figures) {
      if (figure.data.guarantees_differ()) return true;
    }
  }
  return false;
}

DataList guarantees_data(const Contents& contents) {
  return list_of(contents.guarantees, [](const GuaranteeTable& table) {
    ShownTable shown{.head = {{}}, .css = "words"};
    for (const std::string& cell : table.cells.header) shown.head[0].cells.push_back({cell});
    for (const schema::CsvRow& row : table.cells.rows) {
      ShownRow& cells = shown.rows.emplace_back();
      for (const std::string& cell : row.cells) {
        cells.cells.push_back({cell, table.verdicts ? guarantee_class(cell) : ""});
      }
    }
    Data data;
    data["name"] = table.name;
    data["table_title"] = table.title;
    data["caption"] = table.caption;
    data["table"] = data_of(shown);
    return data;
  });
}

}  // namespace perdura::report
