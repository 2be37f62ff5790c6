#include "platform/shm/shm_ring.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "platform/base/error.h"
#include "platform/host/thread_executor.h"
#include "platform/pmem/mapped/pool_file.h"

namespace perdura {

namespace {

using fabric::shm::DoorbellSlot;
using fabric::shm::HalfWord;
using fabric::shm::Job;
using fabric::shm::kMaxThreads;
using fabric::shm::Word;

// An end, and how to wake who waits there.
struct End {
  alignas(kCacheLine) Word owner;  // its life; 0: nobody
  HalfWord doorbell;               // of the owner's thread, + 1
  HalfWord waits;  // set by the owner while it waits, and perhaps sleeps, for the other end
};

struct Header {
  Word shape;  // slots << 32 | message size; 0 in a new file
  End producer;
  End consumer;
  alignas(kCacheLine) Word popped;  // messages, since the ring was made
};

struct Slot {
  alignas(kCacheLine) Word number;  // of the message in it, + 1
  Word length;
};

// The ring as one end sees it.
class Mapped {
 public:
  Mapped(Job& job, const std::string& path, std::string_view name, RingShape shape)
      : job_(job),
        shape_(shape),
        slot_size_(round_up(sizeof(Slot) + shape.message_size, kCacheLine)),
        mapping_(map(path, sizeof(Header) + shape.slots * slot_size_)) {
    const std::uint64_t wanted = std::uint64_t{shape.slots} << 32 | shape.message_size;
    std::uint64_t found = 0;
    if (!header().shape.compare_exchange_strong(found, wanted) && found != wanted) {
      throw UsageError(fmt::format("ring '{}' has {} slots for messages of up to {} bytes", name,
                                   found >> 32, found & 0xFFFFFFFF));
    }
  }

  const RingShape& shape() const { return shape_; }
  Header& header() const { return *reinterpret_cast<Header*>(mapping_->data()); }
  Slot& slot(std::uint64_t message) const {
    return *reinterpret_cast<Slot*>(mapping_->data() + sizeof(Header) +
                                    message % shape_.slots * slot_size_);
  }
  static std::byte* content(Slot& slot) { return reinterpret_cast<std::byte*>(&slot + 1); }
  bool holds(std::uint64_t message) const {
    return slot(message).number.load(std::memory_order_seq_cst) == message + 1;
  }

  void own(End& end, std::uint64_t life, std::string_view name, std::string_view role) const {
    std::uint64_t owner = end.owner.load();
    do {
      if (owner != 0 && job_.lives(owner)) {
        throw UsageError(fmt::format("ring '{}' has a {}", name, role));
      }
    } while (!end.owner.compare_exchange_weak(owner, life));
    end.waits.store(0);
    end.doorbell.store(doorbell_of_this_thread() + 1);
  }
  static void disown(End& end) {
    end.doorbell.store(0);
    end.owner.store(0);
  }

  // Whoever changes the ring does so by a sequentially consistent read-modify-write and then calls
  // this for the other end.
  void wake(End& end) const {
    if (end.waits.load(std::memory_order_seq_cst) == 0) return;
    const std::uint32_t bell = end.doorbell.load();
    if (bell != 0) job_.doorbell(bell - 1).ring();
  }

 private:
  static std::shared_ptr<pmem::mapped::Mapping> map(const std::string& path, Bytes size) {
    using namespace pmem::mapped;
    auto file = open_pool_file(path);
    if (!file) {
      try {
        file = create_pool_file(path, size, Allocation::on_touch);
      } catch (const UsageError&) {
        file = open_pool_file(path);  // the other end has made it meanwhile
        if (!file) throw;
      }
    }
    if (file->mapping->size() != size) {
      throw UsageError(fmt::format("{} is a ring of another shape", path));
    }
    return file->mapping;
  }

  std::uint32_t doorbell_of_this_thread() const {
    const auto& slots = job_.control().doorbells;
    const auto* const bell =
        reinterpret_cast<const DoorbellSlot*>(&runtime::current_thread_executor().doorbell());
    if (bell < slots.data() || bell >= slots.data() + kMaxThreads) {
      throw UsageError("a background thread that uses a ring needs a port");
    }
    return static_cast<std::uint32_t>(bell - slots.data());
  }

  Job& job_;
  RingShape shape_;
  Bytes slot_size_;
  std::shared_ptr<pmem::mapped::Mapping> mapping_;
};

class Producer final : public RingProducer {
 public:
  Producer(Mapped ring, std::uint64_t life, std::string_view name) : ring_(std::move(ring)) {
    ring_.own(mine(), life, name, "producer");
    // Its predecessor may have pushed some that nobody has popped.
    next_ = popped_ = ring_.header().popped.load();
    while (has_space() && ring_.holds(next_)) ++next_;
  }
  ~Producer() override { Mapped::disown(mine()); }

  bool try_push(std::span<const std::byte> message) override {
    check_ring_message(ring_.shape(), message.size());
    if (!has_space()) return false;
    Slot& slot = ring_.slot(next_);
    slot.length.store(message.size(), std::memory_order_relaxed);
    if (!message.empty()) std::memcpy(Mapped::content(slot), message.data(), message.size());
    slot.number.exchange(++next_, std::memory_order_seq_cst);
    ring_.wake(ring_.header().consumer);
    return true;
  }
  Task<> push(std::span<const std::byte> message) override {
    while (!try_push(message)) {
      mine().waits.exchange(1, std::memory_order_seq_cst);
      co_await runtime::until([this] { return has_space(); });
      mine().waits.store(0);
    }
  }

 private:
  End& mine() const { return ring_.header().producer; }
  bool has_space() {
    if (next_ - popped_ < ring_.shape().slots) return true;
    popped_ = ring_.header().popped.load(std::memory_order_seq_cst);
    return next_ - popped_ < ring_.shape().slots;
  }

  Mapped ring_;
  std::uint64_t next_ = 0;    // number of the next message
  std::uint64_t popped_ = 0;  // at least so many are
};

class Consumer final : public RingConsumer {
 public:
  Consumer(Mapped ring, std::uint64_t life, std::string_view name) : ring_(std::move(ring)) {
    ring_.own(mine(), life, name, "consumer");
    next_ = ring_.header().popped.load();
  }
  ~Consumer() override { Mapped::disown(mine()); }

  std::optional<Bytes> try_pop(std::span<std::byte> into) override {
    check_ring_room(ring_.shape(), into.size());
    if (!ring_.holds(next_)) return std::nullopt;
    Slot& slot = ring_.slot(next_);
    const Bytes length = slot.length.load(std::memory_order_relaxed);
    if (length > 0) std::memcpy(into.data(), Mapped::content(slot), length);
    ring_.header().popped.exchange(++next_, std::memory_order_seq_cst);
    ring_.wake(ring_.header().producer);
    return length;
  }
  Task<Bytes> pop(std::span<std::byte> into) override {
    for (;;) {
      if (const std::optional<Bytes> length = try_pop(into)) co_return *length;
      mine().waits.exchange(1, std::memory_order_seq_cst);
      co_await runtime::until([this] { return ring_.holds(next_); });
      mine().waits.store(0);
    }
  }

 private:
  End& mine() const { return ring_.header().consumer; }

  Mapped ring_;
  std::uint64_t next_ = 0;  // number of the message to be popped
};

}  // namespace

std::unique_ptr<RingProducer> open_shm_producer(Job& job, std::uint64_t life,
                                                const std::string& path, std::string_view name,
                                                RingShape shape) {
  check_ring_shape(name, shape);
  return std::make_unique<Producer>(Mapped(job, path, name, shape), life, name);
}

std::unique_ptr<RingConsumer> open_shm_consumer(Job& job, std::uint64_t life,
                                                const std::string& path, std::string_view name,
                                                RingShape shape) {
  check_ring_shape(name, shape);
  return std::make_unique<Consumer>(Mapped(job, path, name, shape), life, name);
}

}  // namespace perdura
