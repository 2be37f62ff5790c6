#include "platform/fabric/verbs/endpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "platform/base/error.h"
#include "platform/pmem/word_copy.h"

namespace perdura::fabric::verbs {
namespace {

constexpr int kCompletionsAtOnce = 16;

Handle<ibv_comp_channel> make_channel(const Device& device) {
  Handle<ibv_comp_channel> channel(ibv_create_comp_channel(device.context()));
  if (channel == nullptr) {
    throw PlatformError(fmt::format("{} gives no completion channel: {}", device.name(),
                                    pmem::mapped::error_text(errno)));
  }
  const int flags = ::fcntl(channel->fd, F_GETFL);
  ::fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK);
  return channel;
}

}  // namespace

VerbsEndpoint::VerbsEndpoint(std::shared_ptr<Device> device, std::shared_ptr<NodeMemory> memory,
                             TrafficMeter& traffic, ControlPlane& control,
                             const FabricOptions& options, Address address,
                             host::ThreadExecutor& executor)
    : device_(std::move(device)),
      memory_(std::move(memory)),
      traffic_(traffic),
      control_(control),
      options_(options),
      address_(address),
      executor_(executor),
      mailbox_(executor.doorbell()),
      channel_(make_channel(*device_)),
      capacity_(device_->first_completions()),
      completions_(ibv_create_cq(
          device_->context(), static_cast<int>(capacity_), nullptr, channel_.get(),
          static_cast<int>(address.port) % std::max(device_->context()->num_comp_vectors, 1))),
      pool_(device_),
      name_(std::random_device{}()) {
  if (completions_ == nullptr) {
    throw PlatformError(
        fmt::format("{} makes no completion queue of {}: {}; the limit of locked memory may be too "
                    "low (memlock "
                    "in /etc/security/limits.conf, needs root)",
                    device_->name(), capacity_, pmem::mapped::error_text(errno)));
  }
  control_.open(address_, mailbox_);
}

VerbsEndpoint::~VerbsEndpoint() {
  control_.close(address_);
  for (const Message& message : mailbox_.take()) {
    if (message.kind == MessageKind::connect) requests_.push_back(message);
  }
  for (const Message& request : requests_) {
    tell(MessageKind::refused, request.from, 0, request.from_id);
  }
}

// The capabilities of the device and of this host's persistent memory. The hosts of peers are
// assumed to be like this one.
Capabilities VerbsEndpoint::capabilities() const {
  Capabilities all = device_->capabilities();
  all.flush_persistence = all.flush_persistence && memory_->flush_persistence();
  return all;
}

MemoryRegion VerbsEndpoint::register_memory(pmem::Region& region, Bytes offset, Bytes length,
                                            Access access) {
  return {&region, offset, length, memory_->publish(region, offset, length, access), access};
}

ExtentMap VerbsEndpoint::register_extents(pmem::Region&, std::span<const Extent>, Access) {
  throw PlatformError(
      "an RDMA device cannot change a registration that peers use, so there are no registrations "
      "of extents on platform verbs; register each range, or use --platform shm or sim");
}

Task<> VerbsEndpoint::map_extent(const ExtentMap&, Extent) {
  throw PlatformError("there are no registrations of extents on platform verbs");
}

Task<> VerbsEndpoint::unmap_extents(const ExtentMap&, Bytes, Bytes) {
  throw PlatformError("there are no registrations of extents on platform verbs");
}

std::unique_ptr<ReceiveQueue> VerbsEndpoint::create_receive_queue(std::uint32_t depth) {
  return std::make_unique<VerbsReceiveQueue>(std::make_shared<ReceiveQueueState>(*this, depth));
}

// --- resources ----------------------------------------------------------------------------------

void VerbsEndpoint::reserve_completions(std::uint32_t count) {
  reserved_ += count;
  if (reserved_ <= capacity_) return;
  const std::uint32_t wanted = std::max(reserved_, capacity_ * 2);
  if (ibv_resize_cq(completions_.get(), static_cast<int>(wanted)) == 0) {
    capacity_ = wanted;
    return;
  }
  const int error = errno;
  const std::uint32_t needed = std::exchange(reserved_, reserved_ - count);
  throw PlatformError(
      fmt::format("{} has no room for {} completions of one thread: {}; use fewer connections or "
                  "smaller queues",
                  device_->name(), needed, pmem::mapped::error_text(error)));
}

std::uint32_t VerbsEndpoint::next_id() {
  // The high bit distinguishes identifiers of receive buffers.
  last_id_ = last_id_ == 0x7FFFFFFF ? 1 : last_id_ + 1;
  return last_id_;
}

void VerbsEndpoint::add(VerbsQueuePair& queue_pair, std::uint32_t depth) {
  reserve_completions(depth);
  by_id_[queue_pair.id()] = &queue_pair;
  by_number_[queue_pair.number()] = &queue_pair;
}

void VerbsEndpoint::remove(VerbsQueuePair& queue_pair, std::uint32_t depth) {
  std::erase(noted_, &queue_pair);
  std::erase(ending_, &queue_pair);
  by_id_.erase(queue_pair.id());
  std::erase_if(by_number_, [&](const auto& entry) { return entry.second == &queue_pair; });
  release_completions(depth);
}

std::uint32_t VerbsEndpoint::add_receive_queue(ReceiveQueueState& queue) {
  receive_queues_.push_back(&queue);
  return static_cast<std::uint32_t>(receive_queues_.size() - 1);
}

VerbsQueuePair* VerbsEndpoint::find(std::uint32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

VerbsQueuePair* VerbsEndpoint::find_named(std::uint64_t name) const {
  const auto id = static_cast<std::uint32_t>(name);
  return name == named(id) ? find(id) : nullptr;
}

ibv_sge VerbsEndpoint::locate(const LocalBuffer& buffer) {
  if (buffer.region == nullptr || buffer.offset > buffer.region->size() ||
      buffer.length > buffer.region->size() - buffer.offset) [[unlikely]] {
    fmt::print(stderr, "perdura: a local buffer of {} bytes at {} is outside its region\n",
               buffer.length, buffer.offset);
    std::abort();
  }
  const std::byte* const from = buffer.region->data() + buffer.offset;
  const auto sge = [&](const LocalKey& key) {
    return ibv_sge{reinterpret_cast<std::uint64_t>(from), buffer.length, key.value};
  };
  if (const std::uint64_t version = memory_->version(); version != local_version_) [[unlikely]] {
    local_keys_ = {};
    local_version_ = version;
  }
  for (const LocalKey& key : local_keys_) {
    if (key.holds(from, buffer.length)) [[likely]]
      return sge(key);
  }
  LocalKey& key = local_keys_[next_local_key_++ % local_keys_.size()];
  key = memory_->local_key(*buffer.region, buffer.offset, buffer.length);
  return sge(key);
}

std::uint64_t VerbsEndpoint::range_id(NodeId node, std::uint32_t key) {
  return std::uint64_t{node} << 32 | key;
}

const RemoteRange* VerbsEndpoint::known_range(NodeId node, std::uint32_t key) const {
  const auto found = ranges_.find(range_id(node, key));
  return found == ranges_.end() ? nullptr : &found->second;
}

void VerbsEndpoint::ask(Address peer, std::uint32_t queue_pair, std::uint32_t key) {
  Message lookup;
  lookup.kind = MessageKind::lookup;
  lookup.from = address_;
  lookup.from_id = named(queue_pair);
  lookup.to = peer;
  lookup.words[0] = key;
  control_.send(std::move(lookup));
}

void VerbsEndpoint::count_placed(const LocalPieces& pieces, Bytes length,
                                 std::span<const std::byte> before) {
  pmem::WriteMeter& meter = pmem::thread_write_meter();
  for (const LocalBuffer& piece : pieces.all()) {
    const auto part = static_cast<std::uint32_t>(std::min<Bytes>(piece.length, length));
    if (part == 0) continue;
    length -= part;
    const auto replaced = before.first(std::min<std::size_t>(part, before.size()));
    before = before.subspan(std::min<std::size_t>(piece.length, before.size()));
    if (piece.region->medium() != pmem::Medium::pm) continue;
    meter.bytes(pmem::Cause::one_sided, replaced, piece.first(part).bytes());
    meter.lines_written(pmem::Cause::one_sided, piece.offset, part);
  }
}

bool VerbsEndpoint::lands_in_persistent(const LocalPieces& pieces) {
  const auto all = pieces.all();
  return std::any_of(all.begin(), all.end(), [](const LocalBuffer& piece) {
    return piece.length != 0 && piece.region->medium() == pmem::Medium::pm;
  });
}

void VerbsEndpoint::copy_contents(const LocalPieces& pieces, std::vector<std::byte>& into) {
  into.resize(pieces.length());
  auto to = std::span(into);
  for (const LocalBuffer& piece : pieces.all()) {
    if (piece.length == 0) continue;
    pmem::copy_from_shared(to.first(piece.length), piece.region->data() + piece.offset);
    to = to.subspan(piece.length);
  }
}

void VerbsEndpoint::tell(MessageKind kind, Address peer, std::uint32_t queue_pair,
                         std::uint64_t peer_id) {
  Message message;
  message.kind = kind;
  message.from = address_;
  message.from_id = queue_pair == 0 ? 0 : named(queue_pair);
  message.to = peer;
  message.to_id = peer_id;
  control_.send(std::move(message));
}

// --- progress -----------------------------------------------------------------------------------

void VerbsEndpoint::note(VerbsQueuePair& queue_pair) {
  if (std::exchange(queue_pair.noted, true)) return;
  noted_.push_back(&queue_pair);
}

void VerbsEndpoint::ends(VerbsQueuePair& queue_pair) { ending_.push_back(&queue_pair); }

bool VerbsEndpoint::poll() {
  bool busy = start_noted();
  busy |= poll_completions();
  if (!mailbox_.empty()) [[unlikely]] {
    // If a peer announces that its end of a connection has ended, everything that it sent before
    // must be handled first.
    std::vector<Message> messages = mailbox_.take();
    poll_completions();
    for (Message& message : messages) handle(std::move(message));
    busy = true;
  }
  if (device_->failed()) [[unlikely]] {
    for (const auto& [id, queue_pair] : by_id_) {
      queue_pair->break_off(Status::retry_exceeded);
      queue_pair->give_up();
    }
  }
  if (!ending_.empty()) [[unlikely]] {
    poll_completions();
    for (VerbsQueuePair* const queue_pair : std::exchange(ending_, {})) queue_pair->announce_end();
    busy = true;
  }
  busy |= start_noted();
  return busy;
}

bool VerbsEndpoint::start_noted() {
  if (noted_.empty()) return false;
  for (std::size_t i = 0; i < noted_.size(); ++i) {
    noted_[i]->noted = false;
    noted_[i]->start_waiting();
  }
  noted_.clear();
  return true;
}

bool VerbsEndpoint::poll_completions() {
  std::array<ibv_wc, kCompletionsAtOnce> arrived;
  bool any = false;
  for (;;) {
    const int count = ibv_poll_cq(completions_.get(), kCompletionsAtOnce, arrived.data());
    if (count <= 0) return any;
    any = true;
    for (const ibv_wc& completion : std::span(arrived).first(static_cast<std::size_t>(count))) {
      const auto which = static_cast<std::uint32_t>(completion.wr_id >> 32 & 0x7FFFFFFF);
      if ((completion.wr_id & kReceiveId) == 0) {
        if (VerbsQueuePair* const queue_pair = find(which)) queue_pair->completed(completion);
        continue;
      }
      ReceiveQueueState* const queue = receive_queues_[which];
      if (queue == nullptr) continue;
      const auto slot = static_cast<std::uint32_t>(completion.wr_id);
      const auto found = by_number_.find(completion.qp_num);
      if (found == by_number_.end()) {
        queue->repost(slot);
      } else {
        found->second->received(completion, *queue, slot);
      }
    }
    if (count < kCompletionsAtOnce) return true;
  }
}

int VerbsEndpoint::arm() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  unsigned events = 0;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ++events;
  if (events != 0) ibv_ack_cq_events(completions_.get(), events);
  ibv_req_notify_cq(completions_.get(), 0);
  return channel_->fd;
}

}  // namespace perdura::fabric::verbs
