#include "services/fs/trace/trace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/base/printable.h"

namespace perdura::fs {
namespace {

constexpr char kEscape = '\\';

std::string escaped(std::string_view name) {
  std::string text;
  for (const char each : name) {
    const auto code = static_cast<unsigned char>(each);
    if (code < 0x20 || code == 0x7F || each == kEscape) {
      text += fmt::format("{}{:02x}", kEscape, code);
    } else {
      text += each;
    }
  }
  return text;
}

std::string unescaped(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != kEscape) {
      name += text[i];
      continue;
    }
    unsigned code = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), code, 16);
    if (error != std::errc{} || end != digits.begin() + 2) {
      throw UsageError("two hexadecimal digits must follow a backslash in a name");
    }
    name += static_cast<char>(code);
    i += 2;
  }
  return name;
}

// Takes the next word of the line.
std::string_view word_of(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

std::uint64_t number_of(std::string_view& line, std::string_view what, std::uint64_t most) {
  const std::string_view word = word_of(line);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.begin(), word.end(), number);
  if (word.empty() || error != std::errc{} || end != word.end() || number > most) {
    throw UsageError(
        fmt::format("'{}' is not {}, a whole number up to {}", printable(word), what, most));
  }
  return number;
}

}  // namespace

std::string trace_line(const TraceRecord& record, const TracedFile& file) {
  const std::string_view word = to_string(record.kind);
  if (record.kind == TraceKind::file) {
    const std::string_view space = file.name.empty() ? "" : " ";
    return fmt::format("{} {}{}{}", word, file.size, space, escaped(file.name));
  }
  std::string line = fmt::format("{} {}", word, record.file);
  if (is_access(record.kind)) line += fmt::format(" {} {}", record.offset, record.length);
  if (record.kind == TraceKind::truncate) line += fmt::format(" {}", record.offset);
  return line;
}

void add_trace_line(std::string_view line, TraceWriter& writer) {
  if (line.empty() || line.front() == '#') return;
  const std::string_view word = word_of(line);
  const auto known = std::find(kTraceWords.begin() + 1, kTraceWords.end(), word);
  if (known == kTraceWords.end()) {
    throw UsageError(fmt::format("'{}' is no record; there are {}", printable(word),
                                 fmt::join(kTraceWords.begin() + 1, kTraceWords.end(), ", ")));
  }
  const auto kind = static_cast<TraceKind>(known - kTraceWords.begin());
  if (kind == TraceKind::file) {
    const Bytes size = number_of(line, "a size", kLargestTraced);
    if (!line.empty()) line.remove_prefix(1);
    const std::string name = unescaped(line);
    if (name.size() > kLongestTracedName) throw UsageError("the name is too long");
    writer.add_file(name, size);
    return;
  }
  if (writer.files() == 0) throw UsageError("no line 'file' precedes it");
  TraceRecord record{kind,
                     static_cast<std::uint32_t>(number_of(line, "a file", writer.files() - 1))};
  if (is_access(kind)) {
    record.offset = number_of(line, "an offset", kLargestTraced);
    record.length = number_of(line, "a length", kLargestTraced - record.offset);
  } else if (kind == TraceKind::truncate) {
    record.offset = number_of(line, "a size", kLargestTraced);
  }
  if (!word_of(line).empty()) throw UsageError("more words follow than the record has");
  writer.add(record);
}

void add_trace_lines(const std::string& file, TraceWriter& writer) {
  if (kind_of(file) != PathKind::file) {
    throw UsageError(fmt::format("{}: {}", file, not_a_file(file)));
  }
  std::ifstream text(file);
  if (!text) throw UsageError(fmt::format("{}: {}", file, not_a_file(file)));
  std::uint64_t number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    try {
      add_trace_line(line, writer);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}:{}: {}", file, number, error.what()));
    }
  }
  // A read that failed, or memory that was refused, must not pass for the end of the file.
  if (text.bad()) {
    throw PlatformError(fmt::format("{}: cannot be read beyond line {}", file, number));
  }
}

}  // namespace perdura::fs
