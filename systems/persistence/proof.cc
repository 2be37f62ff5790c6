#include "systems/persistence/proof.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/pmem/model/explorer.h"

namespace perdura::persistence {

namespace {

constexpr pmem::VariableLayout kLayoutOfA{.words = 3, .first_word = 6};

// What of the promise the image breaks; empty if nothing.
std::string_view judge(const pmem::Instant& instant) {
  const int a = instant.values[0];
  const bool ordered = instant.values.size() > 1;
  if (ordered && instant.values[1] != 0 && a != 1) {
    return "\"b\" is persistent before \"a\"";
  }
  if (!instant.requesters_ended) return {};
  if (a == pmem::kTorn) return "the requester relies on \"a\", and it is torn";
  if (a != 1) return "the requester relies on \"a\", and it is lost";
  if (ordered && instant.values[1] != 1) return "the requester relies on \"b\", and it is lost";
  return {};
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  constexpr std::string_view kNames[] = {"right", "wrong", "endless"};
  return kNames[static_cast<int>(verdict)];
}

Proof prove(const Method& method, const Configuration& configuration, const ProofOptions& options) {
  pmem::ProgramSetup setup;
  setup.model = configuration.model;
  setup.receive_buffers = configuration.receive_buffers;
  setup.rules = options.rules;
  setup.layout = {kLayoutOfA};
  if (method.program.variables.size() > 1) {
    setup.layout.push_back({.words = options.words_of_b, .first_word = 0});
  }
  pmem::ProgramExplorer explorer(method.program, std::move(setup));
  Proof proof;
  const pmem::Explored explored = explorer.explore([&](const pmem::Instant& instant) {
    const std::string_view broken = judge(instant);
    if (broken.empty()) return true;
    if (proof.verdict != Verdict::wrong) {
      proof.verdict = Verdict::wrong;
      proof.broken = broken;
      proof.trace = explorer.describe(instant);
    }
    return options.to_the_end;
  });
  proof.instants = explored.instants;
  proof.images = explored.images;
  if (explored.stuck && proof.verdict == Verdict::right) {
    const pmem::Agent& agent = method.program.agents[explored.stuck->agent];
    proof.verdict = Verdict::endless;
    proof.broken = fmt::format("step {} of the {}, \"{}\", waits for what never comes",
                               explored.stuck->step + 1, to_string(method.program, agent),
                               to_string(method.program, agent.steps[explored.stuck->step]));
  }
  return proof;
}

std::vector<StepProof> prove_steps(const Method& method, const Configuration& configuration) {
  ProofOptions briefly;
  briefly.to_the_end = false;
  std::vector<StepProof> proofs;
  for (std::uint32_t a = 0; a < method.program.agents.size(); ++a) {
    for (std::uint32_t s = 0; s < method.program.agents[a].steps.size(); ++s) {
      Method shorter = method;
      auto& steps = shorter.program.agents[a].steps;
      steps.erase(steps.begin() + s);
      proofs.push_back({a, s, prove(shorter, configuration, briefly)});
    }
  }
  return proofs;
}

bool is_wasteful(const Method& method, const Configuration& configuration) {
  const std::vector<StepProof> proofs = prove_steps(method, configuration);
  return std::any_of(proofs.begin(), proofs.end(), [](const StepProof& proof) {
    return proof.without.verdict == Verdict::right;
  });
}

}  // namespace perdura::persistence
