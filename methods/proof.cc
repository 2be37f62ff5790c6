#include "methods/proof.h"

#include <fmt/format.h>

#include <algorithm>

namespace perdura::methods {

namespace {

constexpr pmem::VariableLayout kLayoutOfA{.words = 3, .first_word = 6};
// The number of the first requester that no method has.
constexpr std::uint32_t kFirstObserver = 2;

struct Finding {
  Breach breach;
  std::string_view text;
};

// The breach that an agent relying on both updates encounters, if any.
std::optional<Finding> missing(const pmem::Instant& instant) {
  const int a = instant.values[0];
  if (a == pmem::kTorn)
    return Finding{Breach::torn, "the requester relies on \"a\", which is torn"};
  if (a != 1) return Finding{Breach::lost, "the requester relies on \"a\", which is lost"};
  if (instant.values.size() > 1 && instant.values[1] <= 0) {
    return Finding{Breach::lost, "the requester relies on \"b\", which is lost"};
  }
  return std::nullopt;
}

std::optional<Finding> judge(const pmem::Program& program, const pmem::Instant& instant) {
  if (instant.values.size() > 1 && instant.values[1] != 0 && instant.values[0] != 1) {
    return Finding{Breach::out_of_order, "\"b\" is persistent and \"a\" is not"};
  }
  for (std::size_t i = 0; i < program.agents.size(); ++i) {
    const pmem::Agent& agent = program.agents[i];
    if (agent.responder || instant.done[i] < agent.steps.size()) continue;
    const auto found = missing(instant);
    if (found && agent.number > 0) {
      return Finding{Breach::lost_by_reader, "a reader relies on what is lost"};
    }
    if (found) return found;
  }
  return std::nullopt;
}

// The method's program and, for each step that removes a mark, an observer that sees the link
// without it: such a reader relies on the link at once.
pmem::Program with_observers(const Method& method) {
  pmem::Program program = method.program;
  if (!method.marks()) return program;
  std::uint32_t number = kFirstObserver;
  for (const pmem::Agent& agent : method.program.agents) {
    for (const pmem::Step& step : agent.steps) {
      if (step.kind == pmem::StepKind::await) continue;
      for (const pmem::Step::VariableChange& change : step.changes) {
        if (!is_unmarked(change)) continue;
        const pmem::Step sees{.kind = pmem::StepKind::await, .changes = {change}, .peer = number};
        program.agents.push_back({.number = number++, .steps = {sees}});
      }
    }
  }
  return program;
}

Proof prove(const pmem::Program& program, const Configuration& configuration,
            const ProofOptions& options) {
  pmem::ProgramSetup setup;
  setup.model = configuration.model;
  setup.receive_buffers = configuration.receive_buffers;
  setup.rules = options.rules;
  setup.layout = {kLayoutOfA};
  if (program.variables.size() > 1) {
    setup.layout.push_back({.words = options.words_of_b, .first_word = 0});
  }
  pmem::ProgramExplorer explorer(program, std::move(setup));
  Proof proof;
  const pmem::Explored explored = explorer.explore(
      [&](const pmem::Instant& instant) {
        const auto found = judge(program, instant);
        if (!found) return true;
        if (proof.breaches.empty()) {
          proof.correctness = Correctness::wrong;
          proof.broken = found->text;
          proof.trace = explorer.describe(instant);
        }
        proof.breaches.insert(found->breach);
        return options.to_the_end;
      },
      options.sampling);
  proof.instants = explored.instants;
  proof.images = explored.images;
  proof.too_many = explored.too_many;
  if (explored.stuck && proof.correctness == Correctness::right) {
    const pmem::Agent& agent = program.agents[explored.stuck->agent];
    proof.correctness = Correctness::deadlock;
    proof.broken = fmt::format("step {} of the {}, \"{}\", waits for what never comes",
                               explored.stuck->step + 1, to_string(program, agent),
                               to_string(program, agent.steps[explored.stuck->step]));
  }
  return proof;
}

}  // namespace

std::string_view to_string(Correctness correctness) {
  constexpr std::string_view kNames[] = {"right", "wrong", "never finishes"};
  return kNames[static_cast<int>(correctness)];
}

std::string_view to_string(Breach breach) {
  constexpr std::string_view kNames[] = {"out of order", "torn", "lost", "lost by a reader"};
  return kNames[static_cast<int>(breach)];
}

std::string summary(const Proof& proof) {
  if (proof.correctness != Correctness::wrong) return std::string(to_string(proof.correctness));
  std::string text;
  for (const Breach breach : proof.breaches) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(breach));
  }
  return text;
}

Proof prove(const Method& method, const Configuration& configuration, const ProofOptions& options) {
  return prove(with_observers(method), configuration, options);
}

std::vector<StepProof> prove_steps(const Method& method, const Configuration& configuration,
                                   const ProofOptions& options) {
  std::vector<StepProof> proofs;
  const pmem::Program whole = with_observers(method);
  for (std::uint32_t a = 0; a < method.program.agents.size(); ++a) {
    for (std::uint32_t s = 0; s < method.program.agents[a].steps.size(); ++s) {
      pmem::Program shorter = whole;
      auto& steps = shorter.agents[a].steps;
      steps.erase(steps.begin() + s);
      proofs.push_back({a, s, prove(shorter, configuration, options)});
    }
  }
  return proofs;
}

bool is_wasteful(const Method& method, const Configuration& configuration) {
  const std::vector<StepProof> proofs = prove_steps(method, configuration);
  return std::any_of(proofs.begin(), proofs.end(), [](const StepProof& proof) {
    return proof.without.correctness == Correctness::right;
  });
}

}  // namespace perdura::methods
