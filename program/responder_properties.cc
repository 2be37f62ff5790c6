#include "program/responder_properties.h"

namespace perdura::program {

std::vector<harness::ResponderProperty> responder_properties(const methods::Detection& found) {
  std::vector<harness::ResponderProperty> properties;
  const auto add = [&](const char* name, const auto& detected, const auto& shown) {
    properties.push_back(
        {name, detected.value ? std::string(shown(*detected.value)) : "unknown", detected.reason});
  };
  const auto named = [](auto value) { return to_string(value); };
  const auto on_or_off = [](bool on) { return on ? "on" : "off"; };
  const auto yes_or_no = [](bool has) { return has ? "yes" : "no"; };
  add("domain", found.domain, named);
  add("ddio", found.ddio, on_or_off);
  add("transport", found.transport, named);
  add("flush", found.flush, yes_or_no);
  add("flush-persistence", found.flush_persistence, yes_or_no);
  add("atomic-write", found.atomic_write, yes_or_no);
  add("device-dax", found.device_dax, yes_or_no);
  add("file-system-dax", found.file_system_dax, yes_or_no);
  return properties;
}

}  // namespace perdura::program
