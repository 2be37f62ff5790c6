#include "systems/pfarm/index.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "platform/base/error.h"

namespace perdura::systems::pfarm {

Index::Index(pmem::Region& region, Bytes offset, const Geometry& geometry, Flushing flushing,
             Readers readers)
    : memory_(region, offset, flushing), geometry_(geometry), readers_(readers) {
  for (std::uint32_t level = 0; level <= geometry.resizes; ++level) {
    tables_[level] = geometry.table(level);
    blocks_[level].reset(tables_[level].blocks);
  }
  set_state({});
}

void Index::set_state(State state) {
  state_.store(state, std::memory_order_relaxed);
  slots_.store(table().all_buckets() * kBucketSlots, std::memory_order_relaxed);
}

void Index::store_state(State state) {
  memory_.store(kStateOffset, state.word());
  memory_.persist(kStateOffset, kWord);
  set_state(state);
}

// --- finding -------------------------------------------------------------------------------------

std::optional<Slot> Index::find(const Slot& key) const {
  const std::uint64_t hash = hash_of(key);
  for (std::uint32_t level = this->level(); level <= last_level(); ++level) {
    const Table& used = tables_[level];
    const auto found = find_in(used, used.home(hash), key);
    if (found) return found->item;
  }
  return std::nullopt;
}

std::optional<Index::LocatedItem> Index::find_in(const Table& table, std::uint64_t home,
                                                 const Slot& key) const {
  for (const std::uint64_t bucket : {home, home + 1}) {
    if (const auto found = find_in_bucket(table, bucket, key)) return found;
  }
  for (auto block = table.block(load_link(table, home)); block;
       block = table.block(load_link(table, *block))) {
    if (const auto found = find_in_bucket(table, *block, key)) return found;
  }
  return std::nullopt;
}

std::optional<Index::LocatedItem> Index::find_in_bucket(const Table& table, std::uint64_t bucket,
                                                        const Slot& key) const {
  for (Header bits = load_header(table, bucket) & kOccupied; bits != 0; bits &= bits - 1) {
    const auto slot = static_cast<SlotNumber>(std::countr_zero(bits));
    const Slot item = read_item(table, bucket, slot);
    if (item.same_key(key)) return LocatedItem{{&table, bucket, slot}, item};
  }
  return std::nullopt;
}

// --- room ----------------------------------------------------------------------------------------

std::optional<Index::SlotAddress> Index::free_slot_in(const Table& table,
                                                      std::uint64_t bucket) const {
  const std::optional<SlotNumber> slot = free_slot(load_header(table, bucket));
  if (!slot) return std::nullopt;
  return SlotAddress{&table, bucket, *slot};
}

std::optional<Index::SlotAddress> Index::free_slot_near(const Table& table,
                                                        std::uint64_t home) const {
  const std::optional<SlotAddress> address = free_slot_in(table, home);
  return address ? address : free_slot_in(table, home + 1);
}

// The home of an item in bucket b is b or b - 1. So there are two ways to make room in the
// neighborhood of `home`, which is the buckets `home` and `home + 1`: an item of bucket `home`
// whose home is `home - 1` may move to bucket `home - 1`, or an item of bucket `home + 1` whose
// home is that bucket may move to bucket `home + 2`.
std::optional<Index::SlotAddress> Index::make_room(RedoLog log, const Table& table,
                                                   std::uint64_t home) {
  if (home > 0) {
    if (const auto address = move_out(log, table, home, home - 1, home - 1)) return address;
  }
  if (home + 1 == table.homes) return std::nullopt;
  return move_out(log, table, home + 1, home + 1, home + 2);
}

std::optional<Index::SlotAddress> Index::move_out(RedoLog log, const Table& table,
                                                  std::uint64_t bucket, std::uint64_t item_home,
                                                  std::uint64_t other_bucket) {
  const std::optional<SlotAddress> to = free_slot_in(table, other_bucket);
  if (!to) return std::nullopt;
  for (SlotNumber slot = 0; slot < kBucketSlots; ++slot) {
    const Slot item = read_item(table, bucket, slot);
    if (table.home(item) != item_home) continue;
    const SlotAddress from{&table, bucket, slot};
    move_item(log, from, *to, item);
    movements_.fetch_add(1, std::memory_order_relaxed);
    return from;
  }
  return std::nullopt;
}

std::optional<Index::SlotAddress> Index::overflow_slot(std::uint32_t level, std::uint64_t home) {
  const Table& used = tables_[level];
  std::uint64_t last = home;
  for (std::uint32_t length = 0; length < kMaxChain; ++length) {
    const auto block = used.block(load_link(used, last));
    if (!block) return add_block(level, last);
    if (const auto address = free_slot_in(used, *block)) return address;
    last = *block;
  }
  return std::nullopt;
}

std::optional<Index::SlotAddress> Index::add_block(std::uint32_t level, std::uint64_t last) {
  const Table& used = tables_[level];
  const std::optional<std::uint64_t> block = blocks_[level].take();
  if (!block) return std::nullopt;
  linked_blocks_.fetch_add(1, std::memory_order_relaxed);
  const Link link = *block + 1;
  const Bytes bucket = used.bucket_offset(last);
  memory_.store(bucket + kLinkOffset, link);
  memory_.persist(bucket + kLinkOffset, kWord);
  publish(bucket);
  return free_slot_in(used, used.first_block() + *block);
}

// --- changing ------------------------------------------------------------------------------------

kv::Result<void> Index::put(const Slot& item) {
  for (;;) {
    switch (try_put(item)) {
      case Outcome::done:
        return {};
      case Outcome::out_of_space:
        return tl::unexpected(kv::Error::out_of_space);
      case Outcome::must_resize:
        begin_resize();
        while (resize_step()) {
        }
    }
  }
}

Index::Outcome Index::try_put(const Slot& item, std::uint64_t hash, std::uint32_t worker) {
  const Table& used = table();
  const RedoLog log = this->log(worker);
  const std::uint64_t home = used.home(hash);
  if (const std::optional<LocatedItem> old = find_in(used, home, item)) {
    update_item(log, old->address, item);
    return Outcome::done;
  }
  std::optional<SlotAddress> address = free_slot_near(used, home);
  if (!address) address = make_room(log, used, home);
  if (!address) address = overflow_slot(level(), home);
  if (!address) {
    return level() < geometry_.resizes ? Outcome::must_resize : Outcome::out_of_space;
  }
  insert_item(log, *address, item);
  items_.fetch_add(1, std::memory_order_relaxed);
  return Outcome::done;
}

kv::Result<void> Index::erase(const Slot& key) { return erase(key, hash_of(key), 0); }

kv::Result<void> Index::erase(const Slot& key, std::uint64_t hash, std::uint32_t worker) {
  const Table& used = table();
  const std::optional<LocatedItem> found = find_in(used, used.home(hash), key);
  if (!found) return tl::unexpected(kv::Error::not_found);
  delete_item(log(worker), found->address);
  items_.fetch_sub(1, std::memory_order_relaxed);
  return {};
}

Record Index::record_of(SlotAddress address, const Slot& item, Header header) const {
  return {.item = item,
          .target = Record::target_of(address.table->bucket_offset(address.bucket), address.slot),
          .header = kVersion.incremented(header)};
}

void Index::insert_item(RedoLog log, SlotAddress address, const Slot& item) {
  const Header header = load_header(*address.table, address.bucket);
  execute(log, record_of(address, item, header | bit_of(address.slot)));
}

void Index::update_item(RedoLog log, SlotAddress address, const Slot& item) {
  execute(log, record_of(address, item, load_header(*address.table, address.bucket)));
}

void Index::delete_item(RedoLog log, SlotAddress address) {
  const Header header = load_header(*address.table, address.bucket);
  execute(log, record_of(address, Slot{}, header & ~bit_of(address.slot)));
}

void Index::move_item(RedoLog log, SlotAddress from, SlotAddress to, const Slot& item) {
  Header from_header = load_header(*from.table, from.bucket) & ~bit_of(from.slot);
  Header to_header = load_header(*to.table, to.bucket) | bit_of(to.slot);
  join(from, to, from_header, to_header);
  Record record = record_of(to, item, to_header);
  record.from = from.table->bucket_offset(from.bucket);
  record.from_header = kVersion.incremented(from_header);
  execute(log, record);
}

// Only neighboring buckets of a table need a joint version. A reader looks in the next table only
// after it has found the seal of the previous one, and in an overflow block only after it has not
// found the item in the neighborhood.
void Index::join(const SlotAddress& from, const SlotAddress& to, Header& from_header,
                 Header& to_header) {
  if (from.table != to.table) return;
  Header& first = from.bucket < to.bucket ? from_header : to_header;
  Header& second = from.bucket < to.bucket ? to_header : from_header;
  first = kJointBehind.incremented(first);
  second = kJointBefore.incremented(second);
}

// The slot and the headers may become durable in any order, since the log can redo them all. The
// mark must be durably cleared before the record is reused, before another worker changes the
// buckets, and before the operation is acknowledged.
void Index::execute(RedoLog log, const Record& record) {
  log.write(record);
  log.commit();
  write_slot(record);
  write_headers(record);
  flush_slot(record);
  flush_headers(record);
  memory_.drain();
  log.end();
  publish(record);
}

void Index::write_slot(const Record& record) {
  memory_.write(record.bucket() + slot_offset(record.slot()), record.item);
}

void Index::write_headers(const Record& record) {
  memory_.store(record.bucket() + kHeaderOffset, record.header);
  if (record.from != 0) memory_.store(record.from + kHeaderOffset, record.from_header);
}

void Index::flush_slot(const Record& record) {
  memory_.flush(record.bucket() + slot_offset(record.slot()), kSlotSize);
}

void Index::flush_headers(const Record& record) {
  memory_.flush(record.bucket() + kHeaderOffset, kWord);
  if (record.from != 0) memory_.flush(record.from + kHeaderOffset, kWord);
}

// --- readers -------------------------------------------------------------------------------------

// The checks are updated last. Until then a reader finds a mismatch and reads again, so that no
// client sees a change that is not durable yet.
void Index::publish(const Record& record) {
  publish(record.bucket());
  if (record.from != 0) publish(record.from);
}

void Index::publish(Bytes bucket) {
  if (readers_ == Readers::none) return;
  const std::uint64_t check = check_of(bucket);
  if (memory_.load(bucket + kCheckOffset) != check) memory_.store(bucket + kCheckOffset, check);
}

std::uint64_t Index::check_of(Bytes bucket) const {
  const Header header = memory_.load(bucket + kHeaderOffset);
  std::uint64_t check = check_term(header, memory_.load(bucket + kLinkOffset));
  for (Header bits = header & kOccupied; bits != 0; bits &= bits - 1) {
    const auto slot = static_cast<SlotNumber>(std::countr_zero(bits));
    check ^= check_term(slot, memory_.read<Slot>(bucket + slot_offset(slot)));
  }
  return check;
}

// --- resizing ------------------------------------------------------------------------------------

void Index::begin_resize() {
  store_state({level(), true});
  next_bucket_ = 0;
}

bool Index::resize_step() {
  const Table& old = table();
  if (next_bucket_ == used_buckets(level())) {
    store_state({level() + 1, false});
    ++resizes_;
    return false;
  }
  const std::uint64_t bucket = next_bucket_++;
  seal(old, bucket);
  for_each_in(old, bucket, [&](SlotNumber slot, const Slot& item) {
    move_item(log(0), {&old, bucket, slot}, slot_in_next(item), item);
  });
  return true;
}

// A client that finds nothing in a sealed bucket looks in the next table.
void Index::seal(const Table& table, std::uint64_t bucket) {
  const Header header = load_header(table, bucket);
  if ((header & kSealed) != 0) return;
  const Bytes at = table.bucket_offset(bucket);
  memory_.store(at + kHeaderOffset, header | kSealed);
  memory_.persist(at + kHeaderOffset, kWord);
  publish(at);
}

// There is always room. The items with home c move to the homes 2c and 2c + 1 of the next table.
// Buckets are emptied in order. When the items of bucket c whose home is c move, the new buckets 2c
// and 2c + 1 hold only items that came from bucket c, which had at most four, and they have eight
// slots. The next items that may move there are those of bucket c + 1 whose home is c, again at
// most four. One with the home 2c finds room in one of the two buckets, one with the home 2c + 1 in
// bucket 2c + 1 or in 2c + 2, which holds only items that came from bucket c + 1. Overflow blocks
// are emptied last: the chains of the two new homes need not be longer than the old chain, they
// need together at most one block more than it has, and the next table has twice as many blocks.
Index::SlotAddress Index::slot_in_next(const Slot& item) {
  const std::uint32_t level = this->level() + 1;
  const Table& next = tables_[level];
  const std::uint64_t home = next.home(item);
  const std::optional<SlotAddress> address = free_slot_near(next, home);
  return address ? *address : overflow_slot(level, home).value();
}

// --- recovery ------------------------------------------------------------------------------------

void Index::recover() {
  const State state = State::from(memory_.load(kStateOffset));
  if (state.level + (state.resizing ? 1 : 0) > geometry_.resizes) {
    throw UsageError(
        fmt::format("the hash table of pool '{}' is damaged: it was resized {} times; "
                    "remove the pool",
                    memory_.name(), state.level));
  }
  set_state(state);
  for (std::uint32_t worker = 0; worker < geometry_.logs; ++worker) recover_log(log(worker));
  items_.store(0, std::memory_order_relaxed);
  for (std::uint32_t level = this->level(); level <= last_level(); ++level) recover_table(level);
  if (!resizing()) return;
  ++recovered_.resizes;
  next_bucket_ = 0;
  while (resize_step()) {
  }
}

bool Index::has_bucket_at(Bytes offset) const {
  return std::any_of(tables_.begin() + level(), tables_.begin() + last_level() + 1,
                     [&](const Table& table) { return table.has_bucket_at(offset); });
}

void Index::recover_log(RedoLog log) {
  const std::optional<Record> record = log.committed();
  if (!record) return;
  if (!has_bucket_at(record->bucket()) || record->slot() >= kBucketSlots ||
      (record->from != 0 && !has_bucket_at(record->from))) {
    throw UsageError(
        fmt::format("the log of pool '{}' is damaged: it changes what is not in the hash table; "
                    "remove the pool",
                    memory_.name()));
  }
  ++recovered_.writes;
  write_slot(*record);
  write_headers(*record);
  flush_slot(*record);
  flush_headers(*record);
  memory_.drain();
  log.end();
}

void Index::recover_table(std::uint32_t level) {
  const Table& used = tables_[level];
  const auto damaged = [&](std::uint64_t bucket, std::string_view how) {
    throw UsageError(
        fmt::format("the hash table of pool '{}' is damaged at bucket {}: {}; remove the pool",
                    memory_.name(), bucket, how));
  };
  std::vector<bool> taken(used.blocks);
  std::uint64_t items = 0;
  const auto recover_bucket = [&](std::uint64_t bucket) {
    items += static_cast<std::uint64_t>(std::popcount(load_header(used, bucket) & kOccupied));
    publish(used.bucket_offset(bucket));
  };
  std::uint64_t joint = 0;
  for (std::uint64_t bucket = 0; bucket < used.first_block(); ++bucket) {
    const Header header = load_header(used, bucket);
    if (kJointBefore.of(header) != joint) {
      damaged(bucket, "its joint version is not that of the one before");
    }
    joint = kJointBehind.of(header);
    recover_bucket(bucket);
    // No block may be in two chains, or twice in one chain; this also ensures that every chain
    // ends.
    for (Link link = load_link(used, bucket); link != 0;) {
      if (link > used.blocks || bucket == used.homes || taken[link - 1]) {
        damaged(bucket, "it has an overflow block that cannot be its");
      }
      taken[link - 1] = true;
      const std::uint64_t block = used.block(link).value();
      recover_bucket(block);
      link = load_link(used, block);
    }
  }
  blocks_[level].recover(taken);
  items_.fetch_add(items, std::memory_order_relaxed);
}

}  // namespace perdura::systems::pfarm
