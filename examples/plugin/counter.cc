// A plugin of a shard: each invocation adds one to the number that is the key's value.
#include <systems/mcas/ado/plugin.h>

#include <string>

using namespace perdura;
using namespace perdura::systems::mcas::ado;

class Counter final : public Plugin {
 public:
  Task<Result> do_work(Services& services, const Invocation& work) override {
    if (work.request != "add") co_return Result{{}, "the counter knows only add"};
    const systems::mcas::Memory memory = services.memory();
    const std::uint64_t sum = memory.region().load(work.value.offset) + 1;
    memory.store_durably(work.value.offset, sum);  // 8 bytes: whole after any failure
    co_return Result{{std::to_string(sum)}, {}};
  }
};

extern "C" const PluginEntry perdura_mcas_plugin{
    kPluginInterface, [](const char*) -> Plugin* { return new Counter; }};
