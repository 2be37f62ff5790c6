// Readers of a copy's data area itself, who have mapped it instead of using MemoryReplica::read.
// While a checkpoint is applied they have to be kept from its pages, since they would see a part of
// a sync point ("Mojim", section 3.2: the kernel takes the pages out of their page tables, and lets
// them wait). The service says what it is about to change; whoever opened the copy keeps the
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
  // Takes the pages of these ranges from the readers. False if some readers have not left them yet:
  // call it again with the same ranges until it returns true.
  virtual bool withdraw(std::span<const MemoryRange> ranges) = 0;
  // Instead of both: takes everything from the readers, and waits until they have left it. Pages
  // that they have left before stay withdrawn.
  virtual void exclude() = 0;
  // The data area is the outcome of whole sync points again; readers see it.
  virtual void end_change() = 0;
};

}  // namespace perdura::services
