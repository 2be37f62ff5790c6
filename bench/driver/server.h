// The server of a point as a responder of remote updates (bench/server_parameters.h), and what its
// systems guarantee there. A driver declares as many of the parameters as mean something to it.
#pragma once

#include <optional>
#include <vector>

#include "harness/run/point.h"
#include "methods/method.h"
#include "services/service.h"

namespace perdura::bench {

// The server as the point describes it; properties that the point leaves open are empty.
methods::StatedConfiguration stated_server(const harness::PointSettings& settings);
// The same, completed by what is known of the testbed.
methods::StatedConfiguration known_server(const harness::Point& point);

// Throws UsageError, which begins with the place of the system in the experiment, if the devices of
// every server that the point may mean lack what the system needs, or if it asks for
// persistence = "correct" of a system that has no method to choose. Rejects a server that would
// have no effect, since results would look as if it had one.
void check_server(const harness::Point& point, const services::SystemInfo& system);

// The guarantee that exploration found to hold on every kind of server that the point and its
// testbed leave open (explore/explored.h); nothing if the system was not explored. For
// Driver::conclude.
std::optional<services::GuaranteeLevel> guarantee_of(const harness::Point& point,
                                                     const services::SystemInfo& system);

}  // namespace perdura::bench
