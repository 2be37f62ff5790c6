#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"
#include "harness/schema/columns.h"
#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

/// Every figure or table with this id that is compared with this paper, under whose title the links
/// stand; none if there is none in this report.
std::vector<std::string> links_to(const std::string& id, const std::string& paper,
                                  const Contents& contents) {
  std::vector<std::string> links;
  const auto add = [&](const auto& result, const std::string& anchor, std::string label) {
    if (result.spec.id != id || result.spec.paper != paper) return;
    const std::string before = result.paper_name + ", ";
    if (label.starts_with(before)) label.erase(0, before.size());
    links.push_back(fmt::format("<a href=\"#{}\">{}</a>", anchor, escaped(label)));
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

std::string paragraphs(const std::string& text) {
  std::string html;
  std::size_t start = 0;
  while (start < text.size()) {
    const auto end = std::min(text.find("\n\n", start), text.size());
    const std::string part = text.substr(start, end - start);
    if (part.find_first_not_of(" \n") != std::string::npos) {
      html += fmt::format("<p>{}</p>\n", escaped(part));
    }
    start = end + 2;
  }
  return html;
}

std::string describe(const ResultFolder& folder, std::size_t row) {
  const Points& points = folder.points;
  return fmt::format("{}, {}, {}-byte values, {} client threads, {}, repetition {}",
                     folder.specs.systems.shown(points.text(row, "system")),
                     shown_workload(points.text(row, "workload")), points.text(row, "value_size"),
                     points.text(row, "clients"), points.text(row, "operation"),
                     points.text(row, "repetition"));
}

using Reasons = std::map<std::size_t, std::string>;  // by row of points.csv

void add_reasons(Reasons& reasons, const std::vector<OmittedRow>& omitted) {
  for (const OmittedRow& each : omitted) reasons.emplace(each.row, each.reason);
}

/// Where a file of a result folder lies, from the page's folder, as a URL.
std::string link_to(const ResultFolder& folder, const char* file,
                    const std::filesystem::path& page) {
  const std::string path = (folder.path / file).lexically_proximate(page).generic_string();
  std::string url;
  for (const char character : path) {
    const auto byte = static_cast<unsigned char>(character);
    const bool plain = std::isalnum(byte) != 0 || std::strchr("/._-~", character) != nullptr;
    url += plain ? std::string(1, character) : fmt::format("%{:02X}", byte);
  }
  return url;
}

std::vector<std::string> links_to_files(const ResultFolder& folder,
                                        const std::filesystem::path& page) {
  std::vector<std::string> links;
  for (const char* file : {"points.csv", "probes.csv", "histograms.csv", "timeline.csv",
                           "experiment.toml", "manifest.json"}) {
    if (!std::filesystem::exists(folder.path / file)) continue;
    links.push_back(fmt::format("<a href=\"{}\">{}</a>", link_to(folder, file, page), file));
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

}  // namespace

std::string note_anchor(const std::string& paper_name, std::size_t index) {
  return fmt::format("note-{}-{}", paper_name, index + 1);
}

std::vector<std::string> notes_on(const DataSpec& spec, const Papers& papers) {
  std::vector<std::string> anchors;
  const auto paper = papers.find(spec.paper);
  if (paper == papers.end()) return anchors;
  const auto& notes = paper->second.notes;
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const auto& ids = notes[i].figures;
    if (std::find(ids.begin(), ids.end(), spec.id) != ids.end()) {
      anchors.push_back(note_anchor(paper->first, i));
    }
  }
  return anchors;
}

std::string note_links(const std::vector<std::string>& anchors) {
  if (anchors.empty()) return "";
  if (anchors.size() == 1) {
    return fmt::format("<a href=\"#{}\">what differs and why</a> · ", anchors.front());
  }
  std::vector<std::string> links;
  for (const std::string& anchor : anchors) {
    links.push_back(fmt::format("<a href=\"#{}\">{}</a>", anchor, links.size() + 1));
  }
  return fmt::format("what differs and why: {} · ", fmt::join(links, ", "));
}

std::string notes_block(const std::string& paper_name, const ReportedPaper& paper,
                        const Contents& contents) {
  if (paper.notes.empty()) {
    return fmt::format("<p>There are no notes on {} yet.</p>\n", escaped(paper_name));
  }
  std::string html = fmt::format("<h3>{}</h3>\n", escaped(paper.title));
  for (std::size_t i = 0; i < paper.notes.size(); ++i) {
    html += fmt::format("<div class=\"block\" id=\"{}\">\n", note_anchor(paper_name, i));
    std::vector<std::string> links;
    for (const std::string& id : paper.notes[i].figures) {
      for (std::string& link : links_to(id, paper_name, contents)) links.push_back(std::move(link));
    }
    if (!links.empty()) html += fmt::format("<h4>{}</h4>\n", fmt::join(links, ", "));
    html += paragraphs(paper.notes[i].text);
    if (!paper.notes[i].run.empty()) {
      html += fmt::format("<p class=\"small\">To put it to the test: <code>{}</code></p>\n",
                          escaped(paper.notes[i].run));
    }
    html += "</div>\n";
  }
  return html;
}

std::string not_drawn_block(const Contents& contents, const std::vector<ResultFolder>& folders,
                            const std::filesystem::path& page, std::size_t& count) {
  count = 0;
  std::string items;
  for (const ResultFolder& folder : folders) {
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
    for (const auto& [row, reason] : reasons) {
      items += fmt::format(
          "<li>{} <a href=\"{}\">{}/points.csv</a>, line {}: "
          "<strong>{}</strong></li>\n",
          escaped(describe(folder, row)), link_to(folder, "points.csv", page), escaped(folder.name),
          folder.points.line(row), escaped(reason));
    }
    count += reasons.size();
  }
  std::string html = "<section>\n<h2 id=\"not-drawn\">Rows not drawn</h2>\n";
  if (count == 0) return html + "<p>None: every row is valid.</p>\n</section>\n";
  return html + fmt::format(
                    "<p>{} row{} of the results {} in no figure, table or average.</p>\n"
                    "<details{}><summary>Each with its reason</summary>\n<ul>\n{}</ul>\n"
                    "</details>\n</section>\n",
                    count, count == 1 ? "" : "s", count == 1 ? "is" : "are",
                    count <= 20 ? " open" : "", items);
}

std::string settings_block(const std::vector<ResultFolder>& folders,
                           const std::filesystem::path& page) {
  std::string html = "<section>\n<h2 id=\"settings\">Settings</h2>\n";
  for (const ResultFolder& folder : folders) {
    html += fmt::format("<details><summary>{}</summary>\n<div class=\"scroll\"><table><tbody>\n",
                        escaped(folder.name));
    for (const Column& column : folder.points.schema().columns()) {
      const bool named = column.name == "system" || column.name == "workload";
      if (!named && column.role != Column::Role::parameter && column.role != Column::Role::draw) {
        continue;
      }
      const std::string values = distinct(folder.points, column.name);
      if (values.empty() || values == column.usual) continue;
      const Quantity& quantity = column.shown;
      html += fmt::format("<tr><th>{}{}{}</th><td>{}</td></tr>\n", escaped(quantity.noun),
                          quantity.unit.empty() ? "" : ", ", quantity.unit, escaped(values));
    }
    html += "</tbody></table></div>\n";
    // Probes are run without an experiment.
    if (!folder.experiment_text.empty()) {
      html +=
          fmt::format("<p class=\"small\"><a href=\"{}\">experiment.toml</a></p><pre>{}</pre>",
                      link_to(folder, "experiment.toml", page), escaped(folder.experiment_text));
    }
    html += "</details>\n";
  }
  return html + "</section>\n";
}

std::string provenance_block(const std::vector<ResultFolder>& folders,
                             const std::filesystem::path& page) {
  std::string html =
      "<section>\n<h2 id=\"provenance\">Provenance</h2>\n"
      "<p>From each run's manifest: what is needed to get the same rows again.</p>\n";
  for (const ResultFolder& folder : folders) {
    html += fmt::format(
        "<details><summary>{}</summary>\n<p class=\"small\">{}</p>\n"
        "<div class=\"scroll\"><table><tbody>\n",
        escaped(folder.name), fmt::join(links_to_files(folder, page), " · "));
    for (const auto& [name, value] : folder.manifest) {
      const bool several_lines = value.find('\n') != std::string::npos;
      const std::string shown =
          several_lines ? fmt::format("<pre>{}</pre>", escaped(value)) : escaped(value);
      html += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escaped(name), shown);
    }
    html += "</tbody></table></div></details>\n";
  }
  return html + "</section>\n";
}

}  // namespace perdura::report
