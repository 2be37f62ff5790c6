#include "bench/ycsb/properties.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "harness/text/printable.h"
#include "platform/base/path_kind.h"

namespace perdura::ycsb {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\f'; }

std::string_view without_leading_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

bool ends_in_continuation(std::string_view line) {
  std::size_t backslashes = 0;
  while (backslashes < line.size() && line[line.size() - 1 - backslashes] == '\\') ++backslashes;
  return backslashes % 2 == 1;  // an even number of backslashes are escaped backslashes
}

// Hands out the lines of a text, whatever their terminator, with their numbers.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    ++number_;
    const std::size_t end = rest_.find_first_of("\r\n");
    const std::string_view line = rest_.substr(0, end);
    if (end == std::string_view::npos) {
      rest_ = {};
    } else {
      const bool two_characters = rest_.substr(end, 2) == "\r\n";
      rest_.remove_prefix(end + (two_characters ? 2 : 1));
    }
    return line;
  }

  // The number of the line that next() returned last, from 1.
  int number() const { return number_; }

 private:
  std::string_view rest_;
  int number_ = 0;
};

void append_utf8(std::string& out, unsigned code_point) {
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
    return;
  }
  if (code_point < 0x800) {
    out += static_cast<char>(0xc0 | (code_point >> 6));
  } else {
    out += static_cast<char>(0xe0 | (code_point >> 12));
    out += static_cast<char>(0x80 | ((code_point >> 6) & 0x3f));
  }
  out += static_cast<char>(0x80 | (code_point & 0x3f));
}

// The four hexadecimal digits of \uXXXX, or nothing if they are not that.
std::optional<unsigned> hexadecimal_digits(std::string_view digits) {
  if (digits.size() != 4) return std::nullopt;
  unsigned value = 0;
  for (char c : digits) {
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<unsigned>(c - 'A') + 10;
    } else {
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return value;
}

// Resolves escapes. Returns nothing if a \u escape is malformed.
std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    switch (const char escaped = text[++i]) {
      case 't':
        out += '\t';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 'f':
        out += '\f';
        break;
      case 'u': {
        const std::optional<unsigned> code = hexadecimal_digits(text.substr(i + 1, 4));
        if (!code) return std::nullopt;
        append_utf8(out, *code);
        i += 4;
        break;
      }
      default:
        out += escaped;
    }
  }
  return out;
}

// The end of the key: the first =, : or blank without a backslash before it.
std::size_t end_of_key(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '=' || line[i] == ':' || is_blank(line[i])) {
      return i;
    }
  }
  return line.size();
}

std::string_view without_trailing_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) {
    // The line ends with an escaped blank.
    if (ends_in_continuation(text.substr(0, text.size() - 1))) break;
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace

tl::expected<Properties, Error> Properties::parse(std::string_view text, std::string_view name) {
  Properties properties;
  Lines lines(harness::without_byte_order_mark(text));
  while (const auto natural_line = lines.next()) {
    std::string line(without_leading_blanks(*natural_line));
    if (line.empty() || line.front() == '#' || line.front() == '!') continue;
    std::string where = fmt::format("{}:{}", name, lines.number());
    while (ends_in_continuation(line)) {
      line.pop_back();
      const auto more = lines.next();
      if (!more) break;
      line += without_leading_blanks(*more);
    }

    const std::string_view whole = line;
    const std::size_t key_end = end_of_key(whole);
    std::string_view value = without_leading_blanks(whole.substr(key_end));
    if (!value.empty() && (value.front() == '=' || value.front() == ':')) {
      value = without_leading_blanks(value.substr(1));
    }
    auto key = unescaped(whole.substr(0, key_end));
    auto plain_value = unescaped(without_trailing_blanks(value));
    if (!key || !plain_value) {
      return tl::unexpected(
          Error{fmt::format("{}: malformed \\u escape; write \\u and four hexadecimal digits, or "
                            "\\\\ for a backslash",
                            where)});
    }
    properties.set(*std::move(key), *std::move(plain_value), std::move(where));
  }
  return properties;
}

tl::expected<Properties, Error> Properties::read_file(const std::filesystem::path& path) {
  const auto unreadable = [&](int error) {
    return tl::unexpected(Error{
        fmt::format("{}: cannot read the workload file: {}; give the path of a YCSB property file",
                    path.string(), std::strerror(error))});
  };
  // Opening a folder succeeds; only reading it would fail.
  if (kind_of(path) == PathKind::folder) return unreadable(EISDIR);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable(errno != 0 ? errno : EIO);
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return unreadable(EIO);
  return parse(text.str(), path.string());
}

void Properties::set(std::string key, std::string value, std::string where) {
  entries_.insert_or_assign(std::move(key), SourcedValue{std::move(value), std::move(where)});
}

const Properties::SourcedValue* Properties::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace perdura::ycsb
