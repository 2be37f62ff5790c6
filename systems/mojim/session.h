// An application thread's view of the region on the primary, and its sync points.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "platform/platform.h"
#include "services/memory/memory.h"
#include "systems/mojim/primary.h"

namespace perdura::systems::mojim {

inline constexpr std::array kSessionMetrics = std::to_array<services::Metric>({
    {.name = "requests_per_op",
     .noun = "requests to the mirror",
     .title = "Requests to the mirror for each sync point"},
    {.name = "log_stalls", .noun = "stalls of the primary", .title = "Stalls of the primary"},
    {.name = "resent", .noun = "sync points sent again", .title = "Sync points sent again"},
    {.name = "vulnerable_us",
     .noun = "time until a lost mirror's data was flushed",
     .title = "Window of vulnerability",
     .unit = "us"},
});

// Shared with the sync points of M-async under way: the application may drop its MappedMemory
// first.
class SyncSession final : public std::enable_shared_from_this<SyncSession> {
 public:
  ~SyncSession();
  static Task<std::unique_ptr<services::MappedMemory>> open(Thread& thread,
                                                            std::shared_ptr<Primary> primary);

  pmem::Region& region() const { return primary_->region(); }
  Task<tl::expected<void, services::SyncError>> sync(std::span<const services::MemoryRange> ranges);
  Task<> settle();
  std::vector<double> metrics() const;

 private:
  static constexpr std::uint32_t kBatch = 16;  // requests that are posted together
  static constexpr std::uint32_t kAreas = 8;   // sync points of M-async under way

  // A sync point on its way.
  struct Sending {
    std::span<const services::MemoryRange> ranges;
    std::uint32_t count = 0;  // requests
    Primary::Turn turn{};
    std::uint32_t area = 0;    // the area of staging_ with its requests, at most kBatch at a time
    bool is_staged = false;    // all of its requests are there
    std::uint32_t copied = 0;  // RequestHeader::copied
  };
  struct Counts {
    std::uint64_t syncs = 0;
    std::uint64_t requests = 0;
    std::uint64_t resent = 0;
    Picoseconds vulnerable{};
  };

  SyncSession(Thread& thread, std::shared_ptr<Primary> primary, std::uint32_t number);

  Task<> prepare(Thread& posting);
  std::uint32_t requests_of(std::span<const services::MemoryRange> ranges) const;
  void flush(std::span<const services::MemoryRange> ranges, Bytes unit);
  Task<> send(Sending& sending);
  Task<> copy_region();
  static Task<> send_later(std::shared_ptr<SyncSession> self, Sending sending,
                           std::vector<services::MemoryRange> ranges);
  Task<> transmit(const Sending& sending);
  Task<> transmit_to(std::size_t copy, const Sending& sending);
  Task<bool> try_to_send(Sender& sender, const Sending& sending);
  // Calls `use` with each request: its index and its range of the region.
  template <class Use>
  void for_each_request(std::span<const services::MemoryRange> ranges, Use use) const;
  void stage(const Sending& sending, std::uint32_t index, services::MemoryRange range);
  fabric::LocalPieces pieces_of(const Sending& sending, std::uint32_t index,
                                services::MemoryRange range) const;
  Bytes slot_of(const Sending& sending, std::uint32_t index) const;
  Task<> copy_is_lost(std::size_t copy);

  Thread& thread_;
  std::shared_ptr<Primary> primary_;
  Primary::Channel& channel_;
  std::uint32_t number_;
  Bytes slot_size_;
  // The parts of requests that are not gathered from the region: headers, and data if
  // Primary::copies_data().
  std::unique_ptr<pmem::Region> staging_;
  std::array<fabric::LocalPieces, kBatch> batch_;  // requests of the sync point whose turn it is
  std::uint32_t next_area_ = 0;
  std::array<bool, kAreas> used_{};
  WaitList freed_;
  Counts counts_;
};

}  // namespace perdura::systems::mojim
