// The processes that mpirun started, or this one alone. A bare run does not initialize MPI.
//
// All waiting sleeps between glances instead of spinning, so that a rank that waits takes no CPU
// from one that measures.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace perdura::harness {

class Ranks {
 public:
  // Initializes MPI if the environment says that a launcher started this process.
  Ranks(int& argc, char**& argv);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_root() const { return rank_ == 0; }

  // --- collective: every rank calls it, in the same order

  // What the root gave, everywhere.
  int broadcast(int value);
  std::vector<std::uint64_t> broadcast(std::vector<std::uint64_t> words);
  // Every rank's words, at the root, in the order of ranks; elsewhere nothing.
  std::vector<std::vector<std::uint64_t>> gather(const std::vector<std::uint64_t>& words);
  // The same of texts.
  std::vector<std::string> gather_text(const std::string& text);

  // --- from the others to the root, while it works on something else

  void send_to_root(std::vector<std::uint64_t> words);
  // At the root: the next message that has arrived, if any.
  std::optional<std::vector<std::uint64_t>> try_receive();
  // Root: asks all others to stop. Others: whether they were asked.
  void ask_to_stop();
  bool asked_to_stop();
  // Waits until the root has taken everything that was sent.
  void finish_sending();

  // A moment's sleep, for loops that wait.
  static void pause();

 private:
  struct Sending;

  bool active_ = false;
  int rank_ = 0;
  int size_ = 1;
  std::list<Sending> sending_;
  bool stop_sent_ = false;
};

}  // namespace perdura::harness
