// Those who read a copy's data area itself, by mappings of it, and not by MemoryReplica::read:
// while a checkpoint is applied they have to be kept from its pages, since they would see a sync
// point in part ("Mojim", section 3.2: the kernel takes the pages out of their page tables, and
// lets them wait). The service says what it is about to change; who opened the copy keeps the
// readers out.
#pragma once

#include <span>

#include "services/memory/memory.h"

namespace perdura::services {

// All member functions are called by one thread at a time. At first everything is withdrawn, until
// the first end_change().
class DirectReaders {
 public:
  virtual ~DirectReaders() = default;
  // The data area is about to be changed. False if nobody reads it, which then stays so until
  // end_change(): nothing has to be withdrawn.
  virtual bool begin_change() = 0;
  // Takes the pages of these ranges from the readers. False if some have not left them yet: to be
  // called again with the same ranges, until it is true.
  virtual bool withdraw(std::span<const MemoryRange> ranges) = 0;
  // Instead of both: takes everything from them, and waits until they have left it. What they have
  // had to leave already stays withdrawn.
  virtual void exclude() = 0;
  // The data area is the outcome of whole sync points again; readers see it.
  virtual void end_change() = 0;
};

}  // namespace perdura::services
