// An application thread's view of the region on the primary, and its sync points.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
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

// The steps of a session that gives contents while the region is copied to a mirror. Sync points go on
// meanwhile, but what the mirror has is the outcome of sync points only if all of the region is when
// the copy ends.
struct CopyingSteps {
  // The session can be used; the copy begins.
  std::function<void(std::shared_ptr<class SyncSession>)> begins;
  // All but the last request has been sent. When this returns, everything that has been stored must
  // have been synced, and nothing may be stored until the copy has ended.
  std::function<Task<>()> ends;
};

// Shared with the sync points of M-async under way: the application may drop its MappedMemory
// first.
class SyncSession final : public std::enable_shared_from_this<SyncSession> {
 public:
  ~SyncSession();
  static Task<std::unique_ptr<services::MappedMemory>> open(Thread& thread,
                                                            std::shared_ptr<Primary> primary);
  // With `gives_contents`, sync() may be given the contents of the ranges.
  static Task<std::shared_ptr<SyncSession>> connect(Thread& thread,
                                                    std::shared_ptr<Primary> primary,
                                                    bool gives_contents,
                                                    const CopyingSteps& steps = {});

  pmem::Region& region() const { return primary_->region(); }
  Task<tl::expected<void, services::SyncError>> sync(std::span<const services::MemoryRange> ranges);
  // The same, but the copies get `contents`, one range after the other, instead of what the region
  // holds by now. They must stay as they are until it returns.
  Task<tl::expected<void, services::SyncError>> sync(std::span<const services::MemoryRange> ranges,
                                                     std::span<const std::byte> contents);
  // True if the copies are lost, so that a sync point is on this node only.
  bool is_alone() const { return primary_->is_alone(); }
  Task<> settle();
  std::vector<double> metrics() const;

 private:
  static constexpr std::uint32_t kBatch = 16;  // requests that are posted together
  static constexpr std::uint32_t kAreas = 8;   // sync points of M-async under way

  // A sync point on its way.
  struct Sending {
    std::span<const services::MemoryRange> ranges;
    std::span<const std::byte> contents{};  // what is sent; empty: what the region holds
    std::uint32_t count = 0;                // requests
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

  SyncSession(Thread& thread, std::shared_ptr<Primary> primary, std::uint32_t number,
              bool gives_contents);

  Task<> prepare(Thread& posting);
  std::uint32_t requests_of(std::span<const services::MemoryRange> ranges) const;
  void flush(std::span<const services::MemoryRange> ranges, Bytes unit);
  Task<tl::expected<void, services::SyncError>> sync(Sending sending);
  Task<> send(Sending& sending);
  Task<> copy_region(const CopyingSteps& steps = {});
  static Task<> send_later(std::shared_ptr<SyncSession> self, Sending sending,
                           std::vector<services::MemoryRange> ranges);
  Task<> transmit(const Sending& sending);
  Task<> transmit_to(std::size_t copy, const Sending& sending);
  Task<bool> try_to_send(Sender& sender, const Sending& sending);
  // Calls `use` with each request: its index, its range of the region, and where its data is among
  // the data of all ranges.
  template <class Use>
  void for_each_request(std::span<const services::MemoryRange> ranges, Use use) const;
  void stage(const Sending& sending, std::uint32_t index, services::MemoryRange range, Bytes at);
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
