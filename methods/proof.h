// Proofs of methods: explores every crash point and every crash image that the persistence model
// allows (platform/pmem/model/explorer.h), and checks the promises of a method:
//
//   - when the requester has done its last step, the whole update is persistent;
//   - of two updates, "b" is never persistent, in whole or in part, while "a" is not;
//   - if the method publishes, a reader that relies on the link finds it after recovery, and the
//     block: a reader that has done its last step, or one that has seen the link without a mark.
//
// Before its end a method may leave "a" torn; detecting that is up to the application's checksums
// (section 3.4 of "Correct, Fast Remote Persistence").
//
// "a" is 24 bytes across a boundary of cache lines; "b" is 8 bytes, like the tail pointer of a log.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "methods/method.h"
#include "platform/pmem/model/explorer.h"
#include "platform/pmem/model/rules.h"

namespace perdura::methods {

enum class Correctness : std::uint8_t {
  right,     // nothing is lost or out of order in any execution
  wrong,     // something is lost or out of order in some execution
  deadlock,  // it waits for something that never comes
};
std::string_view to_string(Correctness correctness);

// How an execution of a wrong method breaks a promise.
enum class Breach : std::uint8_t { out_of_order, torn, lost, lost_by_reader };
// "out of order", "torn", "lost", "lost by a reader"
std::string_view to_string(Breach breach);

struct Proof {
  Correctness correctness = Correctness::right;
  std::set<Breach> breaches;
  std::string broken;  // the promise that the trace breaks, or the step that waits forever
  std::string trace;   // an execution that breaks it, one step a line
  std::uint64_t instants = 0;
  std::uint64_t images = 0;
  bool too_many = false;  // not all images were tried: `wrong` is certain, `right` is not proven
};

// "right", "never finishes", or a list of breaches: "torn, lost".
std::string summary(const Proof& proof);

struct ProofOptions {
  pmem::Rules rules{};
  bool to_the_end = true;  // otherwise stops at the first breach
  std::uint32_t words_of_b = 1;
  pmem::ProgramExplorer::Sampling sampling{};  // exhaustive unless set
};

Proof prove(const Method& method, const Configuration& configuration,
            const ProofOptions& options = {});

// Tells if a right method would still be right without one of its steps.
struct StepProof {
  std::uint32_t agent = 0;
  std::uint32_t step = 0;
  Proof without;
};
std::vector<StepProof> prove_steps(const Method& method, const Configuration& configuration,
                                   const ProofOptions& options = {});

// True if a right method would still be right without some step.
bool is_wasteful(const Method& method, const Configuration& configuration);

}  // namespace perdura::methods
