#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "library/choice.h"
#include "library/perdura_verbs.h"

namespace perdura {

namespace {

constexpr std::uint32_t kLandingLength = 8;

[[noreturn]] void refuse(const Choice& method, const std::string& what) {
  throw std::invalid_argument(fmt::format("persist by {}: {}", method.method, what));
}

// One call of persist().
class Persist {
 public:
  Persist(ibv_qp* queue_pair, const ibv_mr* memory, const RemoteRange& range, const Choice& method,
          const PersistOptions& options)
      : queue_pair_(queue_pair),
        memory_(memory),
        range_(range),
        method_(method),
        options_(options),
        deadline_(library::deadline_after(options.timeout)) {
    // Completions of earlier calls that did not wait for them may still arrive. They are told apart
    // by the number of the call.
    static std::atomic<std::uint64_t> calls{0};
    const std::uint64_t call = calls.fetch_add(1, std::memory_order_relaxed) & 0xFF'FFFF'FFFF;
    first_id_ = std::uint64_t{options.wr_id_prefix} << 48 | call << 8;
    for (const Step& step : method.steps) {
      if (step.of == Agent::requester) steps_.push_back(&step);
    }
    check();
  }

  void run() {
    const std::size_t last = last_operation();
    std::uint64_t posted = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = *steps_[i];
      if (step.action == Action::completion) {
        await(posted);
      } else if (step.action == Action::receive_ack) {
        until([this] { return options_.acknowledged(); });
      } else {
        const bool awaited =
            i == last || (i + 1 < steps_.size() && steps_[i + 1]->action == Action::completion);
        post(step, awaited, ++posted);
      }
    }
    // A work request's place in the send queue becomes free only when it, or a later one, is known
    // to be complete.
    await(posted);
  }

 private:
  // --- checks before anything is posted

  void check() const {
    if (queue_pair_ == nullptr || memory_ == nullptr) refuse(method_, "no queue pair or no memory");
    if (queue_pair_->qp_type != IBV_QPT_RC) refuse(method_, "it needs a reliable connection");
    if (options_.timeout.count() < 0) refuse(method_, "the timeout is negative");
    const std::size_t operations = static_cast<std::size_t>(std::count_if(
        steps_.begin(), steps_.end(), [](const Step* s) { return is_operation(*s); }));
    if (operations == 0) refuse(method_, "it has no operation of a requester");
    for (const Step* step : steps_) check(*step);
  }

  void check(const Step& step) const {
    if (step.unmarks) refuse(method_, "it marks links; post its steps yourself");
    if (step.second && !options_.second) refuse(method_, "it is of two updates; give the second");
    switch (step.action) {
      case Action::write:
      case Action::write_immediate:
        if (step.first == step.second) refuse(method_, "a WRITE is of one update");
        check(range_of(step).local, range_of(step).length);
        return;
      case Action::send:
        if (step.first && step.second) check_adjacent();
        check(range_of(step).local, range_of(step).length);
        return;
      case Action::send_names: {
        const auto& message = step.second ? options_.names_second : options_.names_first;
        if (!message) refuse(method_, fmt::format("\"{}\" needs a message", step.text));
        check(message->local, message->length);
        return;
      }
      case Action::read:
        if (options_.landing == nullptr) refuse(method_, "READs need 8 bytes to land in");
        check(options_.landing, kLandingLength);
        return;
      case Action::receive_ack:
        if (!options_.acknowledged) {
          refuse(method_, "the responder acknowledges; say how that is known");
        }
        return;
      case Action::completion:
        return;
      default:
        refuse(method_,
               fmt::format("\"{}\" cannot be posted; choose with persist_features()", step.text));
    }
  }

  void check(const void* local, std::uint32_t length) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_->addr);
    const auto at = reinterpret_cast<std::uintptr_t>(local);
    if (length == 0 || at < begin || at - begin > memory_->length ||
        length > memory_->length - (at - begin)) {
      refuse(method_, "a range is empty or outside of the memory region");
    }
  }

  // One message carries both updates, so the second must follow the first in local memory.
  void check_adjacent() const {
    const auto* const end = static_cast<const std::byte*>(range_.local) + range_.length;
    if (options_.second->local != end) {
      refuse(method_, "one SEND carries both updates; the second must follow the first");
    }
    check(options_.second->local, options_.second->length);
  }

  static bool is_operation(const Step& step) {
    return step.action != Action::completion && step.action != Action::receive_ack;
  }
  std::size_t last_operation() const {
    std::size_t last = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (is_operation(*steps_[i])) last = i;
    }
    return last;
  }
  const RemoteRange& range_of(const Step& step) const {
    return step.second && !step.first ? *options_.second : range_;
  }

  // --- posting work requests

  void post(const Step& step, bool awaited, std::uint64_t number) {
    const RemoteRange& range = range_of(step);
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(range.local), range.length, memory_->lkey};
    ibv_send_wr request{};
    request.wr_id = first_id_ | number;
    request.sg_list = &piece;
    request.num_sge = 1;
    if (awaited) request.send_flags |= IBV_SEND_SIGNALED;
    if (step.fenced) request.send_flags |= IBV_SEND_FENCE;
    switch (step.action) {
      case Action::write_immediate:
        request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        request.imm_data = htonl(range.immediate);
        break;
      case Action::send:
        request.opcode = IBV_WR_SEND;
        if (step.first && step.second) piece.length += options_.second->length;
        break;
      case Action::send_names: {
        const LocalRange& message = step.second ? *options_.names_second : *options_.names_first;
        request.opcode = IBV_WR_SEND;
        piece.addr = reinterpret_cast<std::uintptr_t>(message.local);
        piece.length = message.length;
        break;
      }
      case Action::read:
        request.opcode = IBV_WR_RDMA_READ;
        piece.addr = reinterpret_cast<std::uintptr_t>(options_.landing);
        piece.length = std::min(last_written_->length, kLandingLength);
        break;
      default:
        request.opcode = IBV_WR_RDMA_WRITE;
        break;
    }
    if (step.action == Action::read) {
      request.wr.rdma.remote_addr = last_written_->address;
      request.wr.rdma.rkey = last_written_->rkey;
    } else {
      request.wr.rdma.remote_addr = range.address;
      request.wr.rdma.rkey = range.rkey;
      last_written_ = &range;
    }
    ibv_send_wr* refused = nullptr;
    if (const int error = ibv_post_send(queue_pair_, &request, &refused); error != 0) {
      throw std::runtime_error(fmt::format("persist by {}: the queue pair does not take \"{}\": {}",
                                           method_.method, step.text, std::strerror(error)));
    }
  }

  // --- waiting for completions

  void await(std::uint64_t number) {
    until([&] {
      ibv_wc completion;
      while (completed_ < number) {
        const int count = ibv_poll_cq(queue_pair_->send_cq, 1, &completion);
        if (count < 0) throw std::runtime_error("persist: the completion queue cannot be polled");
        if (count == 0) return false;
        take(completion);
      }
      return true;
    });
  }

  void take(const ibv_wc& completion) {
    constexpr std::uint64_t kNumber = 0xFF;
    if (completion.wr_id >> 48 != options_.wr_id_prefix) {
      if (!options_.other) {
        throw std::runtime_error(fmt::format(
            "persist by {}: the completion of another's work request, {:#x}; say who takes it",
            method_.method, completion.wr_id));
      }
      options_.other(completion);
      return;
    }
    if ((completion.wr_id & ~kNumber) != first_id_) return;
    if (completion.status != IBV_WC_SUCCESS) {
      throw std::runtime_error(fmt::format("persist by {}: work request {} failed: {}",
                                           method_.method, completion.wr_id & kNumber,
                                           ibv_wc_status_str(completion.status)));
    }
    completed_ = std::max(completed_, completion.wr_id & kNumber);
  }

  void until(const auto& condition) const {
    while (!condition()) {
      if (deadline_ && std::chrono::steady_clock::now() >= *deadline_) {
        throw TimedOut(fmt::format("persist by {}: the timeout has passed", method_.method), true);
      }
    }
  }

  ibv_qp* queue_pair_;
  const ibv_mr* memory_;
  const RemoteRange& range_;
  const Choice& method_;
  const PersistOptions& options_;
  library::Deadline deadline_;
  std::uint64_t first_id_ = 0;
  std::vector<const Step*> steps_;
  const RemoteRange* last_written_ = &range_;
  std::uint64_t completed_ = 0;  // the last work request known to be complete
};

}  // namespace

Features persist_features() { return {}; }

void persist(ibv_qp* queue_pair, const ibv_mr* memory, const RemoteRange& range,
             const Choice& method, const PersistOptions& options) {
  Persist(queue_pair, memory, range, method, options).run();
}

}  // namespace perdura
