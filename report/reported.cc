#include "report/reported.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "harness/schema/csv_table.h"
#include "platform/base/path_kind.h"

namespace perdura::report {
namespace {

std::vector<std::string> texts(const toml::table& table, const char* key) {
  std::vector<std::string> found;
  if (const toml::array* list = table[key].as_array()) {
    for (const toml::node& item : *list) found.push_back(item.value_or(std::string{}));
  }
  return found;
}

schema::Expected<void> read_notes(const std::filesystem::path& file, ReportedPaper& paper) {
  toml::table document;
  try {
    document = toml::parse_file(file.string());
  } catch (const toml::parse_error& problem) {
    return schema::fail(fmt::format("{}:{}: {}; mend the file", file.string(),
                                    problem.source().begin.line, problem.description()));
  }
  paper.title = document["title"].value_or(paper.title);
  paper.short_name = document["short_name"].value_or("");
  const toml::array* entries = document["note"].as_array();
  if (entries == nullptr) return {};
  for (const toml::node& entry : *entries) {
    const toml::table* table = entry.as_table();
    const auto text = table ? (*table)["text"].value<std::string>() : std::nullopt;
    if (!text) {
      return schema::fail(fmt::format("{}:{}: a note needs text = \"...\"", file.string(),
                                      entry.source().begin.line));
    }
    paper.notes.push_back({texts(*table, "figures"), texts(*table, "claims"), *text,
                           (*table)["run"].value_or(std::string{})});
  }
  return {};
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

const Claim* ReportedPaper::find(std::string_view figure, Claim::Kind kind,
                                 std::string_view workload, std::string_view system) const {
  for (const Claim& claim : claims) {
    if (claim.kind == kind && claim.is_about(figure) && !claim.system.empty() &&
        claim.workload == workload && claim.system == system) {
      return &claim;
    }
  }
  return nullptr;
}

std::vector<std::size_t> ReportedPaper::notes_on(const Claim& claim) const {
  std::vector<std::size_t> naming_it;
  std::vector<std::size_t> naming_figure;
  // In an experiment, the id of a table is only its number.
  std::string_view figure = claim.figure;
  if (constexpr std::string_view table = "Table "; figure.starts_with(table)) {
    figure.remove_prefix(table.size());
  }
  for (std::size_t i = 0; i < notes.size(); ++i) {
    if (contains(notes[i].claims, claim.id)) naming_it.push_back(i);
    if (contains(notes[i].figures, figure)) naming_figure.push_back(i);
  }
  return naming_it.empty() ? naming_figure : naming_it;
}

schema::Expected<Papers> read_papers(const std::filesystem::path& claims_csv,
                                     const std::filesystem::path& notes,
                                     const std::set<std::string>& names, OtherPapers others) {
  Papers papers;
  auto claims = read_claims(claims_csv);
  if (!claims) return tl::unexpected(claims.error());
  for (Claim& claim : *claims) {
    if (others == OtherPapers::leave_out && !names.contains(claim.paper)) continue;
    ReportedPaper& paper = papers[claim.paper];
    paper.file = claims_csv;
    paper.claims.push_back(std::move(claim));
  }
  for (const std::string& name : names) {
    if (papers.contains(name)) continue;
    return schema::fail(
        fmt::format("{}: there is nothing of paper '{}'; add its claims, or mend the paper that "
                    "the experiment's figures name",
                    claims_csv.string(), name));
  }
  for (auto& [name, paper] : papers) {
    paper.title = name;
    const auto file = notes / (name + "-notes.toml");
    if (!is_there(file)) continue;
    if (auto read = read_notes(file, paper); !read) return tl::unexpected(read.error());
  }
  return papers;
}

}  // namespace perdura::report
