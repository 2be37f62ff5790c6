#include "harness/results/media_writes.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <charconv>
#include <cstdio>

namespace perdura::harness {
namespace {

constexpr Bytes kUnit = 64;  // ipmctl counts writes of this many bytes

std::string_view first_line_of(std::string_view text) {
  while (!text.empty() && (text.front() == '\n' || text.front() == ' ')) text.remove_prefix(1);
  return text.substr(0, text.find('\n'));
}

}  // namespace

MediaWrites media_writes(const std::string& command) {
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {{}, "ipmctl cannot be started"};
  std::string output;
  std::array<char, 4096> part;
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    output.append(part.data(), n);
  }
  const int status = ::pclose(pipe);
  constexpr int kNotFound = 127;  // exit code of the shell
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound) {
    return {{}, "ipmctl, which asks the modules, is not installed"};
  }
  if (status != 0) return {{}, fmt::format("ipmctl failed: {}", first_line_of(output))};
  return media_writes_in(output);
}

// Parses lines such as "   TotalMediaWrites=0x000000000000000000000000adc83a0e", one for each
// module.
MediaWrites media_writes_in(std::string_view output) {
  constexpr std::string_view kKey = "TotalMediaWrites=";
  std::uint64_t writes = 0;
  std::size_t modules = 0;
  for (std::size_t at = output.find(kKey); at != std::string_view::npos;
       at = output.find(kKey, at + 1)) {
    std::string_view number = output.substr(at + kKey.size());
    number = number.substr(0, number.find_first_of(" \r\n"));
    const int base = number.starts_with("0x") ? 16 : 10;
    if (base == 16) number.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), value, base);
    if (error != std::errc() || end != number.data() + number.size()) {
      return {{}, fmt::format("ipmctl printed what is not a number: {}", number)};
    }
    writes += value;
    ++modules;
  }
  if (modules == 0) {
    return {{}, fmt::format("ipmctl tells of no module: {}", first_line_of(output))};
  }
  return {writes * kUnit, ""};
}

MediaWrites written_between(const MediaWrites& before, const MediaWrites& after) {
  if (!before.bytes) return before;
  if (!after.bytes) return after;
  if (*after.bytes < *before.bytes) return {{}, "the modules' counters went backward"};
  return {*after.bytes - *before.bytes, ""};
}

}  // namespace perdura::harness
