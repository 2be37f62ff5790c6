#include "bench/driver/server.h"

#include <fmt/format.h>

#include <algorithm>

#include "explore/crash.h"
#include "explore/explored.h"
#include "platform/base/error.h"

namespace perdura::bench {

namespace {

std::string text_of(const harness::PointSettings& settings, std::string_view parameter) {
  return settings.declares(parameter) ? settings.text(parameter) : "";
}

bool is_correct(const harness::PointSettings& settings) {
  return text_of(settings, "persistence") == "correct";
}

// A point does not say what its devices can do; only the transport is known before it runs.
constexpr sim::NicProfile kAbleDevice{
    .flush = true, .flush_persistence = true, .atomic_write = true};

std::vector<pmem::PersistenceModel> servers(const methods::StatedConfiguration& stated) {
  std::vector<pmem::PersistenceModel> models;
  for (const methods::Configuration& configuration : methods::configurations(stated)) {
    models.push_back(configuration.model);
  }
  return models;
}

}  // namespace

methods::StatedConfiguration stated_server(const harness::PointSettings& settings) {
  return {text_of(settings, "domain"), text_of(settings, "ddio"),
          text_of(settings, "receive_buffers"), text_of(settings, "transport")};
}

methods::StatedConfiguration known_server(const harness::Point& point) {
  methods::StatedConfiguration known = stated_server(point.settings);
  if (known.ddio.empty()) known.ddio = point.testbed.ddio;
  if (known.transport.empty()) known.transport = point.testbed.transport;
  return known;
}

void check_server(const harness::Point& point, const services::SystemInfo& system) {
  const harness::PointSettings& settings = point.settings;
  const bool may_choose = settings.declares("persistence");
  for (const std::string_view stated : {"domain", "receive_buffers", "transport"}) {
    if (!may_choose || !settings.declares(stated) || !settings.given(stated)) continue;
    if (settings.given("persistence")) continue;
    throw UsageError(fmt::format(
        "{}: '{}' has no effect as long as a system persists as in its paper; add persistence = "
        "\"correct\", or \"paper\" to compare with it, or remove domain, receive_buffers and "
        "transport",
        settings.system.where, settings.text(stated)));
  }
  const auto open = servers(stated_server(point.settings));
  std::string why;
  for (const pmem::PersistenceModel& model : open) {
    why = explore::refusal(
        system,
        {.model = model, .parameters = point.parameters, .correct = is_correct(point.settings)},
        kAbleDevice);
    if (why.empty()) return;
  }
  throw UsageError(fmt::format("{}: {} {}", point.settings.system.where, system.name, why));
}

std::optional<services::GuaranteeLevel> guarantee_of(const harness::Point& point,
                                                     const services::SystemInfo& system) {
  return explore::explored_level(system, point.parameters, is_correct(point.settings),
                                 servers(known_server(point)));
}

}  // namespace perdura::bench
