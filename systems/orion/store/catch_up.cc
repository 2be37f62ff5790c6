#include "systems/orion/store/catch_up.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/runtime/work.h"
#include "rpc/messages.h"
#include "systems/orion/protocol/messages.h"
#include "systems/orion/store/journal.h"

namespace perdura::systems::orion {

using fabric::Access;

namespace {

constexpr Bytes kPart = 64 * KiB;                    // the most that one READ gets
constexpr Picoseconds kTimeout = Milliseconds(100);  // for connecting to a peer

// Adjacent pages, as many as one READ gets.
std::vector<nova::Extent> extents_of(std::span<const std::uint32_t> pages) {
  std::vector<nova::Extent> extents;
  for (const std::uint32_t page : pages) {
    if (!extents.empty() && extents.back().first + extents.back().count == page &&
        extents.back().count < kPart / kPage) {
      ++extents.back().count;
    } else {
      extents.push_back({page, 1});
    }
  }
  return extents;
}

}  // namespace

Task<bool> CatchUp::connect(Peer& peer, NodeId node) {
  peer.buffers = thread_.endpoint.create_receive_queue(1);
  const Hello hello{.version = kProtocolVersion, .peer = orion::Peer::store, .group = group_};
  fabric::QueuePairOptions options{peer.buffers.get(), &peer.completions};
  options.connection_timeout = kTimeout;
  fabric::Connection made = co_await thread_.endpoint.connect(
      {node, 0}, options, {rpc::bytes_of(hello).begin(), rpc::bytes_of(hello).end()});
  if (made.status != fabric::Status::success) co_return false;
  const auto welcome = rpc::read_message<StoreWelcome>(made.private_data);
  peer.pages = fabric::RemoteKey{welcome.pages_key};
  peer.journal = fabric::RemoteKey{welcome.journal_key};
  peer.queue_pair = std::move(made.queue_pair);
  co_return true;
}

Task<bool> CatchUp::read(fabric::QueuePair& from, fabric::RemoteKey key,
                         std::span<std::byte> into) {
  for (Bytes done = 0; done < into.size(); done += kPart) {
    const auto part = static_cast<std::uint32_t>(std::min(kPart, into.size() - done));
    const fabric::LocalBuffer buffer = registered_.local(0, part);
    const fabric::Completion read = co_await from.read(buffer, {key, done});
    if (!read) co_return false;
    copy_bytes(into.subspan(done, part), buffer.bytes());
  }
  co_return true;
}

Task<bool> CatchUp::read_pages(Peer& peer, const std::vector<nova::Extent>& extents) {
  for (const nova::Extent& extent : extents) {
    const Bytes at = extent.first * kPage;
    const Bytes length = extent.count * kPage;
    const fabric::Completion read = co_await peer.queue_pair->read(
        pages_.local(at, static_cast<std::uint32_t>(length)), {peer.pages, at});
    if (!read) co_return false;
    pages_.region->persist(at, length);
  }
  co_return true;
}

Task<std::optional<std::uint64_t>> CatchUp::fetch(Missing missing) {
  memory_ =
      thread_.node.create_region(fmt::format("{} catching up", name_), kPart, pmem::Medium::dram);
  registered_ = thread_.endpoint.register_memory(*memory_, Access::local);
  Peer peer;
  if (!co_await connect(peer, missing.peer)) co_return std::nullopt;
  std::vector<std::uint64_t> in_use((parameters_.pages + 63) / 64);
  if (!co_await read(missing.mds, missing.in_use, std::as_writable_bytes(std::span(in_use)))) {
    co_return std::nullopt;
  }
  std::optional<std::vector<std::uint32_t>> journaled;
  if (!missing.everything) {
    std::vector<JournalRecord> journal(parameters_.journal_records);
    if (!co_await read(*peer.queue_pair, peer.journal,
                       std::as_writable_bytes(std::span(journal)))) {
      co_return std::nullopt;
    }
    journaled = pages_since(journal, missing.since);
  }
  std::vector<std::uint32_t> pages;
  const auto add = [&](std::uint64_t page) {
    const bool is_used =
        page >= 1 && page < parameters_.pages && (in_use[page / 64] >> page % 64 & 1) != 0;
    if (is_used) pages.push_back(static_cast<std::uint32_t>(page));
  };
  if (journaled) {
    for (const std::uint32_t page : *journaled) add(page);
  } else {
    for (std::uint64_t page = 1; page < parameters_.pages; ++page) add(page);
  }
  if (!co_await read_pages(peer, extents_of(pages))) co_return std::nullopt;
  thread_.endpoint.deregister_memory(registered_);
  co_return pages.size();
}

}  // namespace perdura::systems::orion
