// The connections of one thread over TCP, through the sockets of its host.
//
// Only the thread that owns an endpoint works for it: the thread carries out the peers' requests
// and stores their data when its executor polls. While it runs a task that does not suspend, peers
// wait. An RDMA device, in contrast, executes READs and WRITEs without a thread. A SEND or WRITE
// completes when the peer's thread has stored the data and its acknowledgment has come back, a READ
// when its answer has arrived.
//
// Registrations may consist of extents, and peers may append to them: registration.h says when an
// access takes place. An APPEND that finds no memory is held, as a SEND without a receive buffer
// is.
//
// A thread that sleeps is woken through its doorbell's eventfd or, where it has none, by a thread
// of the endpoint's own, which exists from the first time that the executor sleeps.
//
// The endpoint of a device outlives all tasks of its thread; this one is destroyed by one of them.
// Tasks that use it, even one that waits in next_connection(), must have ended before. A task that
// accepts without end may own it.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "platform/fabric/fabric.h"
#include "platform/fabric/tcp/queue_pair.h"
#include "platform/fabric/tcp/registration.h"
#include "platform/fabric/tcp/rendezvous.h"
#include "platform/fabric/tcp/sockets.h"
#include "platform/fabric/tcp/waker.h"
#include "platform/fabric/traffic.h"
#include "platform/host/thread_executor.h"

namespace perdura::fabric::tcp {

// The parts of the platform and the node that an endpoint uses.
struct EndpointContext {
  std::shared_ptr<Rendezvous> rendezvous;
  TrafficMeter& traffic;
  ThreadUse& waker;  // where the CPU time of the waking thread is counted
  host::ThreadExecutor& executor;
  Picoseconds connection_timeout;  // the timeout of connect(), unless its options set another
};

class TcpEndpoint final : public Endpoint, public host::Poller {
 public:
  // Throws UsageError if the node has such an endpoint already, or PlatformError.
  TcpEndpoint(const EndpointContext& context, Address address);
  ~TcpEndpoint() override;

  Address address() const override { return address_; }
  Capabilities capabilities() const override;
  MemoryRegion register_memory(pmem::Region& region, Bytes offset, Bytes length,
                               Access access) override;
  void deregister_memory(RemoteKey key) override { memory_.remove(key); }
  ExtentMap register_extents(pmem::Region& region, std::span<const Extent> extents,
                             Access access) override;
  Task<> map_extent(const ExtentMap& map, Extent extent) override;
  Task<> unmap_extents(const ExtentMap& map, Bytes at, Bytes length) override;
  void allow_appends(const ExtentMap& map, Bytes size, RangeFaults& faults) override;
  std::unique_ptr<ReceiveQueue> create_receive_queue(std::uint32_t depth) override;
  Task<Connection> connect(Address to, QueuePairOptions options,
                           std::vector<std::byte> private_data) override;
  Task<std::unique_ptr<ConnectionRequest>> next_connection() override;

  bool poll() override;
  int arm() override;

 private:
  friend class TcpQueuePair;
  friend class TcpConnectionRequest;
  class Attempt;
  class Incoming;
  class Lingering;
  class Acceptor;

  struct Request {
    File socket;
    Address from;
    PrivateData private_data;
  };

  bool names_this(const Hello& hello) const;
  void end(Incoming& incoming);
  // Sends the rest to a peer of a connection that has ended, and waits until the peer has closed
  // it, too: otherwise TCP would drop the data that the peer has not received yet.
  void linger(File socket, std::vector<std::byte> rest);
  void end(Lingering& lingering);

  void transmit_later(TcpQueuePair& queue_pair);
  void resume_later(TcpQueuePair& queue_pair) { holding_.push_back(&queue_pair); }
  void complete_later(SendEntry* entry, Status status);
  // Removes the queue pair from all lists.
  void forget(TcpQueuePair& queue_pair);
  bool complete_failed();
  bool resume_held();
  bool transmit();

  EndpointContext context_;
  Address address_;
  EventSet events_;
  std::unique_ptr<Waker> waker_;
  Registrations memory_;
  SendEntryPool pool_;

  std::unique_ptr<Acceptor> acceptor_;
  std::vector<std::unique_ptr<Incoming>> incoming_;
  std::vector<std::unique_ptr<Lingering>> lingering_;
  std::deque<Request> requests_;
  WaitList acceptors_;

  std::vector<TcpQueuePair*> to_transmit_;
  std::deque<TcpQueuePair*> holding_;  // requests that wait for a receive buffer or for memory
  std::vector<SendEntry*> failed_;
  bool stored_ = false;  // data was stored in memory since the counts were published
};

// The implementation of Node::create_socket_endpoint() on the real platforms.
std::unique_ptr<Endpoint> create_endpoint(HostNode& node, Thread& thread, Port port,
                                          std::shared_ptr<Rendezvous> rendezvous,
                                          Picoseconds connection_timeout);

}  // namespace perdura::fabric::tcp
