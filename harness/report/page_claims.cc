#include <fmt/format.h>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"

namespace perdura::report {
namespace {

using Verdict = ClaimResult::Verdict;

std::string verdict_cell(const ClaimResult& result, const std::string& paper_name) {
  std::string cell = escaped(to_string(result.verdict));
  if (result.verdict == Verdict::differs) cell = "<b>" + cell + "</b>";
  if (result.claim->fitted) cell += ", fitted";
  for (const std::size_t note : result.notes) {
    cell += fmt::format(" · <a href=\"#{}\">why</a>", note_anchor(paper_name, note));
  }
  return cell;
}

std::string where_words(const ClaimResult& result) {
  if (result.run.empty()) return "";
  return fmt::format("{}, {}", result.run, result.origin.words());
}

std::string tolerance_words(const Claim& claim) {
  if (!claim.tolerance) return "";
  return fmt::format("within {:g} %: {}", *claim.tolerance, claim.tolerance_reason);
}

}  // namespace

std::string claims_block(const std::vector<ClaimResult>& claims) {
  if (claims.empty()) return "";
  std::string html = fmt::format(
      "<section>\n<h2 id=\"claims\">What the papers claim</h2>\n"
      "<p>{}. Every number and order that a paper's text or tables state and that a system here "
      "covers. One that differs stays, with the reason. <i>Fitted</i>: the model was fitted to "
      "this "
      "number, so that it is not a prediction.</p>\n",
      escaped(count_claims(claims).words()));
  std::string paper;
  for (const ClaimResult& result : claims) {
    const Claim& claim = *result.claim;
    if (claim.paper != paper) {
      if (!paper.empty()) html += "</tbody></table></div>\n";
      paper = claim.paper;
      html += fmt::format(
          "<h3>{}</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>Id</th><th>Section</th>"
          "<th>Claim</th><th class=\"n\">Reported</th><th class=\"apart\">Measured</th>"
          "<th class=\"n\">Deviation</th><th class=\"apart\">Verdict</th></tr></thead>\n<tbody>\n",
          escaped(paper));
    }
    html += fmt::format(
        "<tr><td>{0}</td><td>{1}</td><td title=\"{2}\">{3}</td><td class=\"n\">{4}</td>"
        "<td class=\"apart\" title=\"{5}\">{6}</td><td class=\"n\">{7}</td>"
        "<td class=\"apart\" title=\"{8}\">{9}</td></tr>\n",
        escaped(claim.id), escaped(claim.section), escaped(claim.note),
        escaped(shown_quantity(claim)), escaped(shown_reported(claim)),
        escaped(where_words(result)), escaped(result.measured), escaped(shown_deviation(result)),
        escaped(tolerance_words(claim)), verdict_cell(result, claim.paper));
  }
  return html + "</tbody></table></div>\n</section>\n";
}

}  // namespace perdura::report
