// The parameters of an experiment's `[systems.orion]`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "platform/base/parameter.h"
#include "platform/platform.h"
#include "services/fs/fs.h"
#include "systems/nova/parameters.h"
#include "systems/orion/protocol/layout.h"

namespace perdura::systems::orion {

inline constexpr std::array<std::string_view, 2> kDataModes{"strong", "weak"};
inline constexpr std::array<std::string_view, 2> kCommitModes{"answered", "speculative"};
inline constexpr std::array<std::string_view, 2> kUpdateModes{"commits", "rpcs"};
inline constexpr std::array<std::string_view, 2> kCompletionModes{"polling", "event"};
inline constexpr std::array<std::string_view, 2> kWithoutMirror{"wait", "go-on"};

inline constexpr std::array kParameters = std::to_array<Parameter>({
    {.name = "metadata",
     .type = Count{128 * KiB, Bytes{1} << 45},
     .unit = "bytes",
     .what = "of the MDS' memory; if not given, a quarter of the data, and at least 256 KiB"},
    {.name = "inodes",
     .type = Count{16, std::uint64_t{1} << 31},
     .what = "that there can be; if not given, one for each 16 KiB of data"},
    {.name = "log_page_bytes",
     .type = Count{nova::kSmallestLogPage, nova::kBlock},
     .usual = nova::kBlock,
     .unit = "bytes",
     .what = "bytes of each log page that are used"},
    {.name = "gc_pages",
     .type = Count{1, 1 << 20},
     .usual = 4,
     .what = "log pages from which on garbage is collected thoroughly"},
    {.name = "chunk_pages",
     .type = Count{1, 512},
     .usual = 512,
     .what = "pages that the MDS delegates to a client at a time (section 4.3.1)"},
    {.name = "sessions",
     .type = Count{1, 65535},
     .usual = 64,
     .what = "clients' sessions for which the MDS has receive buffers"},
    {.name = "session_buffers",
     .type = Count{4 * KiB, 1 * MiB},
     .usual = 256 * KiB,
     .unit = "bytes",
     .what = "receive buffers of a session, in the MDS' persistent memory (section 4.2.2)"},
    {.name = "network_threads",
     .type = Count{1, 64},
     .usual = 1,
     .what = "of the MDS: receive requests and append log commits (section 4.2.2)"},
    {.name = "fs_threads",
     .type = Count{0, 63},
     .usual = 1,
     .what = "of the MDS: execute RPCs; 0: the network threads do it"},
    {.name = "completion",
     .type = OneOf{kCompletionModes},
     .usual = "event",
     .what = "how the file-system threads wait"},
    {.name = "commit",
     .type = OneOf{kCommitModes},
     .usual = "answered",
     .what = "when a log commit is complete: when the MDS has answered, or when its device has "
             "acknowledged the message, as in the paper (section 4.2.1)"},
    {.name = "data",
     .type = OneOf{kDataModes},
     .usual = "strong",
     .what = "when a write is complete: when the stores have forced its pages, or when they are "
             "sent (section 4.3.3)"},
    {.name = "updates",
     .type = OneOf{kUpdateModes},
     .usual = "commits",
     .what =
         "how changes of one inode reach the MDS: by log commits, or by RPCs, which name the tail "
         "that they follow as log commits do"},
    {.name = "free_delay_us",
     .type = Count{1, 1'000'000'000},
     .usual = 100'000,
     .unit = "us",
     .what = "after which freed pages are reused; a client that reads for longer reads again"},
    {.name = "mirrors",
     .type = Count{0, 1},
     .what = "of the MDS; if not given, as many as there are nodes with that role"},
    {.name = "mirror_slots",
     .type = Count{2, std::uint64_t{1} << 20},
     .usual = 4096,
     .what = "requests that the log of the MDS' mirror holds (systems/mojim)"},
    {.name = "mirror_timeout_us",
     .type = Count{1, 1'000'000'000},
     .usual = 500'000,
     .unit = "us",
     .what = "after which a mirror of the MDS that does not answer has failed"},
    {.name = "takeover_after_us",
     .type = Count{1, 1'000'000'000},
     .usual = 1'000'000,
     .unit = "us",
     .what = "for which the MDS does not answer its mirror before the mirror takes its place"},
    {.name = "without_mirror",
     .type = OneOf{kWithoutMirror},
     .usual = "wait",
     .what = "what the MDS does when its mirror has failed: it answers nobody until the mirror is "
             "back, or it gives the mirror up and goes on"},
    {.name = "journal_records",
     .type = Count{16, 1 << 26},
     .usual = 1 << 16,
     .what = "of a store's journal of immediates (section 4.3.4)"},
    {.name = "store_patience_us",
     .type = Count{1, 1'000'000'000},
     .usual = 1'000'000,
     .unit = "us",
     .what = "for which the MDS, when it starts, waits for a store before others go on without it"},
    {.name = "store_timeout_us",
     .type = Count{8, 1'000'000'000},
     .usual = 6'000'000,
     .unit = "us",
     .what =
         "after which a store that does not answer the MDS has failed, though its connection is "
         "open"},
    {.name = "client_patience_us",
     .type = Count{0, 1'000'000'000},
     .usual = 10'000'000,
     .unit = "us",
     .what = "for which an operation tries to reach a store that has failed"},
    {.name = "mds_patience_us",
     .type = Count{0, 1'000'000'000},
     .usual = 10'000'000,
     .unit = "us",
     .what = "for which an operation tries to connect again to the MDS; 0: a session whose "
             "connection has broken is gone"},
    {.name = "reservation_us",
     .type = Count{1, 1'000'000'000},
     .usual = 10'000,
     .unit = "us",
     .what =
         "for which an inode is reserved for an operation that was refused often; twice as long "
         "each time that the operation takes longer"},
    {.name = "cached_inodes",
     .type = Count{1, std::uint64_t{1} << 31},
     .usual = 1 << 17,
     .what = "that the MDS keeps in DRAM, besides those that are held"},
    {.name = "cached_pages",
     .type = Count{4, 1 << 24},
     .usual = 1024,
     .what = "data pages that a session caches in DRAM"},
    {.name = "cached_log_pages",
     .type = Count{8, 1 << 24},
     .usual = 1024,
     .what = "log pages of which a session keeps copies"},
});

struct Parameters {
  Bytes metadata = 0;
  std::uint64_t inodes = 0;
  Bytes log_page_bytes = 0;
  std::uint64_t gc_pages = 0;
  std::uint64_t cached_inodes = 0;
  std::uint64_t chunk_pages = 0;
  std::uint32_t sessions = 0;
  Bytes session_buffers = 0;
  std::uint32_t network_threads = 0;
  std::uint32_t fs_threads = 0;
  CompletionMode completion = CompletionMode::event;
  bool strong = true;
  bool speculates = false;
  bool updates_by_rpc = false;
  Picoseconds free_delay{};
  std::uint64_t cached_pages = 0;
  std::uint64_t cached_log_pages = 0;

  std::uint64_t journal_records = 0;
  Picoseconds store_patience{};
  Picoseconds store_timeout{};
  Picoseconds client_patience{};
  Picoseconds mds_patience{};
  Picoseconds reservation{};

  struct StoreNode {
    NodeId node{};
    std::uint32_t group = 0;
  };
  std::vector<StoreNode> stores{};  // by number
  std::uint32_t groups = 0;
  std::uint64_t pages = 0;  // in each group, with the header

  NodeId mds = 0;
  std::optional<NodeId> mirror{};
  std::uint64_t mirror_slots = 0;
  std::uint64_t mirror_timeout_us = 0;
  Picoseconds takeover_after{};
  bool goes_on_alone = false;
  std::optional<methods::Method> mirror_method{};

  // The port of the MDS' first network thread; the others follow. With a mirror, it and the MDS have
  // one more thread, with port 0.
  std::uint32_t first_mds_port() const { return mirror ? 1 : 0; }
  std::uint32_t mds_threads() const { return first_mds_port() + network_threads; }
  // The node that is the MDS if this one is not.
  NodeId other_mds(NodeId node) const { return node == mds && mirror ? *mirror : mds; }
  // All stores of a group.
  StoreSet group_members(std::uint32_t group) const;

  // Throws UsageError if the configuration has unknown parameters or impossible values or servers.
  static Parameters of(const fs::FsConfig& config);
  nova::Parameters of_volume() const;
};

}  // namespace perdura::systems::orion
