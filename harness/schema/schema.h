// Which columns a result folder's points.csv has: those of columns.h, which every folder has, and
// behind them what drivers and systems have declared of their own. A folder's manifest.json
// describes the latter, and says in which words values are shown, such as systems' titles, so that
// readers need to know no driver and no system.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/schema/columns.h"
#include "harness/schema/error.h"
#include "platform/base/parameter.h"

namespace perdura {
class Json;
}

namespace perdura::report {

class Schema {
 public:
  /// The columns of columns.h alone.
  Schema();
  /// Those columns and the declared ones, whose texts are copied. A declared column that exists
  /// already is left out.
  explicit Schema(std::span<const Column> declared);

  /// Of points.csv, in their order; hosts' noise, which real platforms add, is not among them.
  std::span<const Column> columns() const { return columns_; }
  /// Those that are not of columns.h.
  std::span<const Column> declared() const { return columns().subspan(point_columns().size()); }
  /// A column of points.csv, or of another file that columns.h knows; null if there is none.
  const Column* find(std::string_view name) const;
  bool in_points(std::string_view name) const;
  /// Those that say which point and repetition a row belongs to: of columns.h, then those declared.
  std::vector<Column> identity() const;
  /// How a column is shown; an unknown column is shown by its name.
  Quantity quantity(std::string_view name) const;

  /// How values of a column are shown that have words of their own; the texts are copied.
  /// Precondition: there is a column of that name.
  void set_words(std::string_view column, std::span<const Spelling> words);
  /// A value of any column, in the words that there are for it.
  std::string shown(std::string_view column, std::string_view value) const;

  /// The columns that are declared, for the manifest.
  Json to_json() const;
  /// The words that were set, likewise: {"system": {NAME: TITLE}}.
  Json words_to_json() const;
  /// Of the folder that a file is in, by its manifest.json; without one, those of columns.h.
  /// Error: the manifest's "columns" or "words" are not what this class writes.
  static Expected<Schema> beside(const std::filesystem::path& file);

 private:
  /// What columns refer to. Copies of a schema share it.
  struct Kept {
    std::deque<std::string> texts;
    std::deque<std::vector<Spelling>> words;
  };

  std::string_view keep(std::string_view text);

  std::shared_ptr<Kept> kept_;
  std::vector<Column> columns_;
};

/// The columns of the parameters of a table that identify points.
Schema parameter_columns(std::span<const Parameter> table);

}  // namespace perdura::report
