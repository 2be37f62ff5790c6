// Litmus tests of the persistence model, as text:
//
//   litmus: a READ makes earlier WRITEs durable, past the cache
//   rules: push_persists
//   machine: dmp, no ddio
//   memory: a b | c[2]@7
//   requester: write a; read; completion
//   may: a=0 b=0
//   finally never: a=0
//
// A test ends where the next begins; '#' starts a comment.
//
//   rules     optional: without any one of them the test fails, on one of its machines
//   machine   dmp, mhp, wsp or any; then any of: ddio, no ddio (else both), iwarp (else
//   InfiniBand),
//             buffers in pm (receive buffers, else in DRAM), other device 2 (that of requester 2
//             has the opposite of ddio). The test must hold on the machines of all its machine
//             lines.
//   memory    optional: where variables are. '|' is between lines of the cache; a[2] is of two
//   words,
//             a@7 begins at word 7 of its line. Else each has a line of its own.
//   requester, responder    the program (platform/pmem/model/program.h)
//   may, never              some moment and image has these values, or none does; a value may be
//                           "torn". With "finally" only once all agents have finished.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/model/explorer.h"

namespace perdura::pmem {

struct Outcome {
  std::string text;  // as written
  bool may = false;  // else never
  bool finally = false;
  struct Value {
    std::uint32_t variable = 0;
    int value = 0;  // or kTorn
  };
  std::vector<Value> values;
};

struct Machine {
  std::string name;  // such as "dmp_no_ddio"
  PersistenceModel model;
  Medium receive_buffers = Medium::dram;
  std::vector<bool> other_ddio;
};

struct Litmus {
  std::string title;
  std::string where;  // "file.litmus:12"
  std::vector<Rule> rules;
  std::vector<Machine> machines;
  std::vector<VariableLayout> layout;
  Program program;
  std::vector<Outcome> outcomes;
};

// Throws ProgramError.
std::vector<Litmus> parse_litmus(std::string_view text, const std::string& file);

// What is wrong on this machine: "" or the outcome, and if there is one the execution that shows
// it.
std::string failure_of(const Litmus& litmus, const Machine& machine, Rules rules = {});

}  // namespace perdura::pmem
