#include "tests/systems/novad/owner.h"

#include <algorithm>
#include <utility>

#include "systems/nova/nova.h"

namespace perdura::systems::novad::test {
namespace {

constexpr std::uint64_t kInodes = 64;
const fs::FsConfig kVolume{
    .size = 256 * KiB,
    .threads = 1,
    .parameters = {{"inodes", kInodes}, {"log_page_bytes", std::uint64_t{nova::kSmallestLogPage}}}};

}  // namespace

std::string_view to_string(Shape shape) {
  constexpr std::array kNames{"in one extent", "in extents apart", "with an unwritten block"};
  return kNames.at(static_cast<std::size_t>(shape));
}

Contents contents_of(Shape shape, bool is_in_place) {
  Contents contents(kSize, kBefore);
  if (shape == Shape::unwritten) {
    std::fill_n(contents.begin() + fs::kBlock, fs::kBlock, is_in_place ? 0 : kHole);
  }
  return contents;
}

Owner::Owner(Thread& thread, std::shared_ptr<nova::FileSystem> volume)
    : volume_(std::move(volume)),
      bindings_(thread, volume_->volume()),
      files_(volume_->attach(thread)) {}

Task<std::unique_ptr<Owner>> Owner::open(Thread& thread) {
  // The region is made once: devices keep what they have ever registered.
  auto region = thread.node.open_region("home");
  if (region == nullptr) {
    region = thread.node.create_region("home", kVolume.size, pmem::Medium::pm);
  }
  const nova::Geometry geometry(kVolume.size, kInodes, nova::kSmallestLogPage);
  region->write(0, std::vector<std::byte>(geometry.first_block * fs::kBlock));
  nova::make_volume(*region, geometry, kVolume);
  const auto mounted = co_await kNova.mount(thread, "home", kVolume);
  co_return std::unique_ptr<Owner>(
      new Owner(thread, std::static_pointer_cast<nova::FileSystem>(mounted)));
}

Task<fs::InodeNumber> Owner::create(std::string_view name) {
  const auto made = co_await files_->create(fs::kRootInode, name, {.mode = S_IFREG | 0644}, {});
  EXPECT_TRUE(made.has_value()) << name;
  co_return made ? made->inode : fs::InodeNumber{};
}

Task<> Owner::write(fs::InodeNumber inode, std::uint64_t block, Bytes size, char letter) {
  const std::vector<std::byte> data(size, static_cast<std::byte>(letter));
  const auto written = co_await files_->write(inode, block * fs::kBlock, data, {});
  EXPECT_TRUE(written.has_value());
}

Task<> Owner::make_file(Shape shape, bool is_in_place) {
  file_ = co_await create("file");
  if (shape == Shape::apart) {
    // A block that is allocated in between and freed again.
    const fs::InodeNumber between = co_await create("between");
    for (std::uint64_t block = 0; block < kBlocks; ++block) {
      co_await write(file_, block, std::min(fs::kBlock, kSize - block * fs::kBlock), kBefore);
      co_await write(between, block, fs::kBlock, kOthers);
    }
    EXPECT_TRUE((co_await files_->unlink(fs::kRootInode, "between", {})).has_value());
  } else {
    co_await write(file_, 0, kSize, kBefore);
  }
  if (shape == Shape::unwritten) {
    const auto made =
        co_await files_->allocate(file_, fs::AllocationMode::zero, fs::kBlock, fs::kBlock, {});
    EXPECT_TRUE(made.has_value());
  }
  EXPECT_TRUE((co_await files_->hold(file_)).has_value());
  is_held_ = true;
  rights_ = is_in_place ? fs::kMayRead | fs::kMayWrite : fs::kMayRead;
  co_await bindings_.bind(number());
  co_await bindings_.let_use(number(), is_in_place ? files_.get() : nullptr);
  EXPECT_NE(key().value, 0U);
  blocks_.clear();
  taken_.clear();
  const nova::Inode* const inode = volume_->volume().find(number());
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    blocks_.push_back(inode->blocks.get(block).block());
  }
}

// The change may have removed its name, or given it up.
Task<> Owner::remove_file() {
  const auto unlinked = co_await files_->unlink(fs::kRootInode, "file", {});
  EXPECT_TRUE(unlinked.has_value() || !is_held_);
  if (is_held_) co_await give_up();
}

Task<> Owner::execute(const std::function<Task<>(Owner&)>& change) {
  co_await bindings_.settle();
  co_await change(*this);
  take_free_blocks();
  co_await bindings_.settle();
  take_free_blocks();
}

void Owner::take_free_blocks() {
  for (const std::uint64_t block : blocks_) {
    const Bytes at = block * fs::kBlock;
    const bool is_taken = std::any_of(taken_.begin(), taken_.end(),
                                      [at](const auto& each) { return each.at() == at; });
    if (is_taken || volume_->volume().is_used(block)) continue;
    taken_.emplace_back(region(), at, fs::kBlock, kOthers);
  }
}

bool Owner::others_have_theirs() const {
  return std::all_of(taken_.begin(), taken_.end(),
                     [](const auto& each) { return each.is_intact(); });
}

Task<std::string> Owner::text() {
  std::string text(4 * kSize, '\0');
  const auto read =
      co_await files_->read(file_, 0, std::as_writable_bytes(std::span(text.data(), text.size())));
  text.resize(read.value_or(0));
  co_return text;
}

Task<> Owner::give_up() {
  is_held_ = false;
  co_await bindings_.unbind(number());
  co_await files_->release(file_, 1);
}

Task<> Owner::replace() {
  const fs::InodeNumber other = co_await create("other");
  co_await write(other, 0, kSize, kOthers);
  EXPECT_TRUE((co_await files_->rename(fs::kRootInode, "other", fs::kRootInode, "file",
                                       fs::RenameMode::replace, {}))
                  .has_value());
  co_await give_up();
}

}  // namespace perdura::systems::novad::test
