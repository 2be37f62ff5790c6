#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/report/claim_results.h"
#include "harness/report/contents.h"

/// The parts of the page, each a piece of HTML. Internal to make_page.
namespace perdura::report {

std::string_view page_style();

/// "modelled" or "measured on this host": different words and frames, not colors alone.
std::string badge(const Origin& origin);

/// That a run has not ended, and how far it has come; empty if it has.
std::string unfinished_line(const ResultFolder& folder);

/// All averages of one origin: ratios to the baseline beside the paper's. Runs that have not ended
/// have none.
std::string findings(const Section& section);

std::string figure_block(const FigureResult& figure, const std::vector<std::string>& note_anchors);

/// "Erda, Table 1"; a table of averages over several figures is "Erda, Figures 22–25".
std::string table_label(const TableResult& table);
std::string table_block(const TableResult& table, const std::vector<std::string>& note_anchors);

/// Ours and the paper's, side by side; the rows of all comparisons in one table.
std::string comparison_table(const std::vector<Comparison>& comparisons, const Origin& origin,
                             const DataSpec& spec);

/// What was run, what the results say in some sentences made from the numbers, and what becomes of
/// the papers' claims.
std::string overview(const Contents& contents, const std::vector<ResultFolder>& folders,
                     const std::vector<ClaimResult>& claims);
/// "1 point", "2 points".
std::string count_of(std::size_t count, const std::string& noun);
/// "Erda", "Erda and Redo Logging", "Erda, Redo Logging and Read After Write".
std::string listed(const std::vector<std::string>& parts);
/// How a sentence of the overview begins: "On the model erda-2019".
std::string where(const Origin& origin);
/// Which system has the least of a column, at how many of the points that all systems of the run
/// have, and how many times that the next one has. Empty if the run has one system or no such
/// point, or has not ended.
std::string lead_sentence(const ResultFolder& folder, std::string_view column);
/// What completed operations were found to guarantee, and on which servers if a system does not
/// keep the same on all; empty if all systems keep the same.
std::string found_sentence(const std::vector<ResultFolder>& folders);
/// In how many cases a count equals the paper's formula, and where it does not; empty if the table
/// has no formula.
std::string formula_sentence(const TableResult& table);

/// Each claim, reported and measured; empty if there are none.
std::string claims_block(const std::vector<ClaimResult>& claims);

/// What the words in the legends mean, and the tables of guarantees; empty if no legend says a word
/// and there is no table.
bool has_guarantees(const Contents& contents);
std::string guarantees_block(const Contents& contents);

/// The notes on one paper, each with links to the figures it explains.
std::string notes_block(const std::string& paper_name, const ReportedPaper& paper,
                        const Contents& contents);
/// The notes that name a figure or table, and links to them, each followed by a dot.
std::vector<std::string> notes_on(const DataSpec& spec, const Papers& papers);
std::string note_links(const std::vector<std::string>& anchors);
std::string note_anchor(const std::string& paper_name, std::size_t index);

// `page` is the folder of the page, from which files are linked.
/// Every row that no figure may draw, and why. Counts them in `count`.
std::string not_drawn_block(const Contents& contents, const std::vector<ResultFolder>& folders,
                            const std::filesystem::path& page, std::size_t& count);
std::string settings_block(const std::vector<ResultFolder>& folders,
                           const std::filesystem::path& page);
std::string provenance_block(const std::vector<ResultFolder>& folders,
                             const std::filesystem::path& page);

/// "16-byte keys, 100000 records": the key columns that have one value in all of these rows, and
/// the number of repetitions.
std::string constants(const Points& points, const std::vector<std::size_t>& rows);

}  // namespace perdura::report
