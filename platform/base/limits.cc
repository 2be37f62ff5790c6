#include "platform/base/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "platform/base/error.h"

namespace perdura {

namespace {

constexpr rlim_t kMiB = rlim_t{1} << 20;

std::optional<rlim_t> soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::optional<std::string> first_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) return std::nullopt;
  return line;
}

// The folders of this process' control groups, the innermost first, where `controller` has its
// files. Version 1 has a hierarchy for each controller, version 2 a single one.
std::vector<std::filesystem::path> control_groups(std::string_view controller) {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::vector<std::filesystem::path> folders;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = names == ",,";
    if (!unified && names.find(fmt::format(",{},", controller)) == std::string::npos) continue;
    const std::filesystem::path top = unified ? root : root / controller;
    std::filesystem::path inside = line.substr(second + 1);
    for (; inside.has_relative_path(); inside = inside.parent_path()) {
      folders.push_back(top / inside.relative_path());
    }
    folders.push_back(top);
  }
  return folders;
}

// The smallest value that a file has in the process' control groups, as text.
std::optional<std::string> of_control_groups(std::string_view controller, std::string_view file,
                                             rlim_t unit, std::string_view unit_name) {
  std::optional<rlim_t> least;
  std::string where;
  for (const auto& folder : control_groups(controller)) {
    const auto text = first_line(folder / file);
    if (!text || text->empty() || (*text)[0] < '0' || (*text)[0] > '9') continue;  // "max"
    const rlim_t value = std::strtoull(text->c_str(), nullptr, 10);
    if (least && *least <= value) continue;
    least = value;
    where = folder.string();
  }
  // Version 1 expresses "no limit" as the largest number of pages.
  if (!least || *least > RLIM_INFINITY / 4) return std::nullopt;
  return fmt::format("{} in {} is {}{}", file, where, *least / unit, unit_name);
}

void add(std::vector<std::string>& to, std::optional<std::string> text) {
  if (text) to.push_back(std::move(*text));
}

void add(std::vector<std::string>& to, std::string_view name, std::optional<rlim_t> value,
         rlim_t unit = 1, std::string_view unit_name = "") {
  if (value) to.push_back(fmt::format("{} is {}{}", name, *value / unit, unit_name));
}

void add_memory(std::vector<std::string>& limits) {
  add(limits, "ulimit -v (address space)", soft_limit(RLIMIT_AS), kMiB, " MiB");
  add(limits, "ulimit -d (data)", soft_limit(RLIMIT_DATA), kMiB, " MiB");
  add(limits, of_control_groups("memory", "memory.max", kMiB, " MiB"));
  add(limits, of_control_groups("memory", "memory.limit_in_bytes", kMiB, " MiB"));
}

std::string joined(const std::vector<std::string>& limits, std::string_view none) {
  return limits.empty() ? std::string(none) : fmt::format("{}", fmt::join(limits, ", "));
}

}  // namespace

std::string limits_of_threads() {
  std::vector<std::string> limits;
  add(limits, "ulimit -u (processes and threads of the user)", soft_limit(RLIMIT_NPROC));
  add(limits, of_control_groups("pids", "pids.max", 1, ""));
  const auto machine = first_line("/proc/sys/kernel/threads-max");
  if (machine) limits.push_back("kernel.threads-max is " + *machine);
  add_memory(limits);
  return joined(limits, "the limits cannot be read");
}

std::string limits_of_memory() {
  std::vector<std::string> limits;
  add_memory(limits);
  return joined(limits, "no limit of the process is set, so the machine has no more");
}

std::string limits_of_files() {
  std::vector<std::string> limits;
  add(limits, "ulimit -n (open files of a process)", soft_limit(RLIMIT_NOFILE));
  const auto machine = first_line("/proc/sys/fs/file-max");
  if (machine) limits.push_back("fs.file-max is " + *machine);
  return joined(limits, "the limits cannot be read");
}

void check_files_left(int error, const std::string& path) {
  if (error != EMFILE && error != ENFILE) return;
  throw PlatformError(fmt::format("cannot open {}: {} ({}); raise the limit, or use fewer clients",
                                  path, std::generic_category().message(error), limits_of_files()));
}

void raise_limit_of_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string out_of_memory() {
  return fmt::format("out of memory: {}; raise the limit, or make the experiment smaller",
                     limits_of_memory());
}

void rethrow_refused_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) throw;
}

std::string problem_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return out_of_memory();
  // The library's own words begin with "filesystem error:" and have the files in brackets.
  if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    const std::string both =
        files->path2().empty() ? "" : fmt::format(" and {}", files->path2().string());
    return fmt::format("{}{}: {}", files->path1().string(), both, files->code().message());
  }
  return error.what();
}

}  // namespace perdura
