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

/// The folder of the page, to which links are relative.
using PageFolder = std::filesystem::path;

/// One of the tables at the top: the guarantee and the costs of each design.
ShownTable designs_table(const Designs& designs, const Contents& contents, const PageFolder& page);

/// The runs on one platform, with the versions of the program that made them.
Data runs_data(const Section& section, const Folders& folders);

Data figure_data(const FigureResult& figure, const Papers& papers, const Claims& claims);

Data table_data(const TableResult& table, const Papers& papers);
/// "Erda, Table 1"; a table of averages over several figures is "Erda, Figures 22–25".
std::string table_label(const TableResult& table);

/// Our numbers and the paper's side by side: the rows of all comparisons in one table.
ShownTable comparison_table(const std::vector<Comparison>& comparisons,
                            const schema::DataSpec& spec);
/// Remarks on these comparisons, one line each.
DataList comparison_remarks(const std::vector<Comparison>& comparisons, const Origin& origin);

/// A paper's table of formulas: series down, workloads across.
ShownTable formula_overview(const TableResult& table);
/// One row per case: the counted value and the value of the paper's formula.
ShownTable formula_cases(const TableResult& table);

/// All averages of one origin: ratios to the baseline beside the paper's. Incomplete runs have
/// none, so the table may be empty.
ShownTable ratios_table(const Section& section);

/// Each claim with its reported and measured value.
Data claims_data(const Claims& claims);
/// A claim's verdict, with links to the notes that explain a difference.
Cell verdict_cell(const ClaimResult& result);

/// The meaning of the words in the legends, and the tables of guarantees.
bool has_guarantees(const Contents& contents);
DataList guarantees_data(const Contents& contents);
/// The class of page.css for a cell's guarantee: right, wasteful, wrong, or none.
std::string guarantee_class(std::string_view cell);

/// The notes on the papers, each with links to the figures that it explains.
DataList notes_data(const Papers& papers, const Contents& contents);
std::string note_anchor(const std::string& paper_name, std::size_t index);
/// Links to the notes that name a figure or table.
std::vector<Link> links_to_notes(const schema::DataSpec& spec, const Papers& papers);

/// Every row that figures must not draw, and the reason.
ShownTable rows_not_drawn(const Contents& contents, const Folders& folders, const PageFolder& page);
DataList settings_data(const Folders& folders, const PageFolder& page);
DataList provenance_data(const Folders& folders, const PageFolder& page);
/// The URL of a file of a result folder, relative to the page's folder.
std::string link_to(const ResultFolder& folder, const std::string& file, const PageFolder& page);

/// "16-byte keys, 100000 records": the key columns with a single value in all of these rows, and
/// the number of repetitions.
std::string constants(const Points& points, const std::vector<std::size_t>& rows);

}  // namespace perdura::report
