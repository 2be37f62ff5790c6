// The segment of an endpoint: made by its owner, mapped by its peers.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platform/fabric/shm/layout.h"
#include "platform/pmem/mapped/mapping.h"

namespace perdura::fabric::shm {

// Allocates the memory of a part of a mapped file now: if /dev/shm is full, this is an error here,
// and would be a SIGBUS at the first access. The message of the PlatformError that it throws names
// `path`.
void take_memory(void* begin, Bytes size, const std::string& path);

// The owner's side: allocates connection slots, rings and receive queues. Used by the owner's
// thread only.
class OwnSegment {
 public:
  // Throws UsageError if the port is taken, PlatformError if the file cannot be made.
  OwnSegment(std::string path, std::uint64_t generation, std::uint32_t doorbell);
  ~OwnSegment();
  OwnSegment(const OwnSegment&) = delete;
  OwnSegment& operator=(const OwnSegment&) = delete;

  EndpointSegment& shared() const { return *reinterpret_cast<EndpointSegment*>(mapping_->data()); }
  template <class T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(mapping_->data() + offset);
  }

  // Allocates zeroed memory in the segment, aligned to a cache line. Throws PlatformError if the
  // segment is full.
  std::uint64_t allocate(Bytes size);
  void release(std::uint64_t offset, Bytes size);

  std::uint32_t allocate_slot();
  void release_slot(std::uint32_t slot);
  // No slot with this number or a greater one was ever used. May be called from any thread.
  std::uint32_t slots_used() const { return next_slot_.load(std::memory_order_acquire); }

 private:
  void reserve(std::uint64_t offset, Bytes size);

  std::string path_;
  pmem::mapped::File file_;
  std::shared_ptr<pmem::mapped::Mapping> mapping_;
  std::uint64_t next_offset_;
  std::map<Bytes, std::vector<std::uint64_t>> free_;  // by size
  std::atomic<std::uint32_t> next_slot_{0};
  std::vector<std::uint32_t> free_slots_;
};

// A peer's side.
class PeerSegment {
 public:
  // Returns null if there is no such endpoint, or it is closed, or belongs to another life of the
  // node.
  static std::shared_ptr<PeerSegment> open(const std::string& path, std::uint64_t generation);

  explicit PeerSegment(std::shared_ptr<pmem::mapped::Mapping> mapping)
      : mapping_(std::move(mapping)) {}
  EndpointSegment& shared() const { return *reinterpret_cast<EndpointSegment*>(mapping_->data()); }
  template <class T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(mapping_->data() + offset);
  }

 private:
  std::shared_ptr<pmem::mapped::Mapping> mapping_;
};

}  // namespace perdura::fabric::shm
