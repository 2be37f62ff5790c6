#include "program/configuration_options.h"

namespace perdura::program {

void ConfigurationOptions::add_to(harness::Command& command) {
  command
      .option("--domain", domain,
              "Persistence domain of the responder: what a power failure does not erase. dmp: "
              "memory and its controllers (ADR); mhp: the caches, too (eADR); wsp: everything, the "
              "device's buffers, too (battery)")
      .one_of({"dmp", "mhp", "wsp"},
              "ADR is dmp, eADR is mhp, and a battery for the whole machine is wsp");
  command.option("--ddio", ddio, "Whether its device places messages into the last-level cache")
      .one_of({"on", "off"});
  command.option("--receive-buffers", receive_buffers, "Where its receive buffers are")
      .one_of({"dram", "pm"});
  command.option("--transport", transport, "What a completion tells: InfiniBand and RoCE, or iWARP")
      .one_of({"ib", "roce", "iwarp"});
}

std::vector<methods::Configuration> ConfigurationOptions::matching() const {
  return methods::configurations({domain.value_or(""), ddio.value_or(""),
                                  receive_buffers.value_or(""), transport.value_or("")});
}

}  // namespace perdura::program
