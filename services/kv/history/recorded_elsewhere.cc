#include "services/kv/history/recorded_elsewhere.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <unordered_map>

#include "platform/base/error.h"
#include "platform/base/json.h"
#include "services/kv/history/edn.h"

namespace perdura::history {
namespace {

using Action = RegisterOperation::Action;
using Call = services::Call<RegisterOperation>;

std::optional<Action> action_of(std::string_view word) {
  if (word.starts_with(':')) word.remove_prefix(1);
  for (const auto& [name, action] :
       {std::pair("read", Action::read), std::pair("r", Action::read),
        std::pair("get", Action::read), std::pair("write", Action::write),
        std::pair("w", Action::write), std::pair("put", Action::write),
        std::pair("cas", Action::compare_set), std::pair("append", Action::append),
        std::pair("delete", Action::erase)}) {
    if (word == name) return action;
  }
  return std::nullopt;
}

std::string not_known(std::size_t line, std::string_view operation) {
  return fmt::format(
      "line {}: operation {} is not known; known are read, write, cas, get, put, append and delete",
      line, operation);
}

// One half of an operation.
struct Event {
  std::size_t line = 0;
  std::int64_t index = 0;
  std::string process{};
  std::string type{};
  std::string operation{};
  std::optional<std::string> key{};
  bool counts_deletes = false;  // true for perdura's files, where every delete has found something
  Edn value{};
};

// Puts the halves of operations together.
class Halves {
 public:
  void add(Event event) {
    // Processes that are not clients have names instead of numbers.
    if (event.process.empty() || std::isdigit(static_cast<unsigned char>(event.process[0])) == 0) {
      return;
    }
    events_.push_back(std::move(event));
  }

  RegisterHistory take() {
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) { return a.index < b.index; });
    keyed_ = has_keys();
    for (const Event& event : events_) {
      appends_ = appends_ || action_of(event.operation) == Action::append;
    }
    // A history with appends begins with the empty string, which append treats like nil.
    history_.begins_empty = appends_;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (event.type == ":invoke") {
        const auto [open, is_new] = open_.try_emplace(event.process, i);
        if (!is_new) {
          throw UsageError(fmt::format(
              "line {}: process {} begins an operation, and that of line {} has not ended",
              event.line, event.process, events_[open->second].line));
        }
        continue;
      }
      const auto open = open_.find(event.process);
      if (open == open_.end()) {
        if (event.type == ":info") continue;  // a remark
        throw UsageError(fmt::format("line {}: process {} ends an operation that it did not begin",
                                     event.line, event.process));
      }
      complete(open->second, i);
      open_.erase(open);
    }
    for (const auto& [process, begun] : open_) complete(begun, begun);
    return std::move(history_);
  }

 private:
  // True if values belong to registers with names: [KEY VALUE], or [KEY [OLD NEW]] for a
  // compare-and-set.
  bool has_keys() const {
    bool any = false;
    for (const Event& event : events_) {
      if (event.type != ":invoke" || !action_of(event.operation)) continue;
      const bool pair = event.value.is_list(2);
      if (!pair || event.key) return false;
      if (action_of(event.operation) == Action::compare_set &&
          !event.value.elements[1].is_list(2)) {
        return false;
      }
      any = true;
    }
    return any;
  }

  RegisterValues::Id id_of(const Edn& value) {
    if (value.kind == Edn::Kind::scalar && value.word == ":absent") return RegisterValues::kAbsent;
    if (appends_ && value.kind == Edn::Kind::text && value.word.empty()) {
      return RegisterValues::kAbsent;
    }
    return history_.values.id_of(value.canonical());
  }

  const Edn& value_in(const Event& event) const {
    return keyed_ && event.value.is_list(2) ? event.value.elements[1] : event.value;
  }

  // An operation that never ended ends where it begins.
  void complete(std::size_t begun, std::size_t ended) {
    const Event& event = events_[begun];
    const Event& end = events_[ended];
    const bool answered = end.type == ":ok";
    if (end.type == ":fail") return;
    const auto action = action_of(event.operation);
    if (!action || (action == Action::erase && !event.counts_deletes)) {
      if (history_.not_known.empty()) history_.not_known = not_known(event.line, event.operation);
      return;
    }
    if (action == Action::read && !answered) return;
    Call call{.operation = {.action = *action, .line = event.line},
              .start = Time(Picoseconds(static_cast<std::int64_t>(begun))),
              .answered = answered};
    if (answered) call.end = Time(Picoseconds(static_cast<std::int64_t>(ended)));
    const Edn& value = value_in(action == Action::read ? end : event);
    if (action == Action::compare_set) {
      if (!value.is_list(2)) {
        throw UsageError(
            fmt::format("line {}: the value of a cas is no pair [OLD NEW]", event.line));
      }
      call.operation.expected = id_of(value.elements[0]);
      call.operation.value = id_of(value.elements[1]);
    } else if (action != Action::erase) {
      call.operation.value = id_of(value);
    }
    const std::string key = event.key ? *event.key
                            : keyed_  ? event.value.elements[0].canonical()
                                      : std::string();
    history_.registers[key].push_back(call);
  }

  std::vector<Event> events_;
  std::unordered_map<std::string, std::size_t> open_;  // events by process
  bool keyed_ = false;
  bool appends_ = false;
  RegisterHistory history_;
};

std::string word_in(const Edn& map, std::string_view key) {
  const Edn* const value = map.find(key);
  return value == nullptr || value->is_nil() ? "" : value->word;
}

Event event_of(const Edn& map, std::int64_t number) {
  if (map.kind != Edn::Kind::map) {
    throw UsageError(fmt::format("line {}: it is no map with an operation", map.line));
  }
  Event event{.line = map.line,
              .index = number,
              .process = word_in(map, ":process"),
              .type = word_in(map, ":type"),
              .operation = word_in(map, ":f")};
  if (event.process.empty() || event.type.empty()) {
    throw UsageError(fmt::format("line {}: there is no :process or no :type", map.line));
  }
  if (std::string_view(" :invoke :ok :fail :info ").find(" " + event.type + " ") ==
      std::string_view::npos) {
    throw UsageError(fmt::format("line {}: :type {} is not known", map.line, event.type));
  }
  const std::string index = word_in(map, ":index");
  std::from_chars(index.data(), index.data() + index.size(), event.index);
  if (const Edn* const key = map.find(":key")) event.key = key->canonical();
  if (const Edn* const value = map.find(":value")) event.value = *value;
  event.counts_deletes = map.find(":client") != nullptr;
  return event;
}

RegisterHistory read_edn(std::string_view text) {
  Halves halves;
  std::int64_t number = 0;
  for_each_edn(text, [&](const Edn& value) {
    if (value.kind != Edn::Kind::list) {
      halves.add(event_of(value, number++));
      return;
    }
    for (const Edn& element : value.elements) halves.add(event_of(element, number++));
  });
  if (number == 0) throw UsageError("there is no operation in it");
  return halves.take();
}

// The next word of a line, up to a blank.
std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

RegisterHistory read_log(std::string_view text) {
  Halves halves;
  bool any = false;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    line.remove_prefix(dash + 3);
    Event event{.line = number, .index = static_cast<std::int64_t>(number)};
    event.process = take_word(line);
    event.type = take_word(line);
    event.operation = take_word(line);
    // Other lines of the log have other subjects.
    if (std::string_view(" :invoke :ok :fail :info ").find(" " + event.type + " ") ==
            std::string_view::npos ||
        event.type.empty()) {
      continue;
    }
    any = true;
    try {
      bool first = true;
      for_each_edn(line, [&](const Edn& value) {
        if (first) event.value = value;
        first = false;
      });
    } catch (const UsageError&) {
      // After a failed operation, words about the reason follow.
      if (event.type == ":invoke" || event.type == ":ok") {
        throw UsageError(fmt::format("line {}: its value is not EDN", number));
      }
    }
    halves.add(std::move(event));
  }
  if (!any) throw UsageError("there is no operation in it");
  return halves.take();
}

// A member of an object; the case of its name is ignored, since Go's fields begin with capitals.
const Json* member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  for (const auto& [key, value] : object.items()) {
    const auto same = [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == b;
    };
    if (std::equal(key.begin(), key.end(), name.begin(), name.end(), same)) return &value;
  }
  return nullptr;
}

// The lines in which the elements of a JSON array begin, one after the other.
class ElementLines {
 public:
  explicit ElementLines(std::string_view text) : text_(text) {}

  std::size_t next() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (within_text_) {
        if (c == '\\') ++at_;
        within_text_ = within_text_ && c != '"';
        continue;
      }
      if (std::isspace(static_cast<unsigned char>(c)) != 0) continue;
      if (depth_ == 1 && c == ',') {
        between_ = true;
        continue;
      }
      const bool begins = depth_ == 1 && between_ && c != ']';
      if (begins) between_ = false;
      within_text_ = c == '"';
      if (c == '[' || c == '{') ++depth_;
      if (c == ']' || c == '}') --depth_;
      if (begins) {
        ++at_;
        return line_;
      }
    }
    return line_;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  int depth_ = 0;
  bool within_text_ = false;
  bool between_ = true;  // true between elements
};

class JsonOperations {
 public:
  explicit JsonOperations(std::string_view text) : text_(text), lines_(text) {
    history_.begins_empty = true;
  }

  RegisterHistory take() {
    const std::size_t first = text_.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && text_[first] == '{') {
      throw UsageError("it is no array of operations");
    }
    std::size_t index = 0;
    const auto use = [&](const Json& value) {
      const std::size_t line = lines_.next();
      try {
        add(value, line);
      } catch (const std::exception& error) {
        throw UsageError(fmt::format("line {}: operation {}: {}", line, index, error.what()));
      }
      ++index;
    };
    try {
      if (!Json::for_each_element(text_, use)) throw UsageError("it is no array of operations");
    } catch (const JsonError& error) {
      throw UsageError(error.what());
    }
    return std::move(history_);
  }

 private:
  RegisterValues::Id id_of(const Json* value) {
    return value == nullptr || value->is_null() ? RegisterValues::kAbsent
                                                : history_.values.id_of(value->dump());
  }

  static bool is(const Json* value, bool truth) {
    return value != nullptr && value->is_boolean() && value->get<bool>() == truth;
  }

  void add(const Json& written, std::size_t line) {
    const Json* const input = member(written, "input");
    const Json* const called = member(written, "call");
    const Json* const returned = member(written, "return");
    if (input == nullptr || called == nullptr) throw UsageError("it has no Input or no Call");
    const Json* const word = member(*input, "op");
    const std::string name = word != nullptr && word->is_string() ? word->get<std::string>()
                             : word != nullptr                    ? word->dump()
                                                                  : "without Op";
    std::optional<Action> action =
        word != nullptr && word->is_string() ? action_of(name) : std::nullopt;
    if (!action) {
      if (history_.not_known.empty()) history_.not_known = not_known(line, name);
      return;
    }
    const Json none;
    const Json* const given = member(written, "output");
    const Json& output = given == nullptr ? none : *given;
    const Json* const said = member(output, "outcome");
    const std::string outcome =
        said != nullptr && said->is_string() ? said->get<std::string>()
        : given == nullptr || output.is_null() || is(member(output, "unknown"), true) ? "unknown"
                                                                                      : "ok";
    if (outcome == "failed" || outcome == "refused") return;
    const bool absent = outcome == "not found" || is(member(output, "exists"), false);
    if (outcome != "ok" && outcome != "unknown" && outcome != "not found" && outcome != "torn") {
      throw UsageError(fmt::format("outcome '{}' is not known", outcome));
    }
    Call call;
    call.answered = outcome != "unknown";
    call.start = Time(Picoseconds(called->get<std::int64_t>()));
    if (call.answered) {
      if (returned == nullptr) throw UsageError("it has no Return");
      call.end = Time(Picoseconds(returned->get<std::int64_t>()));
      if (call.end < call.start) throw UsageError("it returns before it is called");
    }
    call.operation = {.action = *action, .line = line};
    const Json* const value = member(*input, "value");
    if (action == Action::erase && absent) call.operation.action = Action::read;
    if (action == Action::read) {
      if (!call.answered) return;
      if (outcome == "torn") {
        call.operation.value = history_.values.id_of("a value that nobody wrote");
      } else if (!absent) {
        call.operation.value = id_of(member(output, "value"));
      }
    } else if (action == Action::compare_set) {
      if (value == nullptr || !value->is_array() || value->size() != 2) {
        throw UsageError("the Value of a cas is no pair [OLD, NEW]");
      }
      call.operation.expected = id_of(&value->at(0));
      call.operation.value = id_of(&value->at(1));
      if (is(member(output, "ok"), false)) call.operation.action = Action::compare_failed;
    } else if (action != Action::erase) {
      if (value == nullptr) throw UsageError("it has no Value");
      call.operation.value = id_of(value);
    }
    const Json* const key = member(*input, "key");
    history_.registers[key == nullptr ? "" : key->dump()].push_back(call);
  }

  std::string_view text_;
  ElementLines lines_;
  RegisterHistory history_;
};

}  // namespace

Notation notation_of(std::string_view text) {
  std::string signs;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) continue;
    signs += c;
    if (signs.size() == 3) break;
  }
  if (signs.empty()) return Notation::json;
  const bool json = signs.starts_with("[{\"") || signs.starts_with("{\"") || signs == "[]";
  if (json) return Notation::json;
  if (std::isalpha(static_cast<unsigned char>(signs[0])) != 0 ||
      std::isdigit(static_cast<unsigned char>(signs[0])) != 0) {
    return Notation::log;
  }
  return signs.starts_with('{') || signs.starts_with("[{") || signs.starts_with('#') ||
                 signs.starts_with(';') || signs.starts_with("[#") || signs.starts_with('(')
             ? Notation::edn
             : Notation::json;
}

RegisterHistory read_recorded(std::string_view text, Notation notation) {
  switch (notation) {
    case Notation::edn:
      return read_edn(text);
    case Notation::log:
      return read_log(text);
    case Notation::json:
      break;
  }
  return JsonOperations(text).take();
}

std::size_t line_of_element(std::string_view text, std::size_t index) {
  ElementLines lines(text);
  for (std::size_t i = 0; i < index; ++i) lines.next();
  return lines.next();
}

}  // namespace perdura::history
