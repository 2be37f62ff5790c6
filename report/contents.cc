#include "report/contents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>

#include "report/styles.h"

namespace perdura::report {
namespace {

using RowsByOrigin = std::map<Origin, std::vector<std::size_t>>;

RowsByOrigin by_origin(const Points& points) {
  RowsByOrigin rows;
  for (std::size_t row = 0; row < points.size(); ++row) {
    rows[origin_of(points, row)].push_back(row);
  }
  return rows;
}

/// One order for the whole report, so that a system has the same color in every figure (styles.h).
/// Variants of systems come last: the systems' colors do not depend on which variants there are.
SeriesOrder order_of(const std::vector<ResultFolder>& folders, const std::string& column) {
  SeriesOrder order;
  for (const bool variants : {false, true}) {
    for (const ResultFolder& folder : folders) {
      for (std::size_t row = 0; row < folder.points.size(); ++row) {
        const std::string& name = folder.points.text(row, column);
        const bool variant = column == "system" && folder.specs.systems.variants.contains(name);
        if (variant != variants) continue;
        if (std::find(order.begin(), order.end(), name) == order.end()) order.push_back(name);
      }
    }
  }
  return order;
}

bool numbered(const std::string& id) {
  return std::isdigit(static_cast<unsigned char>(id.front())) != 0;
}

/// The order of ids: "9" before "14" before "14b" before other names, which keep the order of the
/// experiment.
bool id_before(const std::string& left, const std::string& right) {
  if (numbered(left) != numbered(right)) return numbered(left);
  return numbered(left) && strverscmp(left.c_str(), right.c_str()) < 0;
}

/// The only workload that `where` selects; empty if it selects several or none.
std::string single_workload(const schema::DataSpec& spec) {
  for (const schema::Condition& condition : spec.where) {
    if (condition.column == "workload" && condition.any_of.size() == 1) return condition.any_of[0];
  }
  return "";
}

template <class Result>
void name_uniquely(std::vector<Section>& sections, std::vector<Result> Section::*list,
                   const std::string& prefix) {
  std::map<std::string, int> by_id;
  std::map<std::string, int> by_platform;
  const auto on_platform = [](const Result& each) {
    return each.spec.id + "-" + each.origin.platform;
  };
  for (const Section& section : sections) {
    for (const Result& each : section.*list) {
      ++by_id[each.spec.id];
      ++by_platform[on_platform(each)];
    }
  }
  std::set<std::string> used;
  for (Section& section : sections) {
    for (Result& each : section.*list) {
      each.name = prefix + each.spec.id;
      if (by_id[each.spec.id] > 1) each.name = prefix + on_platform(each);
      if (by_platform[on_platform(each)] > 1) each.name += "-" + each.folder->name;
      while (!used.insert(each.name).second) each.name += "x";
    }
  }
}

class Gatherer {
 public:
  Gatherer(const std::vector<ResultFolder>& folders, const Papers& papers)
      : folders_(folders), papers_(papers) {}

  schema::Expected<void> add(const ResultFolder& folder) {
    RowsByOrigin origins = by_origin(folder.points);
    for (const auto& [origin, rows] : origins) {
      for (const schema::FigureSpec& spec : folder.specs.figures) {
        if (auto added = add_figure(folder, spec, origin, rows); !added) return added;
      }
      for (const schema::TableSpec& spec : folder.specs.tables) {
        if (auto added = add_table(folder, spec, origin, rows); !added) return added;
      }
    }
    return {};
  }

  Contents finish() {
    Contents contents;
    for (auto& [origin, section] : sections_) contents.sections.push_back(std::move(section));
    std::stable_sort(contents.sections.begin(), contents.sections.end(),
                     [](const Section& left, const Section& right) {
                       return left.origin.modelled() && !right.origin.modelled();
                     });
    const auto by_id = [](const auto& left, const auto& right) {
      return id_before(left.spec.id, right.spec.id);
    };
    for (Section& section : contents.sections) {
      std::stable_sort(section.figures.begin(), section.figures.end(), by_id);
      std::stable_sort(section.tables.begin(), section.tables.end(), by_id);
      // Averages belong to the figures before them.
      std::stable_partition(section.tables.begin(), section.tables.end(), [](const auto& table) {
        return table.spec.kind == schema::TableSpec::Kind::average;
      });
    }
    assign_styles(contents.sections);
    name_uniquely(contents.sections, &Section::figures, "");
    name_uniquely(contents.sections, &Section::tables, "table-");
    return contents;
  }

 private:
  const ReportedPaper* paper_of(const schema::DataSpec& spec) const {
    const auto found = papers_.find(spec.paper);
    return found == papers_.end() ? nullptr : &found->second;
  }

  std::string short_name_of(const schema::DataSpec& spec) const {
    const ReportedPaper* paper = paper_of(spec);
    return paper == nullptr ? "" : paper->short_name;
  }

  const SeriesOrder& order(const std::string& column) {
    const auto [found, added] = orders_.try_emplace(column);
    if (added) found->second = order_of(folders_, column);
    return found->second;
  }

  Section& section(const Origin& origin) {
    Section& found = sections_[origin];
    found.origin = origin;
    return found;
  }

  schema::Expected<void> add_figure(const ResultFolder& folder, const schema::FigureSpec& spec,
                                    const Origin& origin, const std::vector<std::size_t>& rows) {
    FigureResult figure{&folder, spec, origin, "", short_name_of(spec), {}, {}, {}, {}, {}};
    if (spec.data == schema::FigureSpec::Data::timeline)
      return add_over_time(std::move(figure), rows);
    auto data = collect(folder.points, rows, spec, order(spec.series));
    if (!data) return tl::unexpected(data.error());
    figure.data = std::move(*data);
    const ComparisonContext context{figure.spec, paper_of(spec), origin.modelled()};
    auto comparison = spec.point_by_point()
                          ? compare_points(figure.data, context)
                          : compare_averages(figure.data, single_workload(spec), context);
    if (!comparison) return tl::unexpected(comparison.error());
    figure.comparison = std::move(*comparison);
    section(origin).figures.push_back(std::move(figure));
    return {};
  }

  schema::Expected<void> add_over_time(FigureResult figure, const std::vector<std::size_t>& rows) {
    const ResultFolder& folder = *figure.folder;
    if (!folder.timelines) {
      return schema::fail(
          fmt::format("{}:{}: figure {} needs {}; add [timeline] to the experiment and run "
                      "it again",
                      folder.specs.file.string(), figure.spec.line, figure.spec.id,
                      (folder.path / "timeline.csv").string()));
    }
    auto data = choose_point(folder.points, rows, figure.spec, order(figure.spec.series));
    if (!data) return tl::unexpected(data.error());
    figure.data = std::move(*data);
    if (!figure.data.rows.empty()) {
      figure.timeline = folder.timelines->of(folder.points, figure.data.rows.front());
    }
    section(figure.origin).figures.push_back(std::move(figure));
    return {};
  }

  schema::Expected<void> add_table(const ResultFolder& folder, const schema::TableSpec& spec,
                                   const Origin& origin, const std::vector<std::size_t>& rows) {
    TableResult table{&folder, spec, origin, "", short_name_of(spec), {}};
    const ComparisonContext context{table.spec, paper_of(spec), origin.modelled()};
    auto data = collect_table(folder.points, rows, spec, order(spec.series), context);
    if (!data) return tl::unexpected(data.error());
    table.data = std::move(*data);
    section(origin).tables.push_back(std::move(table));
    return {};
  }

  const std::vector<ResultFolder>& folders_;
  const Papers& papers_;
  std::map<Origin, Section> sections_;
  // By column; cached, since each takes a pass over all rows.
  std::map<std::string, SeriesOrder> orders_;
};

}  // namespace

Origin origin_of(const Points& points, std::size_t row) {
  return {points.text(row, "provenance"), points.text(row, "platform"),
          points.text(row, "profile")};
}

std::string figure_label(const FigureResult& figure) {
  if (!numbered(figure.spec.id)) return "";
  const std::string label = "Figure " + figure.spec.id;
  return figure.paper_name.empty() ? label : fmt::format("{}, {}", figure.paper_name, label);
}

std::string figure_title(const FigureResult& figure) {
  const std::string label = figure_label(figure);
  const std::string unfinished = figure.folder->unfinished();
  return fmt::format("{}{}{}{}", label, label.empty() ? "" : ". ", figure.spec.title,
                     unfinished.empty() ? "" : fmt::format(" (unfinished: {})", unfinished));
}

std::set<std::string> papers_of(const std::vector<ResultFolder>& folders) {
  std::set<std::string> names;
  for (const ResultFolder& folder : folders) {
    for (const schema::FigureSpec& spec : folder.specs.figures) names.insert(spec.paper);
    for (const schema::TableSpec& spec : folder.specs.tables) names.insert(spec.paper);
    // Probes are modelled on this paper's testbed.
    if (folder.points.are_probes()) names.insert("optane");
  }
  names.erase("");
  return names;
}

std::string legend_label(const FigureResult& figure, const Series& series) {
  const std::string name = figure.spec.shown_series(series.name);
  const bool says = figure.data.guarantees_differ() && !series.guarantee.empty();
  return says ? fmt::format("{} ({})", name, series.guarantee) : name;
}

std::string why_empty(const FigureResult& figure) {
  if (!figure.data.omitted.empty()) {
    const std::vector<OmittedRow>& omitted = figure.data.omitted;
    const bool any_invalid =
        std::any_of(omitted.begin(), omitted.end(),
                    [&](const OmittedRow& each) { return !figure.folder->points.valid(each.row); });
    if (any_invalid) return fmt::format("none of the {} rows is valid", omitted.size());
    return fmt::format("none of the {} rows can be drawn: {}", omitted.size(),
                       omitted.front().reason);
  }
  const Points& points = figure.folder->points;
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < points.size(); ++row) {
    if (origin_of(points, row) == figure.origin) rows.push_back(row);
  }
  // The first condition that no remaining row meets is the cause.
  for (const schema::Condition& condition : figure.spec.where) {
    std::set<std::string> found;
    for (const std::size_t row : rows) found.insert(points.text(row, condition.column));
    std::erase_if(rows, [&](std::size_t row) {
      return !condition.holds(points.text(row, condition.column));
    });
    if (!rows.empty()) continue;
    const bool one_kind = condition.column == "operation" && found == std::set<std::string>{"all"};
    return fmt::format("no row has {} = {}; there is: {}{}", condition.column,
                       fmt::join(condition.any_of, " or "), fmt::join(found, ", "),
                       one_kind ? ", the only row of points with one kind of operation" : "");
  }
  return "no row of points.csv is what the figure asks for";
}

std::string Origin::words() const {
  return modelled() ? fmt::format("modelled, profile {}", profile)
                    : fmt::format("measured on this host, {}", platform);
}

std::string Origin::title() const {
  return modelled() ? fmt::format("Modelled: profile {}", profile)
                    : fmt::format("Measured on this host: platform {}", platform);
}

schema::Expected<Contents> gather(const std::vector<ResultFolder>& folders, const Papers& papers) {
  Gatherer gatherer(folders, papers);
  for (const ResultFolder& folder : folders) {
    if (auto added = gatherer.add(folder); !added) return tl::unexpected(added.error());
  }
  return gatherer.finish();
}

}  // namespace perdura::report
