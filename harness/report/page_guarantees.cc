#include <fmt/format.h>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"

namespace perdura::report {
namespace {

/// By words first: the color only repeats them.
std::string_view verdict_class(std::string_view cell) {
  if (cell.empty()) return "";
  const std::string_view word = cell.substr(0, cell.find_first_of(":,; "));
  if (word == "right" || word == "durable") return " class=\"right\"";
  if (word == "wasteful" || word == "ordered" || word == "durable-writes") {
    return " class=\"wasteful\"";
  }
  for (const std::string_view wrong : {"lost", "torn", "out", "never", "none", "atomic"}) {
    if (word == wrong) return " class=\"wrong\"";
  }
  return "";
}

}  // namespace

bool has_guarantees(const Contents& contents) {
  if (!contents.guarantees.empty()) return true;
  for (const Section& section : contents.sections) {
    for (const FigureResult& figure : section.figures) {
      if (figure.data.guarantees_differ()) return true;
    }
  }
  return false;
}

std::string guarantees_block(const Contents& contents) {
  if (!has_guarantees(contents)) return "";
  const std::vector<GuaranteeTable>& tables = contents.guarantees;
  std::string html =
      "<section>\n<h2 id=\"guarantees\">What is guaranteed when the power fails</h2>\n"
      "<p>The legends say what exploration found of a completed operation on every server that the "
      "figure's testbed may be (not what a paper promises), or what is proven of the method that "
      "was run. Each word includes those before it:</p>\n<ul>\n"
      "<li><b>none</b>: not even the following: a mix, an invented value, an error, or a store "
      "that "
      "is lost may be found</li>\n"
      "<li><b>visible</b>: others saw it; what a power failure leaves of it is not said</li>\n"
      "<li><b>atomic</b>: of each key one of the states that it ever had is found, never a "
      "mix</li>\n"
      "<li><b>ordered</b>: of each key at most the last change is lost</li>\n"
      "<li><b>durable-writes</b>: every write that was acknowledged survives; what a reader saw of "
      "one that was not yet acknowledged may not</li>\n"
      "<li><b>durable</b>: durable linearizability: what any completed operation told survives, "
      "what "
      "readers saw, too</li>\n</ul>\n";
  html += tables.empty()
              ? "<p>What is kept of it stands in the tables that <code>perdura guarantees</code> "
                "writes.</p>\n"
              : "<p>What is kept of it is explored, not measured: every moment, and every memory "
                "image that a failure may leave, by the rules of docs/persistence.md.</p>\n";
  for (const GuaranteeTable& table : tables) {
    html += fmt::format(
        "<div class=\"block\" id=\"guarantees-{}\"><h3>{}</h3>\n<p class=\"small\">{}</p>\n"
        "<div class=\"scroll\"><table class=\"words\">\n<thead><tr>",
        escaped(table.name), escaped(table.title), escaped(table.caption));
    for (const std::string& cell : table.cells.header) {
      html += fmt::format("<th>{}</th>", escaped(cell));
    }
    html += "</tr></thead>\n<tbody>\n";
    for (const CsvRow& row : table.cells.rows) {
      html += "<tr>";
      for (const std::string& cell : row.cells) {
        html +=
            fmt::format("<td{}>{}</td>", table.verdicts ? verdict_class(cell) : "", escaped(cell));
      }
      html += "</tr>\n";
    }
    html += "</tbody></table></div></div>\n";
  }
  return html + "</section>\n";
}

}  // namespace perdura::report
