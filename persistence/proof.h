// Proofs of methods: every moment and every image that the persistence model allows
// (platform/pmem/model/explorer.h), judged by what a method promises:
//
//   - when the requester has done its last step, the update is persistent, all of it;
//   - of two updates, "b" is never persistent, in whole or in part, while "a" is not.
//
// Before its end a method may leave "a" torn: that is for the application's checksums (section 3.4
// of "Correct, Fast Remote Persistence").
//
// "a" is 24 bytes across the border of two cache lines; "b" is 8 bytes, as a log's tail pointer.
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "persistence/method.h"
#include "platform/pmem/model/explorer.h"
#include "platform/pmem/model/rules.h"

namespace perdura::persistence {

enum class Correctness : std::uint8_t {
  right,     // in every execution
  wrong,     // in some execution something is lost or out of order
  deadlock,  // it waits for what never comes, and would never finish
};
std::string_view to_string(Correctness correctness);

// What a wrong method does in some execution.
enum class Breach : std::uint8_t { out_of_order, torn, lost };
inline constexpr std::array kBreaches{Breach::out_of_order, Breach::torn, Breach::lost};
std::string_view to_string(Breach breach);  // "out of order", "torn", "lost"

struct Proof {
  Correctness correctness = Correctness::right;
  std::set<Breach> breaches;
  std::string broken;  // the promise that the trace breaks, or the step that never ends
  std::string trace;   // an execution that breaks it, a step on a line
  std::uint64_t instants = 0;
  std::uint64_t images = 0;
  bool too_many = false;  // images, so that not all were tried: wrong is wrong, right is not proven
};

// "right", "never finishes", or the breaches: "torn, lost".
std::string summary(const Proof& proof);

struct ProofOptions {
  pmem::Rules rules{};
  bool to_the_end = true;  // else stops at the first breach
  std::uint32_t words_of_b = 1;
  pmem::ProgramExplorer::Sampling sampling{};  // all images, if not told otherwise
};

Proof prove(const Method& method, const Configuration& configuration,
            const ProofOptions& options = {});

// Whether a right method stays right without one of its steps.
struct StepProof {
  std::uint32_t agent = 0;
  std::uint32_t step = 0;
  Proof without;
};
std::vector<StepProof> prove_steps(const Method& method, const Configuration& configuration,
                                   const ProofOptions& options = {});

// Right, but not as short as it could be here: it stays right without some step.
bool is_wasteful(const Method& method, const Configuration& configuration);

}  // namespace perdura::persistence
