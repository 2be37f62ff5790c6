// The processes that mpirun started, or this one alone. Without a launcher, MPI is not initialized.
//
// All waiting polls with sleeps in between instead of spinning, so that a waiting rank takes no CPU
// from one that measures.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace perdura::harness {

// Thrown when waiting for the other ranks is pointless: one is lost (heartbeat.h), or they do not
// answer and the launcher is ending the run, which it does when a rank has died.
struct RanksLost : std::runtime_error {
  RanksLost() : std::runtime_error("not all ranks answer") {}
};

class Ranks {
 public:
  // Initializes MPI if the environment says that a launcher started this process. Throws UsageError
  // if the started processes do not see each other.
  Ranks(int& argc, char**& argv);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_root() const { return rank_ == 0; }
  // True if mpirun or the like started this process.
  bool are_launched() const { return active_; }
  // "rank 3 on host b", or "this process" without a launcher.
  std::string describe(int rank) const;

  // The host name of every rank, as that rank sees it; empty without a launcher.
  const std::vector<std::string>& hosts() const { return hosts_; }
  // The lowest rank on another host, if any.
  std::optional<int> elsewhere() const;
  // The ranks of this host whose process has ended, as the operating system reports it at once.
  std::vector<int> ended() const;
  // A descriptor that becomes readable (poll) when that rank's process has ended; -1 if it is on
  // another host.
  int end_of(int rank) const;

  // --- collective: every rank calls it, in the same order; throws RanksLost

  // Returns the root's value in every rank.
  int broadcast(int value);
  std::vector<std::uint64_t> broadcast(std::vector<std::uint64_t> words);
  std::string broadcast_text(const std::string& text);
  // Returns the words of all ranks at the root, in rank order, and nothing elsewhere.
  std::vector<std::vector<std::uint64_t>> gather(const std::vector<std::uint64_t>& words);
  // The same for texts.
  std::vector<std::string> gather_text(const std::string& text);

  // The last collective call: waits for all ranks, so that none is missed that still has work to
  // do. Returns false where the others throw. A second call does nothing.
  bool leave() { return leave_within(std::nullopt); }

  // --- from the other ranks to the root, while it works on something else

  void send_to_root(std::vector<std::uint64_t> words);
  // At the root: the next message that has arrived, if any.
  std::optional<std::vector<std::uint64_t>> try_receive();
  // Waits until the root has taken everything that was sent.
  void finish_sending();

  // Sleeps briefly, for polling loops. Throws RanksLost.
  void pause();

  // --- when something went wrong

  // May be called on any thread: from now on waiting throws RanksLost.
  void give_up() { given_up_.store(true); }
  // Ends all ranks at once.
  [[noreturn]] void abort(int exit_code);
  // leave() for a rank that ends early. Returns false if the others do not leave within seconds.
  // They do if they fail for the same reason or have finished; otherwise they wait for this rank
  // and have to be aborted.
  bool leave_early();

 private:
  struct Sending;
  struct Leaving;
  struct Process;

  void watch_neighbors();
  bool leave_within(std::optional<std::chrono::seconds> limit);

  bool active_ = false;
  std::unique_ptr<Leaving> leaving_;  // null if there are no other ranks, and after leaving
  int rank_ = 0;
  int size_ = 1;
  std::list<Sending> sending_;
  std::vector<std::string> hosts_;  // by rank
  std::list<Process> neighbors_;    // the other ranks of this host
  std::atomic<bool> given_up_{false};
  std::optional<std::chrono::steady_clock::time_point> interrupted_since_;
};

}  // namespace perdura::harness
