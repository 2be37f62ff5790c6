// A plugin that counts: "add" adds one to the key's value and answers the sum. "refuse", "exit" and
// "trap" make it do so, "throw" throws a text of two lines in red, and "shout" fills its stderr.
// Every other request it answers with what its process was told of the cluster.
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "systems/mcas/ado/plugin.h"

namespace {

using namespace perdura;
using namespace perdura::systems::mcas::ado;

const std::string kLong(100'000, 'e');

// Until there is no room, and then for as long as there is none.
void shout() {
  while (::write(STDERR_FILENO, kLong.data(), kLong.size()) > 0) {
  }
}

class Listener final : public Plugin {
 public:
  Task<Result> do_work(Services& services, const Invocation& work) override {
    if (work.request == "refuse") co_return Result{{}, "the plugin does not want to"};
    if (work.request == "exit") std::_Exit(3);
    // A signal that no sanitizer handles, and that needs no system call.
    if (work.request == "trap") asm volatile("int3");
    if (work.request == "throw") throw std::runtime_error("two\nlines\x1b[31m of " + kLong);
    if (work.request == "shout") shout();
    if (work.request != "add") co_return Result{{told_}, {}};
    const systems::mcas::Memory memory = services.memory();
    const std::uint64_t sum = memory.region().load(work.value.offset) + 1;
    memory.store_durably(work.value.offset, sum);
    co_return Result{{std::to_string(sum)}, {}};
  }
  void cluster_event(const ClusterEvent& event) override {
    told_ += event.type + " " + event.sender + ";";
  }

 private:
  std::string told_;
};

}  // namespace

extern "C" const PluginEntry perdura_mcas_plugin{
    kPluginInterface, [](const char*) -> Plugin* { return new Listener; }};
