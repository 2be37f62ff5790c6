#include <fmt/format.h>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"
#include "harness/report/quantity.h"

namespace perdura::report {
namespace {

std::string how_much(const ClaimResult& result) {
  const std::string least = fmt::format("{:.2f}", result.least_ratio);
  const std::string largest = fmt::format("{:.2f}", result.largest_ratio);
  return least == largest ? least : least + " to " + largest;
}

}  // namespace

std::string claims_block(const Section& section) {
  if (section.claims.empty()) return "";
  std::string html = fmt::format(
      "<div class=\"block\">\n<h3>What the paper says, checked {}</h3>\n"
      "<div class=\"scroll\"><table>\n<thead><tr><th>Section</th><th>The paper</th>"
      "<th>here, in pairs of points</th><th class=\"n\">higher ÷ "
      "lower</th></tr></thead>\n<tbody>\n",
      badge(section.origin));
  for (const ClaimResult& result : section.claims) {
    const bool holds = result.holding == result.pairs;
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{} in {} of {}</td><td class=\"n\">{}</td></tr>\n",
        escaped(result.claim->section), escaped(result.claim->text),
        holds ? "holds" : "<b>does not hold</b>: holds", result.holding, result.pairs,
        how_much(result));
  }
  return html + "</tbody></table></div>\n</div>\n";
}

}  // namespace perdura::report
