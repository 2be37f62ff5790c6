#include "report/reported.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/schema/csv_table.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/base/toml_section.h"

namespace perdura::report {
namespace {

// Throws UsageError if a note is not as it must be.
void read_notes(const TomlSection& top, ReportedPaper& paper) {
  constexpr std::array<std::string_view, 3> known{"title", "short_name", "note"};
  constexpr std::array<std::string_view, 4> known_in_note{"figures", "claims", "text", "run"};
  top.allow_only(known);
  paper.title = top.text("title").value_or(paper.title);
  paper.short_name = top.text("short_name").value_or("");
  for (const TomlSection& note : top.sections("note")) {
    note.allow_only(known_in_note);
    const auto text = note.text("text");
    if (!text) note.missing("text", "add text = \"...\"");
    paper.notes.push_back(
        {note.texts("figures"), note.texts("claims"), *text, note.text("run").value_or("")});
  }
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
    try {
      read_notes(TomlFile::read(file.string()).top(), paper);
    } catch (const UsageError& mistake) {
      return schema::fail(fmt::format("{}; mend the file", mistake.what()));
    }
  }
  return papers;
}

}  // namespace perdura::report
