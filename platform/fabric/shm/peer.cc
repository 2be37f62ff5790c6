#include "platform/fabric/shm/peer.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "platform/base/error.h"
#include "platform/base/limits.h"
#include "platform/pmem/mapped/pool_file.h"
#include "platform/pmem/word_copy.h"

namespace perdura::fabric::shm {

using pmem::mapped::File;
using pmem::mapped::map_file;

namespace {

// Null if the region has been removed.
std::shared_ptr<pmem::mapped::Mapping> map_region(const std::string& path, pmem::Medium medium) {
  if (medium == pmem::Medium::pm) {
    auto pool = pmem::mapped::open_pool_file(path);
    return pool ? std::move(pool->mapping) : nullptr;
  }
  const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  return file ? map_file(file.get(), path) : nullptr;
}

}  // namespace

Watch::~Watch() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<PeerNode> Watch::find(NodeId node) {
  const std::string path = job_.node_path(node);
  File file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) check_files_left(errno, path);
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 ||
      static_cast<Bytes>(info.st_size) != sizeof(NodeSegment) || !is_locked(file.get())) {
    return nullptr;
  }
  auto segment = map_file(file.get(), path);
  if (reinterpret_cast<NodeSegment*>(segment->data())->version != kLayoutVersion) return nullptr;

  const std::scoped_lock lock(mutex_);
  auto& current = current_[node];
  if (auto known = current.lock();
      known && &known->segment() == reinterpret_cast<NodeSegment*>(segment->data()) &&
      !known->dead()) {
    return known;
  }
  // Starts the thread before the peer becomes known: if the thread could not be started, the peer's
  // death would go unnoticed.
  if (!thread_.joinable()) thread_ = OsThread([this] { run(); });
  auto peer = std::make_shared<PeerNode>(std::move(file), std::move(segment));
  current = peer;
  std::erase_if(all_, [](const auto& known) { return known.expired(); });
  all_.push_back(peer);
  return peer;
}

int Watch::add_listener(std::function<void()> on_death) {
  const std::scoped_lock lock(mutex_);
  listeners_[next_listener_] = std::move(on_death);
  return next_listener_++;
}

void Watch::remove_listener(int id) {
  const std::scoped_lock lock(mutex_);
  listeners_.erase(id);
}

void Watch::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, interval_, [this] { return stop_; })) {
    bool death = false;
    for (const auto& weak : all_) {
      const auto peer = weak.lock();
      if (!peer || peer->dead() || is_locked(peer->file())) continue;
      peer->dead_.store(true, std::memory_order_release);
      death = true;
    }
    if (!death) continue;
    for (const auto& [id, on_death] : listeners_) on_death();
  }
}

const RemoteRange* PeerMemory::learn(std::uint32_t key) {
  if (key == 0) return nullptr;
  RegionEntry& entry = node_->segment().regions[region_entry(key)];
  if (entry.key.load(std::memory_order_acquire) != key) return nullptr;
  RemoteRange range;
  range.key = key;
  range.live_key = &entry.key;
  range.access = static_cast<Access>(entry.access.load(std::memory_order_relaxed));
  range.medium = static_cast<pmem::Medium>(entry.medium.load(std::memory_order_relaxed));
  range.region_offset = entry.offset.load(std::memory_order_relaxed);
  range.length = entry.length.load(std::memory_order_relaxed);
  std::array<std::byte, RegionEntry::kMaxPath> bytes;
  pmem::copy_from_shared(bytes, entry.path.data());
  bytes.back() = std::byte{0};
  const std::string path(reinterpret_cast<const char*>(bytes.data()));

  try {
    range.mapping = map_region(path, range.medium);
  } catch (const std::runtime_error&) {
    return nullptr;  // reported as if the key were wrong, since the data path has no better status
  }
  // The entry may have been given to another registration while it was read; then its key has
  // changed.
  if (!range.mapping || entry.key.load(std::memory_order_seq_cst) != key) return nullptr;
  if (range.region_offset > range.mapping->size() ||
      range.length > range.mapping->size() - range.region_offset) {
    return nullptr;
  }
  range.base = range.mapping->data() + range.region_offset;
  if (entry.extents.load(std::memory_order_acquire) != 0) {
    range.extents = &entry.extents;
    range.appends = &entry.appends;
    if (allows(range.access, Access::remote_flush)) range.dirty = &entry.dirty;
    range.length = range.mapping->size();
  }
  const std::uint32_t index = region_entry(key);
  if (known_.size() <= index) known_.resize(index + 1);
  known_[index] = std::move(range);
  return &known_[index];
}

}  // namespace perdura::fabric::shm
