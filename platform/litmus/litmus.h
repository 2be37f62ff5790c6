// Litmus tests of the fabric's memory model: small programs of a few threads on a few nodes, each
// with outcomes that the model allows and outcomes that it forbids (docs/memory-model.md). They are
// written as text:
//
//   litmus: a READ pushes earlier WRITEs of its queue pair in front of it
//   source: IB table 79
//   memory: x@0=1 y@0 z@1
//   node 0: write z x; read y z; wait; a = y
//   allowed: a=1
//   forbidden: a=0
//
// A test ends where the next begins; '#' starts a comment.
//
//   source   the source of the rule that the test checks
//   needs    optional: features that a device may lack: flush, atomic-write
//   memory   locations and the node that each is on. A location is a word, 0 unless '=' gives
//            another value, on a cache line of its own; z[2]@1 is two lines, whose words are z.0
//            and z.1
//   node N   the program of a thread on node N; a node may have several
//   allowed, forbidden   the values of registers and, at the end, of locations
//
// Steps of a program; each register belongs to one thread:
//
//   x = 1             store to a location of the own node
//   a = x             load of one into a register
//   cas a x 0 1       compare-and-swap by the CPU: from 0 to 1; a is the old value. It drains the
//                     store buffer, as mfence does
//   fence             the same without a location
//   write z x         WRITE of the local x to the remote z, all its lines
//   write-imm z x     the same with an immediate
//   send x 1          SEND of the local x to node 1
//   read y z          READ of the remote z to the local y
//   flush z           FLUSH for visibility
//   remote-cas a z 0 1, remote-add a z 1    atomics; a is the old value, after `wait`
//   atomic-write z 1  ATOMIC WRITE
//   wait              until all operations of the thread have completed
//   receive           waits for the next message, in the first program of its node. It is stored
//                     nowhere; "receive a" makes a its first word
//
// Before an operation, "fenced" sets its fence flag, and "inlined" has its data copied when it is
// posted. After it, "via 2" posts it on a second queue pair to that node.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "platform/fabric/types.h"

namespace perdura::litmus {

struct Location {
  std::string name;
  fabric::NodeId node = 0;
  std::uint32_t lines = 1;
  std::uint64_t initially = 0;
};

enum class StepKind : std::uint8_t {
  store,
  load,
  cas,
  fence,
  write,
  write_immediate,
  send,
  read,
  flush,
  remote_cas,
  remote_add,
  atomic_write,
  wait,
  receive,
};

// A word of memory: a line of a location.
struct Word {
  std::uint32_t location = 0;
  std::uint32_t line = 0;
};

inline constexpr std::uint32_t kNoRegister = ~0U;

struct Step {
  StepKind kind = StepKind::wait;
  Word local;   // an operation uses the word's whole location
  Word remote;  // likewise
  std::uint32_t result = kNoRegister;
  std::uint64_t value = 0;  // the value to store, to swap in, or to add
  std::uint64_t expected = 0;
  fabric::NodeId peer = 0;  // the peer of an operation
  bool second_queue_pair = false;
  fabric::OperationFlags flags{};
};

struct Program {
  fabric::NodeId node = 0;
  std::vector<Step> steps;
};

struct Outcome {
  std::string text;  // the outcome as the test writes it
  bool allowed = false;
  struct Value {
    std::size_t place = 0;  // its index in Result
    std::uint64_t value = 0;
  };
  std::vector<Value> values;
};

// How an execution ended: the values of the registers, then of all words of memory, in the order of
// `Litmus::result_names`.
using Result = std::vector<std::uint64_t>;

struct Litmus {
  std::string title;
  std::string source;
  std::string where;  // "file:12"
  bool needs_flush = false;
  bool needs_atomic_write = false;
  std::vector<Location> locations;
  std::vector<std::string> registers;
  std::vector<Program> programs;
  std::vector<Outcome> outcomes;
  std::vector<std::string> program_texts;  // "node 0: ..."
  std::vector<std::string> result_names;
  fabric::NodeId nodes = 1;
};

// A mistake in a text; what() includes the place.
class LitmusError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Parses the tests of a text. Throws LitmusError.
std::vector<Litmus> parse(std::string_view text, const std::string& file);

bool matches(const Outcome& outcome, const Result& result);
std::string to_string(const Litmus& litmus, const Result& result);

}  // namespace perdura::litmus
