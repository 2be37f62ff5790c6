// The shard's side of active data objects (MCAS, section 4): hands invocations to the process of a
// pool, executes its callbacks, and releases the locks that an invocation holds when it ends,
// however it ends.
//
// The platform reports when the process dies; one that hangs is detected by `patience`. In both
// cases `end_process` must have returned before anything else happens, since until then the process
// may still write to the pool. Pending invocations then end as `lost`. Changes that they have only
// half made are undone when the next process attaches.
//
// A process is not trusted to leave the shard time and memory for others. Only a few of its
// messages are handled before other tasks get a turn, and none while too many of its calls are
// under way, that is, while it has not taken their answers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/platform.h"
#include "systems/mcas/ado/callbacks.h"
#include "systems/mcas/ado/channel.h"
#include "systems/mcas/ado/peer_link.h"

namespace perdura::systems::mcas::ado {

struct HostOptions {
  Picoseconds patience{};  // the time that one invocation may take; 0: unlimited
  // Needed with `patience`; may be called again. Returns how the process has ended, as a phrase.
  std::function<std::string()> end_process{};
  // Called with the reason when a launched process is lost before it was told to end.
  std::function<void(const std::string& why)> on_lost{};
  std::optional<PeerOptions> peer{};  // the shard that plugins may connect to as clients
};

// Must be created by make_shared, and used on the shard's thread only.
class Host : public std::enable_shared_from_this<Host> {
 public:
  // `callbacks` must outlive the host.
  Host(Thread& thread, Callbacks& callbacks, HostOptions options = {});

  // Launches the plugins of a process and waits until they are ready. A process that was attached
  // before is given up. Plugins are told of `events` right after the launch, before anything else.
  // Throws PlatformError, with the reason, if the process has died or a plugin fails.
  Task<> attach(std::shared_ptr<PeerProcess> process, std::vector<ClusterEvent> events = {});
  bool attached() const { return launch_ != 0; }

  // Invokes the plugins, and waits for their responses. The caller has locked the key in this mode.
  // Before this returns, the host releases that lock and the locks of keys that the invocation has
  // opened; if the status is `unseen`, the caller keeps the lock of the key. `order` must stay
  // alive until then, and is given its id. Any number of invocations may wait at a time.
  Task<CompletionMessage> work(WorkMessage& order, LockMode mode);
  // Tells the plugins of the event, after everything that the process was sent before. Does nothing
  // without a process.
  void cluster_event(const ClusterEvent& event);
  // Waits until all pending invocations have ended, then makes the process end and waits for that.
  Task<> shut_down();

 private:
  struct Held {
    std::string key;
    LockMode mode = LockMode::read;
  };
  // An invocation under way.
  struct Pending {
    WorkId id = 0;
    bool was_under_way = false;         // it was so at the last check of watch_time()
    std::vector<Held> held{};           // locks to be released: the deferred unlock list
    std::vector<Reference> iterated{};  // snapshot of the pool, taken by the first iterate()
    bool unseen = false;                // a call of it was answered `unseen`
    std::optional<CompletionMessage> completion{};
    WaitList waiting{};
  };
  class Registration;

  // `then` is sent right after the order.
  Task<CompletionMessage> run(MessageKind kind, WorkMessage& order, std::vector<Held> held,
                              std::vector<ClusterEvent> then = {});
  CompletionMessage conclude(Pending& pending, const std::string& key);
  static Task<> receive_all(std::shared_ptr<Host> self, std::shared_ptr<Channel> channel,
                            std::uint64_t launch);
  class CallUnderWay;
  static Task<> watch_time(std::shared_ptr<Host> self, std::uint64_t launch);
  static Task<> answer(std::shared_ptr<Host> self, std::uint64_t launch, CallMessage call,
                       CallUnderWay under_way);
  // Gives up the process of this launch, unless that has happened already: ends it, and ends all
  // pending invocations as `lost`, for the reason `why`. `by_itself`: the process has died, so how
  // it ended is added to the reason.
  void lose(std::uint64_t launch, const std::string& why, bool by_itself = false);

  // The invocation, or null if it is not under way anymore.
  Pending* find(std::uint64_t launch, WorkId work) const;
  static const Held* lock_of(const Pending& pending, const std::string& key);
  CallStatus lock(Pending& pending, const std::string& key, LockMode mode);
  CallStatus unlock(Pending& pending, const std::string& key);
  static Held borrow(Pending& pending, const std::string& key);
  void give_back(std::uint64_t launch, WorkId work, Held held);
  Task<AnswerMessage> execute(std::uint64_t launch, CallMessage call);
  Task<AnswerMessage> create_key(std::uint64_t launch, CallMessage call);
  AnswerMessage open_key(Pending& pending, const CallMessage& call);
  AnswerMessage get_references();
  AnswerMessage erase_key(Pending& pending, const CallMessage& call);
  Task<AnswerMessage> resize_value(std::uint64_t launch, CallMessage call);
  Task<AnswerMessage> allocate(std::uint64_t launch, CallMessage call);
  AnswerMessage iterate(Pending& pending, const CallMessage& call);
  AnswerMessage read_value(const Pending& pending, const CallMessage& call);
  Task<AnswerMessage> connect_peer(std::uint64_t launch, CallMessage call);
  Task<AnswerMessage> send_to_peer(CallMessage call);
  Task<AnswerMessage> receive_from_peer();
  void set_peer(std::shared_ptr<PeerLink> peer);
  // Returns nothing if the process has not mapped one of the values.
  std::optional<std::vector<Reference>> references();

  Thread& thread_;
  Callbacks& callbacks_;
  HostOptions options_;
  std::shared_ptr<Channel> channel_;
  std::uint64_t launch_ = 0;  // 0: no process is attached
  std::uint64_t last_launch_ = 0;
  bool serves_ = false;  // a process has been launched, and not been told to end
  WorkId last_work_ = 0;
  std::vector<Pending*> pending_;   // sorted by id
  WaitList ended_;                  // woken when no invocation is under way
  std::shared_ptr<PeerLink> peer_;  // the process's connection; null if it has none
  std::size_t calls_ = 0;           // calls whose answers the process has not taken yet
  WaitList call_ended_;
};

}  // namespace perdura::systems::mcas::ado
