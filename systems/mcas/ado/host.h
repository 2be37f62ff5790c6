// The shard's side of active data objects (MCAS, section 4): hands works to the process of a pool,
// executes its callbacks, and gives back the locks that works hold when they end, whichever way.
//
// That the process has died is learnt from the platform.
// One that runs and does not answer is noticed by `patience`. Either must be ended by `end_process`
// before anything else is done: until then it may still write to the pool. Then all works are
// `lost`. What they have changed by halves is undone when a process is attached again.
//
// The process is not trusted to leave its shard time and memory for others: between two turns of
// theirs only a few of its messages are looked at, and no more while a number of its calls are
// under way, of which it has not taken the answer.
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
  Picoseconds patience{};  // for one work; 0: endless
  // Needed with patience; may be called again. Returns how the process has ended, as a phrase.
  std::function<std::string()> end_process{};
  // Told why, when a process that has been launched is lost before it was told to end.
  std::function<void(const std::string& why)> on_lost{};
  std::optional<PeerOptions> peer{};  // the shard that plugins may be clients of
};

// Must be created by make_shared. Belongs to the shard's thread.
class Host : public std::enable_shared_from_this<Host> {
 public:
  // `callbacks` must outlive it.
  Host(Thread& thread, Callbacks& callbacks, HostOptions options = {});

  // Waits until the plugins of a process are prepared. A process that was attached before is given
  // up. Throws PlatformError if it has died or a plugin fails; the message says why. Behind the
  // launch and before all else, plugins are told `events`.
  Task<> attach(std::shared_ptr<PeerProcess> process, std::vector<ClusterEvent> events = {});
  bool attached() const { return launch_ != 0; }

  // Invokes the plugins, and waits for their responses. The caller has locked the key in this mode;
  // the host gives the lock back before this returns, unless the work was `unseen`, and the locks
  // of keys that the work has opened. `order` must stay until then, and is given its number. Many
  // works may wait at a time.
  Task<CompletionMessage> work(WorkMessage& order, LockMode mode);
  // Tells the plugins, when the process has done what it was given before. Does nothing without a
  // process.
  void cluster_event(const ClusterEvent& event);
  // Lets the works end that wait, and the process with them.
  Task<> shut_down();

 private:
  struct Held {
    std::string key;
    LockMode mode = LockMode::read;
  };
  // A work under way.
  struct Pending {
    WorkId id = 0;
    bool was_under_way = false;         // when watch_time() last looked
    std::vector<Held> held{};           // locks to be given back: the deferred unlock list
    std::vector<Reference> iterated{};  // the pool as it was when the work began to iterate
    bool unseen = false;                // a call was answered so
    std::optional<CompletionMessage> completion{};
    WaitList waiting{};
  };
  class Registration;

  // `then` is sent right behind the order.
  Task<CompletionMessage> run(MessageKind kind, WorkMessage& order, std::vector<Held> held,
                              std::vector<ClusterEvent> then = {});
  CompletionMessage conclude(Pending& pending, const std::string& key);
  static Task<> receive_all(std::shared_ptr<Host> self, std::shared_ptr<Channel> channel,
                            std::uint64_t launch);
  class CallUnderWay;
  static Task<> watch_time(std::shared_ptr<Host> self, std::uint64_t launch);
  static Task<> answer(std::shared_ptr<Host> self, std::uint64_t launch, CallMessage call,
                       CallUnderWay under_way);
  // The process is gone, by itself, so that how it has ended belongs to why, or is ended now.
  void lose(std::uint64_t launch, const std::string& why, bool by_itself = false);

  // The work, if it is still under way.
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
  // Nothing if the process does not see one of them.
  std::optional<std::vector<Reference>> references();

  Thread& thread_;
  Callbacks& callbacks_;
  HostOptions options_;
  std::shared_ptr<Channel> channel_;
  std::uint64_t launch_ = 0;  // 0: no process is attached
  std::uint64_t last_launch_ = 0;
  bool serves_ = false;  // the process has been launched, and not been told to end
  WorkId last_work_ = 0;
  std::vector<Pending*> pending_;   // in the order of their numbers
  WaitList ended_;                  // who waits until no work is under way
  std::shared_ptr<PeerLink> peer_;  // the process' connection; null if it has none
  std::size_t calls_ = 0;           // whose answers the process has not taken
  WaitList call_ended_;
};

}  // namespace perdura::systems::mcas::ado
