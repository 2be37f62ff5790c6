// A plugin in a shared object: adds the request to the end of a log in its value, whose first word
// is the log's length, and answers that.
#include <cstring>

#include "systems/mcas/ado/plugin.h"

namespace {

using namespace perdura;
using namespace perdura::systems::mcas::ado;

class Appender final : public Plugin {
 public:
  explicit Appender(std::string prefix) : prefix_(std::move(prefix)) {}

  Task<Result> do_work(Services& services, const Invocation& work) override {
    const systems::mcas::Memory memory = services.memory();
    const auto info = co_await services.get_pool_info();
    const std::uint64_t length = memory.region().load(work.value.offset);
    const Bytes end = work.value.offset + kWord + length;
    memory.region().write(end, std::as_bytes(std::span(work.request)));
    memory.persist({end, work.request.size()});
    memory.store_durably(work.value.offset, length + work.request.size());
    co_return Result{
        {prefix_ + std::to_string(length + work.request.size()), std::to_string(info.value.items)},
        {}};
  }

 private:
  std::string prefix_;
};

}  // namespace

extern "C" const PluginEntry perdura_mcas_plugin{
    kPluginInterface + PERDURA_TEST_LATER, [](const char* argument) -> Plugin* {
      return std::strcmp(argument, "unfit") == 0 ? nullptr : new Appender(argument);
    }};
