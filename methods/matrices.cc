#include "methods/matrices.h"

#include <fmt/format.h>

#include <algorithm>

namespace perdura::methods {

namespace {

std::vector<std::string> header_of(std::vector<std::string> first) {
  for (const Configuration& configuration : matrix_configurations()) {
    first.push_back(to_string(configuration));
  }
  return first;
}

bool is_used(const Method& method, const Configuration& configuration) {
  return method_of_paper(configuration, method.update, method.carrier).name == method.name;
}

}  // namespace

std::vector<Configuration> matrix_configurations() {
  std::vector<Configuration> result = configurations();
  for (const Configuration& configuration : configurations(pmem::Transport::iwarp)) {
    if (configuration.model.domain == pmem::PersistenceDomain::wsp) result.push_back(configuration);
  }
  return result;
}

Matrix cells_matrix() {
  Matrix matrix{
      "cells",
      "Every cell of the taxonomy",
      "The methods of \"Correct, Fast Remote Persistence\", Tables 2 and 3, and for iWARP "
      "section 3.2, each explored at every crash point and for every image that a power "
      "failure may leave.",
      true,
      {"configuration"},
      {}};
  for (const Update update : kUpdatesOfPaper) {
    for (const Carrier carrier : kCarriers) {
      matrix.header.push_back(fmt::format("{} {}", to_string(update), to_string(carrier)));
    }
  }
  for (const Configuration& configuration : matrix_configurations()) {
    auto& row = matrix.rows.emplace_back(std::vector{to_string(configuration)});
    for (const Update update : kUpdatesOfPaper) {
      for (const Carrier carrier : kCarriers) {
        const Method& method = method_of_paper(configuration, update, carrier);
        row.push_back(fmt::format("{}: {}", summary(prove(method, configuration)), method.name));
      }
    }
  }
  return matrix;
}

Matrix steps_matrix() {
  Matrix matrix{
      "steps",
      "Every step left out",
      "What happens to a cell of the taxonomy without one of its steps: something is "
      "lost, torn or out of order, or the method never finishes, since somebody waits for "
      "what never comes.",
      false,
      {"method", "used on", "agent", "step", "without it"},
      {}};
  for (const Method& method : methods()) {
    if (method.update == Update::publish) continue;
    // Most configurations give the same result, and share rows.
    std::vector<std::pair<std::vector<std::string>, std::string>> results;
    for (const Configuration& configuration : matrix_configurations()) {
      if (!is_used(method, configuration)) continue;
      std::vector<std::string> without;
      for (const StepProof& proof : prove_steps(method, configuration)) {
        without.push_back(summary(proof.without));
      }
      const auto same = std::find_if(results.begin(), results.end(),
                                     [&](const auto& result) { return result.first == without; });
      if (same == results.end()) {
        results.emplace_back(std::move(without), to_string(configuration));
      } else {
        same->second += ", " + to_string(configuration);
      }
    }
    for (const auto& [without, used_on] : results) {
      std::size_t i = 0;
      for (const pmem::Agent& agent : method.program.agents) {
        for (const pmem::Step& step : agent.steps) {
          matrix.rows.push_back({i == 0 ? method.name : "", i == 0 ? used_on : "",
                                 to_string(method.program, agent), to_string(method.program, step),
                                 without[i]});
          ++i;
        }
      }
    }
  }
  return matrix;
}

Matrix transfer_matrix() {
  Matrix matrix{
      "transfer",
      "Every method on every configuration",
      "Right; wasteful, which is right, but would be without some step, too; or what goes "
      "wrong. Moving a method to another machine is safe along a row where nothing is "
      "wrong. Of iWARP, WSP is shown: under DMP and MHP every method does on it what it does on "
      "InfiniBand.",
      true,
      header_of({"method", "steps"}),
      {}};
  for (const Method& method : methods()) {
    if (method.update == Update::publish) continue;
    std::string steps;
    for (const pmem::Agent& agent : method.program.agents) {
      steps += fmt::format("{}{}: ", steps.empty() ? "" : " | ", to_string(method.program, agent));
      for (std::size_t i = 0; i < agent.steps.size(); ++i) {
        steps += fmt::format("{}{}", i == 0 ? "" : "; ", to_string(method.program, agent.steps[i]));
      }
    }
    auto& row = matrix.rows.emplace_back(std::vector{method.name, steps});
    for (const Configuration& configuration : matrix_configurations()) {
      const Proof proof = prove(method, configuration);
      const bool wasteful =
          proof.correctness == Correctness::right && is_wasteful(method, configuration);
      row.push_back(wasteful ? "wasteful" : summary(proof));
    }
  }
  return matrix;
}

}  // namespace perdura::methods
