#include "explore/explanation/call_site.h"

#include <execinfo.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>

namespace perdura::explore {

namespace {

// The folder of the sources, as the compiler names it: this file's path without what is known.
std::string_view source_folder() {
  constexpr std::string_view kHere = "explore/explanation/call_site.cc";
  const std::string_view file = __FILE__;
  return file.ends_with(kHere) ? file.substr(0, file.size() - kHere.size()) : std::string_view();
}

bool begins_with_one_of(std::string_view text, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

// True if the code is responsible for durability. Tests bring systems of their own.
bool is_of_a_system(const CallSite& site) {
  static constexpr std::array<std::string_view, 4> kFolders{"systems/", "methods/", "services/",
                                                            "tests/"};
  static constexpr std::array<std::string_view, 3> kNames{
      "perdura::systems::", "perdura::methods::", "perdura::services::"};
  if (!site.line.empty()) return begins_with_one_of(site.line, kFolders);
  return begins_with_one_of(site.function, kNames);
}

bool is_in_systems(const CallSite& site) {
  return site.line.starts_with("systems/") || site.function.starts_with("perdura::systems::");
}

std::uintptr_t address_of_program() {
  std::uintptr_t address = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        *static_cast<std::uintptr_t*>(into) = info->dlpi_addr;
        return 1;  // the program is the first
      },
      &address);
  return address;
}

std::optional<std::string> path_of_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0 || static_cast<std::size_t>(length) == path.size()) return std::nullopt;
  return std::string(path.data(), static_cast<std::size_t>(length));
}

std::string shell_word(std::string_view text) {
  std::string result = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      result += "'\\''";
    } else {
      result += letter;
    }
  }
  return result + "'";
}

std::string output_of(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    output.append(part.data(), n);
  }
  pclose(pipe);
  return output;
}

// A name without the parameters of the function. The functions of a coroutine have the name of the
// coroutine.
std::string name_of(std::string_view demangled) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  std::string name(demangled);
  for (std::size_t at = 0; (at = name.find(kAnonymous)) != std::string::npos;) {
    name.erase(at, kAnonymous.size());
  }
  return name.substr(0, name.find_first_of("([ "));
}

// "PATH:LINE" as the tree names it; empty if the line is not known, or elsewhere.
std::string line_of(std::string_view place) {
  place = place.substr(0, place.find(' '));  // "(discriminator 2)"
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || place.substr(colon + 1) == "?" ||
      place.substr(colon + 1) == "0") {
    return "";
  }
  const std::string_view folder = source_folder();
  if (place.starts_with(folder)) return std::string(place.substr(folder.size()));
  return std::string(place);
}

// For each address the functions that it is in: several if some are inlined, the innermost first.
std::map<std::uintptr_t, std::vector<CallSite>> look_up(
    const std::vector<std::uintptr_t>& addresses) {
  std::map<std::uintptr_t, std::vector<CallSite>> found;
  const auto program = path_of_program();
  if (!program || addresses.empty()) return found;
  std::string command = fmt::format("addr2line -a -f -C -i -e {}", shell_word(*program));
  for (const std::uintptr_t address : addresses) command += fmt::format(" {:#x}", address);
  const std::string output = output_of(command + " 2>/dev/null");
  std::vector<CallSite>* sites = nullptr;
  std::optional<std::string> function;
  for (std::string_view rest = output; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with("0x")) {
      sites = &found[std::stoull(std::string(line), nullptr, 16)];
      function.reset();
    } else if (!function) {
      function = name_of(line);
    } else {
      if (sites != nullptr) sites->push_back({*function, line_of(line)});
      function.reset();
    }
  }
  return found;
}

}  // namespace

CallStack call_stack() {
  constexpr int kDeepest = 48;
  CallStack frames(kDeepest);
  frames.resize(static_cast<std::size_t>(backtrace(frames.data(), kDeepest)));
  return frames;
}

// The frame of a coroutine begins with the address of the function that resumes it. One is added,
// since a return address follows its call.
void add_task(CallStack& stack, std::coroutine_handle<> task) {
  if (task) stack.push_back(*static_cast<std::byte**>(task.address()) + 1);
}

std::string CallSite::text() const {
  const auto without_project = [](std::string_view name) {
    constexpr std::string_view kProject = "perdura::";
    return name.starts_with(kProject) ? name.substr(kProject.size()) : name;
  };
  if (function.empty()) return "";
  std::string text = line.empty() ? "" : line + ", ";
  text += fmt::format("{}()", without_project(function));
  return system.empty() ? text : fmt::format("{} for {}()", text, without_project(system));
}

std::vector<CallSite> call_sites(std::span<const CallStack> stacks) {
  const std::uintptr_t base = address_of_program();
  // A return address follows the call, perhaps in the next line.
  const auto address_of = [&](void* frame) {
    return reinterpret_cast<std::uintptr_t>(frame) - base - 1;
  };
  std::vector<std::uintptr_t> addresses;
  for (const CallStack& stack : stacks) {
    for (void* frame : stack) addresses.push_back(address_of(frame));
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  const auto known = look_up(addresses);
  std::vector<CallSite> sites;
  for (const CallStack& stack : stacks) {
    CallSite& site = sites.emplace_back();
    for (void* frame : stack) {
      const auto found = known.find(address_of(frame));
      if (found == known.end()) continue;
      for (const CallSite& inlined : found->second) {
        if (site.function.empty() && is_of_a_system(inlined)) {
          site = inlined;
        } else if (!site.function.empty() && site.system.empty() && is_in_systems(inlined)) {
          site.system = inlined.function;
        }
      }
    }
    if (is_in_systems(site)) site.system.clear();
  }
  return sites;
}

}  // namespace perdura::explore
