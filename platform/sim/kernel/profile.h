// A testbed: the physical parameters of the simulated machines and network. Read from TOML, where
// every number has a comment with its source (profiles/). There are no parameters of systems or
// figures.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/base/units.h"
#include "platform/platform.h"
#include "platform/runtime/work.h"

namespace perdura::sim {

// Cost of a kind of work on a core: a fixed part and a part per byte.
struct WorkCost {
  Picoseconds fixed{};
  Picoseconds per_byte{};
};

struct CpuProfile {
  std::array<WorkCost, kWorkKinds> work;
  Picoseconds load{};   // an 8-byte load that hits a cache
  Picoseconds store{};  // a store of up to a cache line, into the store buffer
  Picoseconds flush{};  // issuing the write-back of one line
  Picoseconds fence{};  // draining when nothing is under way
  Picoseconds post{};   // building a work request and ringing the doorbell
  Picoseconds poll{};   // taking a completion from its queue
  // The transfer of a cache line from the core that has changed it to another one that reads it; if
  // the profile does not say, the time of reading a line from DRAM.
  Picoseconds line_transfer{};
  Picoseconds context_switch{};
  Picoseconds time_slice{};
};

// How the software of a kind of node waits for completions.
struct WaitProfile {
  Picoseconds wakeup_latency{};  // time from the event to the first instruction of the thread
  Picoseconds wakeup_cpu{};      // CPU time of the wake-up, interrupt included
  Picoseconds arm{};             // arming the completion channel; then the thread polls once more
  Picoseconds sleep_cpu{};       // CPU time of arming and going to sleep
  // The number of threads that a completion wakes, one after the other; the last one handles it. A
  // timer or another thread wakes that last one directly.
  std::uint32_t wakeups = 1;
};

struct NodeProfile {
  std::uint32_t cores = 1;
  WaitProfile wait;
};

// The parts of a DIMM of 3D XPoint ("Building Distributed Systems with Non-Volatile Main Memories
// and RDMA Networks", section 2.2.1). Its media read and write whole lines of kMediaLine, at the
// DIMM's share of the bandwidth of its MemoryProfile.
struct DimmProfile {
  std::uint32_t count = 1;            // interleaved, in turn
  Bytes interleave = 4096;            // bytes of adjacent addresses in one DIMM
  std::uint32_t buffer_lines = 0;     // media lines that the on-DIMM buffer (XPBuffer) holds
  std::uint32_t buffer_ways = 1;      // buffer lines that may hold a given media line
  Picoseconds buffer_read_latency{};  // time to read a line that the buffer holds
  double port_bandwidth = 0;          // bytes per second between controller and DIMM
  std::uint32_t write_queue = 0;      // lines in the controller's queue of a DIMM
  std::uint32_t loads_under_way = 0;  // lines that a core waits for at once
};

// DRAM that keeps rows open.
struct RowProfile {
  Bytes size = 0;
  std::uint32_t open = 0;     // rows that may be open at once, in all banks
  Picoseconds hit_latency{};  // time to read a line in an open row; for others, read_latency
};

struct MemoryProfile {
  Picoseconds read_latency{};   // time to read a line that no cache holds
  Picoseconds write_latency{};  // time from a line's write-back to the persistence domain
  double read_bandwidth = 0;    // bytes per second of all DIMMs together
  double write_bandwidth = 0;
  Picoseconds streaming_latency{};   // write_latency of non-temporal stores
  std::optional<DimmProfile> dimms;  // none: memory is one pipe, whatever the address
  std::optional<RowProfile> rows;    // none: all reads take equally long
};

// The link between the two NUMA nodes of a machine. Threads run on the first.
struct NumaProfile {
  Picoseconds round_trip{};
  double bandwidth = 0;  // bytes per second, each direction
};

struct NicProfile {
  Picoseconds message{};     // least time between two messages, each direction
  Picoseconds processing{};  // time that a message takes to pass through
  std::uint32_t max_inline = 0;
  double pcie_bandwidth = 0;                    // bytes per second, each direction
  std::optional<double> pcie_read_bandwidth{};  // the bandwidth of DMA reads, if it differs
  Picoseconds pcie_read{};                      // round trip of a DMA read
  Picoseconds pcie_write{};                     // one way
  Picoseconds atomic{};                         // least time between two atomics
  bool flush = false;
  bool flush_persistence = false;
  bool atomic_write = false;

  double dma_read_bandwidth() const { return pcie_read_bandwidth.value_or(pcie_bandwidth); }
};

// How the NIC finds registered memory (platform/fabric/sim/translation.h).
struct TranslationProfile {
  // The size of the page of a translation; 0: a translation covers a whole range (an extent, or the
  // range that was registered). Regions with a chosen page size (MemoryPlace) use that instead.
  Bytes page = 4 * KiB;
  std::uint32_t cache_entries = 1;
  std::uint32_t cache_ways = 1;        // cache entries that may hold a given translation
  Picoseconds miss{};                  // the time of reading one that is not cached
  std::uint32_t misses_under_way = 1;  // read at once; others wait
  Picoseconds registration{};          // CPU time of registering,
  Picoseconds registration_entry{};    // and of each translation that is entered
  Picoseconds change{};                // CPU time of deregistering, and of changing extents
};

struct LinkProfile {
  double bandwidth = 0;       // bytes per second
  Picoseconds propagation{};  // one way, switch included
  Bytes mtu = 4096;
  Bytes header = 0;  // bytes of headers and checks in each packet
};

// The network beside the fabric, used by connections over TCP. The kernel's stack does the work at
// both ends. The defaults are Gigabit Ethernet: the numbers of the standards (IEEE 802.3; TCP with
// time stamps) and, for the stack, estimates.
struct EthernetProfile {
  LinkProfile link{.bandwidth = 125e6,
                   .propagation = Microseconds(5),
                   .mtu = 1448,               // payload of a segment
                   .header = 90};             // preamble, Ethernet, IP and TCP
  Picoseconds stack = Microseconds(20);       // one way, through both ends' kernels
  Picoseconds system_call = Microseconds(2);  // CPU time of sending a message
};

// The disk or SSD of a machine. The defaults are estimates of an SSD with SATA.
struct DiskProfile {
  double bandwidth = 500e6;                   // bytes per second, of reads and writes together
  Picoseconds sync = Microseconds(100);       // time until transferred data is durable
  Picoseconds system_call = Microseconds(2);  // CPU time of requesting either
};

struct RetryProfile {
  Picoseconds rnr_timer{};        // wait before sending again to a receiver that was not ready
  std::uint32_t rnr_retries = 7;  // 7 means without end, as in verbs
  Picoseconds timeout{};  // time until a peer that does not answer counts as gone, with retries
};

struct RoleProfile;

struct Profile {
  std::string name;
  std::string title;
  std::string text;  // the file, for the manifest
  CpuProfile cpu;
  NodeProfile server;  // nodes of the first role
  NodeProfile client;  // all others
  MemoryProfile dram;
  MemoryProfile pm;
  std::optional<NumaProfile> numa;  // none: a node has one NUMA node
  bool ddio = true;
  NicProfile nic;
  std::optional<TranslationProfile> translation;  // none: the NIC knows where everything is
  LinkProfile link;
  EthernetProfile ethernet;
  DiskProfile disk;
  RetryProfile retry;
  std::vector<RoleProfile> roles;  // roles whose nodes are described differently

  // The profile of a role's nodes: its own, or else this one.
  const Profile& of_role(std::string_view role) const;
};

// The table [role.NAME] of a profile, and the resulting profile of that role.
struct RoleProfile {
  std::string role;
  std::string where;  // file and line
  Profile profile;
};

// Throws UsageError, with file and line, if the file is not a valid profile.
Profile load_profile(const std::string& path);

// Throws UsageError, with file and line, if the profile describes a role that is not among these.
void check_roles(const Profile& profile, std::span<const std::string> roles);

}  // namespace perdura::sim
