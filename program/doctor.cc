// perdura doctor: prints the properties of this host as a responder of remote persistence, each
// with its evidence.
#include "bench/doctor/doctor.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "program/commands.h"

namespace perdura::program {
namespace {

struct DoctorArguments {
  std::string root;
  bool as_json = false;
};

std::optional<std::string> ndctl_regions() {
  FILE* const pipe = popen("ndctl list -R 2>/dev/null", "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t got; (got = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    text.append(part.data(), got);
  }
  if (pclose(pipe) != 0) return std::nullopt;
  return text;
}

bench::Host host_of(const DoctorArguments& arguments) {
  bench::Host host;
  if (arguments.root.empty()) {
    host.ndctl_regions = ndctl_regions;
    return host;
  }
  if (kind_of(arguments.root) != PathKind::folder) {
    throw UsageError(
        fmt::format("doctor: --root {}: {}; give one with sys and proc of another machine",
                    arguments.root, not_a_folder(arguments.root)));
  }
  try {
    names_in(arguments.root);
  } catch (const PlatformError& unreadable) {
    throw UsageError(fmt::format("doctor: --root {}", unreadable.what()));
  }
  host.root = arguments.root;
  host.features_of = [](const std::string& device) {
    return tl::unexpected(fmt::format("{} is not in this machine", device));
  };
  return host;
}

harness::ExitCode doctor(const DoctorArguments& arguments, const CommandContext& context) {
  if (!context.ranks.is_root()) return harness::ExitCode::done;
  const bench::Diagnosis diagnosis = bench::examine(host_of(arguments));
  fmt::print("{}", arguments.as_json ? as_json(diagnosis) : as_text(diagnosis));
  return harness::ExitCode::done;
}

}  // namespace

void add_doctor(harness::Command& program, CommandContext& context) {
  const auto arguments = std::make_shared<DoctorArguments>();
  harness::Command& command = program.subcommand(
      "doctor",
      "Says which kind of responder this host is, how that is known, and what is not known");
  command.option("--root", arguments->root,
                 "Folder with a copy of another machine's /sys, /proc and /dev to examine");
  command.flag("--json", arguments->as_json,
               "Writes JSON, which 'perdura advise --responder FILE' reads anywhere");
  command.does([arguments, &context] { return doctor(*arguments, context); });
}

}  // namespace perdura::program
