#include "platform/fabric/shm/endpoint.h"

#include <algorithm>
#include <bit>

namespace perdura::fabric::shm {
namespace {

constexpr int kCompletionsAtOnce = 64;
constexpr Picoseconds kLookForTheDead = Milliseconds(10);

}  // namespace

ShmEndpoint::ShmEndpoint(Job& job, NodeMemory& memory, TrafficMeter& traffic, Watch& watch,
                         const FabricOptions& options, Address address, std::uint32_t doorbell,
                         host::ThreadExecutor& executor)
    : job_(job),
      memory_(memory),
      traffic_(traffic),
      watch_(watch),
      options_(options),
      address_(address),
      executor_(executor),
      segment_(job.endpoint_path(address), job.node(address.node)->generation, doorbell),
      life_(life_of(segment_.shared().generation, address.node)),
      listener_(watch.add_listener([this] { notify(segment_.shared()); })) {
  memory_.add(segment_);
}

ShmEndpoint::~ShmEndpoint() {
  memory_.remove(segment_);
  watch_.remove_listener(listener_);
  segment_.shared().closed.store(1, std::memory_order_seq_cst);
  collect_mail();
  for (const Request& request : requests_) reject(request, {});
}

Capabilities ShmEndpoint::capabilities() const {
  return {.flush = true,
          .flush_persistence = true,
          .atomic_write = true,
          .max_inline = kMaxInline,
          .max_message = 1U << 30,
          .commits = true,
          .appends = true};
}

MemoryRegion ShmEndpoint::register_memory(pmem::Region& region, Bytes offset, Bytes length,
                                          Access access) {
  return {&region, offset, length, memory_.publish(region, offset, length, access), access};
}

ExtentMap ShmEndpoint::register_extents(pmem::Region& region, std::span<const Extent> extents,
                                        Access access) {
  return {&region, memory_.publish(region, extents, access), access};
}

Task<> ShmEndpoint::map_extent(const ExtentMap& map, Extent extent) {
  memory_.map_extent(map.key, extent);
  co_await operations_end();
}

Task<> ShmEndpoint::unmap_extents(const ExtentMap& map, Bytes at, Bytes length) {
  memory_.unmap_extents(map.key, at, length);
  co_await operations_end();
}

void ShmEndpoint::allow_appends(const ExtentMap& map, Bytes size, RangeFaults& faults) {
  memory_.allow_appends(map.key, size, segment_.shared().doorbell.load(std::memory_order_relaxed));
  std::erase_if(appendables_, [&](const Appendable& each) { return each.key == map.key; });
  appendables_.push_back({map.key, &faults});
}

void ShmEndpoint::deregister_memory(RemoteKey key) {
  std::erase_if(appendables_, [&](const Appendable& each) { return each.key == key; });
  memory_.revoke(key);
}

bool ShmEndpoint::report_range_faults() {
  bool any = false;
  for (Appendable& each : appendables_) {
    const Bytes asked = memory_.asked(each.key);
    if (asked > each.reported) {
      each.faults->push({each.key, asked});
      any = true;
    }
    each.reported = asked;
  }
  return any;
}

// Waits for the end of the operations of peers that may have seen the previous state of a
// registration. This may take long, since a peer may have no core meanwhile, or may have died in
// the middle of an operation. READs are not waited for: they check themselves whether what they
// have read is still valid.
Task<> ShmEndpoint::operations_end() {
  std::vector<NodeMemory::Begun> begun = memory_.begun();
  Time look = executor_.now() + kLookForTheDead;
  while (!begun.empty()) {
    co_await yield();
    memory_.drop_ended(begun);
    if (executor_.now() < look) continue;
    look = executor_.now() + kLookForTheDead;
    std::erase_if(begun, [this](const auto& operation) { return !job_.lives(operation.life); });
  }
}

std::unique_ptr<ReceiveQueue> ShmEndpoint::create_receive_queue(std::uint32_t depth) {
  return std::make_unique<ShmReceiveQueue>(
      std::make_shared<ReceiveQueueState>(segment_, memory_, depth));
}

// --- connection slots ---------------------------------------------------------------------------

std::uint32_t ShmEndpoint::open_slot(const QueuePairOptions& options,
                                     std::shared_ptr<PeerNode> peer, SlotState state) {
  const std::uint32_t index = segment_.allocate_slot();
  if (slots_.size() <= index) slots_.resize(index + 1);
  LocalSlot& local = slots_[index];
  local = {};
  local.use = LocalSlot::Use::connecting;
  local.peer = std::move(peer);
  ConnectionSlot& slot = segment_.shared().connections[index];
  slot.detached = 0;
  slot.changing = 0;
  slot.ring = 0;
  slot.ring_is_watched = 0;
  slot.receive_queue = 0;
  if (options.receive_queue != nullptr) {
    local.receive_queue = static_cast<ShmReceiveQueue*>(options.receive_queue)->state();
    // Each message in the ring holds a receive buffer, so the ring need not be longer than the
    // receive queue.
    local.ring_slots = local.receive_queue->slots();
    slot.ring = segment_.allocate(local.ring_slots * sizeof(Message));
    slot.ring_slots = local.ring_slots;
    local.ring_is_watched = watched_rings_ < kWatchedRings;
    watched_rings_ += local.ring_is_watched ? 1 : 0;
    slot.ring_is_watched = local.ring_is_watched ? 1 : 0;
    slot.receive_queue = local.receive_queue->offset();
    slot.receive_slots = local.receive_queue->slots();
  }
  slot.state.store(state, std::memory_order_release);
  return index;
}

// The queue pair is gone. The peer may be writing into the ring or a buffer at this moment, so they
// are kept until the peer has detached.
void ShmEndpoint::leave_slot(std::uint32_t index) {
  slots_[index].queue_pair = nullptr;
  slots_[index].use = LocalSlot::Use::leaving;
  free_if_left(index);
}

bool ShmEndpoint::free_if_left(std::uint32_t index) {
  LocalSlot& local = slots_[index];
  ConnectionSlot& slot = segment_.shared().connections[index];
  if (slot.detached.load(std::memory_order_seq_cst) == 0 && local.peer != nullptr &&
      !local.peer->dead()) {
    return false;
  }
  if (local.receive_queue != nullptr) {
    local.receive_queue->recover(index + 1);
    segment_.release(slot.ring, local.ring_slots * sizeof(Message));
  }
  watched_rings_ -= local.ring_is_watched ? 1 : 0;
  local = {};
  segment_.release_slot(index);
  return true;
}

void ShmEndpoint::notify(EndpointSegment& peer) const {
  peer.attention.fetch_add(1, std::memory_order_seq_cst);
  job_.doorbell(peer.doorbell.load(std::memory_order_relaxed)).ring();
}

// --- progress -----------------------------------------------------------------------------------

bool ShmEndpoint::poll() {
  completions_at_once_ = kCompletionsAtOnce;
  bool busy = deliver_messages();
  HalfWord& attention = segment_.shared().attention;
  if (attention.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
    attention.exchange(0, std::memory_order_seq_cst);
    attend();
    busy = true;
  }
  if (!appendables_.empty()) [[unlikely]]
    busy |= report_range_faults();
  if (!completing_.empty() || !arriving_.empty() || !stalled_.empty()) busy |= advance_entries();
  return busy;
}

bool ShmEndpoint::deliver_messages() {
  bool any = false;
  for (ShmQueuePair* queue_pair : watched_) {
    if (!queue_pair->has_message()) [[likely]]
      continue;
    queue_pair->drain();
    any = true;
  }
  const std::uint32_t words = (segment_.slots_used() + 63) / 64;
  for (std::uint32_t i = 0; i < words; ++i) {
    Word& activity = segment_.shared().activity[i];
    if (activity.load(std::memory_order_seq_cst) == 0) [[likely]]
      continue;
    std::uint64_t bits = activity.exchange(0, std::memory_order_seq_cst);
    any = true;
    for (; bits != 0; bits &= bits - 1) {
      const auto index = i * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (index < slots_.size() && slots_[index].queue_pair != nullptr) {
        slots_[index].queue_pair->drain();
      }
    }
  }
  return any;
}

// Handles what has happened to connections: broken ones, ones from which the peer has detached, and
// new ones.
void ShmEndpoint::attend() {
  for (std::uint32_t index = 0; index < slots_.size(); ++index) {
    LocalSlot& local = slots_[index];
    if (local.queue_pair != nullptr) local.queue_pair->check_peer();
    if (local.use == LocalSlot::Use::leaving) free_if_left(index);
  }
  if (segment_.shared().listening.load(std::memory_order_relaxed) != 0) collect_mail();
  if (!requests_.empty()) acceptors_.wake_all();
}

bool ShmEndpoint::advance_entries() {
  bool any = false;
  const bool timed = !arriving_.empty() || !stalled_.empty() ||
                     (!completing_.empty() && completing_.front()->due != Time{});
  const Time now = timed ? executor_.now() : Time{};
  while (!arriving_.empty() && arriving_.front()->due <= now) {
    SendEntry* entry = arriving_.pop();
    entry->queue_pair->arrive(entry);
    any = true;
  }
  if (!stalled_.empty()) {
    const std::vector<ShmQueuePair*> stalled = stalled_;
    for (ShmQueuePair* queue_pair : stalled) {
      if (queue_pair->retry_at() > now) continue;
      queue_pair->retry(now);
      any = true;
    }
  }
  while (!completing_.empty() && completing_.front()->due <= now) {
    SendEntry* entry = completing_.pop();
    entry->queue_pair->complete(entry);
    any = true;
  }
  return any;
}

Time ShmEndpoint::due() const {
  Time first = Time::max();
  if (!arriving_.empty()) first = arriving_.front()->due;
  if (!completing_.empty()) first = std::min(first, completing_.front()->due);
  for (const ShmQueuePair* queue_pair : stalled_) first = std::min(first, queue_pair->retry_at());
  return first;
}

}  // namespace perdura::fabric::shm
