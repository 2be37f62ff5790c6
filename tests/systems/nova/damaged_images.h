// Images of file systems in which something has been damaged, and what of them is whole.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "platform/base/error.h"
#include "services/fs/tree.h"
#include "systems/nova/inode.h"
#include "systems/nova/inspect.h"
#include "systems/nova/nova.h"
#include "tests/services/fs/random_operations.h"

namespace perdura::systems::nova::test {

inline fs::FsConfig roomy() {
  fs::FsConfig config = fs::test::config_of(kNova, true);
  config.size = 1 * MiB;  // room for what repairs write
  return config;
}

// Lines of each kind of structure that a file system has.
struct Structures {
  std::vector<std::pair<const char*, std::vector<Bytes>>> kinds;
};

inline Structures structures_of(pmem::Region& region, const Geometry& geometry) {
  std::vector<Bytes> superblock{0};
  std::vector<Bytes> mark{kCleanOffset};
  std::vector<Bytes> journals;
  std::vector<Bytes> words;
  std::vector<Bytes> bases;
  std::vector<Bytes> bitmaps{geometry.saved_blocks, geometry.saved_inodes};
  std::vector<Bytes> entries;
  std::vector<Bytes> trailers;
  for (std::uint32_t i = 0; i < kJournals; ++i) {
    const Bytes at = kJournalOffset + i * kJournalBytes;
    if (region.load(at) == 0) continue;
    for (Bytes line = 0; line < kJournalBytes; line += kCacheLine) journals.push_back(at + line);
  }
  for (std::uint64_t number = 1; number <= geometry.inodes; ++number) {
    Inode inode;
    inode.number = number;
    if (!load(region, geometry, inode).empty() || !inode.exists) continue;
    words.push_back(geometry.inode_offset(number));
    for (Bytes line = kCacheLine; line < sizeof(InodeRecord); line += kCacheLine) {
      bases.push_back(geometry.inode_offset(number) + line);
    }
    for (const LogPage& page : inode.log.pages) {
      const Bytes used = page.offset == inode.log.pages.back().offset ? inode.log.end - page.offset
                                                                      : geometry.trailer_in_page();
      for (Bytes line = 0; line < used; line += kCacheLine) entries.push_back(page.offset + line);
      trailers.push_back(page.offset + geometry.trailer_in_page());
    }
  }
  Structures all{{{"superblock", superblock},
                  {"mark", mark},
                  {"inode's words", words},
                  {"inode's base", bases},
                  {"bitmaps", bitmaps},
                  {"log entry", entries},
                  {"page trailer", trailers}}};
  if (!journals.empty()) all.kinds.emplace_back("journal", journals);
  return all;
}

// The bytes that another file has had in the blocks that are free.
inline constexpr std::byte kOthers{0xC3};

// As if another file had been in all blocks that are free, and been deleted since.
inline void fill_what_is_free(pmem::Region& region, const Geometry& geometry) {
  std::set<std::uint64_t> used;
  for (std::uint64_t number = 1; number <= geometry.inodes; ++number) {
    Inode inode;
    inode.number = number;
    load(region, geometry, inode);
    if (!inode.exists) continue;
    for (const LogPage& page : inode.log.pages) used.insert(page.offset / kBlock);
    inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t, Mapped mapped) {
      used.insert(mapped.block());
      return true;
    });
    if (inode.target_block != 0) used.insert(inode.target_block);
    if (inode.extended == nullptr) continue;
    for (const auto& [name, value] : *inode.extended) {
      for (const Extent& extent : value.blocks) {
        for (std::uint64_t i = 0; i < extent.count; ++i) used.insert(extent.first + i);
      }
    }
  }
  const std::vector<std::byte> others(kBlock, kOthers);
  for (std::uint64_t block = geometry.first_block; block < geometry.blocks; ++block) {
    if (!used.contains(block)) region.write(block * kBlock, others);
  }
}

// Returns what it has done, in words.
inline std::string damage_one(pmem::Region& region, const Structures& structures,
                              std::mt19937_64& random) {
  const auto& [kind, lines] = structures.kinds[random() % structures.kinds.size()];
  const Bytes line = lines[random() % lines.size()];
  std::array<std::uint64_t, 8> words{};
  region.read(line, std::as_writable_bytes(std::span(words)));
  const char* how = "one bit";
  switch (random() % 4) {
    case 0:
      words[random() % 8] ^= std::uint64_t{1} << random() % 64;
      break;
    case 1:
      how = "some bits";
      for (std::uint64_t i = 0, count = 2 + random() % 6; i < count; ++i) {
        words[random() % 8] ^= std::uint64_t{1} << random() % 64;
      }
      break;
    case 2:
      how = "a line of zeros";
      words = {};
      break;
    default: {
      how = "a torn line";
      // The words behind some place are those of another line of the kind.
      const Bytes other = lines[random() % lines.size()];
      for (std::uint64_t i = 1 + random() % 7; i < 8; ++i)
        words[i] = region.load(other + i * kWord);
    }
  }
  region.write(line, std::as_bytes(std::span(words)));
  return fmt::format("{} at {:#x}: {}", kind, line, how);
}

// What there is at a path, but for what repairs elsewhere may change: how many names it has, and
// when a directory got or lost one.
inline bool is_same(const fs::TreeFile& found, const fs::TreeFile& expected) {
  fs::TreeFile a = found;
  fs::TreeFile b = expected;
  a.links = b.links = 0;
  if (S_ISDIR(a.mode)) a.modified = a.changed = b.modified = b.changed = {};
  return a == b;
}

// Paths at which there is what there was in the file system that was whole.
inline std::set<std::string> whole_paths(const fs::Tree& found, const fs::Tree& original) {
  std::set<std::string> whole;
  for (const auto& [path, number] : original.names) {
    const bool has_problem =
        std::any_of(found.problems.begin(), found.problems.end(),
                    [&](const std::string& problem) { return problem.starts_with(path + ": "); });
    if (!has_problem && found.names.contains(path) && is_same(found.at(path), original.at(path))) {
      whole.insert(path);
    }
  }
  return whole;
}

inline constexpr fs::TreeOptions kTree{.times = true, .holes = true};

// The paths of the files that show something of what another one had in blocks that are free.
inline std::set<std::string> paths_with_others(const fs::Tree& tree) {
  const std::vector<std::byte> others(64, kOthers);
  const auto has_others = [&](const std::vector<std::byte>& in) {
    return std::search(in.begin(), in.end(), others.begin(), others.end()) != in.end();
  };
  std::set<std::string> paths;
  for (const auto& [path, number] : tree.names) {
    const fs::TreeFile& file = tree.files[number];
    const std::string in_text(others.size(), static_cast<char>(kOthers));
    bool found = file.target.find(in_text) != std::string::npos;
    for (const fs::Extent& extent : file.data) found |= has_others(extent.bytes);
    for (const auto& [name, value] : file.extended) found |= has_others(value);
    if (found) paths.insert(path);
  }
  return paths;
}

// Nothing if it is not mounted.
inline Task<std::optional<fs::Tree>> read_mounted(Thread& thread, bool read_only) {
  fs::FsConfig how = roomy();
  how.read_only = read_only;
  std::shared_ptr<fs::FileSystem> files;
  try {
    files = co_await kNova.mount(thread, "home", how);
  } catch (const UsageError&) {
    co_return std::nullopt;
  }
  const auto session = files->attach(thread);
  co_return co_await fs::read_tree(*session, kTree);
}

// Writes other data into all blocks that are free, and frees them again.
inline Task<> overwrite_what_is_free(Thread& thread) {
  const auto files = co_await kNova.mount(thread, "home", roomy());
  {
    const auto session = files->attach(thread);
    const auto made = co_await session->create(fs::kRootInode, "filling", {.mode = S_IFREG}, {});
    EXPECT_TRUE(made.has_value());
    if (!made) co_return;
    const std::vector<std::byte> block(kBlock, kOthers);
    std::errc end{};
    for (Bytes at = 0; end == std::errc{}; at += block.size()) {
      const auto written = co_await session->write(made->inode, at, block, {});
      if (!written) end = written.error();
    }
    EXPECT_EQ(end, std::errc::no_space_on_device);
    EXPECT_TRUE((co_await session->unlink(fs::kRootInode, "filling", {})).has_value());
  }
  co_await files->unmount();
}

}  // namespace perdura::systems::nova::test
