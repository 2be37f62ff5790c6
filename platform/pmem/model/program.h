// Programs: straight-line sequences of steps by which a few agents change the memory of one node.
// Litmus tests of the model and the methods of remote persistence (persistence/) are programs.
//
// A program is written as text: one line for each agent, with its steps separated by semicolons. A
// '#' begins a comment.
//
//   requester: write a; flush; atomic-write b; flush; completion
//   responder: receive; copy a; flush a; send ack
//
// An agent is a requester, which has its own connection ("requester 2"), or a CPU of the node that
// owns the memory ("responder", "responder 2"). Variables are named; all are 0 initially. A step
// that changes a variable sets it to the value after '=', or to 1 if there is none. Steps of a
// requester:
//
//   write V[,V...]       WRITE of these variables, one message
//   write-imm V          the same with an immediate
//   send V[,V...]        SEND that carries their values
//   send &V              SEND that names them
//   atomic-write V       ATOMIC WRITE
//   cas V                COMPARE AND SWAP that finds the value it expects
//   fetch-add V          FETCH AND ADD, or any other atomic
//   read                 READ of anything
//   flush                FLUSH for visibility
//   flush-persistence V  FLUSH for persistence of V
//   completion           waits for the completion of the last operation
//   receive ack          waits for the responder's message
//   await V              READs V until it has the value
//   fenced S             S with the fence flag
//   relaxed S            S to memory that is registered with relaxed ordering
//
// and of a responder:
//
//   receive           waits for the next message of the requester with its number ("receive 2": of
//                     requester 2)
//   copy V[,V...]     stores the values that the last message carried
//   flush V[,V...]    clwb of the variables' lines, and a fence
//   send ack          to that requester
//   store V, stream V, clwb V, clflush V, fence    ordinary and non-temporal stores, and so on
//   await V           loads V until it has the value
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace perdura::pmem {

enum class StepKind : std::uint8_t {
  // Operations.
  write,
  write_immediate,
  send,
  send_names,
  atomic_write,
  compare_and_swap,
  atomic,
  read,
  flush_visibility,
  flush_persistence,
  // Other steps.
  completion,
  receive_ack,
  receive,
  copy,
  flush,
  send_ack,
  store,
  stream,
  clwb,
  clflush,
  fence,
  await,
};

struct Step {
  StepKind kind = StepKind::completion;
  struct VariableChange {
    std::uint32_t variable = 0;
    std::uint8_t value = 1;
    friend bool operator==(const VariableChange&, const VariableChange&) = default;
  };
  std::vector<VariableChange> changes;  // if the step changes nothing: the variables concerned
  bool fenced = false;
  bool relaxed = false;
  std::uint32_t peer = 0;  // the requester of a receive or acknowledgment, from 0

  friend bool operator==(const Step&, const Step&) = default;
};

struct Agent {
  bool responder = false;
  std::uint32_t number = 0;  // among the requesters or among the responders, from 0
  std::vector<Step> steps;
  friend bool operator==(const Agent&, const Agent&) = default;
};

struct Program {
  std::vector<std::string> variables;
  std::vector<Agent> agents;
  friend bool operator==(const Program&, const Program&) = default;
};

// A syntax error. what() is "line 3, column 14: ..." with what is wrong and what would be correct.
class ProgramError : public std::runtime_error {
 public:
  ProgramError(std::size_t line, std::size_t column, const std::string& what);
};

// Parses a line "requester: ..." or "responder: ..." and adds it to the program. Returns false if
// the line is empty or starts with anything else. Throws ProgramError.
bool parse_agent(std::string_view line, std::size_t line_number, Program& program);
// Parses a text that consists of such lines only. Throws ProgramError. (Steps that wait forever are
// found by the explorer: Explored::stuck.)
Program parse_program(std::string_view text);

// The text of a step, as written in a program.
std::string to_string(const Program& program, const Step& step);
std::string to_string(const Program& program, const Agent& agent);  // its name

// The same for a reader who copies it into a program of his own: without the number of a peer that
// is the agent's own, and with "=1" where the program also gives a variable other values.
std::string to_text(const Program& program, const Agent& agent, const Step& step);
// A line of a program: "requester 2: await b=1; completion".
std::string to_text(const Program& program, const Agent& agent);

}  // namespace perdura::pmem
