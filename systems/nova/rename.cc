// rename: up to four inodes, whose tails and parents change together.
#include "systems/nova/operations.h"

namespace perdura::systems::nova {

namespace {

// Returns true if a directory is `directory` or lies below it. The caller holds the lock of
// renames, under which no parent changes.
bool lies_in(Volume& volume, std::uint64_t inode, std::uint64_t directory) {
  constexpr auto kRoot = static_cast<std::uint64_t>(fs::kRootInode);
  for (std::uint64_t steps = 0; inode != directory; ++steps) {
    if (inode == kRoot || steps > volume.geometry().inodes) return false;
    if (!volume.can_be(inode)) return false;
    // The word in memory can be read before the inode's log has been loaded.
    inode = parent_of(volume.region().load(volume.geometry().inode_offset(inode) + kParentWord));
  }
  return true;
}

class RenameLock {
 public:
  explicit RenameLock(SpinLock& lock) : lock_(lock) { lock_.lock(); }
  ~RenameLock() { lock_.unlock(); }
  RenameLock(const RenameLock&) = delete;
  RenameLock& operator=(const RenameLock&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace

Result<void> Operations::rename(std::uint64_t from, std::string_view name, std::uint64_t to,
                                std::string_view new_name, fs::RenameMode mode, fs::Timestamp now) {
  std::optional<RenameLock> renames;
  if (from != to) renames.emplace(volume_.rename_lock());
  const bool exchanges = mode == fs::RenameMode::exchange;
  std::uint64_t number = 0;      // the inode that is moved
  std::uint64_t met_number = 0;  // the inode that has the new name, 0 if none
  for (;;) {
    const Locked locked(volume_, Locked::For::changing, {from, to, number, met_number});
    Inode* const source = locked[0];
    Inode* const target = locked[1];
    if (const std::errc error = use_directory(source); error != std::errc{}) return fail(error);
    if (const std::errc error = why_not_name(name); error != std::errc{}) return fail(error);
    if (const std::errc error = use_directory(target); error != std::errc{}) return fail(error);
    if (const std::errc error = why_not_name(new_name); error != std::errc{}) return fail(error);
    const Name* const old = source->directory->find(volume_.region(), name);
    if (old == nullptr) return fail(std::errc::no_such_file_or_directory);
    if (target->links == 0) return fail(std::errc::no_such_file_or_directory);
    const Name* const other = target->directory->find(volume_.region(), new_name);
    const std::uint64_t there = other == nullptr ? 0 : other->inode;
    if (old->inode != number || there != met_number) {
      number = old->inode;
      met_number = there;
      continue;
    }
    Inode* const moved = locked[2];
    Inode* const met = locked[3];
    if (mode == fs::RenameMode::keep && met != nullptr) return fail(std::errc::file_exists);
    if (exchanges && met == nullptr) return fail(std::errc::no_such_file_or_directory);
    // A damaged file can be moved and replaced; a damaged directory may contain names.
    const bool moves_damaged = volume_.use(*moved) != std::errc{};
    const bool meets_damaged = met != nullptr && volume_.use(*met) != std::errc{};
    const bool moves_directory = moves_damaged ? old->is_directory() : moved->directory != nullptr;
    const bool meets_directory =
        met != nullptr && (meets_damaged ? other->is_directory() : met->directory != nullptr);
    if (moves_damaged && (moves_directory || exchanges)) return fail(std::errc::io_error);
    if (meets_damaged && (meets_directory || exchanges)) return fail(std::errc::io_error);
    if (moves_directory && from != to && lies_in(volume_, to, moved->number)) {
      return fail(std::errc::invalid_argument);
    }
    if (meets_directory && from != to && lies_in(volume_, from, met->number)) {
      return fail(exchanges ? std::errc::invalid_argument : std::errc::directory_not_empty);
    }
    if (moved == met) return {};
    if (!exchanges && met != nullptr) {
      if (moves_directory && !meets_directory) return fail(std::errc::not_a_directory);
      if (!moves_directory && meets_directory) return fail(std::errc::is_a_directory);
      if (meets_directory && !met->directory->empty()) return fail(std::errc::directory_not_empty);
    }

    context_.begin();
    std::uint64_t parent_after = 0;
    std::uint64_t met_parent_after = 0;
    const auto change_parent = [&](Inode& inode, std::uint64_t parent) {
      const std::uint64_t before = inode.parent_word;
      const std::uint64_t after = parent_word_after(before, parent);
      context_.words.push_back(
          {volume_.geometry().inode_offset(inode.number) + kParentWord, before, after});
      return after;
    };
    bool ends = false;
    if (exchanges) {
      add_name(*source, old->cookie, name, met->number,
               static_cast<std::uint32_t>(other->type) << 12, now);
    } else {
      remove_name(*source, *old, now);
    }
    // A replaced name keeps its cookie, and so its place for those who walk the directory.
    add_name(*target, met != nullptr ? other->cookie : target->directory->next_cookie(), new_name,
             moved->number, static_cast<std::uint32_t>(old->type) << 12, now);
    if (!moves_damaged) set_links(*moved, moved->links, now);
    if (moves_directory && from != to) parent_after = change_parent(*moved, to);
    if (exchanges) {
      set_links(*met, met->links, now);
      if (meets_directory && from != to) met_parent_after = change_parent(*met, from);
    } else if (met != nullptr) {
      ends = meets_damaged ? volume_.will_end_damaged(context_, *met) : lose_name(*met, now);
    }
    if (const std::errc error = volume_.commit(context_, Urgency::changes); error != std::errc{}) {
      return fail(error);
    }
    if (parent_after != 0) moved->parent_word = parent_after;
    if (met_parent_after != 0) met->parent_word = met_parent_after;
    if (ends) meets_damaged ? volume_.end_damaged(*met) : volume_.discard(context_, *met);
    return {};
  }
}

}  // namespace perdura::systems::nova
