#include "systems/orion/mds/metadata.h"

#include <fmt/format.h>

#include <mutex>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "systems/orion/mds/superblock.h"

namespace perdura::systems::orion {

namespace {

void check_superblock(const std::string& name, const OrionSuperblock& found,
                      const Parameters& parameters) {
  if (!is_intact(found)) {
    throw UsageError(fmt::format("'{}' is not the metadata of an Orion file system", name));
  }
  if (found.groups != parameters.groups || found.pages != parameters.pages) {
    throw UsageError(fmt::format(
        "'{}' was made for {} replication groups of {} bytes, not for {} of {}; give it those",
        name, found.groups, found.pages * kPage, parameters.groups, parameters.pages * kPage));
  }
}

nova::WriteEntry write_entry(std::span<const std::byte> entries, std::size_t at) {
  nova::WriteEntry entry;
  std::memcpy(static_cast<void*>(&entry), entries.data() + at, sizeof entry);
  return entry;
}

nova::Geometry geometry_of(const Parameters& parameters) {
  return {parameters.metadata / kPage * kPage, parameters.inodes, parameters.log_page_bytes};
}

void make_in(pmem::Region& region, const fs::FsConfig& config, const Parameters& parameters) {
  // nova's superblock, which it writes last, makes the region a file system.
  region.write_object(kOrionOffset, superblock_of(parameters));
  region.persist(kOrionOffset, sizeof(OrionSuperblock));
  Members::make(region, parameters);
  nova::make_volume(region, geometry_of(parameters), config);
}

// False also for a file system whose superblock is damaged.
bool is_unused(const pmem::Region& region) {
  return region.load(0) == 0 && region.load(kEpochOffset) == 0;
}

}  // namespace

void make_metadata(Node& node, const std::string& name, const fs::FsConfig& config,
                   const Parameters& parameters) {
  const auto region = node.create_region(name, geometry_of(parameters).size, pmem::Medium::pm);
  make_in(*region, config, parameters);
}

Task<std::unique_ptr<Metadata>> Metadata::open(Thread& thread, const std::string& name,
                                               const Parameters& parameters) {
  std::unique_ptr<Metadata> result(new Metadata(parameters));
  result->region_ = thread.node.open_region(name);
  if (result->region_ == nullptr) {
    throw UsageError(fmt::format("there is no metadata of a file system '{}' on node {}", name,
                                 thread.node.id()));
  }
  co_await result->open_volume(thread, name, parameters);
  co_return result;
}

Task<std::unique_ptr<Metadata>> Metadata::open(Thread& thread, const std::string& name,
                                               const fs::FsConfig& config,
                                               const Parameters& parameters,
                                               std::unique_ptr<Mirror> mirror) {
  std::unique_ptr<Metadata> result(new Metadata(parameters));
  result->mirror_ = std::move(mirror);
  result->region_ = result->mirror_->view(name);
  if (is_unused(*result->region_)) make_in(*result->region_, config, parameters);
  co_await result->open_volume(thread, name, parameters);
  co_return result;
}

Task<> Metadata::open_volume(Thread& thread, const std::string& name,
                             const Parameters& parameters) {
  ownership_ = thread.node.own_region(name);
  if (ownership_ == nullptr) {
    throw UsageError(fmt::format("the metadata of '{}' is being served already", name));
  }
  check_superblock(name, region_->read_object<OrionSuperblock>(kOrionOffset), parameters);
  const std::uint64_t epoch = region_->load(kEpochOffset) + 1;
  region_->store(kEpochOffset, epoch);
  region_->persist(kEpochOffset, kWord);
  mounts_.number_from(epoch << 32);
  members_ = std::make_unique<Members>(*region_, parameters, epoch);
  nova::Geometry geometry;
  geometry.owner = this;
  volume_ = co_await nova::open_volume(thread, *region_, geometry, parameters.of_volume(),
                                       parameters.network_threads + parameters.fs_threads, false);
  if (mirror_) {
    co_await mirror_->settle();
    mirror_->on_change([this](std::uint64_t change, Time since) { publish_until(change, since); });
  }
  words_ =
      std::make_unique<PublishedWords>(thread.node, name, *region_, volume_->geometry(), *members_);
}

// --- what clients may see

void Metadata::changed(std::uint64_t inode) {
  if (words_ == nullptr) return;
  const InodeWords words = words_->stored(inode);
  if (mirror_ == nullptr) return words_->publish(inode, words);
  const std::uint64_t change = mirror_->changes();
  const std::lock_guard guard(unpublished_lock_);
  unpublished_.push_back({change, inode, words});
}

Task<bool> Metadata::settle() {
  if (mirror_ == nullptr) co_return true;
  const bool is_settled = co_await mirror_->settle();
  // Those who wait may wait for nothing but blocks that were freed after the last change.
  if (is_settled && mirror_->has_everything()) {
    publish_until(mirror_->changes(), Executor::current().now());
  }
  co_return is_settled;
}

void Metadata::publish_until(std::uint64_t change, Time since) {
  const std::lock_guard guard(unpublished_lock_);
  while (!unpublished_.empty() && unpublished_.front().change <= change) {
    words_->publish(unpublished_.front().inode, unpublished_.front().words);
    unpublished_.pop_front();
  }
  // Some of them suffice: there are many in the time that counts.
  const Time now = Executor::current().now();
  while (publications_.size() > 1 && publications_[1].when <= now - free_delay_) {
    publications_.pop_front();
  }
  const std::size_t count = publications_.size();
  const bool is_near =
      count > 1 && publications_[count - 1].when - publications_[count - 2].when < free_delay_ / 64;
  if (is_near) publications_.pop_back();
  publications_.push_back({now, since});
}

// Reuse of what clients may still READ (client/inodes.h) is counted from the publication.
Time Metadata::seen_until(Time at) {
  if (mirror_ == nullptr) return at;
  const std::lock_guard guard(unpublished_lock_);
  while (publications_.size() > 1 && publications_[1].when <= at) publications_.pop_front();
  const bool was_before = !publications_.empty() && publications_.front().when <= at;
  return was_before ? publications_.front().since : Time::min();
}

std::errc Metadata::claim(const nova::Inode* inode, const Commit& commit,
                          std::vector<std::uint64_t>& claimed) {
  for (std::size_t at = 0; at + kCacheLine <= commit.entries.size(); at += kCacheLine) {
    const nova::WriteEntry entry = write_entry(commit.entries, at);
    if (entry.header.type != nova::EntryType::write || entry.block == 0) continue;
    if (entry.count == 0 || entry.count > kLongestWrite / kPage ||
        !pages_.are_pages(entry.block, entry.count)) {
      return std::errc::invalid_argument;
    }
    if (!commit.is_journaled && members_->needs_note(group_of(entry.block))) {
      members_->note_unjournaled(group_of(entry.block));
    }
    for (std::uint64_t i = 0; i < entry.count; ++i) {
      const std::uint64_t page = entry.block + i;
      const bool has_it =
          inode != nullptr && inode->blocks.get(entry.file_block + i).block() == page;
      const bool is_written = (entry.header.flags & nova::kUnwritten) == 0;
      if (has_it && is_written && !pages_.is_lent_to(commit.session, page)) {
        return std::errc::invalid_argument;
      }
      const Pages::Claimed outcome = has_it ? pages_.claim_again(page, commit.epoch)
                                            : pages_.claim(commit.session, page, commit.epoch);
      if (outcome == Pages::Claimed::other_epoch) return std::errc::connection_reset;
      if (outcome == Pages::Claimed::no) return std::errc::invalid_argument;
      if (!has_it) claimed.push_back(page);
    }
  }
  return {};
}

// The entries are applied later, so that the client need not wait for that, unless they refer to
// pages that the file may have: the inode in DRAM says whether it has.
Appended Metadata::append(nova::Context& context, const Commit& commit) {
  const Appended appended = append(context, commit, nova::Locked::For::appending);
  if (appended.error != std::errc::invalid_argument) return appended;
  return append(context, commit, nova::Locked::For::changing);
}

Appended Metadata::append(nova::Context& context, const Commit& commit, nova::Locked::For what) {
  const nova::Locked locked(*volume_, what, {commit.inode});
  nova::Inode* const inode = locked[0];
  if (inode == nullptr) return {std::errc::no_such_file_or_directory};
  if (const std::errc error = volume_->use(*inode); error != std::errc{}) return {error};
  if (inode->generation != commit.generation) return {std::errc::no_such_file_or_directory};
  const std::uint64_t tail = nova::Volume::tail(*inode);
  if (commit.tail && *commit.tail != tail) {
    conflicts_.fetch_add(1, std::memory_order_relaxed);
    return {std::errc::resource_unavailable_try_again, tail};
  }
  const bool waits = what == nova::Locked::For::appending;
  std::vector<std::uint64_t> claimed;
  std::errc error = claim(waits ? nullptr : inode, commit, claimed);
  if (error == std::errc{}) {
    const auto first =
        static_cast<nova::EntryType>(commit.entries[offsetof(nova::EntryHeader, type)]);
    // The data of a write has its pages already.
    const nova::Urgency urgency =
        first == nova::EntryType::size ? nova::Urgency::frees : nova::Urgency::changes;
    error = waits ? volume_->append(context, *inode, commit.entries, urgency, nova::Later())
                  : volume_->append(context, *inode, commit.entries, urgency);
  }
  if (error != std::errc{}) {
    for (const std::uint64_t page : claimed) pages_.unclaim(page);
    return {error, tail};
  }
  if (!waits) end_loans(commit);
  return {error, nova::Volume::tail(*inode), waits};
}

void Metadata::end_loans(const Commit& commit) {
  for (std::size_t at = 0; at + kCacheLine <= commit.entries.size(); at += kCacheLine) {
    const nova::WriteEntry entry = write_entry(commit.entries, at);
    if (entry.header.type != nova::EntryType::write || entry.block == 0) continue;
    for (std::uint64_t i = 0; i < entry.count; ++i) {
      pages_.end_loan(commit.session, entry.block + i);
    }
  }
}

std::errc Metadata::lend(SessionNumber session, std::uint64_t number, std::uint64_t first,
                         std::uint64_t count) {
  const nova::Locked locked(*volume_, nova::Locked::For::reading, {number});
  nova::Inode* const inode = locked[0];
  if (inode == nullptr) return std::errc::no_such_file_or_directory;
  if (const std::errc error = volume_->use(*inode); error != std::errc{}) return error;
  std::vector<std::uint64_t> pages;
  for (std::uint64_t i = 0; i < count; ++i) {
    const nova::Mapped mapped = inode->blocks.get(first + i);
    if (!mapped || !mapped.is_unwritten()) return std::errc::resource_unavailable_try_again;
    pages.push_back(mapped.block());
  }
  return pages_.lend(session, pages) ? std::errc{} : std::errc::resource_unavailable_try_again;
}

void Metadata::catch_up(nova::Context& context, std::uint64_t number) {
  const nova::Locked locked(*volume_, nova::Locked::For::changing, {number});
  if (locked[0] != nullptr) volume_->catch_up(context, *locked[0]);
}

}  // namespace perdura::systems::orion
