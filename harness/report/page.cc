#include "harness/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"

namespace perdura::report {
namespace {

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

std::string figures_section(const Section& section, const Papers& papers) {
  if (section.figures.empty()) return "";
  std::string html = fmt::format("<section>\n<h2 id=\"{}\">{}</h2>\n", section_anchor(section),
                                 escaped(section_title(section)));
  html +=
      section.origin.modelled()
          ? "<p>Time passes in a model of the testbed; the systems' code is the code that runs "
            "on real hardware.</p>\n"
          : "<p>Real time on the host named under <a href=\"#provenance\">Provenance</a>. It is "
            "not the paper's testbed, so its absolute numbers are not the paper's.</p>\n";
  html += "<div class=\"grid\">\n";
  for (const FigureResult& figure : section.figures) {
    html += figure_block(figure, notes_on(figure.spec, papers));
  }
  return html + "</div>\n</section>\n";
}

std::string navigation(const Contents& contents, const Papers& papers, bool tables, bool claims) {
  std::string html = "<nav aria-label=\"Contents\"><ul>\n";
  for (const Section& section : contents.sections) {
    if (section.figures.empty()) continue;
    html += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section_anchor(section),
                        escaped(section_title(section)));
  }
  if (tables) html += "<li><a href=\"#tables\">Tables</a></li>\n";
  if (claims) html += "<li><a href=\"#claims\">What the papers claim</a></li>\n";
  if (has_guarantees(contents)) {
    html += "<li><a href=\"#guarantees\">What is guaranteed when the power fails</a></li>\n";
  }
  if (!papers.empty()) {
    html += "<li><a href=\"#differences\">Where results differ from the papers</a></li>\n";
  }
  html +=
      "<li><a href=\"#not-drawn\">Rows not drawn</a></li>\n"
      "<li><a href=\"#settings\">Settings</a></li>\n"
      "<li><a href=\"#provenance\">Provenance</a></li>\n</ul></nav>\n";
  return html;
}

/// The tables of all origins, each with its badge.
std::string tables_section(const Contents& contents, const Papers& papers) {
  std::string html;
  for (const Section& section : contents.sections) html += findings(section);
  if (!html.empty()) html = "<div class=\"grid\">\n" + html + "</div>\n";
  for (const Section& section : contents.sections) {
    for (const TableResult& table : section.tables) {
      html += table_block(table, notes_on(table.spec, papers));
    }
  }
  if (html.empty()) return "";
  return "<section>\n<h2 id=\"tables\">Tables</h2>\n" + html + "</section>\n";
}

}  // namespace

std::string badge(const Origin& origin) {
  return origin.modelled() ? "<span class=\"badge modelled\">modelled</span>"
                           : "<span class=\"badge measured\">measured on this host</span>";
}

Page make_page(const Contents& contents, const std::vector<ResultFolder>& folders,
               const Papers& papers, const std::filesystem::path& folder) {
  Page page;
  const std::string not_drawn = not_drawn_block(contents, folders, folder, page.rows_not_drawn);
  page.html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Perdura report</title>\n<style>{}</style>\n</head>\n<body>\n<header>\n",
      page_style());
  const std::vector<ClaimResult> claims = measure_claims(contents, folders, papers);
  const std::string tables = tables_section(contents, papers);
  page.html += overview(contents, folders, claims) +
               navigation(contents, papers, !tables.empty(), !claims.empty()) +
               "</header>\n<main>\n";
  for (const Section& section : contents.sections) page.html += figures_section(section, papers);
  page.html += tables + claims_block(claims);
  page.html += guarantees_block(contents);
  if (!papers.empty()) {
    page.html +=
        "<section>\n<h2 id=\"differences\">Where results differ from the papers, and why</h2>\n";
    for (const auto& [name, paper] : papers) page.html += notes_block(name, paper, contents);
    page.html += "</section>\n";
  }
  page.html += not_drawn + settings_block(folders, folder) + provenance_block(folders, folder);
  page.html += "</main>\n</body>\n</html>\n";
  return page;
}

}  // namespace perdura::report
