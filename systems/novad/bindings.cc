#include "systems/novad/bindings.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "platform/base/error.h"

namespace perdura::systems::novad {

namespace {

std::vector<fabric::Extent> to_fabric(std::span<const fs::MappedExtent> extents) {
  std::vector<fabric::Extent> all;
  for (const fs::MappedExtent& each : extents) {
    all.push_back({each.in_file, each.in_region, each.length});
  }
  return all;
}

}  // namespace

Bindings::Bindings(Thread& thread, nova::Volume& volume) : thread_(thread), volume_(volume) {
  volume.call_back(*this);
}

Task<> Bindings::bind(std::uint64_t inode) {
  if (!thread_.endpoint.capabilities().extents) co_return;
  co_await turn_.acquire();
  const auto found = bindings_.find(inode);
  if (found != bindings_.end()) {
    ++found->second.users;
  } else if (volume_.bind(inode) == std::errc{}) {
    bindings_[inode].users = 1;
  }
  turn_.release();
}

Task<> Bindings::let_use(std::uint64_t inode, fs::Session* files) {
  co_await turn_.acquire();
  const auto found = bindings_.find(inode);
  if (found != bindings_.end()) {
    Binding& binding = found->second;
    if (files != nullptr && binding.pinned == nullptr) binding.pinned = co_await pin(inode, *files);
    register_for(binding, files != nullptr && binding.pinned != nullptr);
  }
  turn_.release();
}

// A file whose holes would need more space than there is cannot be written to in place.
Task<std::unique_ptr<fs::FileMapping>> Bindings::pin(std::uint64_t inode, fs::Session& files) {
  const fs::InodeNumber number{inode};
  const auto attributes = co_await files.attributes(number);
  if (!attributes || !attributes->is_regular()) co_return nullptr;
  const Bytes blocks = std::max<Bytes>(1, (attributes->size + fs::kBlock - 1) / fs::kBlock);
  auto mapped = co_await files.map(number, 0, blocks * fs::kBlock);
  if (!mapped) co_return nullptr;
  co_return std::move(*mapped);
}

// Nova tells of changes until the registration is gone: a block that a local program frees
// meanwhile must not become another file's while peers can READ it.
Task<> Bindings::unbind(std::uint64_t inode) {
  co_await turn_.acquire();
  const auto found = bindings_.find(inode);
  if (found != bindings_.end() && --found->second.users == 0) {
    co_await end_maps(found->second);
    volume_.unbind(inode);
    bindings_.erase(inode);
  }
  co_await drain();
  turn_.release();
}

Task<> Bindings::settle() {
  if (is_settled()) co_return;
  co_await turn_.acquire();
  co_await drain();
  turn_.release();
}

bool Bindings::is_settled() const {
  const std::lock_guard guard(lock_);
  return announced_.empty();
}

// A block is kept together with an announcement, so those that are kept when none is left are free.
Task<> Bindings::drain() {
  for (;;) {
    lock_.lock();
    const LayoutChange* const next = announced_.empty() ? nullptr : &announced_.front();
    std::vector<nova::Extent> unused;
    if (next == nullptr) unused = std::exchange(kept_, {});
    lock_.unlock();
    for (const nova::Extent& extent : unused) volume_.free_kept(extent);
    if (next == nullptr) co_return;
    co_await carry_out(*next);
    const std::lock_guard guard(lock_);
    announced_.pop_front();
  }
}

Task<> Bindings::carry_out(const LayoutChange& change) {
  const auto found = bindings_.find(change.inode);
  if (found == bindings_.end() || found->second.has_no_room) co_return;
  Binding& binding = found->second;
  ++changes_;
  bool is_done = false;
  try {
    co_await change_map(binding, change);
    is_done = true;
  } catch (const PlatformError&) {
    // The device has no room for more extents.
  }
  if (!is_done) {
    binding.has_no_room = true;
    co_await end_maps(binding);
  }
  note_size(binding, change.size);
}

Task<> Bindings::change_map(Binding& binding, const LayoutChange& change) {
  binding.table.unmap(change.at, change.length);
  for (const fabric::Extent& extent : change.extents) {
    binding.table.map(extent, volume_.region().size());
  }
  for (const auto& file : binding.files) {
    if (file) co_await file->update(change.at, change.length, change.extents);
  }
}

void Bindings::register_for(Binding& binding, bool writes) {
  std::unique_ptr<FileRegion>& file = binding.files.at(writes ? 1 : 0);
  if (file || binding.has_no_room) return;
  auto access = fabric::Access::remote_read;
  if (writes) access = access | fabric::Access::remote_write;
  if (writes && thread_.endpoint.capabilities().commits) {
    access = access | fabric::Access::remote_flush;
  }
  auto bound = std::make_unique<FileRegion>(thread_.endpoint, volume_.region(), access);
  try {
    bound->bind(binding.table.extents());
    file = std::move(bound);
  } catch (const PlatformError&) {
    // The device has no room for it, so it is read by requests.
  }
}

Task<> Bindings::end_maps(Binding& binding) {
  for (std::unique_ptr<FileRegion>& each : binding.files) {
    if (!each) continue;
    const std::unique_ptr<FileRegion> file = std::move(each);
    co_await file->destroy();
    if (fabric::allows(file->access(), fabric::Access::remote_flush)) persist(binding);
  }
}

// Nothing that peers have written is under way any more. The CPU reads what it flushes, so that
// nothing of it can still be in the device (docs/persistence.md, `seen_is_visible`).
void Bindings::persist(const Binding& binding) {
  pmem::Region& region = volume_.region();
  std::vector<std::byte> read(64 * KiB);
  for (const fabric::Extent& extent : binding.table.extents()) {
    for (Bytes done = 0; done < extent.length;) {
      const Bytes part = std::min<Bytes>(read.size(), extent.length - done);
      region.read(extent.offset + done, std::span(read).first(part));
      region.flush(extent.offset + done, part);
      done += part;
    }
  }
  region.drain();
}

void Bindings::note_size(Binding& binding, Bytes size) {
  binding.size = size;
  Bytes end = 0;
  for (const fabric::Extent& extent : binding.table.extents()) {
    if (extent.at != end) break;
    end += extent.length;
  }
  binding.is_whole = end == size;
}

FileState Bindings::state(std::uint64_t inode, std::uint32_t rights) const {
  const auto found = bindings_.find(inode);
  if (found == bindings_.end() || (rights & fs::kMayRead) == 0) return {};
  const Binding& binding = found->second;
  const bool writes = may_read_and_write(rights) && binding.files[1];
  const auto& file = binding.files.at(writes ? 1 : 0);
  if (!file) return {};
  return {.filekey = file->filekey().value,
          .is_whole = static_cast<std::uint16_t>(binding.is_whole ? 1 : 0),
          .is_writable = static_cast<std::uint16_t>(writes ? 1 : 0),
          .size = binding.size};
}

std::vector<std::uint64_t> Bindings::writable_files() const {
  std::vector<std::uint64_t> files;
  for (const auto& [inode, binding] : bindings_) {
    if (binding.pinned != nullptr) files.push_back(inode);
  }
  return files;
}

// --- callbacks

void Bindings::cm_bind(std::uint64_t inode) { bindings_.try_emplace(inode); }

void Bindings::cm_init(std::uint64_t inode, Bytes size, std::span<const fs::MappedExtent> extents) {
  Binding& binding = bindings_[inode];
  binding.table = fabric::make_extent_table(to_fabric(extents), volume_.region().size());
  note_size(binding, size);
}

void Bindings::cm_update(std::uint64_t inode, Bytes size, Bytes at, Bytes length,
                         std::span<const fs::MappedExtent> extents) {
  announce({inode, size, at, length, to_fabric(extents)});
}

void Bindings::cm_invalidate(std::uint64_t inode, Bytes size, Bytes at, Bytes length) {
  announce({inode, size, at, length, {}});
}

void Bindings::announce(LayoutChange change) {
  const std::lock_guard guard(lock_);
  announced_.push_back(std::move(change));
}

void Bindings::cm_destroy(std::uint64_t) {}

bool Bindings::cm_keeps(const nova::Extent& blocks) {
  const std::lock_guard guard(lock_);
  if (announced_.empty()) return false;
  kept_.push_back(blocks);
  return true;
}

}  // namespace perdura::systems::novad
