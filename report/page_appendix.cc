// The page's appendix: notes on papers, rows that are not drawn, settings and provenance.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "harness/schema/columns.h"
#include "harness/schema/quantity.h"
#include "platform/base/path_kind.h"
#include "report/page_data.h"

namespace perdura::report {
namespace {

/// Links to every figure or table with this id that is compared with this paper; none if this
/// report has none.
std::vector<Link> links_to(const std::string& id, const std::string& paper,
                           const Contents& contents) {
  std::vector<Link> links;
  const auto add = [&](const auto& result, const std::string& anchor, std::string label) {
    if (result.spec.id != id || result.spec.paper != paper) return;
    const std::string before = result.paper_name + ", ";
    if (label.starts_with(before)) label.erase(0, before.size());
    links.push_back({"#" + anchor, label});
  };
  for (const Section& section : contents.sections) {
    for (const FigureResult& figure : section.figures) {
      const std::string label = figure_label(figure);
      add(figure, "fig-" + figure.name, label.empty() ? figure.spec.title : label);
    }
    for (const TableResult& table : section.tables) add(table, table.name, table_label(table));
  }
  return links;
}

DataList paragraphs(const std::string& text) {
  DataList parts;
  std::size_t start = 0;
  while (start < text.size()) {
    const auto end = std::min(text.find("\n\n", start), text.size());
    const std::string part = text.substr(start, end - start);
    if (part.find_first_not_of(" \n") != std::string::npos) parts.push_back(part);
    start = end + 2;
  }
  return parts;
}

std::string describe(const ResultFolder& folder, std::size_t row) {
  const Points& points = folder.points;
  return fmt::format("{}, {}, {}-byte values, {} client threads, {}, repetition {}",
                     folder.specs.systems.shown(points.text(row, "system")),
                     schema::shown_workload(points.text(row, "workload")),
                     points.text(row, "value_size"), points.text(row, "clients"),
                     points.text(row, "operation"), points.text(row, "repetition"));
}

using Reasons = std::map<std::size_t, std::string>;  // by row of points.csv

void add_reasons(Reasons& reasons, const std::vector<OmittedRow>& omitted) {
  for (const OmittedRow& each : omitted) reasons.emplace(each.row, each.reason);
}

std::vector<Link> links_to_files(const ResultFolder& folder, const PageFolder& page) {
  std::vector<Link> links;
  for (const char* file : {"points.csv", "probes.csv", "histograms.csv", "timeline.csv",
                           "experiment.toml", "manifest.json"}) {
    if (is_there(folder.path / file)) {
      links.push_back({link_to(folder, file, page), file});
    }
  }
  return links;
}

std::string distinct(const Points& points, std::string_view column) {
  std::vector<std::string> values;
  std::set<std::string_view> known;
  for (std::size_t row = 0; row < points.size(); ++row) {
    const std::string& value = points.text(row, column);
    if (known.insert(value).second) values.push_back(value);
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

ShownTable settings_of(const ResultFolder& folder) {
  ShownTable table{.fold = ShownTable::Fold::closed, .first_is_heading = true};
  table.summary = folder.name;
  for (const schema::Column& column : folder.points.schema().columns()) {
    const bool named = column.name == "system" || column.name == "workload";
    if (!named && column.role != schema::Column::Role::parameter &&
        column.role != schema::Column::Role::draw) {
      continue;
    }
    const std::string values = distinct(folder.points, column.name);
    if (values.empty()) continue;
    const schema::Quantity& quantity = column.shown;
    table.rows.push_back(
        {{{fmt::format("{}{}{}", quantity.noun, quantity.unit.empty() ? "" : ", ", quantity.unit)},
          {values}}});
  }
  std::vector<std::string_view> nodes;
  for (const auto& [name, value] : folder.manifest) {
    if (name.starts_with("nodes.")) nodes.push_back(value);
  }
  if (!nodes.empty()) {
    table.rows.push_back({{{"nodes"}, {fmt::format("{}", fmt::join(nodes, "; "))}}});
  }
  return table;
}

Reasons reasons_of(const ResultFolder& folder, const Contents& contents) {
  Reasons reasons;
  for (std::size_t row = 0; row < folder.points.size(); ++row) {
    if (folder.points.valid(row)) continue;
    const std::string& reason = folder.points.text(row, "reason");
    reasons.emplace(row, fmt::format("{}: {}", folder.points.text(row, "verdict"),
                                     reason.empty() ? "no reason given" : reason));
  }
  for (const Section& section : contents.sections) {
    for (const FigureResult& figure : section.figures) {
      if (figure.folder == &folder) add_reasons(reasons, figure.data.omitted);
    }
    for (const TableResult& table : section.tables) {
      if (table.folder == &folder) add_reasons(reasons, table.data.omitted);
    }
  }
  return reasons;
}

}  // namespace

std::string link_to(const ResultFolder& folder, const std::string& file, const PageFolder& page) {
  const std::string path = (folder.path / file).lexically_proximate(page).generic_string();
  std::string url;
  for (const char character : path) {
    const auto byte = static_cast<unsigned char>(character);
    const bool plain = std::isalnum(byte) != 0 || std::strchr("/._-~", character) != nullptr;
    url += plain ? std::string(1, character) : fmt::format("%{:02X}", byte);
  }
  return url;
}

std::string note_anchor(const std::string& paper_name, std::size_t index) {
  return fmt::format("note-{}-{}", paper_name, index + 1);
}

std::vector<Link> links_to_notes(const schema::DataSpec& spec, const Papers& papers) {
  std::vector<Link> links;
  const auto paper = papers.find(spec.paper);
  if (paper == papers.end()) return links;
  const auto& notes = paper->second.notes;
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const auto& ids = notes[i].figures;
    if (std::find(ids.begin(), ids.end(), spec.id) == ids.end()) continue;
    links.push_back({"#" + note_anchor(paper->first, i), "what differs and why"});
  }
  for (std::size_t i = 1; i < links.size(); ++i) links[i].text = fmt::to_string(i + 1);
  return links;
}

DataList notes_data(const Papers& papers, const Contents& contents) {
  DataList list;
  for (const auto& [name, paper] : papers) {
    DataList notes;
    for (std::size_t i = 0; i < paper.notes.size(); ++i) {
      Data note;
      note["anchor"] = note_anchor(name, i);
      std::vector<Link> links;
      for (const std::string& id : paper.notes[i].figures) {
        for (Link& link : links_to(id, name, contents)) links.push_back(std::move(link));
      }
      note["about"] = !links.empty();
      note["links"] = data_of(links);
      note["paragraphs"] = paragraphs(paper.notes[i].text);
      note["run"] = false;
      if (!paper.notes[i].run.empty()) note["run"] = paper.notes[i].run;
      notes.push_back(std::move(note));
    }
    Data data;
    data["paper_title"] = paper.notes.empty() ? name : paper.title;
    data["notes"] = notes;
    list.push_back(std::move(data));
  }
  return list;
}

ShownTable rows_not_drawn(const Contents& contents, const Folders& folders,
                          const PageFolder& page) {
  ShownTable table{.head = {{{{"Row"}, {"Of"}, {"Why"}}}}};
  for (const ResultFolder& folder : folders) {
    for (const auto& [row, reason] : reasons_of(folder, contents)) {
      table.rows.push_back(
          {{{.text = fmt::format("{}/points.csv, line {}", folder.name, folder.points.line(row)),
             .link = link_to(folder, "points.csv", page)},
            {.text = describe(folder, row)},
            {.text = reason, .strong = true}}});
    }
  }
  return table;
}

DataList settings_data(const Folders& folders, const PageFolder& page) {
  return list_of(folders, [&](const ResultFolder& folder) {
    Data data;
    data["settings_of"] = data_of(settings_of(folder));
    // Probes run without an experiment.
    data["experiment"] = false;
    if (!folder.experiment_text.empty()) {
      data["experiment"] = folder.experiment_text;
      data["experiment_link"] = link_to(folder, "experiment.toml", page);
    }
    data["name"] = folder.name;
    return data;
  });
}

DataList provenance_data(const Folders& folders, const PageFolder& page) {
  return list_of(folders, [&](const ResultFolder& folder) {
    ShownTable table{.fold = ShownTable::Fold::closed, .first_is_heading = true};
    table.summary = folder.name;
    for (const auto& [name, value] : folder.manifest) {
      const bool several_lines = value.find('\n') != std::string::npos;
      table.rows.push_back({{{.text = name}, {.text = value, .as_written = several_lines}}});
    }
    Data data;
    data["manifest"] = data_of(table);
    data["links"] = data_of(links_to_files(folder, page));
    return data;
  });
}

}  // namespace perdura::report
