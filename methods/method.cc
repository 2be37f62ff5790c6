#include "methods/method.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "platform/base/error.h"
#include "platform/base/suggestion.h"
#include "platform/base/words.h"

namespace perdura::methods {

namespace {

constexpr std::string_view kTaxonomy =
#include "methods/taxonomy.methods"
    ;

using pmem::Medium;
using pmem::PersistenceDomain;
using pmem::ProgramError;
using pmem::Step;
using pmem::StepKind;
using pmem::Transport;

using Cell = std::tuple<Transport, PersistenceDomain, bool, Medium, Update, Carrier>;

// The words of a line before its comment.
std::vector<std::string> words_in(std::string_view line) {
  return words_of(line.substr(0, line.find('#')));
}

template <class Value, std::size_t N>
Value value_of(std::string_view word, const std::array<Value, N>& values, std::size_t line,
               std::string_view text) {
  std::vector<std::string_view> known;
  for (const Value value : values) {
    if (to_string(value) == word) return value;
    known.push_back(to_string(value));
  }
  throw ProgramError(line, text.find(word) + 1,
                     fmt::format("\"{}\" is none of {}", word, fmt::join(known, ", ")));
}

// Calls function(line, number) for each line of the text.
template <class Function>
void each_line(std::string_view text, const Function& function) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    function(text.substr(0, end), number);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

// Parses "method NAME: UPDATE CARRIER".
Method read_heading(std::string_view line, std::size_t number) {
  const std::vector<std::string> words = words_in(line);
  if (words.size() != 4 || words[1].back() != ':') {
    throw ProgramError(number, 1,
                       "expected \"method NAME: single|ordered|publish write|write-imm|send\"");
  }
  Method method;
  method.name = words[1].substr(0, words[1].size() - 1);
  if (method.name.empty() || method.name.size() > 80) {
    throw ProgramError(number, 1, "a method's name has 1 to 80 characters");
  }
  method.update = value_of(words[2], kUpdates, number, line);
  method.carrier = value_of(words[3], kCarriers, number, line);
  return method;
}

struct Taxonomy {
  std::vector<Method> methods;
  std::map<Cell, std::string> cells;
};

Taxonomy read_taxonomy() {
  Taxonomy taxonomy;
  Update update = Update::single;
  Transport transport = Transport::infiniband;
  bool in_table = false;
  each_line(kTaxonomy, [&](std::string_view line, std::size_t number) {
    const std::vector<std::string> words = words_in(line);
    if (words.empty()) return;
    if (words[0] == "method") {
      taxonomy.methods.push_back(read_heading(line, number));
    } else if (words[0] == "table") {
      in_table = true;
      update = value_of(words.at(1), kUpdates, number, line);
      transport = words.at(2) == "iwarp" ? Transport::iwarp : Transport::infiniband;
    } else if (!in_table) {
      pmem::parse_agent(line, number, taxonomy.methods.back().program);
    } else if (words.size() == 6) {
      const auto domain = value_of(
          words[0],
          std::array{PersistenceDomain::dmp, PersistenceDomain::mhp, PersistenceDomain::wsp},
          number, line);
      for (const Carrier carrier : kCarriers) {
        taxonomy.cells[{transport, domain, words[1] == "ddio",
                        words[2] == "pm" ? Medium::pm : Medium::dram, update, carrier}] =
            words[3 + static_cast<std::size_t>(carrier)];
      }
    }
  });
  return taxonomy;
}

const Taxonomy& taxonomy() {
  static const Taxonomy read = read_taxonomy();
  return read;
}

// The numbers of a method's agents: the update, and a reader.
constexpr std::uint32_t kOfUpdate = 0;
constexpr std::uint32_t kOfReader = 1;

const std::vector<Step>& steps_of(const Method& method, bool responder, std::uint32_t number) {
  static const std::vector<Step> none;
  for (const pmem::Agent& agent : method.program.agents) {
    if (agent.responder == responder && agent.number == number) return agent.steps;
  }
  return none;
}

template <class Matches>
bool any_step(const Method& method, const Matches& matches) {
  return std::any_of(method.program.agents.begin(), method.program.agents.end(),
                     [&](const pmem::Agent& agent) {
                       return std::any_of(agent.steps.begin(), agent.steps.end(), matches);
                     });
}

}  // namespace

std::string_view to_string(Update update) {
  constexpr std::string_view kNames[] = {"single", "ordered", "publish"};
  return kNames[static_cast<int>(update)];
}

std::string_view to_string(Link link) { return link == Link::cas ? "cas" : "write"; }

std::string_view to_string(ReadersDuty duty) {
  switch (duty) {
    case ReadersDuty::nothing:
      return "readers need do nothing: a link that can be seen is durable";
    case ReadersDuty::persist:
      return "readers make each link durable, by the steps above, before they rely on it";
    case ReadersDuty::help:
      return "readers that find a link without the mark rely on it at once; one with the mark they "
             "make durable by the steps above, or they wait until the mark is gone";
    case ReadersDuty::wait:
      return "readers that find a link without the mark rely on it at once; one with the mark they "
             "read again until the mark is gone";
  }
  return "";
}

std::string_view to_string(Carrier carrier) {
  constexpr std::string_view kNames[] = {"write", "write-imm", "send"};
  return kNames[static_cast<int>(carrier)];
}

std::string_view purpose(StepKind kind) {
  switch (kind) {
    case StepKind::write:
      return "moves the update to its place";
    case StepKind::write_immediate:
      return "moves the update to its place and tells the responder's CPU";
    case StepKind::send:
      return "carries the update in a message";
    case StepKind::send_names:
      return "tells the responder's CPU what has come";
    case StepKind::atomic_write:
      return "moves 8 bytes to their place, after everything before it";
    case StepKind::compare_and_swap:
      return "changes the link if it is as expected, after everything before it";
    case StepKind::atomic:
      return "changes 8 bytes, after everything before it";
    case StepKind::read:
    case StepKind::flush_visibility:
      return "pushes everything before it out of the device";
    case StepKind::flush_persistence:
      return "pushes everything before it into the persistence domain";
    case StepKind::completion:
      return "waits until the last operation is over";
    case StepKind::receive_ack:
      return "waits for the responder's acknowledgment";
    case StepKind::await:
      return "reads the link";
    case StepKind::receive:
      return "waits until the update is visible to the CPU";
    case StepKind::copy:
    case StepKind::store:
    case StepKind::stream:
      return "moves the update to its place";
    case StepKind::flush:
    case StepKind::clwb:
    case StepKind::clflush:
    case StepKind::fence:
      return "writes it back from the caches";
    case StepKind::send_ack:
      return "tells the requester";
  }
  return "";
}

const std::vector<Step>& Method::requester() const { return steps_of(*this, false, kOfUpdate); }
const std::vector<Step>& Method::responder() const { return steps_of(*this, true, kOfUpdate); }
const std::vector<Step>& Method::reader() const { return steps_of(*this, false, kOfReader); }
const std::vector<Step>& Method::responder_of_reader() const {
  return steps_of(*this, true, kOfReader);
}

bool Method::uses(StepKind kind) const {
  return any_step(*this, [&](const Step& step) { return step.kind == kind; });
}

Link Method::link() const {
  const auto& steps = requester();
  return std::any_of(steps.begin(), steps.end(),
                     [](const Step& step) { return step.kind == StepKind::compare_and_swap; })
             ? Link::cas
             : Link::write;
}

bool Method::marks() const {
  return update == Update::publish && any_step(*this, [](const Step& step) {
           return std::any_of(
               step.changes.begin(), step.changes.end(),
               [](const Step::VariableChange& change) { return is_unmarked(change); });
         });
}

ReadersDuty Method::readers_duty() const {
  const bool only_reads = reader().size() <= 1;
  if (marks()) return only_reads ? ReadersDuty::wait : ReadersDuty::help;
  return only_reads ? ReadersDuty::nothing : ReadersDuty::persist;
}

fabric::DeviceNeeds Method::needs() const {
  return {.write_with_immediate = uses(StepKind::write_immediate),
          .atomics = uses(StepKind::compare_and_swap) || uses(StepKind::atomic),
          .flush_persistence = uses(StepKind::flush_persistence),
          .atomic_write = uses(StepKind::atomic_write)};
}

Role role_of(const pmem::Agent& agent) {
  return agent.number == kOfUpdate ? Role::writer : Role::reader;
}

std::string_view name_of(const pmem::Agent& agent) {
  if (role_of(agent) == Role::writer) return agent.responder ? "responder" : "requester";
  return agent.responder ? "responder of the reader" : "reader";
}

std::string to_string(const Configuration& configuration) {
  return fmt::format("{} {} {}{}", to_string(configuration.model.domain),
                     configuration.model.ddio ? "ddio" : "no-ddio",
                     configuration.receive_buffers == Medium::pm ? "pm" : "dram",
                     configuration.model.transport == Transport::iwarp ? " iwarp" : "");
}

std::vector<Configuration> configurations(Transport transport) {
  std::vector<Configuration> result;
  for (const auto domain :
       {PersistenceDomain::dmp, PersistenceDomain::mhp, PersistenceDomain::wsp}) {
    for (const bool ddio : {true, false}) {
      for (const Medium buffers : {Medium::dram, Medium::pm}) {
        result.push_back({{domain, ddio, transport}, buffers});
      }
    }
  }
  return result;
}

std::vector<Configuration> configurations(const StatedConfiguration& stated) {
  std::vector<Configuration> result;
  for (const auto transport : {pmem::Transport::infiniband, pmem::Transport::iwarp}) {
    const bool iwarp = transport == pmem::Transport::iwarp;
    if (!stated.transport.empty() && (stated.transport == "iwarp") != iwarp) continue;
    for (const Configuration& configuration : configurations(transport)) {
      const auto fits = [](const std::string& word, std::string_view actual) {
        return word.empty() || word == actual;
      };
      if (fits(stated.domain, to_string(configuration.model.domain)) &&
          fits(stated.ddio, configuration.model.ddio ? "on" : "off") &&
          fits(stated.receive_buffers,
               configuration.receive_buffers == pmem::Medium::pm ? "pm" : "dram")) {
        result.push_back(configuration);
      }
    }
  }
  return result;
}

const std::vector<Method>& methods() { return taxonomy().methods; }

const Method& find_method(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Method& method : methods()) {
    if (method.name == name) return method;
    known.push_back(method.name);
  }
  throw UsageError(unknown_name("method", name, known));
}

// Tables 2 and 3 have no cell for Update::publish.
const Method& method_of_paper(const Configuration& configuration, Update update, Carrier carrier) {
  const auto& cells = taxonomy().cells;
  const auto& [model, buffers] = configuration;
  auto cell = cells.find({model.transport, model.domain, model.ddio, buffers, update, carrier});
  if (cell == cells.end()) {
    cell = cells.find({Transport::infiniband, model.domain, model.ddio, buffers, update, carrier});
  }
  return find_method(cell->second);
}

namespace {

// True if the requester has a step by which the method's carrier brings the update "a". Atomics are
// one-sided, as WRITE is.
bool is_carried(const Method& method) {
  const auto carries = [&](const Step& step) {
    switch (step.kind) {
      case StepKind::write:
      case StepKind::atomic_write:
      case StepKind::compare_and_swap:
      case StepKind::atomic:
        return method.carrier == Carrier::write;
      case StepKind::write_immediate:
        return method.carrier == Carrier::write_immediate;
      case StepKind::send:
        return method.carrier == Carrier::send;
      default:
        return false;
    }
  };
  const std::vector<Step>& steps = method.requester();
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    return carries(step) &&
           std::any_of(step.changes.begin(), step.changes.end(),
                       [](const Step::VariableChange& change) { return change.variable == 0; });
  });
}

}  // namespace

Method read_method(std::string_view text, std::string_view name) {
  Method method;
  method.name = name;
  bool has_heading = false;
  std::size_t heading_line = 1;
  std::string steps;  // the heading becomes an empty line, so that line numbers stay right
  each_line(text, [&](std::string_view line, std::size_t number) {
    const std::vector<std::string> words = words_in(line);
    if (!words.empty() && words[0] == "method") {
      if (has_heading)
        throw ProgramError(number, 1, "a file may hold only one method; this is the second");
      const Method heading = read_heading(line, number);
      method = heading;
      has_heading = true;
      heading_line = number;
      line = {};
    } else if (!words.empty() && !words[0].starts_with("requester") &&
               !words[0].starts_with("responder")) {
      throw ProgramError(number, line.find(words[0]) + 1,
                         "a line starts with \"method NAME:\", \"requester:\" or \"responder:\", "
                         "or for readers with \"requester 2:\" or \"responder 2:\"; '#' begins a "
                         "comment");
    }
    steps += fmt::format("{}\n", line);
  });
  method.program = pmem::parse_program(steps);
  auto& program = method.program;
  const auto has = [&](std::string_view variable) {
    return std::count(program.variables.begin(), program.variables.end(), variable) > 0;
  };
  for (const std::string& variable : program.variables) {
    if (variable != "a" && variable != "b") {
      throw ProgramError(1, 1,
                         fmt::format("a method updates \"a\", or \"a\" and then \"b\"; "
                                     "there is a \"{}\"",
                                     variable));
    }
  }
  if (!has("a")) throw ProgramError(1, 1, "no step is about \"a\", the update");
  if (program.variables[0] != "a") throw ProgramError(1, 1, "\"a\" comes before \"b\"");
  if (!has_heading) {
    method.update = !method.reader().empty() ? Update::publish
                    : has("b")               ? Update::ordered
                                             : Update::single;
    method.carrier = method.uses(StepKind::write)             ? Carrier::write
                     : method.uses(StepKind::write_immediate) ? Carrier::write_immediate
                                                              : Carrier::send;
  }
  const bool publishes = method.update == Update::publish;
  const std::uint32_t last_number = publishes ? kOfReader : kOfUpdate;
  const bool one_each =
      std::all_of(program.agents.begin(), program.agents.end(),
                  [&](const pmem::Agent& agent) { return agent.number <= last_number; });
  if (!one_each || method.requester().empty()) {
    throw ProgramError(1, 1,
                       "a method has a requester, and at most one responder; one that publishes "
                       "has a second of each, for readers");
  }
  if (publishes && method.reader().empty()) {
    throw ProgramError(1, 1, "a method that publishes has a reader, \"requester 2\"");
  }
  if ((method.update != Update::single) != has("b")) {
    throw ProgramError(1, 1, "a method is ordered if it has \"a\" and \"b\", else single");
  }
  if (has_heading && !is_carried(method)) {
    throw ProgramError(
        heading_line, 1,
        fmt::format("the method is said to carry \"a\" by {0}, but the requester has "
                    "no step \"{0} a\"",
                    to_string(method.carrier)));
  }
  return method;
}

std::string to_text(const Method& method) {
  std::string text = fmt::format("method {}: {} {}\n", method.name, to_string(method.update),
                                 to_string(method.carrier));
  for (const pmem::Agent& agent : method.program.agents) {
    text += fmt::format("  {}\n", pmem::to_text(method.program, agent));
  }
  return text;
}

namespace {

Method with_read(Method method, bool fences_atomics) {
  for (pmem::Agent& agent : method.program.agents) {
    bool after_read = false;
    for (Step& step : agent.steps) {
      if (step.kind == StepKind::flush_visibility) {
        step.kind = StepKind::read;
        after_read = true;
      } else if (step.kind == StepKind::completion) {
        after_read = false;
      } else if (after_read && fences_atomics &&
                 (step.kind == StepKind::compare_and_swap || step.kind == StepKind::atomic_write)) {
        step.fenced = true;
      }
    }
  }
  return method;
}

}  // namespace

Method with_read_for_flush(Method method) { return with_read(std::move(method), true); }

Method with_read_timed_as_flush(Method method) {
  const bool publishes = method.update == Update::publish;
  return with_read(std::move(method), publishes);
}

std::string name_in_results(const Method& method, bool read_for_flush) {
  const bool emulated = read_for_flush && method.uses(StepKind::flush_visibility);
  return method.name + (emulated ? " (read)" : "");
}

}  // namespace perdura::methods
