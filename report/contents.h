#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/schema/spec.h"
#include "report/comparison.h"
#include "report/figure_data.h"
#include "report/guarantees.h"
#include "report/reported.h"
#include "report/result_folder.h"
#include "report/svg.h"

namespace perdura::report {

/// Where numbers come from. Rows of different origins never share a figure.
struct Origin {
  std::string provenance;  ///< modelled or measured
  std::string platform;
  std::string profile;

  bool modelled() const { return provenance == "modelled"; }
  std::string words() const;  ///< "modelled, profile erda-2019"
  std::string title() const;  ///< "Modelled: profile erda-2019"
  auto operator<=>(const Origin&) const = default;
};

Origin origin_of(const Points& points, std::size_t row);

struct FigureResult {
  const ResultFolder* folder = nullptr;
  schema::FigureSpec spec;
  Origin origin;
  std::string name;        ///< of its files and its anchor; unique in the report
  std::string paper_name;  ///< tells its "Figure 2" from another paper's; may be empty
  FigureData data;
  Comparison comparison;
  std::vector<TimelineRow> timeline;  ///< of a figure over time, instead of points and comparison
  std::optional<InlineSvg> svg;       ///< nullopt if nothing was drawn
  std::string problem;                ///< why an image is missing though there is data; else empty

  bool empty() const { return data.points.empty() && timeline.empty(); }
};

struct TableResult {
  const ResultFolder* folder = nullptr;
  schema::TableSpec spec;
  Origin origin;
  std::string name;
  std::string paper_name;
  TableData data;
};

/// All figures and tables of one origin, in the order of their ids.
struct Section {
  Origin origin;
  std::vector<FigureResult> figures;
  std::vector<TableResult> tables;
};

/// The content of the page. Refers to folders and papers, which must outlive it.
struct Contents {
  std::vector<Section> sections;  ///< modelled first
  std::vector<GuaranteeTable> guarantees;
  /// Remarks by the person who ran the experiments: the lines of INPUT/remarks.txt.
  std::vector<std::string> remarks;
};

/// The names of the papers that figures and tables are compared with.
std::set<std::string> papers_of(const std::vector<ResultFolder>& folders);

/// `papers` must contain those that papers_of() names. Error: the data or the reported values make
/// a figure or table impossible.
schema::Expected<Contents> gather(const std::vector<ResultFolder>& folders, const Papers& papers);

/// "Erda, Figure 14"; empty if the id is a name of our own, not a number in a paper.
std::string figure_label(const FigureResult& figure);
/// "Erda, Figure 14. Latency of ...", with a remark if its run has not ended.
std::string figure_title(const FigureResult& figure);

/// The reason why a figure has no point, as a phrase: "no row has operation = all; there is:
/// enqueue".
std::string why_empty(const FigureResult& figure);

/// The series' name in the legend, with its guarantee if the guarantees of the figure's series
/// differ.
std::string legend_label(const FigureResult& figure, const Series& series);

/// The tidy CSV that the figure's script reads (docs/figures.md).
std::string figure_csv(const FigureResult& figure);
std::string table_csv(const TableResult& table);

}  // namespace perdura::report
