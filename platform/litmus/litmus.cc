#include "platform/litmus/litmus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "platform/base/words.h"

namespace perdura::litmus {

namespace {

using Tokens = std::vector<std::string>;

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

class Parser {
 public:
  Parser(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  std::vector<Litmus> parse() {
    for (std::string line : parts_of(text_, '\n')) {
      ++line_;
      line = trimmed(line.substr(0, line.find('#')));
      if (!line.empty()) parse_line(line);
    }
    for (Litmus& litmus : tests_) finish(litmus);
    return std::move(tests_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw LitmusError(fmt::format("{}:{}: {}", file_, line_, what));
  }

  void parse_line(const std::string& line) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) fail("a line is \"litmus:\", \"memory:\", \"node N:\" ...");
    const std::string key = line.substr(0, colon);
    const std::string rest = trimmed(line.substr(colon + 1));
    if (key == "litmus") {
      tests_.emplace_back();
      tests_.back().title = rest;
      tests_.back().where = fmt::format("{}:{}", file_, line_);
      return;
    }
    if (tests_.empty()) fail("the first line of a test is \"litmus: TITLE\"");
    Litmus& litmus = tests_.back();
    if (key == "source") {
      litmus.source = rest;
    } else if (key == "needs") {
      parse_needs(litmus, rest);
    } else if (key == "memory") {
      for (const std::string& word : words_of(rest)) parse_location(litmus, word);
    } else if (key.starts_with("node ")) {
      parse_program(litmus, key, rest);
    } else if (key == "allowed" || key == "forbidden") {
      outcomes_.push_back({tests_.size() - 1, line_, key == "allowed", rest});
    } else {
      fail(fmt::format("there is no \"{}:\"", key));
    }
  }

  void parse_needs(Litmus& litmus, const std::string& text) const {
    for (const std::string& need : words_of(text)) {
      if (need == "flush") {
        litmus.needs_flush = true;
      } else if (need == "atomic-write") {
        litmus.needs_atomic_write = true;
      } else {
        fail(fmt::format("\"{}\": a device may lack flush or atomic-write", need));
      }
    }
  }

  std::uint64_t number(std::string_view text) const {
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size()) {
      fail(fmt::format("\"{}\" is not a number", text));
    }
    return value;
  }

  // z[2]@1=5
  void parse_location(Litmus& litmus, const std::string& text) const {
    const auto at = text.find('@');
    if (at == std::string::npos) fail(fmt::format("\"{}\": a location is x@NODE", text));
    Location location;
    location.name = text.substr(0, at);
    if (const auto open = location.name.find('['); open != std::string::npos) {
      const auto close = location.name.find(']');
      if (close == std::string::npos) fail(fmt::format("\"{}\": a ']' is missing", text));
      location.lines = static_cast<std::uint32_t>(
          number(std::string_view(location.name).substr(open + 1, close - open - 1)));
      location.name.resize(open);
    }
    const auto equals = text.find('=', at);
    if (equals != std::string::npos) location.initially = number(text.substr(equals + 1));
    location.node = static_cast<fabric::NodeId>(number(
        text.substr(at + 1, equals == std::string::npos ? std::string::npos : equals - at - 1)));
    litmus.nodes = std::max(litmus.nodes, location.node + 1);
    litmus.locations.push_back(location);
  }

  static std::optional<Word> find_word(const Litmus& litmus, const std::string& text) {
    const auto dot = text.find('.');
    const std::string name = text.substr(0, dot);
    for (std::uint32_t i = 0; i < litmus.locations.size(); ++i) {
      if (litmus.locations[i].name != name) continue;
      Word word{i, 0};
      if (dot != std::string::npos) {
        word.line = static_cast<std::uint32_t>(std::stoul(text.substr(dot + 1)));
      }
      return word;
    }
    return std::nullopt;
  }

  Word local_word(const Litmus& litmus, const std::string& text) const {
    const std::optional<Word> word = find_word(litmus, text);
    if (!word) fail(fmt::format("\"{}\" is no location", text));
    if (litmus.locations[word->location].node != litmus.programs.back().node) {
      fail(fmt::format("\"{}\" is not on this node", text));
    }
    return *word;
  }

  void set_remote(const Litmus& litmus, const std::string& text, Step& step) const {
    const std::optional<Word> word = find_word(litmus, text);
    if (!word) fail(fmt::format("\"{}\" is no location", text));
    step.remote = *word;
    step.peer = litmus.locations[word->location].node;
  }

  std::uint32_t new_register(Litmus& litmus, const std::string& name) const {
    if (std::find(litmus.registers.begin(), litmus.registers.end(), name) !=
        litmus.registers.end()) {
      fail(fmt::format("register {} has a value already", name));
    }
    litmus.registers.push_back(name);
    return static_cast<std::uint32_t>(litmus.registers.size() - 1);
  }

  void parse_program(Litmus& litmus, const std::string& key, const std::string& text) {
    Program program;
    program.node = static_cast<fabric::NodeId>(number(trimmed(key.substr(5))));
    litmus.nodes = std::max(litmus.nodes, program.node + 1);
    litmus.programs.push_back(program);
    litmus.program_texts.push_back(key + ": " + text);
    for (const std::string& step : parts_of(text, ';')) {
      litmus.programs.back().steps.push_back(parse_step(litmus, words_of(step)));
    }
  }

  Step parse_step(Litmus& litmus, Tokens words) const {
    Step step;
    while (!words.empty() && (words[0] == "fenced" || words[0] == "inlined")) {
      (words[0] == "fenced" ? step.flags.fenced : step.flags.inlined) = true;
      words.erase(words.begin());
    }
    if (words.size() > 2 && words[words.size() - 2] == "via") {
      step.second_queue_pair = words.back() == "2";
      words.resize(words.size() - 2);
    }
    if (words.empty()) fail("a step is missing");
    if (words.size() == 3 && words[1] == "=") return parse_access(litmus, words, step);
    const std::string text = fmt::format("{}", fmt::join(words, " "));
    const auto is = [&words](std::string_view name, std::size_t arguments) {
      return words[0] == name && words.size() == arguments + 1;
    };
    if (is("wait", 0)) {
      step.kind = StepKind::wait;
    } else if (is("fence", 0)) {
      step.kind = StepKind::fence;
    } else if (is("receive", 0) || is("receive", 1)) {
      step.kind = StepKind::receive;
      if (words.size() == 2) step.result = new_register(litmus, words[1]);
    } else if (is("cas", 4)) {
      step.kind = StepKind::cas;
      step.result = new_register(litmus, words[1]);
      step.local = local_word(litmus, words[2]);
      step.expected = number(words[3]);
      step.value = number(words[4]);
    } else if (is("write", 2) || is("write-imm", 2)) {
      step.kind = words[0] == "write" ? StepKind::write : StepKind::write_immediate;
      set_remote(litmus, words[1], step);
      step.local = local_word(litmus, words[2]);
    } else if (is("send", 2)) {
      step.kind = StepKind::send;
      step.local = local_word(litmus, words[1]);
      step.peer = static_cast<fabric::NodeId>(number(words[2]));
    } else if (is("read", 2)) {
      step.kind = StepKind::read;
      step.local = local_word(litmus, words[1]);
      set_remote(litmus, words[2], step);
    } else if (is("flush", 1)) {
      step.kind = StepKind::flush;
      set_remote(litmus, words[1], step);
    } else if (is("remote-cas", 4)) {
      step.kind = StepKind::remote_cas;
      step.result = new_register(litmus, words[1]);
      set_remote(litmus, words[2], step);
      step.expected = number(words[3]);
      step.value = number(words[4]);
    } else if (is("remote-add", 3)) {
      step.kind = StepKind::remote_add;
      step.result = new_register(litmus, words[1]);
      set_remote(litmus, words[2], step);
      step.value = number(words[3]);
    } else if (is("atomic-write", 2)) {
      step.kind = StepKind::atomic_write;
      set_remote(litmus, words[1], step);
      step.value = number(words[2]);
    } else {
      fail(fmt::format("\"{}\" is no step", text));
    }
    return step;
  }

  // x = 1 or a = x
  Step parse_access(Litmus& litmus, const Tokens& words, Step step) const {
    if (find_word(litmus, words[0])) {
      step.kind = StepKind::store;
      step.local = local_word(litmus, words[0]);
      step.value = number(words[2]);
    } else {
      step.kind = StepKind::load;
      step.result = new_register(litmus, words[0]);
      step.local = local_word(litmus, words[2]);
    }
    return step;
  }

  void finish(Litmus& litmus) {
    litmus.result_names = litmus.registers;
    for (const Location& location : litmus.locations) {
      for (std::uint32_t line = 0; line < location.lines; ++line) {
        litmus.result_names.push_back(
            location.lines == 1 ? location.name : fmt::format("{}.{}", location.name, line));
      }
    }
    for (const Written& written : outcomes_) {
      if (&tests_[written.test] != &litmus) continue;
      line_ = written.line;
      Outcome outcome{written.text, written.allowed, {}};
      for (const std::string& word : words_of(written.text)) {
        const auto equals = word.find('=');
        const auto name = std::find(litmus.result_names.begin(), litmus.result_names.end(),
                                    word.substr(0, equals));
        if (equals == std::string::npos || name == litmus.result_names.end()) {
          fail(fmt::format("\"{}\": an outcome is of registers and locations, a=1", word));
        }
        outcome.values.push_back({static_cast<std::size_t>(name - litmus.result_names.begin()),
                                  number(std::string_view(word).substr(equals + 1))});
      }
      litmus.outcomes.push_back(outcome);
    }
    if (litmus.programs.empty() || litmus.outcomes.empty()) {
      throw LitmusError(litmus.where + ": a test has programs and outcomes");
    }
  }

  struct Written {
    std::size_t test;
    int line;
    bool allowed;
    std::string text;
  };

  std::string_view text_;
  std::string file_;
  int line_ = 0;
  std::vector<Litmus> tests_;
  std::vector<Written> outcomes_;
};

}  // namespace

std::vector<Litmus> parse(std::string_view text, const std::string& file) {
  return Parser(text, file).parse();
}

bool matches(const Outcome& outcome, const Result& result) {
  return std::all_of(
      outcome.values.begin(), outcome.values.end(),
      [&result](const Outcome::Value& value) { return result[value.place] == value.value; });
}

std::string to_string(const Litmus& litmus, const Result& result) {
  std::string text;
  for (std::size_t i = 0; i < result.size(); ++i) {
    text += fmt::format("{}{}={}", i == 0 ? "" : " ", litmus.result_names[i], result[i]);
  }
  return text;
}

}  // namespace perdura::litmus
