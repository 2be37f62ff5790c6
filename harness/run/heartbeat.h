// Detects that a rank has failed: its host has crashed or is unreachable, or its process was
// stopped. A launcher notices a process that dies, but not a host that becomes unreachable: its
// connections time out only after minutes, and MPI waits forever.
//
// A rank that crashes reports it at once, since launchers lose the output of a dying process. A
// process of the same host that has ended is noticed at once, by the operating system.
//
// Every rank sends the root a datagram of 40 bytes, ten times per tolerated span of silence, from a
// thread that sleeps in between, and the root answers. Datagrams bypass MPI for two reasons: Open
// MPI ends a process that sends to a dead one, and MPI must be silent while a point is measured.
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

#include "harness/run/crash_message.h"
#include "harness/run/ranks.h"
#include "platform/host/os_thread.h"

namespace perdura::harness {

class Heartbeat final : private CrashListener {
 public:
  // Collective. `together` says that all ranks always run the same point. A `silence` of 0 disables
  // the limit. At the root, `point_name` describes a point given its index; it is called on any
  // thread. Throws PlatformError if no UDP socket can be opened.
  Heartbeat(Ranks& ranks, std::chrono::milliseconds silence,
            std::function<std::string(std::uint64_t)> point_name, bool together);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Records the point that this rank is running.
  void running(std::uint64_t point) { point_.store(point + 1, std::memory_order_relaxed); }
  // Sets the remark about the results that is printed if the main thread no longer can: "6 of 20
  // points are in DIR" at the root; "results are in DIR" at the other ranks, which do not know how
  // many.
  void set_results_remark(std::string text);
  // Root: sets the function that saves the results when the main thread no longer can. It runs on
  // this object's thread, before the message is printed and the run is ended. It returns the remark
  // about the results; an empty string stands for the one given to set_results_remark(), and nullopt means that
  // the main thread has saved them and prints its own message.
  void set_emergency_save(std::function<std::optional<std::string>()> keep);
  // Other ranks: `had` returns true if the root explained its end before it ended. If it returns
  // false, the lowest remaining rank reports that the root died.
  void set_root_reported(std::function<bool()> had);

  // Ends monitoring: from now on the main thread handles lost ranks.
  void stop();

  // Root: asks all other ranks to stop. At those, asked_to_stop() becomes true within a beat.
  void ask_to_stop() { stop_.store(true); }
  bool asked_to_stop() const { return stop_.load(); }

  // Root: ", last while running point 7 (erda workloada)", or "" if no point is known.
  std::string last_seen(int rank) const;
  // Root: the failure, or "" if there is none: "rank 3 on host b died of SIGABRT", or "rank 3 on
  // host b has not been heard of for 10 s, last while running point 7 (erda workloada)". After a
  // failure the current point is interrupted and waiting for ranks throws RanksLost; the caller
  // then has a few seconds to write the results and end the run.
  std::string lost() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    int rank = 0;
    std::optional<Clock::time_point> heard{};
    std::uint64_t point = 0;  // index + 1, as last heard
    int crashed = 0;          // the signal that it crashed with, or 0
    bool warned = false;
    bool ended = false;  // its process has ended, seen from this same host
  };

  void beat();
  void crashed(int signal) noexcept override;
  // Async-signal-safe.
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
  int wake_up_ = -1;               // an eventfd that wakes the thread for stop()
  std::uint64_t run_ = 0;          // a random number, so that datagrams of other runs are ignored
  std::vector<sockaddr_in> root_;  // its addresses; at least one is reachable
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
