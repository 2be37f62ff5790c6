#include "platform/sim/sim_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::sim {

namespace {

// A slot begins with its sequence number and the message's length.
constexpr Bytes kSlotHeader = 16;

SimThread& this_thread() {
  SimThread* const thread = SimThread::running();
  if (thread == nullptr) throw UsageError("a ring's end is opened and used by a task");
  return *thread;
}

}  // namespace

class SimRing::Producer final : public RingProducer {
 public:
  explicit Producer(std::shared_ptr<SimRing> ring) : ring_(std::move(ring)) {
    ring_->has_producer_ = true;
  }
  ~Producer() override { ring_->has_producer_ = false; }

  bool try_push(std::span<const std::byte> message) override { return ring_->try_push(message); }
  Task<> push(std::span<const std::byte> message) override { return ring_->push(message); }

 private:
  std::shared_ptr<SimRing> ring_;
};

class SimRing::Consumer final : public RingConsumer {
 public:
  explicit Consumer(std::shared_ptr<SimRing> ring) : ring_(std::move(ring)) {
    ring_->has_consumer_ = true;
  }
  ~Consumer() override { ring_->has_consumer_ = false; }

  std::optional<Bytes> try_pop(std::span<std::byte> into) override { return ring_->try_pop(into); }
  Task<Bytes> pop(std::span<std::byte> into) override {
    co_return (co_await ring_->pop(into)).value();  // nobody closes a ring with a name
  }

 private:
  std::shared_ptr<SimRing> ring_;
};

SimRing::SimRing(std::string_view name, RingShape shape) : name_(name), shape_(shape) {
  check_ring_shape(name, shape);
}

std::unique_ptr<RingProducer> SimRing::producer() {
  this_thread();
  if (has_producer_) throw UsageError(fmt::format("ring '{}' has a producer", name_));
  return std::make_unique<Producer>(shared_from_this());
}

std::unique_ptr<RingConsumer> SimRing::consumer() {
  this_thread();
  if (has_consumer_) throw UsageError(fmt::format("ring '{}' has a consumer", name_));
  return std::make_unique<Consumer>(shared_from_this());
}

void SimRing::Waiting::await_suspend(std::coroutine_handle<> waits) {
  if (*place != nullptr) throw UsageError("a task waits at this end of the ring already");
  task = waits;
  thread = &this_thread();
  *place = this;
}

void SimRing::wake(Waiting*& waiting, Time when) {
  Waiting* const woken = std::exchange(waiting, nullptr);
  if (woken != nullptr) woken->thread->make_ready_at(when, woken->task);
}

// The time at which the producer knows of a free slot, provided that there is one.
Time SimRing::space_from() const {
  if (messages_.size() + popped_.size() < shape_.slots || popped_.empty()) return Time{};
  const Popped& last = popped_.front();
  return last.at + last.consumer->cpu().line_transfer;
}

bool SimRing::has_space(Time now) const {
  return messages_.size() < shape_.slots && space_from() <= now;
}

bool SimRing::try_push(std::span<const std::byte> message) {
  check_ring_message(shape_, message.size());
  SimThread& thread = this_thread();
  if (!has_space(thread.now())) return false;
  if (messages_.size() + popped_.size() == shape_.slots) {
    // A producer that reuses a slot has seen that it is free.
    Time& seen = popped_.front().consumer->storing().seen_until;
    seen = std::max(seen, popped_.front().at);
    popped_.pop_front();
  }
  const auto lines =
      static_cast<std::int64_t>(round_up(kSlotHeader + message.size(), kCacheLine) / kCacheLine);
  thread.charge(Work::copy, message.size());
  thread.charge_time(thread.cpu().store * lines);
  const Time published = thread.now();
  const Time visible = published + thread.cpu().line_transfer;
  messages_.push_back({{message.begin(), message.end()}, &thread, published, visible});
  wake(consumer_waits_, visible);
  return true;
}

std::optional<Bytes> SimRing::try_pop(std::span<std::byte> into) {
  check_ring_room(shape_, into.size());
  SimThread& thread = this_thread();
  if (messages_.empty() || messages_.front().visible > thread.now()) return std::nullopt;
  Message message = std::move(messages_.front());
  messages_.pop_front();
  Time& seen = message.producer->storing().seen_until;
  seen = std::max(seen, message.published);
  const std::vector<std::byte>& bytes = message.bytes;
  std::copy(bytes.begin(), bytes.end(), into.begin());
  const Bytes length = bytes.size();
  thread.charge_time(thread.cpu().load);
  thread.charge(Work::copy, length);
  thread.charge_time(thread.cpu().store);
  const Time at = thread.now();
  popped_.push_back({std::move(message), &thread, at});
  wake(producer_waits_, at + thread.cpu().line_transfer);
  return length;
}

Task<> SimRing::push(std::span<const std::byte> message) {
  SimThread& thread = this_thread();
  while (!closed_ && !try_push(message)) {
    if (messages_.size() == shape_.slots) {
      co_await Waiting(producer_waits_);
    } else {
      co_await sleep_until(std::max(thread.now(), space_from()));
    }
  }
}

Task<std::optional<Bytes>> SimRing::pop(std::span<std::byte> into) {
  for (;;) {
    if (const std::optional<Bytes> length = try_pop(into)) co_return length;
    if (!messages_.empty()) {
      co_await sleep_until(messages_.front().visible);
    } else if (closed_) {
      co_return std::nullopt;
    } else {
      co_await Waiting(consumer_waits_);
    }
  }
}

void SimRing::close() {
  closed_ = true;
  for (Waiting** waiting : {&consumer_waits_, &producer_waits_}) {
    Waiting* const woken = std::exchange(*waiting, nullptr);
    if (woken != nullptr) woken->thread->make_ready(woken->task);
  }
}

void SimRing::withdraw(const SimThread& thread, Time from) {
  while (!popped_.empty() && popped_.back().consumer == &thread && popped_.back().at > from) {
    messages_.push_front(std::move(popped_.back().message));
    popped_.pop_back();
  }
  const auto unpublished = [&](const Message& message) {
    return message.producer == &thread && message.published > from;
  };
  while (!messages_.empty() && unpublished(messages_.back())) messages_.pop_back();
}

}  // namespace perdura::sim
