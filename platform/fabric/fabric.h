// The fabric: reliable connections between the threads of nodes, as libibverbs gives them, in
// coroutines. This header is all that a system sees of RDMA; fabric/sim, fabric/shm and
// fabric/verbs implement it.
//
//   Endpoint            a thread's access to the fabric: registers memory, makes and accepts
//                       connections
//   QueuePair           one end of a reliable connection; its methods are the operations
//   RdmaOperation       an operation; awaiting it posts it and yields its completion
//   ReceiveQueue        posted receive buffers, of one queue pair or shared by several
//   CompletionQueue     where receive completions (and the end of a connection) arrive
//   RangeFaults         where a thread learns that peers' APPENDs need more memory
//
// Order and completion follow the InfiniBand specification for reliable connections: operations of
// a queue pair start in order; posted ones (WRITE, SEND, APPEND) take effect in order; a receive
// completion appears after the data of all earlier posted operations; READ, FLUSH and atomics take
// effect after all earlier posted operations and atomics, READs also after earlier READs. All but
// READs may overtake an earlier READ, and posted operations an earlier FLUSH or atomic, unless they
// are fenced. A commit is a FLUSH here. A completion of a WRITE means that the peer's device has
// it, no more. The table is in docs/memory-model.md.
//
// All objects belong to the thread that made them and are used on it only.
#pragma once

#include <coroutine>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "platform/fabric/types.h"
#include "platform/pmem/region.h"
#include "platform/runtime/sync.h"
#include "platform/runtime/task.h"

namespace perdura::fabric {

class RdmaOperation;
class QueuePair;

// A registered range of a region.
struct MemoryRegion {
  pmem::Region* region = nullptr;
  Bytes offset = 0;
  Bytes length = 0;
  RemoteKey key;
  Access access = Access::local;

  LocalBuffer local(Bytes from, std::uint32_t n) const { return {region, offset + from, n}; }
  RemoteAddress remote(Bytes from) const { return {key, from}; }
};

// A registration of several ranges of a region, its extents, which may be changed while peers use
// it (Endpoint::map_extent, unmap_extents). Peers address it from 0 on; what no extent covers is a
// hole, and an access that touches one is refused, as one beyond the end of a region is. An access
// may go over any number of extents that adjoin. For memory that a file system lays out: the
// registration is a file, a remote address an offset in it ("FileMR: Rethinking RDMA Networking for
// Scalable Persistent Memory", Yang, Izraelevitz, Swanson).
struct ExtentMap {
  pmem::Region* region = nullptr;
  RemoteKey key;
  Access access = Access::local;

  RemoteAddress remote(Bytes at) const { return {key, at}; }
};

// An APPEND found no memory: from the registration's size on, no extents cover all of its data. It
// waits, as a SEND does that finds no receive buffer, until they do or its retries are used up.
struct RangeFault {
  RemoteKey key;
  Bytes end = 0;  // up to where extents must cover the registration
  friend bool operator==(const RangeFault&, const RangeFault&) = default;
};

// The range faults of registrations, in the order in which they happened. One that no retry asks
// more than is not repeated.
class RangeFaults {
 public:
  Task<RangeFault> next() {
    while (entries_.empty()) co_await wait(waiting_);
    const RangeFault first = entries_.front();
    entries_.pop_front();
    co_return first;
  }

  // For implementations of the fabric.
  void push(const RangeFault& fault) {
    entries_.push_back(fault);
    waiting_.wake_one();
  }

 private:
  std::deque<RangeFault> entries_;
  WaitList waiting_;
};

struct WorkRequest {
  Opcode opcode = Opcode::read;
  OperationFlags flags{};
  Placement placement = Placement::global_visibility;
  std::uint32_t immediate = 0;
  LocalPieces local{};
  RemoteAddress remote{};
  std::uint64_t operand = 0;  // value to write, to add, or to swap in
  std::uint64_t expected = 0;
  Bytes flush_length = 0;
};

// True for a commit, and for an operation that ends with one.
constexpr bool commits(const WorkRequest& request) {
  return request.opcode == Opcode::commit || request.flags.commit;
}
// True unless the operation has the flag `commit` and can have none.
constexpr bool may_have_flags(const WorkRequest& request) {
  return !request.flags.commit || request.opcode == Opcode::write ||
         request.opcode == Opcode::append;
}
// The rights that the operation needs to the memory that it names.
constexpr Access rights_for(const WorkRequest& request) {
  return right_for(request.opcode) | (request.flags.commit ? Access::remote_flush : Access::local);
}

// Is notified of the completion of an operation before the task that awaits it.
class CompletionObserver {
 public:
  virtual void completed(RdmaOperation& operation) = 0;

 protected:
  ~CompletionObserver() = default;
};

// An operation and its state; lives in the frame of the coroutine that awaits it. Several can be
// under way at once: post() each, then await them in any order. The buffers must stay until it has
// completed.
class RdmaOperation {
 public:
  RdmaOperation(QueuePair& queue_pair, const WorkRequest& request)
      : queue_pair_(queue_pair), request_(request) {}
  RdmaOperation(const RdmaOperation&) = delete;
  RdmaOperation& operator=(const RdmaOperation&) = delete;
  ~RdmaOperation();

  RdmaOperation& post();

  bool await_ready() {
    post();
    return done_;
  }
  void await_suspend(std::coroutine_handle<> task) {
    waiting_ = task;
    executor_ = &Executor::current();
  }
  Completion await_resume() const { return completion_; }

  // For implementations of the fabric.
  const WorkRequest& request() const { return request_; }
  void complete(Status status, std::uint64_t old_value = 0);
  void* transport_state = nullptr;
  // The task that awaits it, if one does already.
  std::coroutine_handle<> awaited_by() const { return waiting_; }
  // For a queue pair that hands operations on to another (platform/faults).
  CompletionObserver* observer = nullptr;
  void use_buffer(const LocalPieces& pieces) { request_.local = pieces; }

 private:
  QueuePair& queue_pair_;
  WorkRequest request_;
  Completion completion_;
  std::coroutine_handle<> waiting_;
  Executor* executor_ = nullptr;
  bool posted_ = false;
  bool done_ = false;
};

// Is notified when a receive completion is taken from its queue.
class CompletionTaken {
 public:
  virtual void taken() = 0;

 protected:
  ~CompletionTaken() = default;
};

// A message or an immediate that arrived, or the end of a connection (status `disconnected`): then
// nothing that the peer sent on it is placed anymore.
struct ReceiveCompletion {
  QueuePair* queue_pair = nullptr;
  Status status = Status::success;
  std::optional<std::uint32_t> immediate;
  // The posted buffer, cut to the length received; if it has several pieces, the first of them.
  LocalBuffer buffer;
  std::uint64_t buffer_id = 0;          // the id given to ReceiveQueue::post
  std::uint32_t length = 0;             // received, in all pieces together
  CompletionTaken* observer = nullptr;  // for implementations of the fabric
};

class CompletionQueue {
 public:
  // The next completion, in the order of arrival.
  Task<ReceiveCompletion> next() {
    while (entries_.empty()) co_await wait(waiting_);
    co_return take();
  }
  std::optional<ReceiveCompletion> try_next() {
    if (entries_.empty()) return std::nullopt;
    return take();
  }

  // For implementations of the fabric.
  void push(const ReceiveCompletion& completion);
  // Drops the completions that the queue pair delivered and that were not taken.
  void forget(const QueuePair& queue_pair);

 private:
  ReceiveCompletion take();
  ReceiveCompletion pop();

  // A ring that grows to the largest number ever waiting and then stays.
  struct Ring {
    std::vector<ReceiveCompletion> slots;
    std::size_t head = 0;
    std::size_t count = 0;
    bool empty() const { return count == 0; }
  };
  Ring entries_;
  WaitList waiting_;
};

// Receive buffers are used in the order posted.
class ReceiveQueue {
 public:
  virtual ~ReceiveQueue() = default;
  virtual std::uint32_t depth() const = 0;
  // At most depth() buffers may be posted and not yet consumed; one more is a programming error.
  // A message fills the pieces of a buffer in turn.
  virtual void post(const LocalPieces& buffer, std::uint64_t buffer_id) = 0;
};

struct QueuePairOptions {
  ReceiveQueue* receive_queue = nullptr;  // may serve several queue pairs
  CompletionQueue* completions = nullptr;
  std::uint32_t send_depth = 64;  // operations under way; more are queued
  // The queue pair that receive completions name; null: the new queue pair itself. Used by a queue
  // pair that stands in front of another (platform/faults).
  QueuePair* reported_as = nullptr;
  // For connect(): how long to wait for the peer; 0: the platform's default.
  Picoseconds connection_timeout{};
};

class QueuePair {
 public:
  virtual ~QueuePair() = default;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  RdmaOperation read(const LocalPieces& into, RemoteAddress from, OperationFlags flags = {}) {
    return RdmaOperation(*this,
                         {.opcode = Opcode::read, .flags = flags, .local = into, .remote = from});
  }
  RdmaOperation write(const LocalPieces& from, RemoteAddress to, OperationFlags flags = {}) {
    return RdmaOperation(*this,
                         {.opcode = Opcode::write, .flags = flags, .local = from, .remote = to});
  }
  RdmaOperation write_with_immediate(const LocalPieces& from, RemoteAddress to,
                                     std::uint32_t immediate, OperationFlags flags = {}) {
    return RdmaOperation(*this, {.opcode = Opcode::write_with_immediate,
                                 .flags = flags,
                                 .immediate = immediate,
                                 .local = from,
                                 .remote = to});
  }
  RdmaOperation send(const LocalPieces& from, OperationFlags flags = {}) {
    return RdmaOperation(*this, {.opcode = Opcode::send, .flags = flags, .local = from});
  }
  // Atomics work on aligned 8-byte words. They are atomic with those of the same device, not with
  // the CPU's, unless the device promises more.
  RdmaOperation compare_and_swap(RemoteAddress word, std::uint64_t expected, std::uint64_t desired,
                                 OperationFlags flags = {}) {
    return RdmaOperation(*this, {.opcode = Opcode::compare_and_swap,
                                 .flags = flags,
                                 .remote = word,
                                 .operand = desired,
                                 .expected = expected});
  }
  RdmaOperation fetch_and_add(RemoteAddress word, std::uint64_t addend, OperationFlags flags = {}) {
    return RdmaOperation(
        *this,
        {.opcode = Opcode::fetch_and_add, .flags = flags, .remote = word, .operand = addend});
  }
  RdmaOperation atomic_write(RemoteAddress word, std::uint64_t value, OperationFlags flags = {}) {
    return RdmaOperation(
        *this, {.opcode = Opcode::atomic_write, .flags = flags, .remote = word, .operand = value});
  }
  // Places the data at the end of a registration to which peers may append
  // (Endpoint::allow_appends), and then adds its length to the registration's size: the APPEND of
  // FileMR. The completion carries the size that it found; else it says no more than that of a
  // WRITE. Appends of any number of queue pairs lie side by side in the registration, and the size
  // that anybody reads is never beyond the data. One that fails may have left data beyond the size.
  RdmaOperation append(const LocalPieces& from, RemoteKey to, OperationFlags flags = {}) {
    return RdmaOperation(
        *this, {.opcode = Opcode::append, .flags = flags, .local = from, .remote = {to, 0}});
  }
  RdmaOperation flush(RemoteAddress from, Bytes length, Placement placement,
                      OperationFlags flags = {}) {
    return RdmaOperation(*this, {.opcode = Opcode::flush,
                                 .flags = flags,
                                 .placement = placement,
                                 .remote = from,
                                 .flush_length = length});
  }
  // Makes persistent what was written through a registration of extents, wherever that was: the
  // commit of FileMR (section 5.5.1 of Yang's dissertation), and a FLUSH whose selectivity level is
  // the memory region (memory placement extensions). A FLUSH names the bytes, so a client must
  // remember what it has written. The device knows that, too: it keeps the ranges that WRITEs,
  // APPENDs and atomics have changed since they were last committed (dirty_ranges.h). The
  // completion says that all of these bytes are persistent, together with the size that APPENDs
  // move:
  //
  //   - those of the earlier operations of this queue pair;
  //   - those of operations of other queue pairs that had completed when this one was posted, where
  //     a completion means that the device has them (Capabilities::acknowledged).
  //
  // Nothing is said about stores of CPUs. Bytes that the registration's owner has unmapped since,
  // or mapped elsewhere, are the owner's to make persistent. The operation ends as `unsupported`
  // where Capabilities::commits is false, and on a registration that has no extents.
  RdmaOperation commit(RemoteKey of, OperationFlags flags = {}) {
    return RdmaOperation(*this, {.opcode = Opcode::commit,
                                 .flags = flags,
                                 .placement = Placement::persistence,
                                 .remote = {of, 0}});
  }

  // Posts an unsignaled operation, whose completion is not reported. Unless it is inlined, its
  // buffer must stay valid until a later operation of the queue pair has completed. If it fails,
  // all later operations fail, too.
  virtual void post_unsignaled(const WorkRequest& request) = 0;

  // False once the connection is broken or closed.
  virtual bool connected() const = 0;
  virtual Address peer() const = 0;
  // The number of operations that are queued because send_depth are under way. It has no limit: a
  // peer that posts no receive buffers holds up everything that is posted after a SEND.
  virtual std::size_t in_line() const = 0;

 protected:
  QueuePair() = default;
  // For a queue pair that hands operations on to another: does to `other` what an operation does to
  // its own queue pair.
  static void post_on(QueuePair& other, RdmaOperation& operation) { other.post(operation); }
  static void abandon_on(QueuePair& other, RdmaOperation& operation) { other.abandon(operation); }

 private:
  friend class RdmaOperation;
  virtual void post(RdmaOperation& operation) = 0;
  virtual void abandon(RdmaOperation& operation) = 0;  // its frame is going away
};

// A peer that wants to connect; answered exactly once.
class ConnectionRequest {
 public:
  virtual ~ConnectionRequest() = default;
  virtual Address from() const = 0;
  virtual std::span<const std::byte> private_data() const = 0;
  virtual std::unique_ptr<QueuePair> accept(const QueuePairOptions& options,
                                            std::span<const std::byte> private_data) = 0;
  virtual void reject(std::span<const std::byte> private_data) = 0;
  void reject() { reject({}); }
};

// Throws PlatformError unless the word can be the size of a registration in a region of this size.
void check_size_word(Bytes word, Bytes region_size);

// Throws UsageError if it is more than a connection takes (kMaxPrivateData).
void check_private_data(std::size_t size);

struct Connection {
  Status status = Status::success;
  std::unique_ptr<QueuePair> queue_pair;  // null unless status is success
  std::vector<std::byte> private_data;    // what the acceptor, or the peer that rejected, sent
};

class Endpoint {
 public:
  virtual ~Endpoint() = default;
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  virtual Address address() const = 0;
  virtual Capabilities capabilities() const = 0;

  // Makes a range of a region usable in operations, and by peers according to `access`. Throws
  // PlatformError with the reason if the device cannot.
  virtual MemoryRegion register_memory(pmem::Region& region, Bytes offset, Bytes length,
                                       Access access) = 0;
  MemoryRegion register_memory(pmem::Region& region, Access access) {
    return register_memory(region, 0, region.size(), access);
  }
  // Later accesses are refused; an access that has begun may still complete.
  virtual void deregister_memory(RemoteKey key) = 0;
  void deregister_memory(const MemoryRegion& memory) { deregister_memory(memory.key); }
  void deregister_memory(const ExtentMap& map) { deregister_memory(map.key); }

  // Makes extents of a region usable by peers under one key; there may be none at first. Throws
  // PlatformError if two overlap or one is not in the region, and where Capabilities::extents is
  // false (verbs): a device's translations change by invalidating the key that peers use, which
  // breaks their connections, so there a file's extents must be registered one by one.
  virtual ExtentMap register_extents(pmem::Region& region, std::span<const Extent> extents,
                                     Access access) = 0;
  // Maps `extent` at `extent.at`, replacing what was mapped in its range before.
  virtual Task<> map_extent(const ExtentMap& map, Extent extent) = 0;
  // Makes these bytes of the registration a hole.
  virtual Task<> unmap_extents(const ExtentMap& map, Bytes at, Bytes length) = 0;
  // Both changes are atomic: each operation of a peer sees the registration either before or after
  // the change. When the task ends, all operations that saw the old state have ended, so the memory
  // that was unmapped may be reused. The caller must serialize the changes of a registration. Both
  // throw PlatformError if the key is invalid, the extent is not in the region, or the platform has
  // no room for more extents. A commit makes persistent what the registration maps when it takes
  // effect: data that was written before must be copied or written back by who moves it.

  // Lets peers with the right to write append to a registration of extents. Its size is the aligned
  // word at `size` of the region: the device stores it after the data of an APPEND, as a WRITE of 8
  // bytes would that follows. After a power failure either may be lost without the other, where
  // WRITEs can be; a commit includes the size, as does a FLUSH for persistence of any part of the
  // registration.
  // `faults`, which must outlive the registration, gets the range faults. The caller changes the
  // size itself only while no extent covers anything from there on, so that no APPEND can take
  // effect. Throws PlatformError if the key is invalid or the word is not in the region, and where
  // Capabilities::appends is false.
  virtual void allow_appends(const ExtentMap& map, Bytes size, RangeFaults& faults);

  virtual std::unique_ptr<ReceiveQueue> create_receive_queue(std::uint32_t depth) = 0;

  // Connects to a listening thread; waits for it to listen up to
  // QueuePairOptions::connection_timeout.
  virtual Task<Connection> connect(Address to, QueuePairOptions options,
                                   std::vector<std::byte> private_data) = 0;
  // The next peer that wants to connect. The first call starts listening.
  virtual Task<std::unique_ptr<ConnectionRequest>> next_connection() = 0;
};

}  // namespace perdura::fabric
