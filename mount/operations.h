// The operations of libfuse, each of which starts a coroutine of Handler.
#pragma once

#include "mount/handler.h"

namespace perdura::mount {

const fuse_lowlevel_ops& operations();

// Starts to handle a request. The caller awaits the task, which is empty if the request has been
// answered already, before the next request. Several threads may do so at the same time, each with
// its own handler and channel.
Task<> handle(Handler& handler, Channel& channel, const Message& message);

}  // namespace perdura::mount
