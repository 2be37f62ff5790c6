// Each method, on each platform, with receive buffers in DRAM and in persistent memory: after a few
// hundred updates of varied sizes and places the region holds them; where the device lacks an
// operation, both sides say so.
#include <algorithm>
#include <atomic>

#include "platform/base/error.h"
#include "tests/methods/support.h"

namespace perdura::methods::test {
namespace {

using pmem::Medium;
using pmem::StepKind;

constexpr std::uint64_t kUpdates = 300;

struct Case {
  std::string platform;  // "sim+" is sim with a device that has all operations
  std::string method;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.method << " on " << c.platform;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Method& method : methods()) {
    for (const std::string& platform : perdura::test::platform_names()) {
      cases.push_back({platform, method.name});
    }
    cases.push_back({"sim+", method.name});
  }
  return cases;
}
std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.platform + "_" + info.param.method;
  std::replace(name.begin(), name.end(), '-', '_');
  std::replace(name.begin(), name.end(), '+', 'X');
  return name;
}

std::unique_ptr<Platform> make(const std::string& name) {
  if (name == "sim+") return std::make_unique<perdura::sim::SimPlatform>(full_profile(), 2);
  return perdura::test::make_platform(name, 2);
}

// How many receive buffers an update takes.
std::uint64_t messages_of(const Method& method) {
  return static_cast<std::uint64_t>(std::count_if(
      method.requester().begin(), method.requester().end(), [](const pmem::Step& step) {
        return step.kind == StepKind::send || step.kind == StepKind::send_names ||
               step.kind == StepKind::write_immediate;
      }));
}

class Methods : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, Methods, testing::ValuesIn(all_cases()), case_name);

// Also with READ in place of FLUSH, which every device has.
void run_updates(const std::string& platform_name, const Method& method, Medium medium) {
  const auto platform = make(platform_name);
  const PersisterSetup setup = setup_of(method, medium);
  const bool ordered = method.update != Update::single;
  std::atomic<bool> done{false};
  std::atomic<bool> looked{false};
  std::atomic<int> refusals{0};
  const auto lacks = [&](Thread& thread) {
    const fabric::Capabilities device = thread.endpoint.capabilities();
    return (method.uses(StepKind::flush_visibility) && !device.flush) ||
           (method.uses(StepKind::flush_persistence) && !device.flush_persistence) ||
           (method.uses(StepKind::atomic_write) && !device.atomic_write) ||
           (method.needs().atomics && !device.atomics);
  };
  const std::uint64_t messages = kUpdates * messages_of(method);
  auto look = [&](const Responder* responder, const pmem::Region* region) -> Task<> {
    while (!done || responder->messages() < messages) co_await sleep_for(Microseconds(1));
    EXPECT_EQ(responder->messages(), messages);
    // The writer does not wait until its mark is gone.
    while (is_marked(region->load(History::kB))) co_await sleep_for(Microseconds(1));
    EXPECT_EQ(contents(*region), History::after(kUpdates, ordered));
    looked = true;
  };
  platform->start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto region = open_or_create(thread.node, "pool", History::kRegion);
    std::shared_ptr<Responder> responder;
    try {
      responder = std::make_shared<Responder>(thread, *region, setup);
    } catch (const UsageError& error) {
      EXPECT_TRUE(lacks(thread)) << error.what();
      EXPECT_NE(std::string(error.what()).find(method.name), std::string::npos);
      ++refusals;
      looked = true;
    }
    if (responder == nullptr) co_return;
    EXPECT_FALSE(lacks(thread));
    thread.executor.spawn(look(responder.get(), region.get()));
    co_await responder->serve();
  });
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    std::unique_ptr<RemotePersister> persister;
    try {
      if (!lacks(thread)) persister = co_await RemotePersister::connect(thread, {0, 0}, 0, setup);
      if (lacks(thread)) co_await RemotePersister::connect(thread, {0, 0}, 0, setup);
    } catch (const UsageError&) {
      ++refusals;
    }
    for (std::uint64_t i = 1; persister != nullptr && i <= kUpdates; ++i) {
      const auto updated = co_await History::update(*persister, i);
      EXPECT_TRUE(updated) << "update " << i;
      if (!updated) break;
    }
    done = persister != nullptr;
    while (!looked) co_await sleep_for(Microseconds(1));
  });
  platform->run();
  EXPECT_EQ(refusals, done ? 0 : 2);
}

TEST_P(Methods, MakeTheirUpdates) {
  const Method& method = find_method(GetParam().method);
  for (const Medium medium : {Medium::dram, Medium::pm}) {
    run_updates(GetParam().platform, method, medium);
    if (method.uses(StepKind::flush_visibility)) {
      run_updates(GetParam().platform, with_read_for_flush(method), medium);
    }
  }
}

// One buffer, and a requester that does not wait for the responder: it finds none again and again.
TEST_P(Methods, WaitForReceiveBuffers) {
  const Method& method = find_method(GetParam().method);
  const auto platform = make(GetParam().platform);
  PersisterSetup setup = setup_of(with_read_for_flush(method), Medium::pm, 1);
  if (GetParam().platform == "sim" &&
      (method.uses(StepKind::atomic_write) || method.uses(StepKind::flush_persistence))) {
    GTEST_SKIP() << "refused, see above";
  }
  const bool ordered = method.update != Update::single;
  bool done = false;
  Buffer found;
  platform->start_service(0, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto region = open_or_create(thread.node, "pool", History::kRegion);
    co_await std::make_shared<Responder>(thread, *region, setup)->serve();
  });
  platform->start(1, 1, CompletionMode::polling, [&](Thread& thread) -> Task<> {
    const auto persister = co_await RemotePersister::connect(thread, {0, 0}, 0, setup);
    for (std::uint64_t i = 1; i <= 40; ++i) {
      EXPECT_TRUE(co_await History::update(*persister, i));
    }
    // The responder may be behind; what it has not taken is still there for it.
    const Buffer expected = History::after(40, ordered);
    for (Bytes at = 0; at < History::kRegion; at += kCacheLine) {
      Buffer line(kCacheLine);
      while (!std::equal(line.begin(), line.end(),
                         expected.begin() + static_cast<std::ptrdiff_t>(at))) {
        EXPECT_TRUE(co_await persister->read(at, line));
      }
    }
    done = true;
  });
  platform->run();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace perdura::methods::test
