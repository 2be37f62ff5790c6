// A plugin that writes random words over all memory that it reaches of the region which it was
// given: "SEED N" over every N-th word, of its pool's structures as of its values. "resize LENGTH"
// and "free OFFSET LENGTH" ask the shard for that.
#include <setjmp.h>
#include <signal.h>

#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "systems/mcas/ado/plugin.h"

namespace {

using namespace perdura;
using namespace perdura::systems::mcas;
using namespace perdura::systems::mcas::ado;

constexpr Bytes kPageBytes = 4096;
sigjmp_buf back;
void on_fault(int) { siglongjmp(back, 1); }

bool is_there(const std::byte* page) {
  struct sigaction mine {};
  struct sigaction before {};
  mine.sa_handler = on_fault;
  mine.sa_flags = SA_NODEFER;
  ::sigaction(SIGSEGV, &mine, &before);
  volatile bool there = false;
  if (sigsetjmp(back, 0) == 0) {
    static_cast<void>(*static_cast<const volatile std::byte*>(page));
    there = true;
  }
  ::sigaction(SIGSEGV, &before, nullptr);
  return there;
}

class Scribbler final : public Plugin {
 public:
  Task<Result> do_work(Services& services, const Invocation& work) override {
    std::istringstream request(work.request);
    std::string what;
    Bytes a = 0;
    Bytes b = 0;
    request >> what >> a >> b;
    if (what == "resize") {
      const auto resized = co_await services.resize_value(work.key, a);
      co_return Result{{std::to_string(static_cast<int>(resized.status))}, {}};
    }
    if (what == "free") co_await services.free_memory({a, b});
    if (what == "random") scribble(services.memory().region(), a, b);
    co_return Result{{"done"}, {}};
  }

 private:
  void scribble(pmem::Region& region, std::uint64_t seed, std::uint64_t one_of) {
    if (pages_.empty()) {
      for (Bytes at = 0; at + kPageBytes <= region.size(); at += kPageBytes) {
        if (is_there(region.data() + at)) pages_.push_back(at);
      }
    }
    std::mt19937_64 random(seed);
    for (const Bytes page : pages_) {
      for (Bytes at = page; at < page + kPageBytes; at += 8) {
        if (one_of > 1 && random() % one_of != 0) continue;
        std::uint64_t word = random();
        if (word % 2 == 0) word = random() % region.size();
        std::memcpy(region.data() + at, &word, sizeof word);
      }
    }
  }

  std::vector<Bytes> pages_;
};

}  // namespace

extern "C" const PluginEntry perdura_mcas_plugin{
    kPluginInterface, [](const char*) -> Plugin* { return new Scribbler; }};
