// The messages between a shard and the process of its active data objects (MCAS, sections 4.1 and
// 4.2).
//
//   shard -> process   launch          plugins may prepare, and undo what was interrupted
//                      work            an invocation or a signal
//                      answer          the result of a call
//                      cluster event, shut down
//   process -> shard   call            a call of the callback interface (Table 4)
//                      completion      the result of an invocation or of the launch
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "systems/mcas/storage/memory.h"

namespace perdura::systems::mcas::ado {

// The version of these messages. A shard's program and that of its processes must have the same.
inline constexpr std::uint32_t kProtocolVersion = 3;

enum class MessageKind : std::uint32_t {
  launch,
  work,
  answer,
  cluster_event,
  shut_down,
  call,
  completion,
};

using WorkId = std::uint64_t;  // counts a host's invocations from 1

// An invocation or a signal; also a launch, which has no key.
struct WorkMessage {
  WorkId id = 0;
  std::string key{};
  ByteRange value{};                  // where the value lies in the shard's memory
  std::vector<ByteRange> detached{};  // further memory of the pool that belongs to the value
  bool is_new = false;                // the key was created for this invocation
  std::string request{};

  template <class Coder>
  void code(Coder& coder) {
    coder(id, key, value, detached, is_new, request);
  }
};

enum class WorkStatus : std::uint32_t {
  done,
  failed,    // a plugin reports why
  lost,      // the process died or hung; changes may be half done
  too_long,  // the request, or the responses
  unseen,    // failed without any change, since something is in memory that the process has not
             // mapped; a new process will execute it. Its key is still locked
};

struct CompletionMessage {
  WorkId id = 0;
  WorkStatus status = WorkStatus::done;
  std::string error{};                   // one line; empty if done
  std::vector<std::string> responses{};  // all plugins', in the plugins' order

  template <class Coder>
  void code(Coder& coder) {
    coder(id, status, error, responses);
  }
};

enum class CallKind : std::uint32_t {
  create_key,
  open_key,
  erase_key,
  resize_value,
  allocate_memory,
  free_memory,
  get_references,
  iterate,
  find_key,
  get_pool_info,
  unlock,
  read_value,
  connect_peer,  // this and the next two: being a client of another shard
  send_to_peer,
  receive_from_peer,
};

enum class CallStatus : std::uint32_t {
  done,
  not_found,
  exists,
  locked,      // someone else holds the lock, or this invocation holds it for reading only
  not_locked,  // this invocation does not hold the lock that the call needs
  out_of_space,
  refused,       // the call asks for something impossible
  unseen,        // it is in memory that the process has not mapped
  disconnected,  // the peer cannot be reached, or the connection has ended
};

enum class LockMode : std::uint32_t { read, write };
enum class Matching : std::uint32_t { exactly, prefix, regular_expression };

struct CallMessage {
  std::uint64_t id = 0;
  WorkId work = 0;
  CallKind kind = CallKind::create_key;
  std::string key{};       // or the expression to match, or bytes for the peer
  std::uint64_t mode = 0;  // a LockMode or a Matching
  ByteRange range{};       // or a length, or a position

  template <class Coder>
  void code(Coder& coder) {
    coder(id, work, kind, key, mode, range);
  }
};

// A key and the range of its value.
struct Reference {
  std::string key{};
  ByteRange value{};

  template <class Coder>
  void code(Coder& coder) {
    coder(key, value);
  }
  friend bool operator==(const Reference&, const Reference&) = default;
};

struct PoolInfo {
  std::string name{};
  Bytes limit = 0;  // the most bytes that the pool may have
  std::uint64_t items = 0;
  Bytes capacity = 0;
  Bytes free = 0;

  template <class Coder>
  void code(Coder& coder) {
    coder(name, limit, items, capacity, free);
  }
};

struct AnswerMessage {
  std::uint64_t id = 0;  // the call's
  CallStatus status = CallStatus::done;
  ByteRange range{};
  std::vector<Reference> references{};
  std::uint64_t next = 0;  // the position to continue from
  PoolInfo info{};
  std::string bytes{};  // a value, or a message of the peer

  template <class Coder>
  void code(Coder& coder) {
    coder(id, status, range, references, next, info, bytes);
  }
};

// An event in the shard's cluster (section 5).
struct ClusterEvent {
  std::string sender{};   // the member
  std::string type{};     // "JOIN", "LEAVE" or "FAIL"
  std::string message{};  // the number of its life; a successor's is larger

  template <class Coder>
  void code(Coder& coder) {
    coder(sender, type, message);
  }
};

struct ShutDownMessage {
  template <class Coder>
  void code(Coder&) {}
};

// Experimental hooks of section 4.1.1: the process is told of clients' operations that are not
// invocations. The request of such a signal begins with kSignalPrefix.
enum class Signal : std::uint32_t { put, get, erase };
inline constexpr std::string_view kSignalPrefix = "ADO::Signal";
inline std::string signal_request(Signal signal) {
  constexpr std::string_view kNames[] = {"::post-put", "::post-get", "::post-erase"};
  return std::string(kSignalPrefix) + std::string(kNames[static_cast<std::size_t>(signal)]);
}

}  // namespace perdura::systems::mcas::ado
