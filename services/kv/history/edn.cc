#include "services/kv/history/edn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "platform/base/error.h"

namespace perdura::history {
namespace {

constexpr int kDeepest = 100;

class EdnReader {
 public:
  explicit EdnReader(std::string_view text) : text_(text) {}

  // Skips to the next value; returns true if there is one.
  bool has_next() {
    skip();
    return at_ < text_.size();
  }

  Edn next(int depth = 0) {
    skip();
    if (depth > kDeepest) fail(fmt::format("it is nested deeper than {}", kDeepest));
    if (at_ == text_.size()) fail("it ends too early");
    Edn value;
    value.line = line_;
    switch (text_[at_]) {
      case '"':
        read_text(value);
        return value;
      case '[':
        read_elements(value, 1, ']', Edn::Kind::list, depth);
        return value;
      case '(':
        read_elements(value, 1, ')', Edn::Kind::list, depth);
        return value;
      case '{':
        read_elements(value, 1, '}', Edn::Kind::map, depth);
        if (value.elements.size() % 2 != 0) fail_at(value.line, "a map has a key without a value");
        return value;
      case '#':
        return read_tagged(depth);
      case ']':
      case ')':
      case '}':
        fail(fmt::format("'{}' closes nothing", text_[at_]));
      default:
        read_scalar(value);
        return value;
    }
  }

 private:
  [[noreturn]] static void fail_at(std::size_t line, const std::string& what) {
    throw UsageError(fmt::format("line {}: it is not EDN: {}", line, what));
  }
  [[noreturn]] void fail(const std::string& what) const { fail_at(line_, what); }

  static bool is_blank(char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0 || c == ',';
  }
  static bool ends_scalar(char c) {
    return is_blank(c) || std::string_view("\"[](){};").find(c) != std::string_view::npos;
  }
  bool follows(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  void skip() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == ';') at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_ == text_.size() || !is_blank(text_[at_])) break;
      if (text_[at_] == '\n') ++line_;
    }
    if (!follows("#_")) return;
    at_ += 2;
    static_cast<void>(next(1));  // a value that is marked to be ignored
    skip();
  }

  void read_elements(Edn& value, std::size_t opening, char closing, Edn::Kind kind, int depth) {
    value.kind = kind;
    at_ += opening;
    for (skip(); at_ < text_.size() && text_[at_] != closing; skip()) {
      value.elements.push_back(next(depth + 1));
    }
    if (at_ == text_.size())
      fail_at(value.line, fmt::format("nothing closes it with '{}'", closing));
    ++at_;
  }

  Edn read_tagged(int depth) {
    if (follows("#{")) {
      Edn set;
      set.line = line_;
      read_elements(set, 2, '}', Edn::Kind::list, depth);
      return set;
    }
    while (at_ < text_.size() && !ends_scalar(text_[at_])) ++at_;
    return next(depth + 1);
  }

  void read_text(Edn& value) {
    value.kind = Edn::Kind::text;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '\\') {
        value.word += text_[at_];
        continue;
      }
      if (++at_ == text_.size()) break;
      constexpr std::string_view kLetters = "tnr";
      constexpr std::string_view kMeanings = "\t\n\r";
      const std::size_t letter = kLetters.find(text_[at_]);
      // \uXXXX is kept as it is written; equal texts stay equal.
      if (text_[at_] == 'u') value.word += '\\';
      value.word += letter == std::string_view::npos ? text_[at_] : kMeanings[letter];
    }
    if (at_ == text_.size()) fail_at(value.line, "nothing closes a string");
    ++at_;
  }

  void read_scalar(Edn& value) {
    const std::size_t begin = at_;
    // A backslash begins a character, which may be one that would otherwise end a scalar.
    if (text_[at_] == '\\') at_ = std::min(at_ + 2, text_.size());
    while (at_ < text_.size() && !ends_scalar(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "nil") return;
    value.kind = Edn::Kind::scalar;
    value.word = word;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

// True if it is a whole number, with or without a sign.
bool is_whole(std::string_view word) {
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

const Edn* Edn::find(std::string_view key) const {
  if (kind != Kind::map) return nullptr;
  for (std::size_t i = 0; i < elements.size(); i += 2) {
    if (elements[i].kind == Kind::scalar && elements[i].word == key) return &elements[i + 1];
  }
  return nullptr;
}

std::string Edn::canonical() const {
  switch (kind) {
    case Kind::nil:
      return "nil";
    case Kind::scalar: {
      std::string_view number = word;
      if (number.ends_with('N')) number.remove_suffix(1);
      if (!is_whole(number)) return word;
      if (number.starts_with('+')) number.remove_prefix(1);
      return std::string(number);
    }
    case Kind::text:
      return '"' + word + '"';
    case Kind::list:
    case Kind::map:
      break;
  }
  std::string text = kind == Kind::map ? "{" : "[";
  for (const Edn& element : elements) {
    if (text.size() > 1) text += ' ';
    text += element.canonical();
  }
  return text + (kind == Kind::map ? "}" : "]");
}

void for_each_edn(std::string_view text, const std::function<void(const Edn&)>& use) {
  EdnReader reader(text);
  while (reader.has_next()) use(reader.next());
}

}  // namespace perdura::history
