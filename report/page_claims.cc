#include <fmt/format.h>

#include <algorithm>

#include "harness/schema/quantity.h"
#include "report/page_data.h"

namespace perdura::report {
namespace {

using Outcome = ClaimResult::Outcome;

std::string where_words(const ClaimResult& result) {
  return result.run.empty() ? "" : fmt::format("{}, {}", result.run, result.origin.words());
}

std::string tolerance_words(const Claim& claim) {
  if (!claim.tolerance) return "";
  return fmt::format("within {:g} %: {}", *claim.tolerance, claim.tolerance_reason);
}

ShownRow row_of(const ClaimResult& result) {
  const Claim& claim = *result.claim;
  return {{{.text = claim.id},
           {.text = claim.section},
           {.text = result.quantity, .hint = claim.note},
           {.text = shown_reported(claim), .css = "n"},
           {.text = result.measured, .css = "apart", .hint = where_words(result)},
           {.text = shown_deviation(result), .css = "n"},
           verdict_cell(result)}};
}

ShownRow not_covered_row(const ClaimResult& result) {
  const Claim& claim = *result.claim;
  const std::string reported = shown_reported(claim);
  return {{{.text = claim.id},
           {.text = claim.section},
           {.text = result.quantity + (reported.empty() ? "" : ": " + reported)},
           {.text = claim.not_covered, .css = "apart"}}};
}

/// The claims of one paper; those that are not covered are listed separately.
Data paper_data(const Claims& claims, const ReportedPaper& paper) {
  ShownTable measured{.head = {{{{"Id"},
                                 {"Section"},
                                 {"Claim"},
                                 {"Reported", "n"},
                                 {"Measured", "apart"},
                                 {"Deviation", "n"},
                                 {"Verdict", "apart"}}}},
                      .fold = ShownTable::Fold::open};
  ShownTable not_covered{
      .head = {{{{"Id"}, {"Section"}, {"Claim"}, {"Why it is not covered", "apart"}}}},
      .fold = ShownTable::Fold::closed};
  for (const ClaimResult& result : claims) {
    if (result.paper != &paper) continue;
    if (result.outcome == Outcome::not_covered) {
      not_covered.rows.push_back(not_covered_row(result));
    } else {
      measured.rows.push_back(row_of(result));
    }
  }
  measured.summary = count_of(measured.rows.size(), "claim");
  not_covered.summary = "Not covered: " + count_of(not_covered.rows.size(), "statement");
  Data data;
  data["paper_title"] = paper.title;
  if (!measured.rows.empty()) data["measured"] = data_of(measured);
  if (!not_covered.rows.empty()) data["not_covered"] = data_of(not_covered);
  return data;
}

}  // namespace

Cell verdict_cell(const ClaimResult& result) {
  Cell cell{.text = std::string(to_string(result.outcome)), .css = "apart"};
  cell.strong = result.outcome == Outcome::differs;
  const Claim& claim = *result.claim;
  if (claim.basis != Claim::Basis::prediction) {
    cell.text += fmt::format(", {}", to_string(claim.basis));
  }
  cell.hint = tolerance_words(claim);
  for (const std::size_t note : result.notes) {
    cell.links.push_back({"#" + note_anchor(claim.paper, note), "why"});
  }
  return cell;
}

Data claims_data(const Claims& claims) {
  Data data;
  data["count"] = count_of(claims.size(), "claim");
  data["score"] = count_claims(claims).words();
  DataList list;
  std::vector<const ReportedPaper*> papers;
  for (const ClaimResult& result : claims) {
    if (std::find(papers.begin(), papers.end(), result.paper) != papers.end()) continue;
    papers.push_back(result.paper);
    list.push_back(paper_data(claims, *result.paper));
  }
  data["papers"] = list;
  return data;
}

}  // namespace perdura::report
