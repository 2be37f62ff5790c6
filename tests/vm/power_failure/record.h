// What clients did and were told in all lives of a machine whose power fails again and again, kept
// in memory that outlives it: a file of the host that the guest sees as memory of a device.
//
// Nothing is buffered on the way. A store of the guest is in the file when it is made, so that what
// the clients were told before the power failed is known, to the operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "services/kv/recorder.h"

namespace perdura::test {

// How far a life has come; the host reads it, to choose the moment of the failure.
enum class Phase : std::uint64_t { booting, recovering, working };

class Record {
 public:
  static constexpr std::size_t kStores = 24;  // at most
  static constexpr std::size_t kClients = 2;  // of each store
  static constexpr std::size_t kLives = 512;

  // A device's memory or a file; zeroed at the very first. Throws PlatformError if it cannot be
  // mapped or is too small.
  explicit Record(const std::string& path);
  // In memory of the caller, aligned to 8.
  explicit Record(std::span<std::byte> memory);
  ~Record();
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  static std::size_t bytes_for(std::size_t operations_of_a_client);

  void enter(Phase phase);
  // One more operation of any client has ended.
  void count_operation();

  // A store's clients begin a life, and log on after their earlier ones. Called once a life,
  // before log().
  void begin_life(std::size_t store);
  kv::OperationLog log(std::size_t store, std::size_t client) const;

  // Of all lives, one after the other, with a power failure between two. The clock starts anew in
  // each life; here its times come after those of the life before.
  history::History history(std::size_t store) const;

 private:
  struct Header;
  std::span<std::byte> log_memory(std::size_t store, std::size_t client) const;

  std::span<std::byte> memory_;
  Header* header_;
  bool mapped_ = false;
};

}  // namespace perdura::test
