#include <fmt/format.h>

#include <algorithm>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"
#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

using Outcome = ClaimResult::Outcome;

std::string verdict_cell(const ClaimResult& result, const std::string& paper_name) {
  std::string cell = escaped(to_string(result.outcome));
  if (result.outcome == Outcome::differs) cell = "<b>" + cell + "</b>";
  if (result.claim->basis != Claim::Basis::prediction) {
    cell += fmt::format(", {}", to_string(result.claim->basis));
  }
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

std::string row_of(const ClaimResult& result) {
  const Claim& claim = *result.claim;
  return fmt::format(
      "<tr><td>{0}</td><td>{1}</td><td title=\"{2}\">{3}</td><td class=\"n\">{4}</td>"
      "<td class=\"apart\" title=\"{5}\">{6}</td><td class=\"n\">{7}</td>"
      "<td class=\"apart\" title=\"{8}\">{9}</td></tr>\n",
      escaped(claim.id), escaped(claim.section), escaped(claim.note),
      escaped(shown_quantity(claim)), escaped(shown_reported(claim)), escaped(where_words(result)),
      escaped(result.measured), escaped(shown_deviation(result)), escaped(tolerance_words(claim)),
      verdict_cell(result, claim.paper));
}

std::string not_covered_row(const Claim& claim) {
  const std::string reported = shown_reported(claim);
  return fmt::format("<tr><td>{}</td><td>{}</td><td>{}{}</td><td class=\"apart\">{}</td></tr>\n",
                     escaped(claim.id), escaped(claim.section), escaped(shown_quantity(claim)),
                     reported.empty() ? "" : ": " + escaped(reported), escaped(claim.not_covered));
}

/// The claims of one paper, those that nothing measures apart from the others.
std::string paper_block(const std::vector<ClaimResult>& claims, const ReportedPaper& paper) {
  std::string measured;
  std::string not_covered;
  std::size_t count = 0;
  for (const ClaimResult& result : claims) {
    if (result.paper != &paper) continue;
    if (result.outcome == Outcome::not_covered) {
      not_covered += not_covered_row(*result.claim);
      ++count;
    } else {
      measured += row_of(result);
    }
  }
  std::string html = fmt::format("<h3>{}</h3>\n", escaped(paper.title));
  if (!measured.empty()) {
    html += fmt::format(
        "<div class=\"scroll\"><table>\n<thead><tr><th>Id</th><th>Section</th>"
        "<th>Claim</th><th class=\"n\">Reported</th><th class=\"apart\">Measured</th>"
        "<th class=\"n\">Deviation</th><th class=\"apart\">Verdict</th></tr></thead>\n<tbody>\n"
        "{}</tbody></table></div>\n",
        measured);
  }
  if (count == 0) return html;
  return html + fmt::format(
                    "<details><summary>Not covered: {}</summary>\n<div class=\"scroll\"><table>\n"
                    "<thead><tr><th>Id</th><th>Section</th><th>Claim</th>"
                    "<th class=\"apart\">Why it is not covered</th></tr></thead>\n<tbody>\n{}"
                    "</tbody></table></div></details>\n",
                    count_of(count, "statement"), not_covered);
}

}  // namespace

std::string claims_block(const std::vector<ClaimResult>& claims) {
  if (claims.empty()) return "";
  std::string html = fmt::format(
      "<section>\n<h2 id=\"claims\">What the papers claim</h2>\n"
      "<p>{}.</p>\n"
      "<p>Listed are the numbers and orders that the texts and tables of the papers state about "
      "what they measured; what nothing here can measure is listed, too, with the reason. A claim "
      "that differs stays in the list, with an explanation.</p>\n<ul>\n"
      "<li><i>Prediction</i>: the model was made without it.</li>\n"
      "<li><i>Fitted</i>: a value or a choice of the model was made to meet it, or with it at "
      "hand, "
      "or it follows from one that was. That it holds shows no more than that the fit works.</li>\n"
      "<li><i>Input</i>: the model was given what is measured. That it holds shows that the probe "
      "reads back what was put in.</li>\n</ul>\n",
      escaped(capitalized(count_claims(claims).words())));
  std::vector<const ReportedPaper*> papers;
  for (const ClaimResult& result : claims) {
    if (std::find(papers.begin(), papers.end(), result.paper) == papers.end()) {
      papers.push_back(result.paper);
    }
  }
  for (const ReportedPaper* paper : papers) html += paper_block(claims, *paper);
  return html + "</section>\n";
}

}  // namespace perdura::report
