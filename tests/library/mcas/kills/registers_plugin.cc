// A plugin whose values are registers. Requests: "set N", "add", and "read". It answers what is
// wrong with a register, if anything is.
#include <unistd.h>

#include "systems/mcas/ado/plugin.h"
#include "tests/library/mcas/kills/registers.h"

namespace {

using namespace perdura;
using namespace perdura::systems::mcas::ado;
using library_test::Register;
using library_test::RegisterAnswer;
using systems::mcas::ByteRange;
using systems::mcas::Memory;

class Registers final : public Plugin {
 public:
  Task<Result> do_work(Services& services, const Invocation& work) override {
    const Memory memory = services.memory();
    const bool reads = work.request == "read";
    if (!Register::exists(memory, work.value)) {
      if (reads) co_return Result{{RegisterAnswer{.process = ::getpid()}.text()}, {}};
      Register::format(memory, work.value);
    }
    Register found(memory, work.value);
    if (const std::string problem = found.audit(); !problem.empty()) {
      co_return Result{{problem}, {}};
    }
    std::uint64_t number = found.number();
    if (!reads) {
      number = work.request == "add" ? number + 1 : std::stoull(work.request.substr(4));
      if (!co_await change_beside(services, work.key, number)) co_return Result{{}, "no memory"};
      if (!found.set(number)) co_return Result{{"it is full"}, {}};
    }
    const RegisterAnswer answer{number, ::getpid(), found.undone()};
    co_return Result{{answer.text()}, {}};
  }

 private:
  // False if it cannot be, as memory is not seen yet.
  static Task<bool> change_beside(Services& services, std::string key, std::uint64_t number) {
    key = library_test::beside(key);
    if (number % 4 == 2) co_await services.erase_key(key);
    if (number % 4 != 0) co_return true;
    auto range = co_await services.create_key(key, library_test::kBesideSize);
    if (range.status == CallStatus::exists) {
      range = co_await services.open_key(key, LockMode::write);
    }
    if (!range) co_return false;
    services.memory().store_durably(range.value.offset, number);
    co_return true;
  }
};

}  // namespace

extern "C" const PluginEntry perdura_mcas_plugin{
    kPluginInterface, [](const char*) -> Plugin* { return new Registers; }};
