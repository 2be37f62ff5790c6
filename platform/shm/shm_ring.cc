#include "platform/shm/shm_ring.h"

#include <fmt/format.h>

#include <utility>

#include "platform/base/error.h"
#include "platform/host/mapped_ring.h"
#include "platform/host/thread_executor.h"
#include "platform/pmem/mapped/pool_file.h"

namespace perdura {

namespace {

using fabric::shm::DoorbellSlot;
using fabric::shm::Job;
using fabric::shm::kMaxThreads;

std::shared_ptr<pmem::mapped::Mapping> map(const std::string& path, Bytes size) {
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

MappedRing open(Job& job, const std::string& path, std::string_view name, RingShape shape) {
  auto mapping = map(path, MappedRing::size(shape));
  std::byte* const memory = mapping->data();
  MappedRing ring(memory, shape, std::move(mapping), [&job](RingEnd& end) {
    const std::uint32_t bell = end.doorbell.load();
    if (bell != 0) job.doorbell(bell - 1).ring();
  });
  const std::uint64_t wanted = std::uint64_t{shape.slots} << 32 | shape.message_size;
  std::uint64_t found = 0;
  if (!ring.header().shape.compare_exchange_strong(found, wanted) && found != wanted) {
    throw UsageError(fmt::format("ring '{}' has {} slots for messages of up to {} bytes", name,
                                 found >> 32, found & 0xFFFFFFFF));
  }
  return ring;
}

std::uint32_t doorbell_of_this_thread(const Job& job) {
  const auto& slots = job.control().doorbells;
  const auto* const bell =
      reinterpret_cast<const DoorbellSlot*>(&host::current_thread_executor().doorbell());
  if (bell < slots.data() || bell >= slots.data() + kMaxThreads) {
    throw UsageError("a background thread that uses a ring needs a port");
  }
  return static_cast<std::uint32_t>(bell - slots.data());
}

void own(const Job& job, RingEnd& end, std::uint64_t life, std::string_view name,
         std::string_view role) {
  std::uint64_t owner = end.owner.load();
  do {
    if (owner != 0 && job.lives(owner)) {
      throw UsageError(fmt::format("ring '{}' has a {}", name, role));
    }
  } while (!end.owner.compare_exchange_weak(owner, life));
  end.waits.store(0);
  end.doorbell.store(doorbell_of_this_thread(job) + 1);
}

void disown(RingEnd& end) {
  end.doorbell.store(0);
  end.owner.store(0);
}

class Producer final : public RingProducer {
 public:
  explicit Producer(MappedRing ring) : end_(std::move(ring)) {}
  ~Producer() override { disown(end_.end()); }

  bool try_push(std::span<const std::byte> message) override { return end_.try_push(message); }
  Task<> push(std::span<const std::byte> message) override {
    while (!try_push(message)) {
      end_.end().waits.exchange(1, std::memory_order_seq_cst);
      co_await host::until([this] { return end_.has_space(); });
      end_.end().waits.store(0);
    }
  }

 private:
  MappedProducer end_;
};

class Consumer final : public RingConsumer {
 public:
  explicit Consumer(MappedRing ring) : end_(std::move(ring)) {}
  ~Consumer() override { disown(end_.end()); }

  std::optional<Bytes> try_pop(std::span<std::byte> into) override { return end_.try_pop(into); }
  Task<Bytes> pop(std::span<std::byte> into) override {
    for (;;) {
      if (const std::optional<Bytes> length = try_pop(into)) co_return *length;
      end_.end().waits.exchange(1, std::memory_order_seq_cst);
      co_await host::until([this] { return end_.has_message(); });
      end_.end().waits.store(0);
    }
  }

 private:
  MappedConsumer end_;
};

}  // namespace

std::unique_ptr<RingProducer> open_shm_producer(Job& job, std::uint64_t life,
                                                const std::string& path, std::string_view name,
                                                RingShape shape) {
  check_ring_shape(name, shape);
  MappedRing ring = open(job, path, name, shape);
  own(job, ring.header().producer, life, name, "producer");
  return std::make_unique<Producer>(std::move(ring));
}

std::unique_ptr<RingConsumer> open_shm_consumer(Job& job, std::uint64_t life,
                                                const std::string& path, std::string_view name,
                                                RingShape shape) {
  check_ring_shape(name, shape);
  MappedRing ring = open(job, path, name, shape);
  own(job, ring.header().consumer, life, name, "consumer");
  return std::make_unique<Consumer>(std::move(ring));
}

}  // namespace perdura
