// A plugin that answers every request with what its process was told of the cluster.
#include "systems/mcas/ado/plugin.h"

namespace {

using namespace perdura;
using namespace perdura::systems::mcas::ado;

class Listener final : public Plugin {
 public:
  Task<Result> do_work(Services&, const Invocation&) override { co_return Result{{told_}, {}}; }
  void cluster_event(const ClusterEvent& event) override {
    told_ += event.type + " " + event.sender + ";";
  }

 private:
  std::string told_;
};

}  // namespace

extern "C" const PluginEntry perdura_mcas_plugin{
    kPluginInterface, [](const char*) -> Plugin* { return new Listener; }};
