#include "platform/pmem/model/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace perdura::pmem {

namespace {

// The numbers of crash points and crash states grow exponentially with the number of steps.
constexpr std::size_t kMostSteps = 64;

enum class Argument : std::uint8_t { none, one, some, peer };

struct Word {
  std::string_view name;
  StepKind kind;
  bool responder;
  Argument argument;
};

// "send" and "receive" have two forms each, which differ in the words that follow.
constexpr std::array kWords{
    Word{"write", StepKind::write, false, Argument::some},
    Word{"write-imm", StepKind::write_immediate, false, Argument::some},
    Word{"send", StepKind::send, false, Argument::some},
    Word{"atomic-write", StepKind::atomic_write, false, Argument::one},
    Word{"cas", StepKind::compare_and_swap, false, Argument::one},
    Word{"fetch-add", StepKind::atomic, false, Argument::one},
    Word{"read", StepKind::read, false, Argument::none},
    Word{"flush", StepKind::flush_visibility, false, Argument::none},
    Word{"flush-persistence", StepKind::flush_persistence, false, Argument::some},
    Word{"completion", StepKind::completion, false, Argument::none},
    Word{"receive", StepKind::receive_ack, false, Argument::peer},
    Word{"await", StepKind::await, false, Argument::one},
    Word{"receive", StepKind::receive, true, Argument::peer},
    Word{"copy", StepKind::copy, true, Argument::some},
    Word{"flush", StepKind::flush, true, Argument::some},
    Word{"send", StepKind::send_ack, true, Argument::peer},
    Word{"store", StepKind::store, true, Argument::one},
    Word{"stream", StepKind::stream, true, Argument::one},
    Word{"clwb", StepKind::clwb, true, Argument::one},
    Word{"clflush", StepKind::clflush, true, Argument::one},
    Word{"fence", StepKind::fence, true, Argument::none},
    Word{"await", StepKind::await, true, Argument::one},
};

class Parser {
 public:
  Parser(std::string_view line, std::size_t number, Program& program)
      : line_(line.substr(0, line.find('#'))), number_(number), program_(program) {}

  bool agent() {
    skip_space();
    const std::size_t begin = at_;
    const std::string_view role = word();
    if (role != "requester" && role != "responder") return false;
    Agent agent;
    agent.responder = role == "responder";
    agent.number = number_or(1) - 1;
    skip_space();
    if (!take(':')) fail(at_, fmt::format("expected ':' after \"{}\"", role));
    const bool known =
        std::any_of(program_.agents.begin(), program_.agents.end(), [&](const Agent& other) {
          return other.responder == agent.responder && other.number == agent.number;
        });
    if (known) fail(begin, fmt::format("there is a {} {} already", role, agent.number + 1));
    for (;;) {
      skip_space();
      if (at_ == line_.size()) break;
      agent.steps.push_back(step(agent));
      skip_space();
      if (at_ < line_.size() && !take(';')) {
        fail(at_, fmt::format("expected ';' between steps, found \"{}\"", line_.substr(at_)));
      }
    }
    program_.agents.push_back(std::move(agent));
    return true;
  }

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    throw ProgramError(number_, at + 1, what);
  }
  void skip_space() {
    while (at_ < line_.size() && std::isspace(static_cast<unsigned char>(line_[at_])) != 0) ++at_;
  }
  bool take(char c) {
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    skip_space();
    const std::size_t begin = at_;
    while (at_ < line_.size() && (std::isalnum(static_cast<unsigned char>(line_[at_])) != 0 ||
                                  line_[at_] == '-' || line_[at_] == '_')) {
      ++at_;
    }
    return line_.substr(begin, at_ - begin);
  }
  std::uint32_t number_or(std::uint32_t otherwise) {
    skip_space();
    std::uint32_t value = 0;
    const std::size_t begin = at_;
    while (at_ < line_.size() && std::isdigit(static_cast<unsigned char>(line_[at_])) != 0 &&
           value < 1000) {
      value = value * 10 + static_cast<std::uint32_t>(line_[at_++] - '0');
    }
    if (begin == at_) return otherwise;
    if (value == 0) fail(begin, "numbers start at 1");
    return value;
  }

  Step step(const Agent& agent) {
    Step step;
    step.peer = agent.number;
    std::size_t begin = at_;
    if (agent.steps.size() == kMostSteps) {
      fail(begin, fmt::format("more than {} steps of one agent", kMostSteps));
    }
    std::string_view name = word();
    while (!agent.responder && (name == "fenced" || name == "relaxed")) {
      (name == "fenced" ? step.fenced : step.relaxed) = true;
      skip_space();
      begin = at_;
      name = word();
    }
    const auto* known = std::find_if(kWords.begin(), kWords.end(), [&](const Word& word) {
      return word.name == name && word.responder == agent.responder;
    });
    if (known == kWords.end()) {
      fail(begin, fmt::format("\"{}\" is no step of a {}; known are {}", name,
                              agent.responder ? "responder" : "requester", names(agent.responder)));
    }
    step.kind = known->kind;
    const auto follows = [&](auto matches) {
      return std::any_of(agent.steps.begin(), agent.steps.end(), matches);
    };
    if (step.kind == StepKind::completion &&
        !follows([](const Step& s) { return s.kind < StepKind::completion; })) {
      fail(begin, "there is no operation before whose completion could come");
    }
    if (step.kind == StepKind::copy &&
        !follows([](const Step& s) { return s.kind == StepKind::receive; })) {
      fail(begin, "there is nothing to copy before a \"receive\"");
    }
    switch (known->argument) {
      case Argument::none:
        break;
      case Argument::peer:
        if (step.kind != StepKind::receive) {
          skip_space();
          const std::size_t what = at_;
          if (word() != "ack") fail(what, fmt::format("expected \"ack\" after \"{}\"", name));
        }
        step.peer = number_or(agent.number + 1) - 1;
        break;
      case Argument::one:
        change(step);
        break;
      case Argument::some:
        skip_space();
        if (step.kind == StepKind::send && at_ < line_.size() && line_[at_] == '&') {
          step.kind = StepKind::send_names;
        }
        do {
          skip_space();
          if (step.kind == StepKind::send_names && !take('&')) {
            fail(at_, "a message carries values or names, not both: expected '&'");
          }
          change(step);
          skip_space();
        } while (take(','));
        break;
    }
    return step;
  }

  void change(Step& step) {
    skip_space();
    const std::size_t begin = at_;
    const std::string_view name = word();
    if (name.empty()) fail(begin, "expected the name of a variable");
    const auto found = std::find(program_.variables.begin(), program_.variables.end(), name);
    Step::VariableChange change;
    change.variable = static_cast<std::uint32_t>(found - program_.variables.begin());
    if (found == program_.variables.end()) program_.variables.emplace_back(name);
    skip_space();
    if (take('=')) {
      const std::size_t at = at_;
      const std::uint32_t value = number_or(0);
      if (value == 0 || value > 255) fail(at, "expected a value from 1 to 255");
      change.value = static_cast<std::uint8_t>(value);
    }
    step.changes.push_back(change);
  }

  static std::string names(bool responder) {
    std::string result;
    for (const Word& word : kWords) {
      if (word.responder == responder) {
        result += fmt::format("{}{}", result.empty() ? "" : ", ", word.name);
      }
    }
    return result;
  }

  std::string_view line_;
  std::size_t number_;
  Program& program_;
  std::size_t at_ = 0;
};

}  // namespace

ProgramError::ProgramError(std::size_t line, std::size_t column, const std::string& what)
    : std::runtime_error(fmt::format("line {}, column {}: {}", line, column, what)) {}

bool parse_agent(std::string_view line, std::size_t line_number, Program& program) {
  return Parser(line, line_number, program).agent();
}

Program parse_program(std::string_view text) {
  Program program;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (parse_agent(line, number, program)) continue;
    const std::string_view content = line.substr(0, line.find('#'));
    const std::size_t first = content.find_first_not_of(" \t\r");
    if (first != std::string_view::npos) {
      throw ProgramError(number, first + 1,
                         "a line starts with \"requester:\" or \"responder:\", or with one of "
                         "several, such as \"requester 2:\"; '#' begins a comment");
    }
  }
  if (program.agents.empty()) throw ProgramError(std::max<std::size_t>(number, 1), 1, "no steps");
  return program;
}

namespace {

// `peer` is the number of the requester that a step concerns, or "" to leave it out; `with_value`
// tells whether a variable's value is written if it is 1.
template <class WithValue>
std::string step_text(const Program& program, const Step& step, const std::string& peer,
                      const WithValue& with_value) {
  std::string text = std::string(step.fenced ? "fenced " : "") + (step.relaxed ? "relaxed " : "");
  if (step.kind == StepKind::send_names) {
    text += "send";
  } else {
    const auto* word = std::find_if(kWords.begin(), kWords.end(),
                                    [&](const Word& known) { return known.kind == step.kind; });
    text += word->name;
  }
  if (step.kind == StepKind::receive_ack || step.kind == StepKind::send_ack) text += " ack";
  const bool has_peer = step.kind == StepKind::receive_ack || step.kind == StepKind::send_ack ||
                        step.kind == StepKind::receive;
  if (has_peer && !peer.empty()) text += " " + peer;
  for (std::size_t i = 0; i < step.changes.size(); ++i) {
    const Step::VariableChange& change = step.changes[i];
    text += fmt::format("{}{}{}", i == 0 ? " " : ",", step.kind == StepKind::send_names ? "&" : "",
                        program.variables[change.variable]);
    if (change.value != 1 || with_value(change)) text += fmt::format("={}", change.value);
  }
  return text;
}

// True for steps in which the value of a variable has a meaning.
constexpr bool has_values(StepKind kind) {
  switch (kind) {
    case StepKind::send_names:
    case StepKind::flush_persistence:
    case StepKind::flush:
    case StepKind::clwb:
    case StepKind::clflush:
    case StepKind::copy:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::string to_string(const Program& program, const Step& step) {
  const bool several = std::any_of(program.agents.begin(), program.agents.end(),
                                   [](const Agent& agent) { return agent.number > 0; });
  return step_text(program, step,
                   several || step.peer > 0 ? fmt::format("{}", step.peer + 1) : std::string(),
                   [](const Step::VariableChange&) { return false; });
}

std::string to_text(const Program& program, const Agent& agent, const Step& step) {
  const auto has_others = [&](const Step::VariableChange& change) {
    const auto is_other = [&](const Step::VariableChange& other) {
      return other.variable == change.variable && other.value != 1;
    };
    return has_values(step.kind) &&
           std::any_of(program.agents.begin(), program.agents.end(), [&](const Agent& one) {
             return std::any_of(one.steps.begin(), one.steps.end(), [&](const Step& each) {
               return std::any_of(each.changes.begin(), each.changes.end(), is_other);
             });
           });
  };
  return step_text(program, step,
                   step.peer == agent.number ? std::string() : fmt::format("{}", step.peer + 1),
                   has_others);
}

std::string to_text(const Program& program, const Agent& agent) {
  std::string text = agent.responder ? "responder" : "requester";
  if (agent.number > 0) text += fmt::format(" {}", agent.number + 1);
  text += ':';
  for (std::size_t i = 0; i < agent.steps.size(); ++i) {
    text += fmt::format("{} {}", i == 0 ? "" : ";", to_text(program, agent, agent.steps[i]));
  }
  return text;
}

std::string to_string(const Program& program, const Agent& agent) {
  const auto same = std::count_if(program.agents.begin(), program.agents.end(),
                                  [&](const Agent& a) { return a.responder == agent.responder; });
  std::string name = agent.responder ? "responder" : "requester";
  if (same > 1 || agent.number > 0) name += fmt::format(" {}", agent.number + 1);
  return name;
}

}  // namespace perdura::pmem
