// The parts of the page, each as data for its template. Internal to make_page.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/claim_results.h"
#include "report/contents.h"
#include "report/designs.h"
#include "report/shown_table.h"

namespace perdura::report {

using Claims = std::vector<ClaimResult>;
using Folders = std::vector<ResultFolder>;

/// The folder of the page, from which files are linked.
using PageFolder = std::filesystem::path;

/// A table of those that come first: what each design guarantees, and what it costs.
ShownTable designs_table(const Designs& designs, const Contents& contents, const PageFolder& page);

/// The runs on one platform, with the versions of the program that made them.
Data runs_data(const Section& section, const Folders& folders);

Data figure_data(const FigureResult& figure, const Papers& papers, const Claims& claims);

Data table_data(const TableResult& table, const Papers& papers);
/// "Erda, Table 1"; a table of averages over several figures is "Erda, Figures 22–25".
std::string table_label(const TableResult& table);

/// Our numbers and the paper's side by side: the rows of all comparisons in one table.
ShownTable comparison_table(const std::vector<Comparison>& comparisons, const DataSpec& spec);
/// Remarks on these comparisons, one line each.
DataList comparison_remarks(const std::vector<Comparison>& comparisons, const Origin& origin);

/// A paper's table of formulas: series down, workloads across.
ShownTable formula_overview(const TableResult& table);
/// One row per case: the counted value and the value of the paper's formula.
ShownTable formula_cases(const TableResult& table);

/// All averages of one origin: ratios to the baseline beside the paper's. Runs that have not ended
/// have none; there may be no row.
ShownTable ratios_table(const Section& section);

/// Each claim, reported and measured.
Data claims_data(const Claims& claims);
/// A claim's verdict, with links to the notes that say why it differs.
Cell verdict_cell(const ClaimResult& result);

/// What the words in the legends mean, and the tables of guarantees.
bool has_guarantees(const Contents& contents);
DataList guarantees_data(const Contents& contents);
/// The class of page.css for what a cell says of a guarantee: right, wasteful, wrong, or none.
std::string guarantee_class(std::string_view cell);

/// The notes on the papers, each with links to the figures that it explains.
DataList notes_data(const Papers& papers, const Contents& contents);
std::string note_anchor(const std::string& paper_name, std::size_t index);
/// Links to the notes that name a figure or table.
std::vector<Link> links_to_notes(const DataSpec& spec, const Papers& papers);

/// Every row that no figure may draw, and why.
ShownTable rows_not_drawn(const Contents& contents, const Folders& folders, const PageFolder& page);
DataList settings_data(const Folders& folders, const PageFolder& page);
DataList provenance_data(const Folders& folders, const PageFolder& page);
/// Where a file of a result folder lies, from the page's folder, as a URL.
std::string link_to(const ResultFolder& folder, const std::string& file, const PageFolder& page);

/// "16-byte keys, 100000 records": the key columns that have one value in all of these rows, and
/// the number of repetitions.
std::string constants(const Points& points, const std::vector<std::size_t>& rows);

}  // namespace perdura::report
