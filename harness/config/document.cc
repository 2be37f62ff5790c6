#include "harness/config/document.h"

#include <fmt/format.h>

#include <limits>

#include "harness/text/printable.h"
#include "harness/text/whole_file.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"

namespace perdura::harness {
namespace {

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

// toml++ counts columns in code points, from 1.
std::size_t byte_of_column(std::string_view line, std::size_t column) {
  std::size_t byte = 0;
  for (std::size_t left = column - 1; left > 0 && byte < line.size(); --left) {
    ++byte;
    while (byte < line.size() && (static_cast<unsigned char>(line[byte]) & 0xC0U) == 0x80U) ++byte;
  }
  return byte;
}

// True if the text is a whole number, even one that is too large for TOML.
bool is_whole_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos &&
         (text.size() == 1 || text.front() != '0');
}

// The keys on the path to the value that is overridden, which must be a single value.
std::vector<std::string> parse_path(const Override& change) {
  toml::table parsed;
  try {
    parsed = toml::parse(change.key + " = 0");
  } catch (const toml::parse_error&) {
    throw UsageError(fmt::format("{}: '{}' is not a TOML key; write --set SECTION.KEY=VALUE",
                                 change.label, change.key));
  }
  try {
    const toml::table value = toml::parse("value = " + change.value);
    if (value.size() != 1) throw UsageError(fmt::format("{}: give one value", change.label));
  } catch (const toml::parse_error&) {
    if (is_whole_number(change.value)) {
      throw UsageError(fmt::format("{}: '{}' is too large; whole numbers go from 0 to {}",
                                   change.label, change.value,
                                   std::numeric_limits<std::int64_t>::max()));
    }
    throw UsageError(
        fmt::format("{}: '{}' is not a TOML value; write numbers plainly, text in quotes "
                    "('key=\"text\"' for the "
                    "shell) and lists in brackets",
                    change.label, change.value));
  }
  std::vector<std::string> path;
  for (const toml::table* table = &parsed; table != nullptr && table->size() == 1;) {
    const auto only = table->begin();
    path.emplace_back(only->first.str());
    table = only->second.as_table();
  }
  return path;
}

std::string dotted(std::span<const std::string> path) {
  std::string name;
  for (const std::string& part : path) name += (name.empty() ? "" : ".") + part;
  return name;
}

bool is_header(std::string_view line, std::string_view section) {
  std::string plain;
  for (const char character : line.substr(0, line.find('#'))) {
    if (character != ' ' && character != '\t' && character != '\r') plain += character;
  }
  return plain == fmt::format("[{}]", section);
}

}  // namespace

Document Document::read(const std::filesystem::path& file, std::span<const Override> overrides) {
  std::optional<std::string> text = read_whole(file);
  if (!text) {
    throw UsageError(fmt::format("{}: {}", file.string(), not_a_file(file)));
  }
  if (text->empty()) throw UsageError(fmt::format("{}: is empty", file.string()));
  return parse(std::move(*text), file.string(), overrides);
}

Document Document::parse(std::string text, std::string name, std::span<const Override> overrides) {
  Document document(std::move(name));
  std::size_t number = 0;
  for (std::string& line : split_lines(without_byte_order_mark(text))) {
    document.lines_.push_back({std::move(line), ++number, ""});
  }
  document.parse_lines();
  for (const Override& change : overrides) document.apply(change);
  return document;
}

void Document::parse_lines() {
  text_.clear();
  for (const Line& line : lines_) text_ += line.text + '\n';
  try {
    table_ = toml::parse(text_);
  } catch (const toml::parse_error& problem) {
    throw UsageError(fmt::format("{}: {}", where(problem.source()), problem.description()));
  }
}

std::string Document::where(const toml::source_region& part) const {
  const std::size_t index = part.begin.line;
  if (index == 0 || index > lines_.size()) return name_;
  const Line& line = lines_[index - 1];
  return line.number == 0 ? line.label : fmt::format("{}:{}", name_, line.number);
}

TomlSection Document::top() const {
  return {[this](const toml::source_region& part) { return where(part); }, table_, ""};
}

void Document::apply(const Override& change) {
  const std::vector<std::string> path = parse_path(change);
  // The deepest table on the path that exists.
  const toml::table* table = &table_;
  std::size_t depth = 0;
  for (; depth + 1 < path.size(); ++depth) {
    const toml::node* next = table->get(path[depth]);
    if (next == nullptr) break;
    if (!next->is_table()) {
      throw UsageError(fmt::format("{}: {} is not a section", change.label,
                                   dotted(std::span(path).first(depth + 1))));
    }
    table = next->as_table();
  }

  const std::span section = std::span(path).first(path.size() - 1);
  const std::string assignment = fmt::format("{} = {}", path.back(), change.value);
  if (depth < section.size()) {
    insert(lines_.size(), fmt::format("\n[{}]\n{}", dotted(section), assignment), change);
  } else if (const toml::node* old = table->get(path.back())) {
    if (old->is_table() || old->is_array_of_tables()) {
      throw UsageError(fmt::format("{}: {} is a section, not a value", change.label, change.key));
    }
    replace(old->source(), change);
  } else if (section.empty()) {
    insert(0, assignment, change);
  } else {
    const std::size_t header = table->source().begin.line;
    if (header == 0 || !is_header(lines_[header - 1].text, dotted(section))) {
      throw UsageError(fmt::format("{}: [{}] must be a section of its own in {}", change.label,
                                   dotted(section), name_));
    }
    insert(header, assignment, change);
  }
  parse_lines();
}

void Document::replace(const toml::source_region& value, const Override& change) {
  const std::size_t first = value.begin.line - 1;
  const std::size_t last = value.end.line - 1;
  const std::string before =
      lines_[first].text.substr(0, byte_of_column(lines_[first].text, value.begin.column));
  const std::string after =
      lines_[last].text.substr(byte_of_column(lines_[last].text, value.end.column));
  lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(first),
               lines_.begin() + static_cast<std::ptrdiff_t>(last + 1));
  insert(first, before + change.value + after, change);
}

void Document::insert(std::size_t before, const std::string& text, const Override& change) {
  std::vector<Line> added;
  for (std::string& line : split_lines(text)) added.push_back({std::move(line), 0, change.label});
  lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(before), added.begin(), added.end());
}

}  // namespace perdura::harness
