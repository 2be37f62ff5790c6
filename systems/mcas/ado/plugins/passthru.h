// A plugin that answers each request with itself: what an invocation costs without any work (MCAS,
// section 6.7).
#pragma once

#include "systems/mcas/ado/plugin.h"

namespace perdura::systems::mcas::ado {

class Passthru final : public Plugin {
 public:
  Task<Result> do_work(Services&, const Invocation& work) override {
    co_return Result{{work.request}, {}};
  }
};

}  // namespace perdura::systems::mcas::ado
