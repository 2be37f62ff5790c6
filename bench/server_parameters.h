// Parameters with which points of several drivers describe the server as a responder of remote
// updates (Table 1 of "Correct, Fast Remote Persistence"). A property that a point does not give is
// left open, or taken from its testbed.
#pragma once

#include <array>
#include <string_view>

#include "platform/base/parameter.h"

namespace perdura::bench {

inline constexpr std::array<std::string_view, 3> kDomains{"dmp", "mhp", "wsp"};
inline constexpr std::array<std::string_view, 2> kOnOff{"on", "off"};
inline constexpr std::array<std::string_view, 2> kMedia{"dram", "pm"};
inline constexpr std::array<std::string_view, 2> kPersistenceWords{"paper", "correct"};
inline constexpr std::array<std::string_view, 3> kTransports{"ib", "roce", "iwarp"};

inline constexpr Parameter kDomain{
    .name = "domain", .type = OneOf{kDomains}, .identifies = true, .what = "persistence domain"};
inline constexpr Parameter kDdio{
    .name = "ddio",
    .type = OneOf{kOnOff},
    .identifies = true,
    .what = "whether the server's device places messages into the cache"};
inline constexpr Parameter kReceiveBuffers{.name = "receive_buffers",
                                           .type = OneOf{kMedia},
                                           .identifies = true,
                                           .what = "memory of the server's receive buffers"};
inline constexpr Parameter kTransport{.name = "transport",
                                      .type = OneOf{kTransports},
                                      .identifies = true,
                                      .what = "what carries RDMA"};

inline constexpr Parameter kPersistence{
    .name = "persistence",
    .type = OneOf{kPersistenceWords},
    .identifies = true,
    .what = "changes persist as in the system's paper, or so that they are durable on the server"};

}  // namespace perdura::bench
