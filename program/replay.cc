// perdura crash --replay: repeats what perdura soak or perdura crash has found, and explains it.
#include <fmt/format.h>

#include "explore/history_loss.h"
#include "explore/soak.h"
#include "harness/text/atomic_file.h"
#include "program/crash_arguments.h"
#include "program/finding_file.h"

namespace perdura::program {

namespace {

std::string explanation_of(const CrashArguments& arguments, const explore::Diagram& diagram) {
  if (arguments.diagram) harness::write_atomically(*arguments.diagram, as_svg(diagram));
  return fmt::format("\n{}", as_text(diagram));
}

void print_change(services::GuaranteeLevel kept) {
  fmt::print(
      "this is not what was found when the file was written (kept {}): the systems or the "
      "simulation have changed since\n",
      to_string(kept));
}

harness::ExitCode replay(const CrashArguments& arguments, const sim::Profile& profile,
                         explore::SoakFinding finding) {
  const services::GuaranteeLevel kept = finding.run.kept;
  const std::string loss = finding.run.loss;
  pmem::Tape tape = pmem::Tape::parse(finding.tape);
  finding.run = run_once(finding.where, profile, tape);
  if (finding.run.undecided) throw services::Undecided();
  fmt::print("{}", finding.text());
  if (finding.run.loss != loss) print_change(kept);
  if (finding.run.loss.empty()) return harness::ExitCode::done;
  pmem::Tape again = pmem::Tape::parse(finding.tape);
  fmt::print("{}", explanation_of(arguments, explain(finding.where, profile, again)));
  return harness::ExitCode::failed;
}

harness::ExitCode replay(const CrashArguments& arguments, const sim::Profile& profile,
                         explore::HistoryLoss loss) {
  const std::string found = std::exchange(loss.text, repeat(loss, profile));
  if (loss.text.empty()) {
    fmt::print("{}: nothing is lost at {}\n", loss.where.name(), found.substr(0, found.find('\n')));
  } else {
    fmt::print("{}:\n{}", loss.where.name(), loss.text);
  }
  if (loss.text != found) print_change(loss.kept);
  if (loss.text.empty()) return harness::ExitCode::done;
  fmt::print("{}", explanation_of(arguments, loss, profile));
  return harness::ExitCode::failed;
}

}  // namespace

std::string explanation_of(const CrashArguments& arguments, const explore::HistoryLoss& loss,
                           const sim::Profile& profile) {
  const std::optional<explore::Diagram> diagram = explain(loss, profile);
  if (diagram) return explanation_of(arguments, *diagram);
  return "\nthere is no diagram: with clients that notice the failure, the run loses nothing\n";
}

harness::ExitCode replay_finding(const CrashArguments& arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return harness::ExitCode::done;
  check_diagram(arguments);
  const FindingFile read = read_finding(*arguments.replay);
  const sim::Profile profile = profile_named(read.profile, "", context);
  return std::visit([&](const auto& finding) { return replay(arguments, profile, finding); },
                    read.finding);
}

}  // namespace perdura::program
