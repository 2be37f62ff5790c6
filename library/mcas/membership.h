// A client's membership of a job: a node of the job, whose thread alone uses the connections to
// shards. Calls of other threads hand their work to the thread's inbox.
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
  // The limit of one call from its beginning; max() if there is none.
  std::chrono::milliseconds total() const;
};

// The connection to a shard, which is made again after it has broken. Used on the membership's
// thread only.
class ShardConnection {
 public:
  ShardConnection(Thread& thread, NodeId node, objects::Config config, Picoseconds limit)
      : thread_(thread), node_(node), config_(std::move(config)), limit_(limit) {}

  // Returns the session, and connects first if necessary; null if the shard cannot be reached
  // within the limit.
  Task<std::shared_ptr<objects::Session>> session();
  // Must be called when an operation of this session has ended as disconnected.
  void lost(const std::shared_ptr<objects::Session>& session);
  // Why the last attempt to reach the shard failed.
  const std::string& problem() const { return problem_; }

  // keep() stores an open pool of the current session until give_up() or the loss of the session.
  // Sessions and their pools end with the thread, whoever else refers to them, so they are owned
  // here.
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
  // Leaves the job; operations under way end as `disconnected`.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Calls `work`, which returns a Task<Result<T>>, on the thread. `work` must not own this object.
  template <class T, class Work>
  Pending<T> post(Work work) {
    return Pending<T>(inbox_->post(std::move(work)), limits_.total());
  }
  // The same for a Task<> whose end no one awaits.
  template <class Work>
  void run(Work work) {
    inbox_->post(std::move(work));
  }
  // Must be used only by work that was posted.
  Thread& thread() { return *thread_of_platform_; }

  // Announces a shard's address. Throws std::invalid_argument if the shard is impossible,
  // std::runtime_error if its host is unknown.
  void add_shard(std::uint32_t node, const std::string& address);
  // Returns a connection to a shard; it is not connected yet. Throws std::invalid_argument if the
  // queue depth is impossible.
  std::shared_ptr<ShardConnection> shard(std::uint32_t node, unsigned queue_depth);
  // Why the last attempt to reach the shard failed, if that is known.
  std::string problem(std::uint32_t node) const { return member_->problem(node); }

 private:
  Task<> live(Thread& thread);
  void run_platform();
  void drop_connections();

  Network network_;
  Limits limits_;
  std::unique_ptr<Member> member_;
  std::promise<std::shared_ptr<host::Inbox>> begun_;
  std::exception_ptr error_;  // the platform's error; to be read after its thread has been joined
  Thread* thread_of_platform_ = nullptr;
  std::shared_ptr<host::Inbox> inbox_;
  std::mutex mutex_;
  // Kept until the thread has ended, so that their sessions end on it, even if they are given up
  // elsewhere earlier.
  std::vector<std::shared_ptr<ShardConnection>> shards_;  // protected by the mutex
  OsThread thread_;
};

Status status_of(objects::Error error);

// A failure, for any type of result.
template <class T>
Result<T> failure_of(const objects::Failure& failure) {
  return {status_of(failure), failure.reason};
}
template <class T, class Other>
Result<T> failure_of(const Result<Other>& failed) {
  return {failed.status(), failed.reason()};
}

}  // namespace perdura::mcas
