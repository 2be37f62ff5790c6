#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/schema/error.h"
#include "report/claims.h"

namespace perdura::report {

/// An explanation of why our numbers differ from the paper's, from
/// results/reported/<paper>-notes.toml.
struct Note {
  /// Ids; if this and `claims` are empty, the note is about the whole comparison.
  std::vector<std::string> figures;
  std::vector<std::string> claims;  ///< ids of the claims that it explains
  std::string text;                 ///< paragraphs, separated by blank lines
  std::string run;                  ///< the command that could refute it; may be empty
};

/// The statements of a paper's text and tables, and the notes on it.
struct ReportedPaper {
  std::string title;           ///< the paper's title; without notes, its name in claims.csv
  std::string short_name;      ///< precedes the number of a figure: "Erda"; may be empty
  std::filesystem::path file;  ///< the file of the claims
  std::vector<Claim> claims;
  std::vector<Note> notes;

  /// The claim for a figure id; one about a range "22-25" applies to each figure in it. An empty
  /// workload or system in the claim matches none.
  const Claim* find(std::string_view figure, Claim::Kind kind, std::string_view workload,
                    std::string_view system) const;
  /// The notes that explain a claim: those that name it, or else those that name its figure.
  std::vector<std::size_t> notes_on(const Claim& claim) const;
};

using Papers = std::map<std::string, ReportedPaper>;

enum class OtherPapers { leave_out, read_too };

/// Reads the papers with these names from claims.csv, and all its others, too, if `others` says so.
/// Their notes and titles are in <notes>/<paper>-notes.toml, if that exists. Errors: those of
/// read_claims(), and a name without any claim.
schema::Expected<Papers> read_papers(const std::filesystem::path& claims_csv,
                                     const std::filesystem::path& notes,
                                     const std::set<std::string>& names, OtherPapers others);

}  // namespace perdura::report
