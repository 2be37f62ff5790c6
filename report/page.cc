#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/plain_name.h"
#include "report/page_data.h"

namespace perdura::report {
namespace {

std::string anchor_of(const Origin& origin) {
  std::string anchor = "from-" + origin.platform + "-" + origin.profile;
  std::replace_if(
      anchor.begin(), anchor.end(), [](char c) { return !is_plain_character(c); }, '_');
  return anchor;
}

Data section_data(const Section& section, const Folders& folders, const Papers& papers,
                  const Claims& claims) {
  Data data;
  data["modelled"] = section.origin.modelled();
  data["anchor"] = anchor_of(section.origin);
  data["origin_title"] = section.origin.title();
  data["platform"] = section.origin.platform;
  data["profile"] = section.origin.profile;
  data["runs"] = runs_data(section, folders);
  data["has_figures"] = !section.figures.empty();
  data["figures"] = list_of(section.figures, [&](const FigureResult& figure) {
    return figure_data(figure, papers, claims);
  });
  const ShownTable ratios = ratios_table(section);
  if (!ratios.rows.empty()) data["ratios"] = data_of(ratios);
  data["tables"] =
      list_of(section.tables, [&](const TableResult& table) { return table_data(table, papers); });
  return data;
}

}  // namespace

Page make_page(const Contents& contents, const Designs& designs, const Folders& folders,
               const Papers& papers, const std::filesystem::path& folder) {
  const Claims claims = measure_claims(contents, folders, papers);
  Page page;
  Data data;
  if (!designs.groups.empty()) {
    Data tables;
    tables["tables"] = list_of(tables_of(designs), [&](const Designs& some) {
      return data_of(designs_table(some, contents, folder));
    });
    data["designs"] = std::move(tables);
  }
  data["sections"] = list_of(contents.sections, [&](const Section& section) {
    return section_data(section, folders, papers, claims);
  });
  data["has_any_tables"] =
      std::any_of(contents.sections.begin(), contents.sections.end(), [](const Section& section) {
        return !section.tables.empty() || !ratios_table(section).rows.empty();
      });
  DataList not_begun;
  for (const ResultFolder& each : folders) {
    if (each.points.size() == 0 && !each.unfinished().empty()) {
      Data run;
      run["run"] = each.name;
      run["run_state"] = each.unfinished();
      not_begun.push_back(std::move(run));
    }
  }
  data["not_begun"] = not_begun;
  data["remarks"] = list_of(contents.remarks, [](const std::string& remark) {
    Data line;
    line["remark"] = remark;
    return line;
  });
  if (!claims.empty()) data["claims"] = claims_data(claims);
  data["has_guarantees"] = has_guarantees(contents);
  data["guarantees"] = guarantees_data(contents);
  data["has_guarantee_tables"] = !contents.guarantees.empty();
  data["has_notes"] = !papers.empty();
  data["notes"] = notes_data(papers, contents);
  const ShownTable not_drawn = rows_not_drawn(contents, folders, folder);
  page.rows_not_drawn = not_drawn.rows.size();
  if (!not_drawn.rows.empty()) data["not_drawn"] = data_of(not_drawn);
  data["settings"] = settings_data(folders, folder);
  data["provenance"] = provenance_data(folders, folder);
  page.html = render("page.html", std::move(data));
  return page;
}

}  // namespace perdura::report
