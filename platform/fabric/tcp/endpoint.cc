#include "platform/fabric/tcp/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "platform/base/error.h"
#include "platform/fabric/tcp/connection.h"
#include "platform/fabric/tcp/pieces.h"

namespace perdura::fabric::tcp {
std::unique_ptr<Endpoint> create_endpoint(HostNode& node, Thread& thread, Port port,
                                          std::shared_ptr<Rendezvous> rendezvous,
                                          Picoseconds connection_timeout) {
  return std::make_unique<TcpEndpoint>(
      EndpointContext{.rendezvous = std::move(rendezvous),
                      .traffic = node.traffic_meter(),
                      .waker = node.add_thread(),
                      .executor = static_cast<host::ThreadExecutor&>(thread.executor),
                      .connection_timeout = connection_timeout},
      Address{node.id(), port});
}

void TcpReceiveQueue::post(const LocalPieces& buffer, std::uint64_t buffer_id) {
  if (posted_->size() == depth_) {
    throw UsageError(fmt::format("more than {} buffers posted to a receive queue", depth_));
  }
  check_pieces(buffer);
  posted_->push_back({buffer, buffer_id});
}

TcpEndpoint::TcpEndpoint(const EndpointContext& context, Address address)
    : context_(context), address_(address) {
  context_.rendezvous->claim(address_);
  context_.executor.add_poller(*this);
}

TcpEndpoint::~TcpEndpoint() {
  context_.executor.remove_poller(*this);
  acceptor_.reset();
  // Peers that wait for an answer are rejected now, rather than left waiting.
  for (Request& request : requests_) answer(request.socket.get(), Verdict::rejected, {});
  incoming_.clear();
  lingering_.clear();
  waker_.reset();
  context_.rendezvous->release(address_);
}

Capabilities TcpEndpoint::capabilities() const {
  return {.max_inline = kMaxInline,
          .max_message = kMaxMessage,
          .write_with_immediate = false,
          .atomics = false};
}

MemoryRegion TcpEndpoint::register_memory(pmem::Region& region, Bytes offset, Bytes length,
                                          Access access) {
  return memory_.add(region, offset, length, access);
}

ExtentMap TcpEndpoint::register_extents(pmem::Region& region, std::span<const Extent> extents,
                                        Access access) {
  return memory_.add(region, make_extent_table(extents, region.size()), access);
}

Task<> TcpEndpoint::map_extent(const ExtentMap& map, Extent extent) {
  memory_.map(map, extent);
  co_return;
}

Task<> TcpEndpoint::unmap_extents(const ExtentMap& map, Bytes at, Bytes length) {
  memory_.unmap(map, at, length);
  co_return;
}

void TcpEndpoint::allow_appends(const ExtentMap& map, Bytes size, RangeFaults& faults) {
  memory_.allow_appends(map, size, faults);
}

std::unique_ptr<ReceiveQueue> TcpEndpoint::create_receive_queue(std::uint32_t depth) {
  return std::make_unique<TcpReceiveQueue>(depth);
}

// --- progress -----------------------------------------------------------------------------------

bool TcpEndpoint::poll() {
  bool busy = complete_failed();
  busy |= resume_held();
  busy |= transmit();
  busy |= events_.dispatch();
  if (stored_) {
    // Before the acknowledgments go out, so that a peer that gets one finds its data in the counts.
    stored_ = false;
    if (current_thread_use != nullptr) {
      current_thread_use->writes.publish(pmem::thread_write_meter().writes());
    }
  }
  return busy;
}

int TcpEndpoint::arm() {
  if (events_.empty()) return -1;
  runtime::Doorbell& bell = context_.executor.doorbell();
  if (bell.event.load(std::memory_order_relaxed) != 0) return events_.get();
  if (waker_ == nullptr) {
    waker_ = std::make_unique<Waker>(events_.get(), bell, context_.waker);
  }
  waker_->arm();
  return -1;
}

void TcpEndpoint::transmit_later(TcpQueuePair& queue_pair) {
  if (std::exchange(queue_pair.to_transmit_, true)) return;
  to_transmit_.push_back(&queue_pair);
}

void TcpEndpoint::complete_later(SendEntry* entry, Status status) {
  entry->status = status;
  failed_.push_back(entry);
}

void TcpEndpoint::forget(TcpQueuePair& queue_pair) {
  std::erase(to_transmit_, &queue_pair);
  std::erase(holding_, &queue_pair);
}

bool TcpEndpoint::transmit() {
  const bool any = !to_transmit_.empty();
  while (!to_transmit_.empty()) {
    TcpQueuePair* const queue_pair = to_transmit_.back();
    to_transmit_.pop_back();
    queue_pair->transmit();
  }
  return any;
}

bool TcpEndpoint::complete_failed() {
  if (failed_.empty()) return false;
  for (SendEntry* const entry : std::exchange(failed_, {})) {
    entry->queue_pair->finish(entry, entry->status);
  }
  return true;
}

bool TcpEndpoint::resume_held() {
  bool any = false;
  for (std::size_t i = 0; i < holding_.size();) {
    TcpQueuePair* const queue_pair = holding_[i];
    if (!queue_pair->can_resume()) {
      ++i;
      continue;
    }
    // The queue pair goes to the end of the line if it holds more requests than there are buffers.
    holding_.erase(holding_.begin() + static_cast<std::ptrdiff_t>(i));
    queue_pair->resume();
    any = true;
  }
  return any;
}

}  // namespace perdura::fabric::tcp
