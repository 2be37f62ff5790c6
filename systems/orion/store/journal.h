// A store's journal of immediates: a circular buffer in its persistent memory with the pages that it has
// forced, and the epochs in which it did (section 4.3.4). Another store of the group that was away READs
// it, to learn which pages it has missed (catch_up.h).
//
//   | page 7 | page 9 | epoch 3 | page 7 | ...          each record: a word, and its position and check
//
// A record is durable before the acknowledgment of its page leaves. Recovery needs no end of the journal:
// the record with the greatest position is the last one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "platform/platform.h"

namespace perdura::systems::orion {

struct JournalRecord {
  std::uint64_t word = 0;
  std::uint64_t check = 0;
};
static_assert(sizeof(JournalRecord) == 16);

class Journal {
 public:
  static void make(Node& node, const std::string& name, std::uint64_t records);
  // Opens the journal of the node's store, and finds its end. Throws UsageError if it is another one.
  Journal(Node& node, const std::string& name, std::uint64_t records);

  // Adds a page, flushed: it is durable after the next drain of this thread.
  void add_page(std::uint32_t page);
  // Adds the beginning of an epoch, durably. `is_whole` is false if pages that were accepted before are
  // not in this journal.
  void add_epoch(std::uint64_t epoch, bool is_whole);

  pmem::Region& region() { return *region_; }

 private:
  void add(std::uint64_t word);

  std::unique_ptr<pmem::Region> region_;
  std::uint64_t records_;
  std::uint64_t next_ = 0;  // position
};

// The pages that a journal has since the first epoch after `epoch` began, each once. Returns nullopt
// if the journal does not go back so far. `journal` is a copy, made while records may have been
// added.
std::optional<std::vector<std::uint32_t>> pages_since(std::span<const JournalRecord> journal,
                                                      std::uint64_t epoch);

}  // namespace perdura::systems::orion
