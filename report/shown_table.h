// A table as people see it. Every table of the page is one of these and uses the same template.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/templates.h"

namespace perdura::report {

struct Link {
  std::string to;
  std::string text;
};

struct Cell {
  std::string text{};
  std::string css{};    ///< classes of page.css: n is a number, apart a column with space before it
  std::string hint{};   ///< shown when the user points at the cell
  std::string link{};   ///< target of a link on the text
  std::string below{};  ///< a second line, in the style of the class below_css
  std::string below_css{};
  std::vector<Link> links{};  ///< after the text
  std::size_t columns = 1;    ///< number of columns that it spans
  bool strong = false;
  bool as_written = false;  ///< keeps its line breaks
};

struct ShownRow {
  std::vector<Cell> cells;
  bool group = false;  ///< a heading of the rows that follow
};

struct ShownTable {
  enum class Fold {
    long_ones,  ///< closed if it has more rows than kRowsShown
    closed,
    open,  ///< may be folded, but is open
    never,
  };
  std::vector<ShownRow> head{};
  std::vector<ShownRow> rows{};
  std::string css{};
  std::string summary{};  ///< shown while it is folded; empty: the number of rows
  Fold fold = Fold::long_ones;
  bool first_is_heading = false;  ///< the first cell of each row is a heading
};

/// Longer tables are folded.
inline constexpr std::size_t kRowsShown = 16;

/// The data for table.html.
Data data_of(const ShownTable& table);

/// The data for links.html: the links, separated by dots.
Data data_of(const std::vector<Link>& links);

/// "1 point", "2 points".
std::string count_of(std::size_t count, const std::string& noun);

}  // namespace perdura::report
