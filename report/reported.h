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

/// Why our numbers differ from the paper's, in the words of results/reported/<paper>-notes.toml.
struct Note {
  std::vector<std::string> figures;  ///< ids; none of these and claims: about the whole comparison
  std::vector<std::string> claims;   ///< ids of the claims that it explains
  std::string text;                  ///< paragraphs, parted by blank lines
  std::string run;                   ///< the command that could refute it; may be empty
};

/// What a paper's text and tables state, and the notes on it.
struct ReportedPaper {
  std::string title;           ///< as the paper says it; without notes its name in claims.csv
  std::string short_name;      ///< before the number of a figure: "Erda"; may be empty
  std::filesystem::path file;  ///< of the claims
  std::vector<Claim> claims;
  std::vector<Note> notes;

  /// The value for a figure id; a reported range "22-25" holds for each figure in it. A workload
  /// or system that the paper leaves empty matches nothing.
  const Claim* find(std::string_view figure, Claim::Kind kind, std::string_view workload,
                    std::string_view system) const;
  /// The notes that explain a claim: those that name it, else those that name its figure.
  std::vector<std::size_t> notes_on(const Claim& claim) const;
};

using Papers = std::map<std::string, ReportedPaper>;

enum class OtherPapers { leave_out, read_too };

/// The papers of these names from claims.csv, and the others that it has if they are wanted, too.
/// Their notes and titles are in <notes>/<paper>-notes.toml, if there is such a file.
/// Error: besides what read_claims says, a name of which there is no claim.
Expected<Papers> read_papers(const std::filesystem::path& claims_csv,
                             const std::filesystem::path& notes, const std::set<std::string>& names,
                             OtherPapers others);

}  // namespace perdura::report
