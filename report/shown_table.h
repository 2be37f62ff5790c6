// A table as people see it. Every table of the page is one of these and has the same template.
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
  std::string hint{};   ///< shown to who points at the cell
  std::string link{};   ///< where the text leads to
  std::string below{};  ///< a second line, in the style of the class below_css
  std::string below_css{};
  std::vector<Link> links{};  ///< behind the text
  std::size_t columns = 1;    ///< that it spans
  bool strong = false;
  bool as_written = false;  ///< with its line breaks
};

struct ShownRow {
  std::vector<Cell> cells;
  bool group = false;  ///< a heading above the rows that follow
};

struct ShownTable {
  enum class Fold {
    long_ones,  ///< if it has more rows than kRowsShown
    closed,
    open,  ///< may be folded, and is not
    never,
  };
  std::vector<ShownRow> head{};
  std::vector<ShownRow> rows{};
  std::string css{};
  std::string summary{};  ///< what stands for it while it is folded; empty: how many rows it has
  Fold fold = Fold::long_ones;
  bool first_is_heading = false;  ///< of each row the first cell
};

/// A table with more rows is folded away.
inline constexpr std::size_t kRowsShown = 16;

/// For table.html.
Data data_of(const ShownTable& table);

/// For links.html: the links, with a dot between any two.
Data data_of(const std::vector<Link>& links);

/// "1 point", "2 points".
std::string count_of(std::size_t count, const std::string& noun);

}  // namespace perdura::report
