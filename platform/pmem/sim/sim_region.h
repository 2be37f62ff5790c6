// A region of a simulated node: accesses by a CPU cost time, are counted, and become visible to
// devices with the right delay (pmem/sim/timeline.h).
#pragma once

#include <memory>

#include "platform/pmem/region.h"
#include "platform/pmem/sim/crashed_memory.h"
#include "platform/pmem/sim/disk.h"
#include "platform/pmem/sim/journal.h"
#include "platform/pmem/sim/memory_controller.h"

namespace perdura::sim {
class SimThread;
}

namespace perdura::pmem::sim {

class SimRegion final : public RegionModel, public std::enable_shared_from_this<SimRegion> {
 public:
  // `address`: the region's address in the controller's memory. `file`: null unless the region is
  // on a disk.
  SimRegion(perdura::sim::Engine& engine, MemoryController& controller, Bytes address,
            WriteMeter* meter, std::byte* base, std::shared_ptr<void> mapping,
            std::unique_ptr<CachedFile> file = nullptr)
      : engine_(engine),
        controller_(controller),
        address_(address),
        meter_(meter),
        base_(base),
        mapping_(std::move(mapping)),
        file_(std::move(file)),
        timeline_(base) {}

  std::uint64_t load(Bytes offset) override;
  std::uint64_t load_from_memory(Bytes offset) override;
  void scan(Bytes offset, Bytes length) override;
  void read(Bytes offset, std::span<std::byte> into) override;
  void store(Bytes offset, std::uint64_t value, const WordLayout& layout) override;
  bool compare_exchange(Bytes offset, std::uint64_t& expected, std::uint64_t desired) override;
  void write(Bytes offset, std::span<const std::byte> from, bool streaming) override;
  void flush(Bytes offset, Bytes length) override;
  void drain() override;

  // Sets the region's identity for the node's NIC: a number that is unique within the node, and the
  // size of its pages if that was chosen, else 0.
  void identify(std::uint32_t number, Bytes page) {
    number_ = number;
    page_ = page;
  }
  std::uint32_t number() const { return number_; }
  Bytes page() const { return page_; }

  // Accesses of a device: it places a message, reads a range (between begin and end), or swaps a
  // word. `operation` identifies the message in the node's journal, if it has one. `cause`: a CPU,
  // for connections over TCP; otherwise the device.
  void device_write(Journal::Operation operation, Bytes offset, std::span<const std::byte> from,
                    LineTimes visible, Cause cause = Cause::one_sided);
  void device_store(Journal::Operation operation, Bytes offset, std::uint64_t value);
  std::uint64_t device_load(Bytes offset);
  // The answer of a READ by this node has arrived.
  void answer_arrived(Bytes offset, std::span<const std::byte> from,
                      Cause cause = Cause::one_sided);
  // A peer's READ reads the lines.
  void begin_device_read(Bytes offset, Bytes length, LineTimes seen);
  void end_device_read(Bytes offset, std::span<std::byte> into, LineTimes seen);
  // FLUSH for persistence.
  void device_flush(Journal::Operation operation, Bytes offset, Bytes length);
  // The same for a part of a commit, before which the device has waited for all that others place
  // there: it knows what is in memory, as if it had read it.
  void device_commit(Journal::Operation operation, Bytes offset, Bytes length);
  // The time that memory takes for these accesses: when lines that the device requests, or writes,
  // at `at` have arrived.
  MemoryController::Read device_reads(Time at, Bytes offset, Bytes lines);
  Time device_writes(Time at, Bytes offset, Bytes lines);

  // From now on reports all accesses to the journal of its node. Once the node has lost power,
  // messages that still arrive have no effect: the memory continues with another journal.
  void track(std::shared_ptr<Journal> journal);
  // The region's memory is the result of a power failure; from now on `crashed` is told of all
  // accesses. Not together with track().
  void recover(CrashedRegion& crashed) { crashed_ = &crashed; }
  // The thread's process has died (Timeline::withdraw).
  void withdraw(const perdura::sim::SimThread& thread, Time from);
  // While a process dies, its objects are destroyed; their stores are ignored.
  void ignore_stores(bool ignored) { ignores_stores_ = ignored; }
  const Timeline& timeline() const { return timeline_; }
  // The region's id in the journal.
  Journal::RegionId id() const { return id_; }
  bool tracked() const { return journal_ != nullptr; }

 private:
  Time now() const;
  // Waits until memory has delivered lines to the running thread: the bandwidth is shared with
  // other cores and the device. Unless `whole`, only until the first word of the first line has
  // arrived.
  void fetch(Bytes offset, Bytes lines, bool whole);
  // Requests lines as the thread's fill buffers become free; returns the time at which the last
  // line has arrived.
  Time start_loads(perdura::sim::SimThread& thread, Bytes offset, Bytes lines);
  void cpu_read(Bytes offset, std::span<std::byte> into);
  void change(Timeline::Writer writer, Bytes offset, std::span<const std::byte> from,
              LineTimes visible);
  // In a relaxed simulation: puts stores into the thread's store buffer, word by word.
  void buffer(perdura::sim::SimThread& thread, Bytes offset, std::span<const std::byte> from);
  void write_back(perdura::sim::SimThread* thread, Time start, Bytes offset, Bytes lines,
                  bool streaming);
  void count_placement(Bytes offset, std::span<const std::byte> from, Cause cause);
  // Waits until a range of a file is in the cache.
  void fetch_from_disk(Bytes offset, Bytes length);
  void write_back_to_disk(Bytes offset, Bytes length);
  void wait_for_disk();
  bool counted() const { return meter_ != nullptr; }
  std::uint64_t newest(Bytes offset) const;
  void about_to_read(Bytes offset, Bytes length, Timeline::Writer reader) {
    if (crashed_ != nullptr) [[unlikely]]
      crashed_->before_read(offset, length, timeline_, reader);
  }

  perdura::sim::Engine& engine_;
  MemoryController& controller_;
  Bytes address_;
  WriteMeter* meter_;  // null unless the region is persistent
  std::byte* base_;
  std::shared_ptr<void> mapping_;     // the memory outlives the region: messages may be under way
  std::unique_ptr<CachedFile> file_;  // null unless it is on a disk
  Timeline timeline_;
  std::shared_ptr<Journal> journal_;  // null unless durability is tracked
  Journal::RegionId id_ = 0;
  CrashedRegion* crashed_ = nullptr;  // null unless it is recovered from a failure
  std::uint32_t number_ = 0;
  Bytes page_ = 0;
  bool ignores_stores_ = false;
};

}  // namespace perdura::pmem::sim
