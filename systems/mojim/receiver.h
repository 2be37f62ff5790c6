// A thread of a copy: receives into one log, takes checkpoints, and passes sync points on to the
// copies that follow this one (sections 3.2.1 and 3.2.2).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "platform/platform.h"
#include "systems/mojim/local_copy.h"
#include "systems/mojim/messages.h"
#include "systems/mojim/sender.h"

namespace perdura::systems::mojim {

// The interval at which a thread polls for what other threads have done, while something is left to
// do.
inline constexpr Picoseconds kLook = Microseconds(2);

class Receiver {
 public:
  struct Options {
    Acknowledgment acknowledgment{};  // how requests received over the RDMA device are acknowledged
    bool passes_first = false;        // acknowledge when it is passed on (E-chain)
    std::vector<NodeId> behind{};     // the copies to which it is passed on
    Acknowledgment behind_acknowledge{};
    bool over_tcp = false;  // pass on over TCP, and receive over it, too
    Bytes secondary_tier_thresh = 0;
    std::uint32_t resends = 0;
    Picoseconds timeout{};                     // after which a node that does not answer has failed
    std::shared_ptr<BackgroundThread> disk{};  // waits for the disk of the data area
  };

  // `local` and the regions must outlive this. Uses the log whose number is the thread's port.
  Receiver(Thread& thread, LocalCopy& local, pmem::Region& logs_region, pmem::Region& data,
           Options options);
  ~Receiver();

  Task<> serve();

 private:
  // One of the thread's endpoints, and what this node registers there.
  struct Way {
    Way(fabric::Endpoint& endpoint, Acknowledgment acknowledgment, pmem::Region& control,
        pmem::Region& logs, pmem::Region& data);
    fabric::Endpoint& endpoint;
    Acknowledgment acknowledgment;  // how requests that arrive here are acknowledged
    fabric::MemoryRegion control;
    fabric::MemoryRegion slots;
    fabric::MemoryRegion data;
    std::uint32_t max_inline;
  };

  Task<> beat();
  Task<> accept_over_tcp(std::shared_ptr<fabric::Endpoint> sockets);
  void accept(fabric::ConnectionRequest& request, const Way& way);
  Task<> await_written(std::uint64_t connection, std::uint64_t writing);
  bool all_free() const;  // all slots of the log, or there is no connection
  bool is_replaced() const;
  void apply_without_arrivals();
  Task<> apply_all();
  void save_without_arrivals();
  Task<> save_all();
  bool saves_all() const;
  void handle(const fabric::ReceiveCompletion& completion);
  void disconnect();
  // Disconnects, and takes the sync points that have arrived and have not been reported.
  void close();
  void keep_slots_posted();
  void acknowledge(std::uint64_t id);
  void pass_or_wait();
  Task<> pass_on(std::size_t copy, std::shared_ptr<fabric::Endpoint> sockets);
  Task<> catch_up(Sender& sender, std::size_t copy);
  Task<> skip(Sender& sender, std::size_t copy, std::uint64_t id);
  Task<bool> let_await_region(Sender& sender, std::size_t copy, std::uint64_t id);
  bool is_skipped_safe(std::size_t copy) const;
  std::uint64_t safe() const;
  Task<> await_other_logs(std::uint64_t connection, std::uint64_t id);
  Task<bool> pass(Sender& sender, std::size_t copy, const SyncPoint& sync);
  Task<bool> try_to_pass(Sender& sender, const SyncPoint& sync);
  Task<bool> connect(Sender& sender, std::size_t copy, const SyncPoint& sync);
  Task<bool> give_region(Sender& sender, std::size_t copy);
  void note_passed(std::size_t copy, const SyncPoint& sync);

  Thread& thread_;
  LocalCopy& local_;
  pmem::Region& logs_region_;
  Options options_;
  std::uint32_t log_;
  // The control memory (messages.h), then words from which acknowledgments are sent.
  std::unique_ptr<pmem::Region> memory_;
  Way device_;
  std::shared_ptr<fabric::Endpoint> sockets_;  // null unless Options::over_tcp
  std::optional<Way> over_tcp_;
  const Way* way_;  // the way by which the present connection came
  fabric::CompletionQueue completions_;
  std::unique_ptr<fabric::ReceiveQueue> queue_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;
  std::uint64_t connections_ = 0;  // accepted so far
  std::uint64_t term_ = 0;         // the last connection's term
  bool applies_ = false;           // apply_all() is under way
  bool saves_ = false;             // save_all() is under way
  std::uint64_t posted_until_ = 0;
  std::uint64_t acknowledged_ = 0;           // messages
  std::uint64_t safe_ = 0;                   // the last id acknowledged
  std::uint64_t skipped_until_ = 0;          // ids up to here are not passed on: a region is given
  std::uint64_t awaited_until_ = 0;          // ids up to here are in the region that it awaits
  std::uint64_t applied_before_;             // CopyState::applied() when the thread began
  bool is_caught_up_ = false;                // that and all before has been passed on
  std::vector<std::uint64_t> passed_until_;  // positions, by following copy
  WaitList arrived_;
};

}  // namespace perdura::systems::mojim
