// A plugin that answers each request with itself: it measures the cost of an invocation that does
// nothing (MCAS, section 6.7).
#pragma once

#include "systems/mcas/ado/plugin.h"

namespace perdura::systems::mcas::ado {

class Passthru final : public Plugin {
 public:
  Task<Result> do_work(Services&, const Invocation& work) override {
    Result result;
    result.responses.push_back(work.request);
    co_return result;
  }
};

}  // namespace perdura::systems::mcas::ado
