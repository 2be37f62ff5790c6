// Establishment of connections over TCP.
#pragma once

#include <span>

#include "platform/fabric/tcp/frame.h"

namespace perdura::fabric::tcp {

// Answers a peer that wants to connect; returns false if the peer is gone.
bool answer(int socket, Verdict verdict, std::span<const std::byte> private_data);

}  // namespace perdura::fabric::tcp
