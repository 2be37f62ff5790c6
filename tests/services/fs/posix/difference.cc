#include "tests/services/fs/posix/difference.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "services/fs/posix/access_list.h"

namespace perdura::fs::test {
namespace {

// Those whose paths are longer cannot be opened by them.
bool can_be_opened(const std::string& path) { return path.size() <= 4000; }

std::string compare_extents(Side& from, Side& with, const std::string& path) {
  for (const Extent& extent : from.data_of(path)) {
    const std::string other = with.bytes_of(path, extent.offset, extent.bytes.size());
    const auto bytes = std::as_bytes(std::span(other));
    if (!std::equal(bytes.begin(), bytes.end(), extent.bytes.begin(), extent.bytes.end())) {
      return fmt::format("{}: other data at {}", path, extent.offset);
    }
  }
  return "";
}

}  // namespace

bool is_given(Timestamp time) {
  return time.seconds < 1'700'000'000 || time.seconds > 2'100'000'000;
}

std::string compare_pictures(const Picture& found, const Picture& expected) {
  for (const auto& [path, seen] : expected) {
    const auto other = found.find(path);
    if (other == found.end()) return path + " is missing";
    const Seen& is = other->second;
    struct Number {
      const char* what;
      std::uint64_t is;
      std::uint64_t shall;
    };
    for (const Number& number : std::array<Number, 6>{{{"mode", is.mode, seen.mode},
                                                       {"uid", is.uid, seen.uid},
                                                       {"gid", is.gid, seen.gid},
                                                       {"links", is.links, seen.links},
                                                       {"device", is.device, seen.device},
                                                       {"size", is.size, seen.size}}}) {
      if (number.is == number.shall) continue;
      return fmt::format("{}: {} {} instead of {}", path, number.what, number.is, number.shall);
    }
    if (is_given(seen.modified) && is.modified != seen.modified) {
      return path + ": another time of modification";
    }
  }
  for (const auto& [path, seen] : found) {
    if (!expected.contains(path)) return path + " should not exist";
  }
  return "";
}

std::string compare_data(Side& found, Side& expected, const Picture& picture) {
  for (const auto& [path, seen] : picture) {
    if (!S_ISREG(seen.mode) || !can_be_opened(path)) continue;
    std::string text = compare_extents(found, expected, path);
    if (text.empty()) text = compare_extents(expected, found, path);
    if (!text.empty()) return text;
  }
  return "";
}

std::string compare_attributes(Side& found, Side& expected, const Picture& picture) {
  for (const auto& [path, seen] : picture) {
    if (!can_be_opened(path)) continue;
    Outcome names;
    const auto differ = [&](const Operation& operation) {
      const Outcome is = found.apply(operation);
      names = expected.apply(operation);
      return is == names ? ""
                         : fmt::format("{}: {} instead of {}", text_of(operation), text_of(is),
                                       text_of(names));
    };
    using enum Operation::Kind;
    std::string text;
    if (S_ISLNK(seen.mode)) text = differ({.kind = readlink, .path = path});
    if (text.empty()) text = differ({.kind = listxattr, .path = path, .follow = false});
    std::istringstream lines(names.data);
    for (std::string name; text.empty() && std::getline(lines, name);) {
      text = differ({.kind = getxattr, .path = path, .other = name, .follow = false});
    }
    if (!text.empty()) return text;
  }
  return "";
}

std::string compare_access_list(Side& found, Side& expected, const Operation& operation) {
  if (operation.kind != Operation::Kind::chmod) return "";
  Operation get = operation;
  get.kind = Operation::Kind::getxattr;
  get.other = kAccessList;
  const Outcome is = found.apply(get);
  const Outcome shall = expected.apply(get);
  if (is == shall) return "";
  return is.error != shall.error ? "access list: " + text_of(is) + " instead of " + text_of(shall)
                                 : "another access list";
}

}  // namespace perdura::fs::test
