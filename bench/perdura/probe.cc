// perdura probe: measures the memory and the RDMA of this machine, or of a testbed on the model.
#include <memory>

#include "bench/perdura/commands.h"
#include "bench/perdura/experiment_options.h"
#include "bench/perdura/responder_properties.h"
#include "bench/probe/probe_run.h"
#include "persistence/detection.h"

namespace perdura::harness {

void add_probe(CLI::App& app, CommandContext& context, Action& action) {
  const auto request = std::make_shared<bench::ProbeRequest>();
  CLI::App* command = app.add_subcommand(
      "probe",
      "Measures what memory and RDMA do, and writes it as a profile that other commands read");
  command
      ->add_option(
          "--platform", request->platform,
          "shm: this host; verbs: hosts with RDMA devices, a rank each; sim: a testbed, on "
          "the model")
      ->required();
  command
      ->add_option("--profile", request->profile,
                   "On sim, the testbed; else, where parameters that are not measured come from "
                   "(default there: remote-log-connectx4)")
      ->check(is_not_empty);
  command->add_option("--set", request->set, "Which probes (default: all)")
      ->check(CLI::IsMember({"memory", "rdma", "all"}));
  command
      ->add_option_function<std::string>(
          "--pm-directory",
          [request](const std::string& path) {
            request->verbs.pm_directory = {path, "--pm-directory"};
          },
          "Where persistent memory is: a directory, on verbs also a DAX device (default: memory of "
          "this host)")
      ->check(is_not_empty);
  command
      ->add_option("--device", request->verbs.device,
                   "On verbs, as ibv_devices names it (default: one whose port is active)")
      ->check(is_not_empty);
  command->add_option("--port", request->verbs.port, "On verbs: of the device")
      ->check(CLI::Range(1, 255));
  command->add_option("--gid-index", request->verbs.gid_index, "On verbs, as show_gids names it")
      ->check(CLI::Range(0, 65535));
  command->add_flag("--odp", request->verbs.on_demand_paging,
                    "On verbs: on-demand paging instead of locked pages");
  command->add_flag("--quick", request->quick, "Fewer steps and repetitions");
  command->add_flag("--quiet", request->quiet, "No progress on stderr");
  command
      ->add_option_function<std::string>(
          "-o,--out", [request](const std::string& folder) { request->out = folder; },
          "Folder for the results; must be new or empty (default: out/probe-PLATFORM-N)")
      ->check(is_not_empty);
  command->callback([request, &context, &action] {
    action = [request, &context] {
      request->command_line = context.command_line;
      request->responder = responder_properties(persistence::detect());
      return run_probes(*request, context.locations, context.ranks);
    };
  });
}

}  // namespace perdura::harness
