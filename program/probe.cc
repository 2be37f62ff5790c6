// perdura probe: measures the memory and the RDMA of this machine, or of a testbed on the model; and
// where files are.
#include <memory>

#include "bench/probe/probe_run.h"
#include "methods/detection.h"
#include "program/commands.h"
#include "program/experiment_options.h"
#include "program/probe_path.h"
#include "program/responder_properties.h"

namespace perdura::program {
namespace {

harness::Option add_path(harness::Command& command, PathProbe& probe) {
  harness::Option path = command.option(
      "--path", probe.path,
      "Instead of that: where the files below this directory are, and how many translations a NIC "
      "needs for them");
  command
      .option("--trace", probe.trace,
              "With --path: a trace of accesses to these files (perdura trace)")
      .needs(path);
  for (harness::Option& option : probe.translation.add_to(command)) option.needs(path);
  command.flag("--json", probe.as_json, "With --path: writes JSON").needs(path);
  return path;
}

}  // namespace

void add_probe(harness::Command& program, CommandContext& context) {
  const auto request = std::make_shared<bench::ProbeRequest>();
  const auto pm_directory = std::make_shared<std::string>();
  const auto out = std::make_shared<std::string>();
  harness::Command& command = program.subcommand(
      "probe",
      "Measures what memory and RDMA do, and writes it as a profile that other commands read");
  const auto files = std::make_shared<PathProbe>();
  const harness::Option path = add_path(command, *files);
  harness::Option platform = command.option(
      "--platform", request->platform,
      "shm: this host; verbs: hosts with RDMA devices, a rank each; sim: a testbed, on the model");
  platform.excludes(path);
  command.require_either(platform, path);
  command.option(
      "--profile", request->profile,
      "On sim, the testbed; else, where parameters that are not measured come from "
      "(default there: remote-log-connectx4); with --path, whose [translation] gives times");
  command.option("--set", request->set, "Which probes (default: all)")
      .one_of({"memory", "rdma", "translations", "all"})
      .excludes(path);
  command
      .option("--pm-directory", *pm_directory,
              "Where persistent memory is: a directory, on verbs also a DAX device (default: "
              "memory of this host)")
      .excludes(path);
  command.option("--device", request->verbs.device,
                 "On verbs and with --path, as ibv_devices names it (default: one whose port is "
                 "active)");
  command.option("--port", request->verbs.port, "On verbs: of the device")
      .range(1, 255)
      .excludes(path);
  command.option("--gid-index", request->verbs.gid_index, "On verbs, as show_gids names it")
      .range(0, 65535)
      .excludes(path);
  command
      .flag("--odp", request->verbs.on_demand_paging,
            "On verbs: on-demand paging instead of locked pages")
      .excludes(path);
  command.flag("--quick", request->quick, "Fewer steps and repetitions").excludes(path);
  command.flag("--quiet", request->quiet, "No progress on stderr");
  command.option("-o,--out", *out,
                 "Folder for the results; must be new or empty (default: out/probe-PLATFORM-N; "
                 "with --path: none)");
  command.does([request, pm_directory, out, files, &context] {
    if (!files->path.empty()) {
      files->profile = request->profile;
      files->device = request->verbs.device;
      files->out = *out;
      return probe_path(*files, context);
    }
    if (!pm_directory->empty()) request->verbs.pm_directory = {*pm_directory, "--pm-directory"};
    request->out = *out;
    request->command_line = context.command_line;
    request->responder = responder_properties(methods::detect());
    return run_probes(*request, context.locations, context.ranks);
  });
}

}  // namespace perdura::program
