// The options that describe a responder's configuration: --domain, --ddio, --receive-buffers,
// --transport.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/program/command.h"
#include "methods/method.h"

namespace perdura::program {

struct ConfigurationOptions {
  std::optional<std::string> domain;
  std::optional<std::string> ddio;
  std::optional<std::string> receive_buffers;
  std::optional<std::string> transport;

  void add_to(harness::Command& command);
  bool complete() const { return domain && ddio && receive_buffers && transport; }
  // All configurations that match the given options; for both InfiniBand and iWARP if the transport
  // is not given.
  std::vector<methods::Configuration> matching() const;
};

}  // namespace perdura::program
