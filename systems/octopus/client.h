// A client of the server, of one thread. Several operations may be under way at once. An operation on
// names is one RPC; a read or write is one RPC and the one-sided operations that move the data.
//
// Paths are "a/b/c", without a "/" in front; the empty one is the root. Errors are those of POSIX, with
// these rules of its own: a path below something that is no directory does not exist
// (no_such_file_or_directory), a full directory is no_space_on_device, as a full table is, and what
// goes beyond the extent of a file is file_too_large. If the server is gone, operations return
// not_connected.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"
#include "rpc/calls.h"
#include "rpc/receive_buffers.h"
#include "services/fs/fs.h"
#include "services/metric.h"
#include "systems/octopus/messages.h"
#include "systems/octopus/parameters.h"

namespace perdura::systems::octopus {

// The order is that of Client::metrics(). The first and the fourth are Orion's, too.
inline constexpr std::array kClientMetrics{
    services::Metric{"rpcs_per_op", "RPCs", "RPCs per operation"},
    services::Metric{"extent_reads_per_op", "READs of extents", "READs of extents per operation"},
    services::Metric{"extent_writes_per_op", "WRITEs of extents",
                     "WRITEs of extents per operation"},
    services::Metric{"rpc_us_per_op", "time in RPCs", "Time in RPCs", "us"},
    services::Metric{"extent_read_us_per_op", "time in READs of extents",
                     "Time in READs of extents", "us"},
    services::Metric{"extent_write_us_per_op", "time in WRITEs of extents",
                     "Time in WRITEs of extents", "us"},
};

struct PathAttributes {
  bool is_directory = false;
  Bytes size = 0;
  std::uint64_t modified = 0;  // nanoseconds
};

struct ListedPath {
  std::string name;
  bool is_directory = false;
  bool operator==(const ListedPath&) const = default;
};

class Client {
 public:
  template <class T>
  using Result = fs::Result<T>;

  // Connects with the first operation.
  Client(Thread& thread, const Parameters& parameters);

  // `now`: the time of the change, in nanoseconds.
  Task<Result<void>> create(std::string_view path, std::uint64_t now);
  Task<Result<void>> make_directory(std::string_view path, std::uint64_t now);
  Task<Result<void>> unlink(std::string_view path, std::uint64_t now);
  Task<Result<void>> remove_directory(std::string_view path, std::uint64_t now);
  Task<Result<PathAttributes>> stat(std::string_view path);
  Task<Result<std::vector<ListedPath>>> list(std::string_view path);
  Task<Result<void>> set_times(std::string_view path, std::uint64_t now);
  // Reads up to the end of the file at most. Returns the number of bytes read.
  Task<Result<Bytes>> read(std::string_view path, Bytes offset, std::span<std::byte> into);
  Task<Result<void>> write(std::string_view path, Bytes offset, std::span<const std::byte> data,
                           std::uint64_t now);
  // Returns where the data is in the file.
  Task<Result<Bytes>> append(std::string_view path, std::span<const std::byte> data,
                             std::uint64_t now);
  // Makes durable what has been written to a file.
  Task<Result<void>> sync(std::string_view path);

  std::vector<double> metrics() const;

 private:
  using Lease = rpc::Calls<Answer>::Lease;

  Task<> connect();  // sets queue_pair_ if it can
  // Connects if nobody has tried. False if there is no connection.
  Task<bool> connected();
  Task<Result<Answer>> exchange(const Lease& lease, Request request, std::string_view path);
  Task<Result<void>> change(Request request, std::string_view path);
  Task<Result<Answer>> write_range(Request request, std::string_view path,
                                   std::span<const std::byte> data);
  Task<bool> fetch(const Lease& lease, Bytes offset, std::span<std::byte> into);
  Task<bool> put(const Lease& lease, Bytes offset, std::span<const std::byte> data);
  void take(const fabric::ReceiveCompletion& completion);

  fabric::LocalBuffer answer_buffer(rpc::Call call) const {
    return registered_.local(Bytes{call} * kAnswerRoom, kAnswerRoom);
  }
  fabric::LocalBuffer request_buffer(rpc::Call call) const;
  fabric::LocalBuffer data_buffer(rpc::Call call, Bytes length) const;

  Thread& thread_;
  Parameters parameters_;
  Bytes data_room_;
  Semaphore connecting_{1};
  bool has_tried_ = false;
  Welcome welcome_{};
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  fabric::MemoryRegion answers_;
  std::unique_ptr<fabric::ReceiveQueue> immediates_;
  fabric::CompletionQueue completions_;
  rpc::Calls<Answer> calls_;
  std::unique_ptr<fabric::QueuePair> queue_pair_;

  struct Counts {
    std::uint64_t rpcs = 0;
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    Picoseconds in_rpcs{};
    Picoseconds in_reads{};
    Picoseconds in_writes{};
  } counts_;
};

}  // namespace perdura::systems::octopus
