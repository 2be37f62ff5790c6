// Repairs of files whose logs have lost entries. A lost entry may have freed a block that an older
// entry still names, and other files may have used the block since. So a salvaged file has bytes of
// its own at their places, or zeros, and never those of another file.
#include <fmt/format.h>

#include <map>
#include <set>

#include "systems/nova/repair.h"
#include "tests/support/seed.h"
#include "tests/systems/nova/damaged_images.h"
#include "tests/systems/nova/support.h"

namespace perdura::systems::nova::test {
namespace {

// The blocks of a regular file, by their index in the file.
using Blocks = std::map<std::uint64_t, std::pair<std::uint64_t, bool>>;  // block, whether unwritten

Blocks blocks_of(const Inode& inode) {
  Blocks blocks;
  inode.blocks.visit(0, ~std::uint64_t{0}, [&](std::uint64_t index, Mapped mapped) {
    blocks[index] = {mapped.block(), mapped.is_unwritten()};
    return true;
  });
  return blocks;
}

// The names of a directory, by cookie.
using Names = std::map<std::uint64_t, std::pair<std::string, std::uint64_t>>;

Names names_of(pmem::Region& region, Inode& inode) {
  Names names;
  inode.directory->visit(0, [&](const Name& name) {
    std::string text(name.length, '\0');
    region.read(name.offset + sizeof(AddEntry),
                std::as_writable_bytes(std::span(text.data(), text.size())));
    names[name.cookie] = {std::move(text), name.inode};
    return true;
  });
  return names;
}

struct LoggedEntry {
  Bytes offset = 0;
  std::vector<std::byte> bytes{};
};

// The log of a whole regular file, or of a directory.
struct LoggedFile {
  std::uint64_t number = 0;
  bool is_directory = false;
  std::vector<LoggedEntry> entries{};
  Blocks blocks{};
  Names names{};

  std::size_t entry_at(Bytes line) const {
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const LoggedEntry& each) {
      return line >= each.offset && line < each.offset + each.bytes.size();
    });
    return static_cast<std::size_t>(entry - entries.begin());
  }

  // The cookie of the name that the entry adds or removes; 0 if it is of no name.
  std::uint64_t cookie_at(Bytes line) const {
    const LoggedEntry& entry = entries[entry_at(line)];
    const EntryView view{entry.bytes, entry.offset, 0};
    const EntryType type = view.as<EntryHeader>().type;
    if (type == EntryType::add) return view.as<AddEntry>().cookie;
    return type == EntryType::remove ? view.as<RemoveEntry>().cookie : 0;
  }

  // The blocks by the entries for which `counts(i)` is true.
  template <class Counts>
  Blocks blocks_by(const Counts& counts) const {
    Blocks found;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!counts(i)) continue;
      const EntryView entry{entries[i].bytes, entries[i].offset, 0};
      const auto header = entry.as<EntryHeader>();
      if (header.type == EntryType::size && (header.flags & kCuts) != 0) {
        const Bytes size = entry.as<SizeEntry>().size;
        found.erase(found.lower_bound((size + kBlock - 1) / kBlock), found.end());
      }
      if (header.type != EntryType::write) continue;
      const auto write = entry.as<WriteEntry>();
      found.erase(found.lower_bound(write.file_block),
                  found.lower_bound(write.file_block + write.count));
      for (std::uint64_t j = 0; write.block != 0 && j < write.count; ++j) {
        found[write.file_block + j] = {write.block + j, (header.flags & kUnwritten) != 0};
      }
    }
    return found;
  }

  // The blocks that a repair can know to be the file's when the line is lost. Those after the lost
  // entry are. If the bitmap of used blocks is known, so are the older ones that are still in use.
  Blocks certain_without(Bytes line, bool knows_used) const {
    const std::size_t lost = entry_at(line);
    if (!knows_used) return blocks_by([&](std::size_t i) { return i > lost; });
    Blocks known = blocks_by([&](std::size_t i) { return i != lost; });
    std::erase_if(known, [&](const auto& each) {
      const auto now = blocks.find(each.first);
      return now == blocks.end() || now->second.first != each.second.first;
    });
    return known;
  }
};

std::vector<LoggedFile> files_with_logs(pmem::Region& region, const Geometry& geometry) {
  std::vector<LoggedFile> files;
  for (std::uint64_t number = 1; number <= geometry.inodes; ++number) {
    Inode inode;
    inode.number = number;
    LoggedFile file{.number = number};
    const auto record = region.read_object<InodeRecord>(geometry.inode_offset(number));
    const std::string problem = load(region, geometry, inode, record, [&](const EntryView& entry) {
      file.entries.push_back({entry.offset, {entry.bytes.begin(), entry.bytes.end()}});
    });
    EXPECT_EQ(problem, "");
    if (!inode.exists || file.entries.empty()) continue;
    file.blocks = blocks_of(inode);
    if (inode.directory != nullptr) file.names = names_of(region, inode);
    file.is_directory = inode.directory != nullptr;
    if (file.is_directory || inode.is(S_IFREG)) files.push_back(std::move(file));
  }
  return files;
}

class LostEntries {
 public:
  LostEntries(Thread& thread, bool unmounts, std::uint32_t seed)
      : thread_(thread), unmounts_(unmounts), seed_(seed) {}

  Task<> run() {
    {
      fs::test::RandomOperations operations(thread_, kNova, roomy(), seed_);
      co_await operations.begin();
      for (int i = 0; i < 200; ++i) co_await operations.step();
      co_await operations.mount_again(true);
      if (unmounts_) co_await operations.unmount();
    }
    region_ = thread_.node.open_region("home");
    geometry_ = *stored_geometry(*region_, 0);
    fill_what_is_free(*region_, geometry_);
    image_.resize(region_->size());
    region_->read(0, image_);
    for (const LoggedFile& file : files_with_logs(*region_, geometry_)) {
      for (const LoggedEntry& entry : file.entries) {
        for (Bytes at = 0; at < entry.bytes.size(); at += kCacheLine) {
          co_await lose(file, entry.offset + at);
          if (testing::Test::HasFailure()) co_return;
        }
      }
    }
  }

  int kept() const { return kept_; }
  int left_out() const { return left_out_; }

 private:
  Task<> lose(const LoggedFile& file, Bytes line) {
    constexpr std::array<std::byte, kCacheLine> kNothing{};
    region_->write(0, image_);
    region_->write(line, kNothing);
    SCOPED_TRACE(testing::Message()
                 << "PERDURA_TEST_SEED=" << seed_ << ", inode " << file.number << ", line " << line
                 << " of its log" << (unmounts_ ? ", unmounted" : ", killed"));
    bool says_what_is_lost = false;
    for (const fs::Damage& each : co_await kNova.inspect(thread_, "home", true)) {
      EXPECT_TRUE(each.repaired) << each.where << ": " << each.what;
      says_what_is_lost |= each.where == fmt::format("inode {}", file.number) &&
                           each.what.starts_with("Its log has lost entries");
    }
    EXPECT_TRUE(says_what_is_lost);
    Inode inode;
    inode.number = file.number;
    EXPECT_EQ(load(*region_, geometry_, inode), "");
    if (testing::Test::HasFailure()) co_return;
    file.is_directory ? expect_names(file, line, inode) : expect_blocks(file, line, inode);
  }

  void expect_blocks(const LoggedFile& file, Bytes line, const Inode& inode) {
    const Blocks found = blocks_of(inode);
    const Blocks expected = file.certain_without(line, unmounts_);
    EXPECT_TRUE(found == expected) << found.size() << " blocks, not " << expected.size();
    kept_ += static_cast<int>(found.size());
    left_out_ += static_cast<int>(file.blocks.size() - std::min(found.size(), file.blocks.size()));
    for (const auto& [index, block] : found) {
      std::vector<std::byte> is(kBlock);
      region_->read(block.first * kBlock, is);
      const auto was = std::span(image_).subspan(block.first * kBlock, kBlock);
      EXPECT_TRUE(std::equal(is.begin(), is.end(), was.begin())) << "block " << index;
    }
  }

  // All names are there but that of the lost entry. If the lost entry removed a name or gave it to
  // another inode, the earlier one may be there again.
  void expect_names(const LoggedFile& file, Bytes line, Inode& inode) {
    Names found = names_of(*region_, inode);
    if (!file.names.empty()) {
      // The repair has made a name for lost+found.
      std::erase_if(found, [&](const auto& each) { return each.second.first == kLostAndFound; });
    }
    const std::uint64_t lost = file.cookie_at(line);
    Names expected = file.names;
    const auto again = found.find(lost);
    if (again != found.end()) {
      const auto& [text, number] = again->second;
      const auto record = region_->read_object<InodeRecord>(geometry_.inode_offset(number));
      EXPECT_EQ(record.state & 1, 1U) << text;
      for (const auto& [cookie, name] : found) {
        EXPECT_TRUE(cookie == lost || name.first != text) << text << " is there twice";
      }
      EntryHeader adds;
      for (std::size_t i = 0; i < file.entries.size(); ++i) {
        const LoggedEntry& entry = file.entries[i];
        const auto header = EntryView{entry.bytes, entry.offset, 0}.as<EntryHeader>();
        const bool is_of_name = file.cookie_at(entry.offset) == lost && i != file.entry_at(line);
        if (is_of_name && header.type == EntryType::add) adds = header;
      }
      EXPECT_LE((fs::Timestamp{record.base.created_seconds, record.base.created_nanoseconds}),
                (fs::Timestamp{adds.seconds, adds.nanoseconds}))
          << text;
      found.erase(again);
    }
    expected.erase(lost);
    EXPECT_TRUE(found == expected) << found.size() << " names, not " << expected.size();
  }

  Thread& thread_;
  const bool unmounts_;
  const std::uint32_t seed_;
  std::shared_ptr<pmem::Region> region_;
  Geometry geometry_;
  std::vector<std::byte> image_;
  int kept_ = 0;
  int left_out_ = 0;
};

void expect_only_own_blocks(int trees) {
  const std::uint32_t seed = perdura::test::random_seed();
  for (const bool unmounts : {true, false}) {
    int kept = 0;
    int left_out = 0;
    for (int tree = 0; tree < trees; ++tree) {
      const auto platform = perdura::test::make_platform("shm", 1);
      platform->start(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
        LostEntries lost(thread, unmounts, seed + static_cast<std::uint32_t>(tree));
        co_await lost.run();
        kept += lost.kept();
        left_out += lost.left_out();
      });
      platform->run();
      if (testing::Test::HasFailure()) return;
    }
    testing::Test::RecordProperty(unmounts ? "kept, unmounted" : "kept, killed", kept);
    testing::Test::RecordProperty(unmounts ? "left out, unmounted" : "left out, killed", left_out);
    EXPECT_GT(kept, 0);
    EXPECT_GT(left_out, 0);
  }
}

TEST(NovaRepair, OfALogThatHasLostAnEntryShowsNoOtherFilesBlocks) { expect_only_own_blocks(4); }
TEST(NovaRepairs, OfManyLogsThatHaveLostAnEntryShowNoOtherFilesBlocks) {
  expect_only_own_blocks(60);
}

}  // namespace
}  // namespace perdura::systems::nova::test
