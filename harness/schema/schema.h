// The columns of a result folder's points.csv: those of columns.h, which every folder has, followed
// by those that drivers and systems declare. A folder's manifest.json describes the latter, and the
// words in which values are shown, such as systems' titles, so that readers need not know any
// driver or system.
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

namespace perdura::schema {

class Schema {
 public:
  /// The columns of columns.h alone.
  Schema();
  /// Those columns and the declared ones, whose texts are copied. A declared column whose name
  /// exists already is left out.
  explicit Schema(std::span<const Column> declared);

  /// The columns of points.csv, in order, without the hosts' noise, which real platforms add.
  std::span<const Column> columns() const { return columns_; }
  /// The columns that are not in columns.h.
  std::span<const Column> declared() const { return columns().subspan(point_columns().size()); }
  /// A column of points.csv, or of another file that columns.h knows; null if there is none.
  const Column* find(std::string_view name) const;
  bool in_points(std::string_view name) const;
  /// The columns that identify a row's point and repetition: those of columns.h, then declared
  /// ones.
  std::vector<Column> identity() const;
  /// How a column is shown; an unknown column is shown by its name.
  Quantity quantity(std::string_view name) const;

  /// Sets how values of a column are shown; the texts are copied. Precondition: the column exists.
  void set_words(std::string_view column, std::span<const Spelling> words);
  /// A value of any column as it is shown.
  std::string shown(std::string_view column, std::string_view value) const;

  /// The declared columns, for the manifest.
  Json to_json() const;
  /// The words that were set, for the manifest: {"system": {NAME: TITLE}}.
  Json words_to_json() const;
  /// The schema of the folder that a file is in, from its manifest.json; without one, the columns
  /// of columns.h. Error: the manifest's "columns" or "words" are not what this class writes.
  static Expected<Schema> beside(const std::filesystem::path& file);

 private:
  /// The texts and words that columns refer to. Copies of a schema share them.
  struct Kept {
    std::deque<std::string> texts;
    std::deque<std::vector<Spelling>> words;
  };

  std::string_view keep(std::string_view text);

  std::shared_ptr<Kept> kept_;
  std::vector<Column> columns_;
};

/// The columns of those parameters in a table that identify points.
Schema parameter_columns(std::span<const Parameter> table);

}  // namespace perdura::schema
