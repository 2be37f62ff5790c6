#include "harness/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"
#include "harness/report/quantity.h"

namespace perdura::report {
namespace {

std::string plural(std::size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// "erda-cpu (48 rows, 2 not valid)".
std::string run_words(const ResultFolder& folder, const Origin& origin) {
  std::size_t all = 0;
  std::size_t valid = 0;
  for (std::size_t row = 0; row < folder.points.size(); ++row) {
    if (origin_of(folder.points, row) != origin) continue;
    ++all;
    if (folder.points.valid(row)) ++valid;
  }
  if (all == 0) return "";
  return fmt::format(
      "{} ({}{})", escaped(folder.name), plural(all, "row"),
      valid == all ? "" : fmt::format(", <a href=\"#not-drawn\">{} not valid</a>", all - valid));
}

/// What was run on one platform, by which versions.
std::string runs_line(const Section& section, const std::vector<ResultFolder>& folders) {
  std::vector<std::string> runs;
  std::set<std::string> versions;
  for (const ResultFolder& folder : folders) {
    const std::string words = run_words(folder, section.origin);
    if (words.empty()) continue;
    runs.push_back(words);
    const std::string version = folder.from_manifest("version");
    versions.insert(version.empty() ? "of unknown version" : escaped(version));
  }
  return fmt::format(
      "<li>{} platform <code>{}</code>, profile <code>{}</code>, perdura {}: {}"
      "</li>\n",
      badge(section.origin), escaped(section.origin.platform), escaped(section.origin.profile),
      fmt::join(versions, " and "), fmt::join(runs, ", "));
}

std::string section_anchor(const Section& section) {
  std::string anchor = "from-" + section.origin.platform + "-" + section.origin.profile;
  std::replace_if(
      anchor.begin(), anchor.end(),
      [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_' && c != '.'; }, '_');
  return anchor;
}

std::string section_title(const Section& section) {
  const Origin& origin = section.origin;
  return origin.modelled() ? fmt::format("Modelled: profile {}", origin.profile)
                           : fmt::format("Measured on this host: platform {}", origin.platform);
}

std::string section_block(const Section& section, const Papers& papers) {
  std::string html = fmt::format("<section>\n<h2 id=\"{}\">{}</h2>\n", section_anchor(section),
                                 escaped(section_title(section)));
  html +=
      section.origin.modelled()
          ? "<p>Time passes in a model of the testbed; the systems' code is the code that runs "
            "on real hardware.</p>\n"
          : "<p>Real time on the host named under <a href=\"#provenance\">Provenance</a>. It is "
            "not the paper's testbed, so its absolute numbers are not the paper's.</p>\n";
  if (!section.figures.empty()) html += "<div class=\"grid\">\n";
  for (const FigureResult& figure : section.figures) {
    html += figure_block(figure, notes_on(figure.spec, papers));
  }
  if (!section.figures.empty()) html += "</div>\n";
  for (const TableResult& table : section.tables) {
    html += table_block(table, notes_on(table.spec, papers));
  }
  html += claims_block(section);
  return html + "</section>\n";
}

std::string navigation(const Contents& contents, const Papers& papers) {
  std::string html = "<nav aria-label=\"Contents\"><ul>\n";
  for (const Section& section : contents.sections) {
    html += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section_anchor(section),
                        escaped(section_title(section)));
  }
  if (has_guarantees(contents)) {
    html += "<li><a href=\"#guarantees\">What is guaranteed when the power fails</a></li>\n";
  }
  if (!papers.empty()) {
    html += "<li><a href=\"#differences\">What differs from the paper</a></li>\n";
  }
  html +=
      "<li><a href=\"#not-drawn\">Rows not drawn</a></li>\n"
      "<li><a href=\"#settings\">Settings</a></li>\n"
      "<li><a href=\"#provenance\">Provenance</a></li>\n</ul></nav>\n";
  return html;
}

std::string overview(const Contents& contents, const std::vector<ResultFolder>& folders,
                     const Papers& papers) {
  std::string html =
      "<h1>Perdura report</h1>\n"
      "<p>Remote persistent memory: latency, throughput, CPU cost and bytes written. Numbers that "
      "were modelled and numbers that were measured never share a figure.</p>\n<ul>\n";
  for (const Section& section : contents.sections) html += runs_line(section, folders);
  html += "</ul>\n" + navigation(contents, papers) + "<div class=\"grid\">\n";
  for (const Section& section : contents.sections) html += findings(section);
  return html + "</div>\n";
}

}  // namespace

std::string badge(const Origin& origin) {
  return origin.modelled() ? "<span class=\"badge modelled\">modelled</span>"
                           : "<span class=\"badge measured\">measured on this host</span>";
}

Page make_page(const Contents& contents, const std::vector<ResultFolder>& folders,
               const Papers& papers) {
  Page page;
  const std::string not_drawn = not_drawn_block(contents, folders, page.rows_not_drawn);
  page.html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Perdura report</title>\n<style>{}</style>\n</head>\n<body>\n<header>\n",
      page_style());
  page.html += overview(contents, folders, papers) + "</header>\n<main>\n";
  for (const Section& section : contents.sections) page.html += section_block(section, papers);
  page.html += guarantees_block(contents);
  if (!papers.empty()) {
    page.html += "<section>\n<h2 id=\"differences\">What differs from the paper and why</h2>\n";
    for (const auto& [name, paper] : papers) page.html += notes_block(name, paper, contents);
    page.html += "</section>\n";
  }
  page.html += not_drawn + settings_block(folders) + provenance_block(folders);
  page.html += "</main>\n</body>\n</html>\n";
  return page;
}

}  // namespace perdura::report
