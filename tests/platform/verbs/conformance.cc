// verbs joins the conformance suite where this host has an RDMA device that can be used.
#include "tests/platform/conformance/conformance.h"

#include "platform/error.h"
#include "platform/verbs_platform.h"

namespace {

using perdura::conformance::Options;

std::unique_ptr<perdura::Platform> make_verbs(const Options& options) {
  perdura::VerbsOptions verbs;
  verbs.node_count = options.node_count;
  verbs.pm_directory = perdura::conformance::new_pm_directory();
  verbs.fabric.connection_timeout = options.connection_timeout;
  if (options.receiver_not_ready_retries >= 0) {
    verbs.fabric.rnr_retries = static_cast<std::uint8_t>(options.receiver_not_ready_retries);
  }
  return std::make_unique<perdura::VerbsPlatform>(std::move(verbs));
}

// Why the suite cannot run here; empty if it can.
std::string missing_here() {
  try {
    const perdura::fabric::verbs::Device device({});
    return "";
  } catch (const perdura::PlatformError& error) {
    return error.what();
  }
}

std::vector<perdura::conformance::Case> on_device() {
  static const std::string missing = missing_here();
  std::vector<perdura::conformance::Case> all = perdura::conformance::cases(make_verbs);
  for (auto& each : all) each.missing = missing;
  return all;
}

}  // namespace

PERDURA_CONFORMANCE(Verbs, on_device())
