// Barriers in the job's shared control file. An arriving thread sets a bit for its doorbell; the
// last one to arrive rings the doorbells whose bits are set.
#include <fmt/core.h>

#include <bit>

#include "platform/base/error.h"
#include "platform/shm/shm_platform.h"

namespace perdura {
namespace {

using fabric::shm::BarrierState;
using fabric::shm::Control;
using fabric::shm::kMaxBarriers;

class ShmBarrier final : public Platform::Barrier {
 public:
  ShmBarrier(Control& control, BarrierState& state, NodeId node_count)
      : control_(control), state_(state), node_count_(node_count) {}

  Task<> arrive_and_wait() override {
    const std::uint32_t phase = state_.phase.load(std::memory_order_seq_cst);
    leave_doorbell(state_.waiting[phase % 2]);
    // Threads that pass the barrier see what this thread wrote before it.
    if (current_thread_use != nullptr) {
      current_thread_use->writes.publish(pmem::thread_write_meter().writes());
    }
    if (state_.arrived.fetch_add(1, std::memory_order_seq_cst) + 1 ==
        state_.participants.load(std::memory_order_relaxed)) {
      state_.arrived.store(0, std::memory_order_seq_cst);
      state_.phase.fetch_add(1, std::memory_order_seq_cst);
      ring(state_.waiting[phase % 2]);
      co_return;
    }
    co_await host::until([this, phase] {
      return state_.phase.load(std::memory_order_seq_cst) != phase || failed_node() != node_count_;
    });
    if (state_.phase.load(std::memory_order_seq_cst) == phase) {
      throw PlatformError(fmt::format("node {} has failed; see its messages", failed_node()));
    }
  }

 private:
  using DoorbellSet = std::array<fabric::shm::Word, fabric::shm::kMaxThreads / 64>;

  void leave_doorbell(DoorbellSet& set) {
    const auto* bell = reinterpret_cast<const fabric::shm::DoorbellSlot*>(
        &host::current_thread_executor().doorbell());
    const auto index = static_cast<std::size_t>(bell - control_.doorbells.data());
    set[index / 64].fetch_or(std::uint64_t{1} << (index % 64), std::memory_order_seq_cst);
  }

  void ring(DoorbellSet& set) {
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (set[i].load(std::memory_order_seq_cst) == 0) continue;
      std::uint64_t bits = set[i].exchange(0, std::memory_order_seq_cst);
      for (; bits != 0; bits &= bits - 1) {
        control_.doorbells[i * 64 + static_cast<std::size_t>(std::countr_zero(bits))].bell.ring();
      }
    }
  }

  NodeId failed_node() const {
    NodeId node = 0;
    while (node < node_count_ && control_.nodes[node].failed.load(std::memory_order_relaxed) == 0) {
      ++node;
    }
    return node;
  }

  Control& control_;
  BarrierState& state_;
  NodeId node_count_;
};

}  // namespace

std::unique_ptr<Platform::Barrier> ShmPlatform::create_barrier(std::uint32_t participants) {
  if (!options_.meets) throw UsageError("nodes that come and go meet at no barrier");
  if (participants == 0) throw UsageError("a barrier needs at least one participant");
  if (next_barrier_ == kMaxBarriers) {
    throw PlatformError(fmt::format("more than {} barriers in one job", kMaxBarriers));
  }
  BarrierState& state = job_.control().barriers[next_barrier_++];
  std::uint32_t before = 0;
  if (!state.participants.compare_exchange_strong(before, participants) && before != participants) {
    throw UsageError(fmt::format("processes disagree on barrier {}: {} or {} participants",
                                 next_barrier_ - 1, before, participants));
  }
  return std::make_unique<ShmBarrier>(job_.control(), state, options_.node_count);
}

}  // namespace perdura
