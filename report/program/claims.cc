// perdura claims: measures the claims of papers about their systems on a result folder.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "harness/text/text_table.h"
#include "platform/base/error.h"
#include "platform/base/json.h"
#include "report/claim_results.h"
#include "report/program/commands.h"

namespace perdura::report {
namespace {

using harness::ExitCode;
namespace fs = std::filesystem;

// Reading errors concern files that the user named or files beside them, so they are reported as
// wrong usage.
template <class T>
T value_or_mistake(schema::Expected<T> value) {
  if (!value) throw UsageError(fmt::format("claims: {}", value.error().message));
  return std::move(*value);
}

// Shortens text: claims about an order quote the paper's words, which may be long.
std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

void print_table(const std::vector<std::vector<std::string>>& lines) {
  fmt::print("{}", harness::text_table([&](const harness::AddLine& add) {
               for (const auto& line : lines) add(line);
             }));
}

std::string verdict_words(const ClaimResult& result) {
  std::string words(to_string(result.outcome));
  const Claim::Basis basis = result.claim->basis;
  if (basis != Claim::Basis::prediction) words += fmt::format(" ({})", to_string(basis));
  for (const std::size_t note : result.notes) words += fmt::format(" [{}]", note + 1);
  return words;
}

// Prints the notes to which claims refer, grouped by paper.
void print_reasons(const std::vector<ClaimResult>& results, const Papers& papers) {
  for (const auto& [name, paper] : papers) {
    std::set<std::size_t> notes;
    for (const ClaimResult& result : results) {
      if (result.paper == &paper) notes.insert(result.notes.begin(), result.notes.end());
    }
    if (!notes.empty()) fmt::print("\nwhat differs from {}, and why\n", name);
    for (const std::size_t note : notes) {
      fmt::print("\n[{}] {}", note + 1, paper.notes[note].text);
      const std::string& run = paper.notes[note].run;
      if (!run.empty()) fmt::print("To put it to the test: {}\n", run);
    }
  }
}

void print_not_covered(const std::vector<ClaimResult>& results) {
  std::vector<std::vector<std::string>> lines;
  for (const ClaimResult& result : results) {
    const Claim& claim = *result.claim;
    if (claim.not_covered.empty()) continue;
    lines.push_back({"  " + claim.id, claim.section, claim.not_covered});
  }
  if (lines.empty()) return;
  fmt::print("\nnot covered, and why\n");
  print_table(lines);
}

void print_text(const std::vector<ClaimResult>& results, const Papers& papers) {
  std::vector<std::vector<std::string>> lines{
      {"id", "paper", "section", "quantity", "reported", "measured", "deviation", "verdict"}};
  // Measured claims come first, since a user who has just run an experiment looks for these.
  std::vector<const ClaimResult*> ordered;
  for (const ClaimResult& result : results) ordered.push_back(&result);
  std::stable_partition(ordered.begin(), ordered.end(), [](const ClaimResult* result) {
    return result->outcome != ClaimResult::Outcome::not_measured;
  });
  for (const ClaimResult* const each : ordered) {
    const ClaimResult& result = *each;
    const Claim& claim = *result.claim;
    // Claims that are not covered have a list of their own, with the reasons.
    if (!claim.not_covered.empty()) continue;
    lines.push_back({claim.id, shortened(claim.paper, 12), claim.section,
                     shortened(result.quantity, 60), shown_reported(claim),
                     shortened(result.measured, 44), shown_deviation(result),
                     verdict_words(result)});
  }
  if (lines.size() > 1) print_table(lines);
  print_reasons(results, papers);
  print_not_covered(results);
  fmt::print("\n{} claims: {}\n", results.size(), count_claims(results).words());
}

Json to_json(const ClaimResult& result) {
  const Claim& claim = *result.claim;
  Json fields{{"id", claim.id},
              {"paper", claim.paper},
              {"section", claim.section},
              {"quantity", result.quantity},
              {"kind", claim.not_covered.empty() ? to_string(claim.kind) : ""},
              {"reported", shown_reported(claim)},
              {"measured", result.measured},
              {"deviation_percent", nullptr},
              {"tolerance_percent", nullptr},
              {"verdict", to_string(result.outcome)},
              {"basis", claim.not_covered.empty() ? to_string(claim.basis) : ""},
              {"run", result.run},
              {"provenance", result.origin.provenance},
              {"platform", result.origin.platform},
              {"profile", result.origin.profile},
              {"explanation", Json::array()}};
  if (result.deviation) fields["deviation_percent"] = *result.deviation;
  if (claim.tolerance) fields["tolerance_percent"] = *claim.tolerance;
  for (const std::size_t note : result.notes) {
    fields["explanation"].push_back(result.paper->notes[note].text);
  }
  return fields;
}

void print_json(const std::vector<ClaimResult>& results) {
  const auto counts = count_claims(results);
  Json claims = Json::array();
  for (const ClaimResult& result : results) claims.push_back(to_json(result));
  const auto score = [](const ClaimScore& of) {
    return Json{{"holds", of.holds}, {"differs", of.differs}};
  };
  const Json output{
      {"claims", std::move(claims)},         {"predictions", score(counts.predictions)},
      {"fitted", score(counts.fitted)},      {"inputs", score(counts.inputs)},
      {"not_measured", counts.not_measured}, {"not_covered", counts.not_covered}};
  fmt::print("{}\n", output.dump(2));
}

ExitCode claims(const std::string& input, bool as_json, const Surroundings& around) {
  check_result_folder("claims", input);
  const auto work = around.watch(2);  // two steps: reading and measuring
  const auto folders = value_or_mistake(read_result_folders(
      input, Rows::keep, [&work](const fs::path& folder) { work->within(folder.string(), 0); }));
  work->skip();
  work->within("measuring the claims", 0);
  for (const ResultFolder& folder : folders) {
    if (!folder.note.empty()) fmt::print(stderr, "perdura: note: {}\n", folder.note);
  }
  const auto papers =
      value_or_mistake(read_papers(around.data.first_existing(fs::path("results") / "claims.csv"),
                                   around.data.first_existing(fs::path("results") / "reported"),
                                   papers_of(folders), OtherPapers::read_too));
  const auto contents = value_or_mistake(gather(folders, papers));
  const auto results = measure_claims(contents, folders, papers);
  work->skip();
  work->close();
  if (as_json) {
    print_json(results);
  } else {
    print_text(results, papers);
  }
  return ExitCode::done;
}

}  // namespace

Work declare_claims(harness::Command& command) {
  const auto input = std::make_shared<std::string>();
  const auto as_json = std::make_shared<bool>(false);
  command.option("folder", *input, "A folder that 'perdura run' wrote, or a folder of such folders")
      .required();
  command.flag("--json", *as_json, "Writes JSON");
  return [input, as_json](const Surroundings& around) { return claims(*input, *as_json, around); };
}

}  // namespace perdura::report
