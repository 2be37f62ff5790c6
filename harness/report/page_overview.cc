#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "harness/report/html.h"
#include "harness/report/page_parts.h"
#include "harness/schema/quantity.h"

namespace perdura::report {
namespace {

/// Sentences beyond those that set a paper beside us are written up to this number.
constexpr std::size_t kSentences = 8;
/// If there are fewer than so many, more are made of what every run measures.
constexpr std::size_t kEnough = 5;

/// How one series stands to the baseline for one workload, here and in the paper.
struct Ratio {
  std::string workload;
  double ours = 0;
  std::optional<double> paper;
};

/// Averages of one quantity of two series.
struct Contrast {
  const Origin* origin = nullptr;
  const ResultFolder* folder = nullptr;
  const DataSpec* spec = nullptr;
  std::string of;  ///< whose quantity it is
  std::string to;  ///< over whose
  std::vector<Ratio> ratios;

  bool has_paper() const {
    return std::any_of(ratios.begin(), ratios.end(), [](const Ratio& each) { return each.paper; });
  }

  std::string sentence() const {
    std::vector<std::string> parts;
    for (const Ratio& each : ratios) {
      const std::string of_what = each.workload.empty() ? "" : " for " + each.workload;
      parts.push_back(
          fmt::format("{}{}{}", shown_number(each.ours), of_what,
                      each.paper ? fmt::format(" (paper: {})", shown_number(*each.paper)) : ""));
    }
    return fmt::format("{}, {} as a ratio of {} to {}: {}.", where(*origin),
                       spec->schema.quantity(spec->y).noun, spec->shown_series(of),
                       spec->shown_series(to), listed(parts));
  }
};

/// One contrast for each quantity of each run: the baseline and the first series beside it.
class Contrasts {
 public:
  void add(const ResultFolder& folder, const Origin& origin, const DataSpec& spec,
           const Comparison& comparison) {
    if (!comparison.averaged || comparison.rows.empty()) return;
    const auto base =
        std::find_if(comparison.rows.begin(), comparison.rows.end(),
                     [&](const auto& row) { return row.series == comparison.baseline; });
    const auto other =
        std::find_if(comparison.rows.begin(), comparison.rows.end(),
                     [&](const auto& row) { return row.series != comparison.baseline; });
    if (base == comparison.rows.end() || other == comparison.rows.end()) return;
    const auto ratio = ratio_of(comparison, *other);
    if (!ratio) return;
    Contrast& contrast = contrast_of(folder, origin, spec);
    // A cost is told as how much more the others take, anything else as what the baseline gains.
    contrast.of = comparison.normalized ? other->series : base->series;
    contrast.to = comparison.normalized ? base->series : other->series;
    contrast.ratios.push_back(*ratio);
  }

  std::vector<Contrast> found;

 private:
  static std::optional<Ratio> ratio_of(const Comparison& comparison, const Compared& other) {
    Ratio ratio{shown_workload(other.workload), 0, std::nullopt};
    if (comparison.normalized) {
      if (!std::isfinite(other.ours)) return std::nullopt;
      ratio.ours = other.ours;
      if (other.paper != nullptr) ratio.paper = other.paper->number;
      return ratio;
    }
    if (!other.to_baseline) return std::nullopt;
    ratio.ours = 1 / *other.to_baseline;
    if (other.paper_to_baseline) ratio.paper = 1 / *other.paper_to_baseline;
    return ratio;
  }

  Contrast& contrast_of(const ResultFolder& folder, const Origin& origin, const DataSpec& spec) {
    for (Contrast& each : found) {
      if (each.folder == &folder && *each.origin == origin && each.spec->y == spec.y &&
          each.spec->x == spec.x && each.spec->series == spec.series) {
        return each;
      }
    }
    return found.emplace_back(Contrast{&origin, &folder, &spec, "", "", {}});
  }
};

std::vector<Contrast> contrasts_of(const Contents& contents) {
  Contrasts contrasts;
  for (const Section& section : contents.sections) {
    for (const FigureResult& figure : section.figures) {
      if (!figure.timeline.empty() || !figure.folder->unfinished().empty()) continue;
      contrasts.add(*figure.folder, figure.origin, figure.spec, figure.comparison);
    }
    for (const TableResult& table : section.tables) {
      if (!table.folder->unfinished().empty()) continue;
      for (const Comparison& comparison : table.data.comparisons) {
        contrasts.add(*table.folder, table.origin, table.spec, comparison);
      }
    }
  }
  std::stable_partition(contrasts.found.begin(), contrasts.found.end(),
                        [](const Contrast& each) { return each.has_paper(); });
  return contrasts.found;
}

/// How far each series came under rising load.
std::string load_sentence(const FigureResult& figure) {
  if (figure.spec.at != "throughput_ops_s" || figure.data.points.empty()) return "";
  if (!figure.folder->unfinished().empty()) return "";
  std::vector<std::string> parts;
  for (const Series& series : figure.data.series) {
    double most = 0;
    for (const auto& [place, point] : figure.data.points) {
      if (place.first == series.name) most = std::max(most, point.at);
    }
    parts.push_back(
        fmt::format("{} kop/s with {}", shown_number(most), figure.spec.shown_series(series.name)));
  }
  return fmt::format("{}, the highest throughput under rising load is {} ({}).",
                     where(figure.origin), listed(parts), figure.spec.title);
}

/// As the experiments whose results these are call it.
std::string shown_system(const std::string& system, const std::vector<ResultFolder>& folders) {
  const auto titled = std::find_if(folders.begin(), folders.end(), [&](const auto& folder) {
    return folder.specs.systems.titles.contains(system);
  });
  return titled == folders.end() ? shown_name(system) : titled->specs.systems.shown(system);
}

/// On how many servers each system, as published, was found to lose no acknowledged write.
std::string kept_sentence(const std::vector<GuaranteeTable>& tables,
                          const std::vector<ResultFolder>& folders) {
  for (const GuaranteeTable& table : tables) {
    if (table.name != "systems") continue;
    std::vector<std::string> parts;
    for (const CsvRow& row : table.cells.rows) {
      // Settings follow a comma.
      if (row.cells.front().find(',') != std::string::npos) continue;
      parts.push_back(
          fmt::format("{} on {} of {} kinds of servers", shown_system(row.cells.front(), folders),
                      std::count_if(row.cells.begin() + 1, row.cells.end(),
                                    [](const std::string& cell) {
                                      return cell == "durable" || cell == "durable-writes";
                                    }),
                      row.cells.size() - 1));
    }
    return fmt::format(
        "No acknowledged write is lost when the server's power fails, as published, by {}.",
        listed(parts));
  }
  return "";
}

std::vector<std::string> sentences(const Contents& contents,
                                   const std::vector<ResultFolder>& folders) {
  std::vector<std::string> found;
  const auto add = [&](const std::string& sentence, bool always) {
    if (!sentence.empty() && (always || found.size() < kSentences)) {
      found.push_back(escaped(sentence));
    }
  };
  const std::vector<Contrast> contrasts = contrasts_of(contents);
  for (const Contrast& contrast : contrasts) {
    if (contrast.has_paper()) add(contrast.sentence(), true);
  }
  for (const Section& section : contents.sections) {
    for (const TableResult& table : section.tables) {
      if (const std::string sentence = formula_sentence(table); !sentence.empty()) {
        found.push_back(sentence);
      }
    }
  }
  add(found_sentence(folders), true);
  add(kept_sentence(contents.guarantees, folders), true);
  for (const Section& section : contents.sections) {
    const auto load = std::find_if(section.figures.begin(), section.figures.end(),
                                   [](const auto& each) { return !load_sentence(each).empty(); });
    if (load != section.figures.end()) add(load_sentence(*load), true);
  }
  // Of each run at least one sentence, of none all before the next one has its first.
  std::set<const ResultFolder*> told;
  for (const Contrast& contrast : contrasts) {
    if (contrast.has_paper()) told.insert(contrast.folder);
  }
  std::vector<const Contrast*> more;
  for (const Contrast& contrast : contrasts) {
    if (contrast.has_paper()) continue;
    if (told.insert(contrast.folder).second) {
      add(contrast.sentence(), true);
    } else {
      more.push_back(&contrast);
    }
  }
  for (const Contrast* contrast : more) add(contrast->sentence(), false);
  for (const char* column :
       {"latency_p99_us", "latency_mean_us", "server_cpu_us_per_op", "nvm_field_bytes_per_op"}) {
    for (const ResultFolder& folder : folders) {
      if (found.size() >= kEnough && told.contains(&folder)) continue;
      const std::string sentence = lead_sentence(folder, column);
      if (!sentence.empty()) told.insert(&folder);
      add(sentence, true);
    }
  }
  return found;
}

/// "erda-cpu (48 points, 2 not valid)", "erda-cpu (unfinished: 23 of 60 points, all valid)".
std::string run_words(const ResultFolder& folder, const Origin& origin) {
  std::size_t all = 0;
  std::size_t valid = 0;
  for (std::size_t row = 0; row < folder.points.size(); ++row) {
    // One row of a point is about all its operations.
    if (origin_of(folder.points, row) != origin) continue;
    if (folder.points.text(row, "operation") != "all") continue;
    ++all;
    if (folder.points.valid(row)) ++valid;
  }
  if (all == 0) return "";
  const std::string unfinished = folder.unfinished();
  const std::string how_many =
      unfinished.empty() ? count_of(all, "point") : "unfinished: " + escaped(unfinished);
  return fmt::format("{} ({}{})", escaped(folder.name), how_many,
                     valid == all
                         ? ", all valid"
                         : fmt::format(", <a href=\"#not-drawn\">{} not valid</a>", all - valid));
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

}  // namespace

std::string count_of(std::size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  return text;
}

std::string where(const Origin& origin) {
  return origin.modelled() ? fmt::format("On the model {}", origin.profile)
                           : fmt::format("Measured on this host ({})", origin.platform);
}

std::string overview(const Contents& contents, const std::vector<ResultFolder>& folders,
                     const std::vector<ClaimResult>& claims) {
  std::string html =
      "<h1>Perdura report</h1>\n"
      "<p>Remote persistent memory: latency, throughput, CPU cost and bytes written. Numbers that "
      "were modelled and numbers that were measured never share a figure.</p>\n"
      "<h2 id=\"overview\">Overview</h2>\n<h3>What was run</h3>\n<ul>\n";
  for (const Section& section : contents.sections) html += runs_line(section, folders);
  for (const ResultFolder& folder : folders) {
    if (folder.points.size() > 0 || folder.unfinished().empty()) continue;
    html += fmt::format("<li>{} (unfinished: {})</li>\n", escaped(folder.name),
                        escaped(folder.unfinished()));
  }
  html += "</ul>\n";
  if (const auto found = sentences(contents, folders); !found.empty()) {
    html += "<h3>What the results say</h3>\n<ul>\n";
    for (const std::string& sentence : found) html += "<li>" + sentence + "</li>\n";
    html += "</ul>\n";
  }
  if (!claims.empty()) {
    html += fmt::format(
        "<h3>How the claims fare</h3>\n"
        "<p>{}: <b>{}</b>. <a href=\"#claims\">Each of them</a></p>\n",
        count_of(claims.size(), "claim"), escaped(count_claims(claims).words()));
  }
  return html;
}

}  // namespace perdura::report
