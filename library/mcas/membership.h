// A client's membership of a job: a node of it, whose thread alone knows the connections to shards.
// Calls of other threads hand their work to the thread's inbox.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "library/choice.h"
#include "library/mcas/member.h"
#include "library/perdura_objects.h"
#include "platform/host/os_thread.h"
#include "platform/host/thread_executor.h"
#include "services/objects/objects.h"

namespace perdura::mcas {

struct Limits {
  std::chrono::milliseconds connect;
  std::chrono::milliseconds call;
  // Of one call from its beginning; max() if there is none.
  std::chrono::milliseconds total() const;
};

// The connection to a shard, made again when it has broken. Used on the membership's thread only.
class ShardConnection {
 public:
  ShardConnection(Thread& thread, NodeId node, objects::Config config, Picoseconds limit)
      : thread_(thread), node_(node), config_(std::move(config)), limit_(limit) {}

  // The session; null if the shard cannot be reached within the limit.
  Task<std::shared_ptr<objects::Session>> session();
  // An operation of this session has ended as disconnected.
  void lost(const std::shared_ptr<objects::Session>& session);
  // Why the shard could not be reached last.
  const std::string& problem() const { return problem_; }

  // Sessions and what belongs to them end with the thread, whatever else lives: so their pools are
  // here, too, until the session is lost or they are given up.
  std::weak_ptr<objects::Pool> keep(std::unique_ptr<objects::Pool> pool);
  void give_up(const std::shared_ptr<objects::Pool>& pool) { std::erase(pools_, pool); }
  void drop();

 private:
  Thread& thread_;
  NodeId node_;
  objects::Config config_;
  Picoseconds limit_;
  std::shared_ptr<objects::Session> session_;
  std::vector<std::shared_ptr<objects::Pool>> pools_;
  bool connecting_ = false;
  WaitList waiting_;
  std::string problem_;
};

class Membership {
 public:
  // Throws std::invalid_argument for impossible arguments, or std::runtime_error.
  Membership(const std::string& job, const Network& network, Limits limits);
  // Leaves the job: what is under way ends as `disconnected`.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Calls `work` on the thread; it returns a Task<Result<T>>. What it holds must not own this.
  template <class T, class Work>
  Pending<T> post(Work work) {
    return Pending<T>(inbox_->post(std::move(work)), limits_.total());
  }
  // The same of a Task<> that nobody waits for.
  template <class Work>
  void run(Work work) {
    inbox_->post(std::move(work));
  }
  // To be used by work that was posted.
  Thread& thread() { return *thread_of_platform_; }

  // Says where a shard is. Throws std::invalid_argument if there can be no such shard,
  // std::runtime_error if its host is unknown.
  void add_shard(std::uint32_t node, const std::string& address);
  // The connection to one, which is not made yet. Throws std::invalid_argument if there can be
  // none.
  std::shared_ptr<ShardConnection> shard(std::uint32_t node, unsigned queue_depth);
  // Why a shard could not be reached when it was last tried, if that is known.
  std::string problem(std::uint32_t node) const { return member_->problem(node); }

 private:
  Task<> live(Thread& thread);
  void run_platform();
  void drop_connections();

  Network network_;
  Limits limits_;
  std::unique_ptr<Member> member_;
  std::promise<std::shared_ptr<runtime::Inbox>> begun_;
  std::exception_ptr error_;  // of the platform; to be read when its thread has been joined
  Thread* thread_of_platform_ = nullptr;
  std::shared_ptr<runtime::Inbox> inbox_;
  std::mutex mutex_;
  // Until the thread has ended, so that their sessions end there, whoever gives them up elsewhere.
  std::vector<std::shared_ptr<ShardConnection>> shards_;  // protected by the mutex
  OsThread thread_;
};

Status status_of(objects::Error error);

}  // namespace perdura::mcas
