#include "harness/config/locations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/base/suggestion.h"

namespace perdura::harness {
namespace {

namespace fs = std::filesystem;

struct KindNames {
  std::string_view noun;
  std::string_view folder;
  std::string_view extension;
};

KindNames names_of(FileKind kind) {
  switch (kind) {
    case FileKind::experiment:
      return {"experiment", "experiments", ".toml"};
    case FileKind::profile:
      return {"profile", "profiles", ".toml"};
    case FileKind::workload:
      return {"workload", "workloads", ""};
    case FileKind::site:
      return {"site", "sites", ".toml"};
    case FileKind::trace:
      return {"trace", "workloads/traces", ".txt"};
  }
  return {};
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".toml");
}

std::string at(const Located& name) {
  return name.where.empty() ? "" : fmt::format("{}: ", name.where);
}

}  // namespace

Locations Locations::from(const fs::path& folder) const {
  Locations others = *this;
  others.folder_ = folder;
  for (fs::path& root : others.roots_) root = folder / root;
  return others;
}

fs::path Locations::find(FileKind kind, const Located& name) const {
  const KindNames of_kind = names_of(kind);
  if (is_path(name.text)) {
    fs::path file = folder_ / name.text;
    if (kind_of(file) == PathKind::file) return file;
    throw UsageError(
        fmt::format("{}{} {}: {}", at(name), of_kind.noun, file.string(), not_a_file(file)));
  }
  for (const fs::path& root : open_roots()) {
    const fs::path file = root / of_kind.folder / fmt::format("{}{}", name.text, of_kind.extension);
    if (!name.text.empty() && is_file(file)) return file;
  }
  const bool is_hidden = kind_of(".") == PathKind::unknown;
  // A name never means a file of the current folder itself, which a user may not know.
  for (const std::string& file : {name.text, fmt::format("{}{}", name.text, of_kind.extension)}) {
    if (name.text.empty() || kind_of(folder_ / file) != PathKind::file) continue;
    throw UsageError(fmt::format(
        "{}unknown {} '{}'; if the file here is meant, write ./{} (perdura list {} names the "
        "others)",
        at(name), of_kind.noun, name.text, file, of_kind.folder));
  }
  throw UsageError(at(name) + unknown_name(of_kind.noun, name.text, names(kind)) +
                   (is_hidden ? "; the current folder " + not_a_folder(".") : ""));
}

std::vector<std::string> Locations::names(FileKind kind) const {
  const KindNames of_kind = names_of(kind);
  std::set<std::string> found;
  for (const fs::path& root : open_roots()) {
    if (!is_folder(root / of_kind.folder)) continue;
    for (const fs::path& path : names_in(root / of_kind.folder)) {
      if (path.filename().string().starts_with('.') || !is_file(path)) continue;
      if (path.extension() != of_kind.extension) continue;
      found.insert(path.stem().string());
    }
  }
  return {found.begin(), found.end()};
}

namespace {

// An axis that doubles from number to number cannot show 0.
void check_positive(const schema::FigureSpec& figure, const std::vector<Axis>& matrix) {
  for (const Axis& axis : matrix) {
    if (axis.parameter != figure.x) continue;
    for (const Axis::Value& value : axis.values) {
      const std::string text = value.value.to_text();
      const bool left_out = std::any_of(
          figure.where.begin(), figure.where.end(), [&](const schema::Condition& condition) {
            return condition.column == figure.x && !condition.holds(text);
          });
      if (left_out || std::strtod(text.c_str(), nullptr) > 0) continue;
      throw UsageError(fmt::format(
          "{}: figure {} draws {} on a logarithmic x-axis, which has no place for {}; leave the "
          "value out, by where = {{ {} = [...] }} of the figure, too, or take another plot",
          value.where, figure.id, figure.x, text, figure.x));
    }
  }
}

// A system's name that is mistyped would leave the figure empty, which the user would see only
// after the whole sweep. A system that is known and not in the matrix is all right: a sweep may be
// run for some of them.
void check_systems(const schema::DataSpec& spec, std::string_view kind,
                   const Experiment& experiment) {
  std::vector<std::string> known;
  for (const auto& system : experiment.declared.systems) known.emplace_back(system.name);
  for (const auto& [name, settings] : experiment.systems) known.push_back(name);
  const auto check = [&](std::string_view key, const std::string& column,
                         const std::vector<std::string>& names) {
    if (column != "system") return;
    for (const std::string& name : names) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      throw UsageError(fmt::format("{}: {} {}: {}: {}", spec.place, kind, spec.id, key,
                                   unknown_name("system", name, known)));
    }
  };
  for (const schema::Condition& condition : spec.where) {
    check("where", condition.column, condition.any_of);
  }
  if (spec.normalize) check("normalize", spec.normalize->column, spec.normalize->any_of);
  if (!spec.baseline.empty()) check("baseline", spec.series, {spec.baseline});
}

}  // namespace

void Locations::check_plots(const Experiment& experiment) const {
  for (const schema::FigureSpec& figure : experiment.specs.figures) {
    check_systems(figure, "figure", experiment);
  }
  for (const schema::TableSpec& table : experiment.specs.tables) {
    check_systems(table, "table", experiment);
  }
  const auto there = schema::check_plots(experiment.specs, plots());
  if (!there) throw UsageError(there.error().message);
  for (const schema::FigureSpec& figure : experiment.specs.figures) {
    const auto axis = schema::x_axis_of(plots() / (figure.plot + ".gp"));
    if (!figure.at.empty() || axis != schema::XAxis::positive_numbers) continue;
    check_positive(figure, experiment.matrix);
  }
}

std::string plain_name(FileKind kind, const fs::path& file) {
  return kind == FileKind::workload ? file.filename().string() : file.stem().string();
}

}  // namespace perdura::harness
