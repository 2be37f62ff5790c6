// Translates the reports of libibverbs into words and into the fabric's status values.
#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <string_view>

#include "platform/base/units.h"
#include "platform/fabric/types.h"

namespace perdura::fabric::verbs {

struct CompletionMeaning {
  Status status;
  std::string_view words;  // "remote access error: the peer refused ..."
};
CompletionMeaning meaning_of(ibv_wc_status status, Opcode opcode);

struct EventMeaning {
  std::string_view words;
  bool expected;  // part of an ordinary run: not reported
  bool fatal;     // the device can no longer be used
};
EventMeaning meaning_of(ibv_event_type event);

// The reason why memory could not be registered, and a remedy, in one line.
struct Registration {
  std::string region;
  std::string path;  // the path of the region's file; empty if it has none
  Bytes length = 0;
  bool flush_persistence = false;  // requested
};
std::string registration_problem(int error, const Registration& what, std::string_view device);

}  // namespace perdura::fabric::verbs
