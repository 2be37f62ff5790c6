#include "tests/platform/pmem/litmus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace perdura::pmem {

namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return text.substr(text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// Of a text within a line, so that its column is known.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    const std::string_view part = trimmed(text.substr(0, end));
    if (!part.empty() || separator != ' ') parts.push_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

class LitmusParser {
 public:
  LitmusParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<Litmus> parse() {
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      line_ = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++number_;
      const std::string_view content = trimmed(line_.substr(0, line_.find('#')));
      if (!content.empty()) one_line(content);
    }
    finish();
    return std::move(tests_);
  }

 private:
  [[noreturn]] void fail(std::string_view at, const std::string& what) const {
    throw ProgramError(number_, static_cast<std::size_t>(at.data() - line_.data()) + 1, what);
  }

  void one_line(std::string_view content) {
    const std::size_t colon = content.find(':');
    const std::string_view key = trimmed(content.substr(0, colon));
    const std::string_view rest = colon == std::string_view::npos
                                      ? content.substr(content.size())
                                      : trimmed(content.substr(colon + 1));
    if (colon == std::string_view::npos) fail(content, "expected \"key: ...\"");
    if (key == "litmus") {
      finish();
      begin_ = number_;
      tests_.emplace_back();
      tests_.back().title = rest;
      tests_.back().where = fmt::format("{}:{}", file_, number_);
      return;
    }
    if (tests_.empty()) fail(content, "a test starts with \"litmus: its title\"");
    Litmus& test = tests_.back();
    if (key == "rules") {
      for (const auto name : split(rest, ',')) test.rules.push_back(rule(name));
    } else if (key == "machine") {
      machines(test, rest);
    } else if (key == "memory") {
      memory(test, rest);
    } else if (key == "may" || key == "never" || key == "finally may" || key == "finally never") {
      outcome(test, key, rest);
    } else {
      const std::size_t known = test.program.variables.size();
      if (!parse_agent(line_, number_, test.program)) {
        fail(key,
             fmt::format("\"{}\" is unknown; known are litmus, rules, machine, memory, requester, "
                         "responder, may, never, finally may, finally never",
                         key));
      }
      if (!test.layout.empty() && test.program.variables.size() > known) {
        fail(key,
             fmt::format("variable {} is missing in \"memory\"", test.program.variables.back()));
      }
    }
  }

  Rule rule(std::string_view name) const {
    for (std::size_t i = 0; i < kRules; ++i) {
      if (to_string(static_cast<Rule>(i)) == name) return static_cast<Rule>(i);
    }
    fail(name, fmt::format("\"{}\" is no rule (see platform/pmem/model/rules.h)", name));
  }

  void machines(Litmus& test, std::string_view text) const {
    std::vector<PersistenceDomain> domains;
    std::optional<bool> ddio;
    Machine machine;
    std::string suffix;
    for (const auto word : split(text, ',')) {
      if (word == "any") {
        domains = {PersistenceDomain::dmp, PersistenceDomain::mhp, PersistenceDomain::wsp};
      } else if (word == "dmp") {
        domains = {PersistenceDomain::dmp};
      } else if (word == "mhp") {
        domains = {PersistenceDomain::mhp};
      } else if (word == "wsp") {
        domains = {PersistenceDomain::wsp};
      } else if (word == "ddio" || word == "no ddio") {
        ddio = word == "ddio";
      } else if (word == "iwarp") {
        machine.model.transport = Transport::iwarp;
        suffix += "_iwarp";
      } else if (word == "buffers in pm") {
        machine.receive_buffers = Medium::pm;
        suffix += "_buffers_in_pm";
      } else if (word.substr(0, 13) == "other device " && word.size() == 14 && word[13] > '0' &&
                 word[13] <= '9') {
        const auto requester = static_cast<std::size_t>(word[13] - '0');
        machine.other_ddio.resize(requester);
        machine.other_ddio[requester - 1] = true;
        suffix += fmt::format("_other_device_{}", requester);
      } else {
        fail(word,
             fmt::format("\"{}\" is unknown; known are any, dmp, mhp, wsp, ddio, no ddio, iwarp, "
                         "buffers in pm, other device N",
                         word));
      }
    }
    if (domains.empty()) fail(text, "a machine is dmp, mhp, wsp or any");
    for (const auto domain : domains) {
      for (const bool with : {false, true}) {
        if (ddio && *ddio != with) continue;
        machine.model.domain = domain;
        machine.model.ddio = with;
        machine.name =
            fmt::format("{}{}{}", to_string(domain), with ? "_ddio" : "_no_ddio", suffix);
        test.machines.push_back(machine);
      }
    }
  }

  void memory(Litmus& test, std::string_view text) const {
    if (!test.program.variables.empty()) fail(text, "\"memory\" stands before the agents, once");
    for (const auto line : split(text, '|')) {
      std::uint32_t next = 0;  // word
      for (const auto item : split(line, ' ')) {
        const std::size_t name_end = item.find_first_of("[@");
        const std::string_view name = item.substr(0, name_end);
        VariableLayout layout;
        std::string_view rest = item.substr(name.size());
        if (rest.size() >= 3 && rest[0] == '[' && rest[1] > '0' && rest[1] <= '8' &&
            rest[2] == ']') {
          layout.words = static_cast<std::uint32_t>(rest[1] - '0');
          rest.remove_prefix(3);
        }
        if (rest.size() >= 2 && rest[0] == '@' && rest[1] >= '0' && rest[1] <= '7' && next == 0) {
          layout.first_word = static_cast<std::uint32_t>(rest[1] - '0');
          rest.remove_prefix(2);
        }
        if (name.empty() || !rest.empty()) {
          fail(item,
               "expected a name, perhaps [words] from 1 to 8, and of the first of a line "
               "perhaps @word from 0 to 7");
        }
        if (std::count(test.program.variables.begin(), test.program.variables.end(), name) > 0) {
          fail(item, fmt::format("variable {} has a place already", name));
        }
        layout.same_line = next > 0;
        next += layout.first_word + layout.words;
        if (layout.same_line && next > 8) fail(item, "a line has 8 words");
        test.program.variables.emplace_back(name);
        test.layout.push_back(layout);
      }
    }
  }

  void outcome(Litmus& test, std::string_view key, std::string_view text) const {
    Outcome outcome;
    outcome.text = fmt::format("{}: {}", key, text);
    outcome.may = key.ends_with("may");
    outcome.finally = key.starts_with("finally");
    for (const auto item : split(text, ' ')) {
      const std::size_t equals = item.find('=');
      const auto& names = test.program.variables;
      const auto found = std::find(names.begin(), names.end(), item.substr(0, equals));
      if (found == names.end()) {
        fail(item,
             fmt::format("\"{}\" is no variable of the program above", item.substr(0, equals)));
      }
      const std::string_view value =
          equals == std::string_view::npos ? "" : item.substr(equals + 1);
      Outcome::Value expected;
      expected.variable = static_cast<std::uint32_t>(found - names.begin());
      if (value == "torn") {
        expected.value = kTorn;
      } else if (value.size() == 1 && std::isdigit(static_cast<unsigned char>(value[0])) != 0) {
        expected.value = value[0] - '0';
      } else {
        fail(item, "expected variable=value, the value 0 to 9 or torn");
      }
      outcome.values.push_back(expected);
    }
    if (outcome.values.empty()) fail(text, "expected variable=value");
    test.outcomes.push_back(std::move(outcome));
  }

  void finish() const {
    if (tests_.empty()) return;
    const Litmus& test = tests_.back();
    const char* missing = test.machines.empty()         ? "a machine"
                          : test.program.agents.empty() ? "a program"
                          : test.outcomes.empty()       ? "an outcome"
                                                        : nullptr;
    if (missing != nullptr) {
      throw ProgramError(begin_, 1, fmt::format("the test \"{}\" lacks {}", test.title, missing));
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::string_view line_;
  std::size_t number_ = 0;
  std::size_t begin_ = 0;
  std::vector<Litmus> tests_;
};

}  // namespace

std::vector<Litmus> parse_litmus(std::string_view text, const std::string& file) {
  return LitmusParser(text, file).parse();
}

std::string failure_of(const Litmus& litmus, const Machine& machine, Rules rules) {
  ProgramSetup setup;
  setup.model = machine.model;
  setup.receive_buffers = machine.receive_buffers;
  setup.layout = litmus.layout;
  setup.other_ddio = machine.other_ddio;
  setup.rules = rules;
  ProgramExplorer explorer(litmus.program, setup);
  std::vector<char> found(litmus.outcomes.size());
  std::string failure;
  const Explored explored = explorer.explore([&](const Instant& instant) {
    bool all_ended = true;
    for (std::size_t a = 0; a < instant.done.size(); ++a) {
      all_ended = all_ended && instant.done[a] == litmus.program.agents[a].steps.size();
    }
    for (std::size_t i = 0; i < litmus.outcomes.size(); ++i) {
      const Outcome& outcome = litmus.outcomes[i];
      if (found[i] != 0 || (outcome.finally && !all_ended)) continue;
      found[i] =
          std::all_of(outcome.values.begin(), outcome.values.end(), [&](const auto& expected) {
            return instant.values[expected.variable] == expected.value;
          });
      if (found[i] != 0 && !outcome.may) {
        failure =
            fmt::format("{}, on {}:\n{}", outcome.text, machine.name, explorer.describe(instant));
        return false;
      }
    }
    return true;
  });
  if (!failure.empty()) return failure;
  if (explored.stuck) {
    const Agent& agent = litmus.program.agents[explored.stuck->agent];
    return fmt::format("{} waits for what never comes: {}", to_string(litmus.program, agent),
                       to_string(litmus.program, agent.steps[explored.stuck->step]));
  }
  for (std::size_t i = 0; i < litmus.outcomes.size(); ++i) {
    if (litmus.outcomes[i].may && found[i] == 0) {
      return fmt::format("{}, on {}: not in any of {} images of {} moments",
                         litmus.outcomes[i].text, machine.name, explored.images, explored.instants);
    }
  }
  return "";
}

}  // namespace perdura::pmem
