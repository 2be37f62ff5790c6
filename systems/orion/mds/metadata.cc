#include "systems/orion/mds/metadata.h"

#include <fmt/format.h>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::systems::orion {

namespace {

constexpr std::uint32_t kSeed = 0x4F52494F;

OrionSuperblock superblock_of(const Parameters& parameters) {
  OrionSuperblock result{.magic = kOrionMagic,
                         .groups = parameters.groups,
                         .pages = parameters.pages,
                         .chunk_pages = parameters.chunk_pages};
  result.crc = crc32(kSeed, nova::bytes_of(result).subspan(offsetof(OrionSuperblock, groups)));
  return result;
}

void check_superblock(const std::string& name, const OrionSuperblock& found,
                      const Parameters& parameters) {
  if (found.magic != kOrionMagic ||
      found.crc != crc32(kSeed, nova::bytes_of(found).subspan(offsetof(OrionSuperblock, groups)))) {
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

}  // namespace

void make_metadata(Node& node, const std::string& name, const fs::FsConfig& config,
                   const Parameters& parameters) {
  const nova::Geometry geometry(parameters.metadata / kPage * kPage, parameters.inodes,
                                parameters.log_page_bytes);
  const auto region = node.create_region(name, geometry.size, pmem::Medium::pm);
  // nova's superblock, which it writes last, makes the region a file system.
  region->write_object(kOrionOffset, superblock_of(parameters));
  region->persist(kOrionOffset, sizeof(OrionSuperblock));
  nova::make_volume(*region, geometry, config);
}

Task<std::unique_ptr<Metadata>> Metadata::open(Thread& thread, const std::string& name,
                                               const Parameters& parameters) {
  std::unique_ptr<Metadata> result(new Metadata(parameters));
  result->region_ = thread.node.open_region(name);
  if (result->region_ == nullptr) {
    throw UsageError(fmt::format("there is no metadata of a file system '{}' on node {}", name,
                                 thread.node.id()));
  }
  result->ownership_ = thread.node.own_region(name);
  if (result->ownership_ == nullptr) {
    throw UsageError(fmt::format("the metadata of '{}' is being served already", name));
  }
  check_superblock(name, result->region_->read_object<OrionSuperblock>(kOrionOffset), parameters);
  const std::uint64_t epoch = result->region_->load(kEpochOffset) + 1;
  result->region_->store(kEpochOffset, epoch);
  result->region_->persist(kEpochOffset, kWord);
  result->mounts_.number_from(epoch << 32);
  nova::Geometry geometry;
  geometry.owner = result.get();
  result->volume_ =
      co_await nova::open_volume(thread, *result->region_, geometry, parameters.of_volume(),
                                 parameters.network_threads + parameters.fs_threads, false);
  result->words_ = std::make_unique<PublishedWords>(thread.node, name, *result->region_,
                                                    result->volume_->geometry());
  co_return result;
}

// A page that is used already must be the one that the file has there: a client may write to space
// that it has allocated before, and may turn written space into unwritten space.
bool Metadata::claim(const nova::Inode& inode, SessionNumber session,
                     std::span<const std::byte> entries, std::vector<std::uint64_t>& claimed) {
  for (std::size_t at = 0; at + kCacheLine <= entries.size(); at += kCacheLine) {
    const nova::WriteEntry entry = write_entry(entries, at);
    if (entry.header.type != nova::EntryType::write || entry.block == 0) continue;
    if (entry.count == 0 || entry.count > kLongestWrite / kPage ||
        !pages_.are_pages(entry.block, entry.count)) {
      return false;
    }
    for (std::uint64_t i = 0; i < entry.count; ++i) {
      if (inode.blocks.get(entry.file_block + i).block() == entry.block + i) continue;
      if (!pages_.claim(session, entry.block + i)) return false;
      claimed.push_back(entry.block + i);
    }
  }
  return true;
}

std::errc Metadata::append(nova::Context& context, SessionNumber session, std::uint64_t number,
                           std::uint64_t generation, std::optional<std::uint64_t> tail,
                           std::span<const std::byte> entries, std::uint64_t& found) {
  const nova::Locked locked(*volume_, nova::Locked::For::changing, {number});
  nova::Inode* const inode = locked[0];
  if (inode == nullptr) return std::errc::no_such_file_or_directory;
  if (const std::errc error = volume_->use(*inode); error != std::errc{}) return error;
  if (inode->generation != generation) return std::errc::no_such_file_or_directory;
  found = nova::Volume::tail(*inode);
  if (tail && *tail != found) {
    conflicts_.fetch_add(1, std::memory_order_relaxed);
    return std::errc::resource_unavailable_try_again;
  }
  std::vector<std::uint64_t> claimed;
  std::errc error = std::errc::invalid_argument;
  if (claim(*inode, session, entries, claimed)) {
    const auto first = static_cast<nova::EntryType>(entries[offsetof(nova::EntryHeader, type)]);
    // The data of a write has its pages already.
    const nova::Urgency urgency =
        first == nova::EntryType::size ? nova::Urgency::frees : nova::Urgency::changes;
    error = volume_->append(context, *inode, entries, urgency);
  }
  if (error != std::errc{}) {
    for (const std::uint64_t page : claimed) pages_.unclaim(page);
    return error;
  }
  found = nova::Volume::tail(*inode);
  return {};
}

}  // namespace perdura::systems::orion
