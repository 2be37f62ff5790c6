#include "bench/perdura/configuration_options.h"

namespace perdura::harness {

void ConfigurationOptions::add_to(CLI::App& command) {
  command.add_option("--domain", domain, "Persistence domain of the responder")
      ->check(CLI::IsMember({"dmp", "mhp", "wsp"}));
  command
      .add_option("--ddio", ddio, "Whether its device places messages into the last-level cache")
      ->check(CLI::IsMember({"on", "off"}));
  command.add_option("--receive-buffers", receive_buffers, "Where its receive buffers are")
      ->check(CLI::IsMember({"dram", "pm"}));
  command
      .add_option("--transport", transport,
                  "What a completion tells: InfiniBand and RoCE, or iWARP")
      ->check(CLI::IsMember({"ib", "roce", "iwarp"}));
}

std::vector<persistence::Configuration> ConfigurationOptions::matching() const {
  return persistence::configurations({domain.value_or(""), ddio.value_or(""),
                                      receive_buffers.value_or(""), transport.value_or("")});
}

}  // namespace perdura::harness
