#include "report/designs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "harness/measure/statistics.h"
#include "harness/schema/columns.h"
#include "harness/schema/csv_table.h"
#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

using RowNumbers = std::vector<std::size_t>;

/// Valid rows of one run on one platform.
struct DesignRun {
  const ResultFolder* folder;
  RowNumbers rows;
};

struct DesignSet {
  Origin origin;
  std::set<Design> designs;
  std::vector<Design> order;  ///< the order of the first run
  std::vector<DesignRun> runs;
};

Design design_of(const Points& points, std::size_t row) {
  return {points.text(row, "system"), points.text(row, "persistence")};
}

void add_run(std::vector<DesignSet>& groups, const Origin& origin, DesignRun run) {
  std::set<Design> designs;
  std::vector<Design> order;
  for (const std::size_t row : run.rows) {
    Design design = design_of(run.folder->points, row);
    if (designs.insert(design).second) order.push_back(std::move(design));
  }
  const auto alike = std::find_if(groups.begin(), groups.end(), [&](const DesignSet& each) {
    return each.origin == origin && each.designs == designs;
  });
  DesignSet& group =
      alike != groups.end()
          ? *alike
          : groups.emplace_back(DesignSet{origin, std::move(designs), std::move(order), {}});
  group.runs.push_back(std::move(run));
}

std::vector<DesignSet> groups_of(const std::vector<ResultFolder>& folders) {
  std::vector<DesignSet> groups;
  for (const ResultFolder& folder : folders) {
    if (folder.probed || !folder.unfinished().empty()) continue;
    std::map<Origin, RowNumbers> rows;
    for (std::size_t row = 0; row < folder.points.size(); ++row) {
      const bool variant =
          folder.specs.systems.variants.contains(folder.points.text(row, "system"));
      if (!variant && folder.points.valid(row)) rows[origin_of(folder.points, row)].push_back(row);
    }
    for (auto& [origin, of_origin] : rows) add_run(groups, origin, {&folder, std::move(of_origin)});
  }
  // A group of one design (and its variants) compares no designs, so it is left out if the design
  // is compared with others elsewhere.
  std::erase_if(groups, [&groups](const DesignSet& alone) {
    return alone.designs.size() == 1 &&
           std::any_of(groups.begin(), groups.end(), [&](const DesignSet& each) {
             return each.origin == alone.origin && each.designs.size() > 1 &&
                    each.designs.contains(*alone.designs.begin());
           });
  });
  std::stable_sort(groups.begin(), groups.end(), [](const DesignSet& left, const DesignSet& right) {
    return left.origin.modelled() && !right.origin.modelled();
  });
  return groups;
}

/// The subject of a column: latency, throughput, nvm, server.
std::string_view family(std::string_view column) { return column.substr(0, column.find('_')); }

bool shows(const ResultFolder& folder, std::string_view column) {
  const auto is_about_it = [&](const schema::DataSpec& spec) {
    return family(spec.y) == family(column);
  };
  return std::any_of(folder.specs.figures.begin(), folder.specs.figures.end(), is_about_it) ||
         std::any_of(folder.specs.tables.begin(), folder.specs.tables.end(), is_about_it);
}

/// A point without its design: its run, and the value of each column that identifies a point.
struct ComparedPoint {
  const ResultFolder* run = nullptr;
  std::vector<std::pair<std::string, std::string>> columns{};

  bool operator<(const ComparedPoint& other) const {
    return std::tie(run->name, columns) < std::tie(other.run->name, other.columns);
  }
};
/// The repetitions of each point, by point and design.
using DesignSamples = std::map<ComparedPoint, std::map<Design, std::vector<double>>>;

void add_samples(DesignSamples& samples, const DesignRun& run, const Metric& metric) {
  const Points& points = run.folder->points;
  for (const std::size_t row : run.rows) {
    const auto value = points.number(row, metric.column);
    if (!value || points.text(row, "operation") != metric.operation) continue;
    ComparedPoint point{run.folder};
    for (const std::string_view key : points.key_columns()) {
      if (key == "system" || key == "persistence" || key == "operation") continue;
      point.columns.emplace_back(key, points.text(row, key));
    }
    samples[point][design_of(points, row)].push_back(*value);
  }
}

/// The parameters that tell a point apart from others of its run: "workloadc, value_size 64".
std::string name_of(const ComparedPoint& point, const DesignSamples& samples) {
  std::string name;
  for (std::size_t i = 0; i < point.columns.size(); ++i) {
    const auto& [column, value] = point.columns[i];
    const bool varies = std::any_of(samples.begin(), samples.end(), [&](const auto& other) {
      return other.first.run == point.run && other.first.columns[i].second != value;
    });
    const bool told = column == "workload" || column == "value_size" || column == "clients";
    if (value.empty() || !(varies || told)) continue;
    name += fmt::format("{}{}{}", name.empty() ? "" : ", ",
                        column == "workload" ? "" : column + " ", value);
  }
  return name;
}

std::map<Design, MeasuredCost> costs_of(const DesignSet& group, const Metric& metric) {
  std::vector<const DesignRun*> runs;
  for (const DesignRun& run : group.runs) {
    if (shows(*run.folder, metric.column)) runs.push_back(&run);
  }
  DesignSamples samples;
  const auto read = [&](const DesignRun& run) { add_samples(samples, run, metric); };
  for (const DesignRun* run : runs) read(*run);
  if (samples.empty()) std::for_each(group.runs.begin(), group.runs.end(), read);
  std::set<Design> measured;
  for (const auto& [point, designs] : samples) {
    for (const auto& [design, values] : designs) measured.insert(design);
  }
  std::vector<DesignSamples::const_iterator> common;
  for (auto point = samples.cbegin(); point != samples.cend(); ++point) {
    if (point->second.size() == measured.size()) common.push_back(point);
  }
  std::map<Design, MeasuredCost> costs;
  if (common.empty()) return costs;
  const auto& [point, designs] = *common[common.size() / 2];
  const double scale = point.run->points.schema().quantity(metric.column).scale;
  const std::string name = name_of(point, samples);
  for (const auto& [design, values] : designs) {
    costs[design] = {measure::summarize(values).mean * scale, name, point.run};
  }
  return costs;
}

/// The server of a row, such as "DMP over iWARP"; "the testbed" or "this host" if the run does not
/// say.
std::string server_of(const Points& points, std::size_t row) {
  const std::string& domain = points.text(row, "domain");
  if (domain.empty()) return origin_of(points, row).modelled() ? "the testbed" : "this host";
  const std::string& transport = points.text(row, "transport");
  const bool usual = transport.empty() || transport == "ib";
  const schema::Schema& schema = points.schema();
  return schema.shown("domain", domain) +
         (usual ? "" : " over " + schema.shown("transport", transport));
}

/// Kinds of servers, each with its DDIO settings; if a kind has several, none is mentioned.
using Servers = std::map<std::string, std::set<std::string>>;

std::vector<std::string> words_of(const Servers& servers) {
  std::vector<std::string> words;
  for (const auto& [server, ddio] : servers) {
    const bool says = ddio.size() == 1 && !ddio.begin()->empty();
    words.push_back(server + (!says ? "" : *ddio.begin() == "on" ? " with DDIO" : " without DDIO"));
  }
  return words;
}

std::vector<FoundGuarantee> found_of(const DesignSet& group, const Design& design) {
  std::map<std::string, Servers> servers;
  std::set<std::string> with_flush;  // guarantees
  for (const DesignRun& run : group.runs) {
    const Points& points = run.folder->points;
    for (const std::size_t row : run.rows) {
      const std::string& guarantee = points.text(row, "guarantee");
      if (guarantee.empty() || design_of(points, row) != design) continue;
      servers[guarantee][server_of(points, row)].insert(points.text(row, "ddio"));
      if (points.guarantees_with_flush(row)) with_flush.insert(guarantee);
    }
  }
  std::vector<FoundGuarantee> found;
  for (const schema::Spelling& word : schema::guarantee_words()) {
    const auto of_word = servers.find(std::string(word.value));
    if (of_word == servers.end()) continue;
    found.push_back(
        {of_word->first, words_of(of_word->second), with_flush.contains(of_word->first)});
  }
  return found;
}

std::string title_of(const DesignSet& group, const Design& design) {
  const ResultFolder& folder = *group.runs.front().folder;
  std::string title = folder.specs.systems.shown(design.system);
  if (!design.persistence.empty()) {
    std::string how = folder.points.schema().shown("persistence", design.persistence);
    how.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(how.front())));
    title += ", " + how;
  }
  return title;
}

/// Kinds of operations for which the groups have latencies, in the order of occurrence; "all" only
/// if some group has no other.
std::vector<std::string> operations_of(const std::vector<DesignSet>& groups) {
  std::vector<std::string> found;
  bool any = false;
  for (const DesignSet& group : groups) {
    bool kinds = false;
    for (const DesignRun& run : group.runs) {
      for (const std::size_t row : run.rows) {
        const std::string& operation = run.folder->points.text(row, "operation");
        if (operation == "all" || !run.folder->points.number(row, kMean)) continue;
        kinds = true;
        if (std::find(found.begin(), found.end(), operation) == found.end()) {
          found.push_back(operation);
        }
      }
    }
    any = any || !kinds;
  }
  if (any) found.emplace_back("all");
  return found;
}

/// The groups that share a table, by index, and the kinds of operations that it shows.
struct Table {
  std::set<std::size_t> groups;
  std::set<std::string> operations;
};

Table table_of(const DesignGroup& group, std::size_t number) {
  Table table{{number}, {}};
  for (const DesignRow& row : group.rows) {
    for (const auto& [metric, cost] : row.costs) {
      if (metric.column == kMean) table.operations.insert(metric.operation);
    }
  }
  // Every group has "all"; it counts as a kind of operation only for groups that have no other.
  if (table.operations.size() > 1) table.operations.erase("all");
  return table;
}

bool share_any(const std::set<std::string>& one, const std::set<std::string>& other) {
  return (one.empty() && other.empty()) ||
         std::any_of(one.begin(), one.end(),
                     [&](const auto& each) { return other.contains(each); });
}

void add(Table& from, Table& to) {
  to.groups.merge(from.groups);
  to.operations.merge(from.operations);
}

}  // namespace

Designs gather_designs(const std::vector<ResultFolder>& folders) {
  const std::vector<DesignSet> groups = groups_of(folders);
  Designs designs{{}, operations_of(groups)};
  for (const DesignSet& group : groups) {
    DesignGroup& shown = designs.groups.emplace_back(DesignGroup{group.origin, {}, {}});
    for (const DesignRun& run : group.runs) shown.runs.push_back(run.folder);
    for (const Design& design : group.order) {
      shown.rows.push_back({design, title_of(group, design), found_of(group, design), {}});
    }
    std::vector<Metric> metrics;
    for (const std::string& operation : designs.operations) {
      metrics.push_back({kMean, operation});
      metrics.push_back({kTail, operation});
    }
    for (const std::string_view column : kOthers) metrics.push_back({column, "all"});
    for (const Metric& metric : metrics) {
      const auto costs = costs_of(group, metric);
      for (DesignRow& row : shown.rows) {
        if (const auto of_it = costs.find(row.design); of_it != costs.end()) {
          row.costs[metric] = of_it->second;
        }
      }
    }
  }
  return designs;
}

std::vector<Designs> tables_of(const Designs& designs) {
  std::vector<Table> tables;
  for (std::size_t group = 0; group < designs.groups.size(); ++group) {
    tables.push_back(table_of(designs.groups[group], group));
  }
  // Two tables may become mergeable through the operations of a third, so after a merge the first
  // table is compared again.
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (std::size_t other = i + 1; other < tables.size();) {
      if (!share_any(tables[i].operations, tables[other].operations)) {
        ++other;
        continue;
      }
      add(tables[other], tables[i]);
      tables.erase(tables.begin() + static_cast<std::ptrdiff_t>(other));
      other = i + 1;
    }
  }
  std::vector<Designs> divided;
  for (const Table& table : tables) {
    Designs& one = divided.emplace_back();
    for (const std::size_t group : table.groups) one.groups.push_back(designs.groups[group]);
    std::copy_if(designs.operations.begin(), designs.operations.end(),
                 std::back_inserter(one.operations),
                 [&](const std::string& each) { return table.operations.contains(each); });
  }
  return divided;
}

std::string designs_csv(const Designs& designs) {
  std::string csv =
      "provenance,platform,profile,system,persistence,guarantee,column,operation,value,run,"
      "point\n";
  for (const DesignGroup& group : designs.groups) {
    for (const DesignRow& row : group.rows) {
      std::vector<std::string> words;
      for (const FoundGuarantee& found : row.guarantees) words.push_back(found.guarantee);
      for (const auto& [metric, cost] : row.costs) {
        csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", group.origin.provenance,
                           group.origin.platform, schema::csv_cell(group.origin.profile),
                           schema::csv_cell(row.design.system), row.design.persistence,
                           fmt::join(words, "/"), metric.column, metric.operation, cost.value,
                           schema::csv_cell(cost.run->name), schema::csv_cell(cost.point));
      }
    }
  }
  return csv;
}

}  // namespace perdura::report
