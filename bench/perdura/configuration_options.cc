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
  std::vector<persistence::Configuration> result;
  for (const auto transport_of : {pmem::Transport::infiniband, pmem::Transport::iwarp}) {
    if (transport && (*transport == "iwarp") != (transport_of == pmem::Transport::iwarp)) continue;
    for (const auto& configuration : persistence::configurations(transport_of)) {
      const bool fits =
          (!domain || *domain == to_string(configuration.model.domain)) &&
          (!ddio || (*ddio == "on") == configuration.model.ddio) &&
          (!receive_buffers ||
           (*receive_buffers == "pm") == (configuration.receive_buffers == pmem::Medium::pm));
      if (fits) result.push_back(configuration);
    }
  }
  return result;
}

}  // namespace perdura::harness
