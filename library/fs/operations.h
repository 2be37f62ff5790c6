// The operations of libfuse, each of which begins what Handler does.
#pragma once

#include "library/fs/handler.h"

namespace perdura::fs::fuse {

const fuse_lowlevel_ops& operations();

// Begins to handle a request; the task is to be awaited before the next one. Threads do so at the
// same time, each with its own handler and channel.
Task<> handle(Handler& handler, Channel& channel, const Message& message);

}  // namespace perdura::fs::fuse
