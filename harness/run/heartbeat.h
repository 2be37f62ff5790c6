// Detects that a rank has failed: its host has crashed or is unreachable, or its process was
// stopped. A launcher notices a process that dies, but not a host that becomes unreachable: its
// connections time out only after minutes, and MPI waits for ever.
//
// A rank that crashes reports it at once, since launchers lose the output of a dying process. A
// process of the same host that has ended is noticed at once, by the operating system.
//
// Every rank sends the root a datagram of 40 bytes, ten times per span of silence that is
// tolerated, from a thread that sleeps in between, and the root answers. Not over MPI: Open MPI
// ends a process that sends to one that has died, and MPI is to be silent while a point is
// measured.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "harness/run/last_words.h"
#include "harness/run/ranks.h"
#include "platform/host/os_thread.h"

namespace perdura::harness {

class Heartbeat final : private CrashListener {
 public:
  // Collective. If `together`, all ranks are at the point that this one is at. With a `silence` of
  // 0 nobody is silent for too long. `point_name` describes a point by its index, at the root, on
  // any thread. Throws PlatformError if there is no network at all.
  Heartbeat(Ranks& ranks, std::chrono::milliseconds silence,
            std::function<std::string(std::uint64_t)> point_name, bool together);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Records the point that this rank is running.
  void running(std::uint64_t point) { point_.store(point + 1, std::memory_order_relaxed); }
  // What to say of the results if the main thread cannot any more: "6 of 20 points are in DIR", or
  // of the others, who do not know how many, "results are in DIR".
  void kept(std::string text);
  // Root: how to write down what there is when the main thread cannot any more, on this object's
  // thread, before it is said and the run is ended. The answer is what to say of the results, or
  // empty: what was given to kept(); or nothing: the main thread has written it and says so itself.
  void keep_by(std::function<std::optional<std::string>()> keep);
  // Others: whether the root, if it has ended, has said why. If not, the first rank that is left
  // says that it died.
  void root_has_its_say(std::function<bool()> had);

  // Ends monitoring: from now on the main thread handles lost ranks.
  void stop();

  // Root: asks all others to stop. Others: whether they were asked; it takes a beat.
  void ask_to_stop() { stop_.store(true); }
  bool asked_to_stop() const { return stop_.load(); }

  // Root: ", last while running point 7 (erda workloada)", or nothing if that is not known.
  std::string last_seen(int rank) const;
  // Root: what is wrong, or empty: "rank 3 on host b died of SIGABRT", or "rank 3 on host b has not
  // been heard of for 10 s, last while running point 7 (erda workloada)". Then the point under way
  // is interrupted, waiting for ranks throws RanksLost, and the results are to be written, and the
  // run to be ended, within seconds.
  std::string lost() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    int rank = 0;
    std::optional<Clock::time_point> heard{};
    std::uint64_t point = 0;  // index + 1, as last heard
    int crashed = 0;          // of which signal
    bool warned = false;
    bool ended = false;  // its process, on this host
  };

  void beat();
  void crashed(int signal) noexcept override;
  // Safe in a signal's handler.
  void send_to(const sockaddr_in& address, int crash = 0);
  void receive_all(Clock::time_point now);
  const Peer* find_lost(Clock::time_point now, bool was_away);
  void give_up_on(const Peer& peer);
  [[noreturn]] void end_without_root();
  std::string last_seen_locked(int rank) const;

  Ranks& ranks_;
  const std::chrono::milliseconds silence_;
  const std::function<std::string(std::uint64_t)> point_name_;
  const bool together_;
  std::atomic<std::uint64_t> point_{0};  // index + 1, or 0 before the first
  std::atomic<bool> stop_{false};

  int socket_ = -1;
  int wake_up_ = -1;               // an eventfd, for the end
  std::uint64_t run_ = 0;          // a random number, so that datagrams of other runs are ignored
  std::vector<sockaddr_in> root_;  // its addresses; one of them is the way
  Clock::time_point began_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::vector<Peer> peers_;  // at the root: all other ranks; elsewhere: the root
  std::string kept_;
  std::function<std::optional<std::string>()> keep_;
  std::function<bool()> root_had_its_say_;
  std::string lost_;
  OsThread thread_;
};

}  // namespace perdura::harness
