#include "mount/mount_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "platform/base/error.h"

namespace perdura::mount {

namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kLeftOut{"defaults"sv, "auto"sv,       "noauto"sv,     "user"sv,
                              "users"sv,    "nouser"sv,     "owner"sv,      "group"sv,
                              "nofail"sv,   "_netdev"sv,    "diratime"sv,   "nodiratime"sv,
                              "lazytime"sv, "nolazytime"sv, "norelatime"sv, "nostrictatime"sv};
constexpr std::array kBeginnings{"x-"sv, "X-"sv, "comment="sv, "user="sv};
// Both have the effect of relatime.
constexpr std::array kNoteReads{"atime"sv, "relatime"sv};

struct Refused {
  std::string_view option;
  std::string_view why;
};
constexpr Refused kRefused[] = {
    {"remount", "unmount the file system, and mount it again with the other options"},
    {"strictatime", "the kernel reads from its cache without asking; leave it out for relatime"},
};

bool is_in(const auto& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_left_out(std::string_view option) {
  return option.empty() || is_in(kLeftOut, option) ||
         std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return option.starts_with(beginning); });
}

}  // namespace

KernelOptions parse_options(const std::string& given) {
  KernelOptions options;
  for (std::size_t at = 0; at <= given.size();) {
    const std::size_t end = std::min(given.find(',', at), given.size());
    const std::string_view option(given.data() + at, end - at);
    at = end + 1;
    if (is_left_out(option)) continue;
    for (const auto& [refused, why] : kRefused) {
      if (option == refused) throw UsageError(fmt::format("-o {} is not offered: {}", option, why));
    }
    if (option == "nosymfollow" || option == "symfollow") {
      options.no_symbolic_links = option == "nosymfollow";
      continue;
    }
    if (option == "ro" || option == "rw") options.read_only = option == "ro";
    if (option == "noatime") options.notes_reads = false;
    if (is_in(kNoteReads, option)) {
      options.notes_reads = true;
      continue;
    }
    if (!options.list.empty()) options.list += ',';
    options.list += option;
  }
  return options;
}

}  // namespace perdura::mount
