#include "harness/config/locations.h"

#include <fmt/format.h>

#include <set>

#include "harness/text/path_kind.h"
#include "harness/text/suggestion.h"
#include "platform/base/error.h"

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
  std::error_code ignored;
  if (is_path(name.text)) {
    fs::path file = folder_ / name.text;
    if (fs::is_regular_file(file, ignored)) return file;
    throw UsageError(
        fmt::format("{}{} {}: {}", at(name), of_kind.noun, file.string(), not_a_file(file)));
  }
  for (const fs::path& root : roots_) {
    const fs::path file = root / of_kind.folder / fmt::format("{}{}", name.text, of_kind.extension);
    if (!name.text.empty() && fs::is_regular_file(file, ignored)) return file;
  }
  throw UsageError(at(name) + unknown_name(of_kind.noun, name.text, names(kind)));
}

std::vector<std::string> Locations::names(FileKind kind) const {
  const KindNames of_kind = names_of(kind);
  std::set<std::string> found;
  for (const fs::path& root : roots_) {
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(root / of_kind.folder, missing)) {
      const std::string file = entry.path().filename().string();
      if (!entry.is_regular_file() || file.starts_with('.')) continue;
      if (entry.path().extension() != of_kind.extension) continue;
      found.insert(entry.path().stem().string());
    }
  }
  return {found.begin(), found.end()};
}

void Locations::check_plots(const Experiment& experiment) const {
  const auto there = report::check_plots(experiment.specs, plots());
  if (!there) throw UsageError(there.error().message);
}

std::string plain_name(FileKind kind, const fs::path& file) {
  return kind == FileKind::workload ? file.filename().string() : file.stem().string();
}

}  // namespace perdura::harness
