// Checks a log's options: impossible ones are refused before anything is created.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "library/choice.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/base/plain_name.h"
#include "platform/pmem/mapped/dax_device.h"
#include "platform/pmem/mapped/storage.h"

namespace perdura::library {

namespace {

namespace fs = std::filesystem;
using pmem::mapped::StorageKind;

// A message also has a header, and devices accept messages of at most 1 GiB.
constexpr std::size_t kLargestRecord = (std::size_t{1} << 30) - 4096;
// User space has addresses of 47 bits; half of that leaves room for the rest of the program.
constexpr std::uint64_t kLargestLog = std::uint64_t{1} << 46;
constexpr std::size_t kLongestJob = 200;

void check_sizes(const LogOptions& options) {
  if (options.largest_record == 0 || options.largest_record > kLargestRecord) {
    throw std::invalid_argument(fmt::format("largest_record is {}; a record has 1 to {} bytes",
                                            options.largest_record, kLargestRecord));
  }
  // Each record has a header and fills whole cache lines.
  const std::uint64_t slot = options.largest_record + 2 * kCacheLine;
  if (options.records == 0 || options.records > kLargestLog / slot) {
    throw std::invalid_argument(fmt::format("records is {}; a log of such records holds 1 to {}",
                                            options.records, kLargestLog / slot));
  }
}

void check_limits(const LogOptions& options) {
  for (const auto limit : {options.connect_timeout, options.append_timeout, options.stop_timeout}) {
    if (limit.count() < 0) {
      throw std::invalid_argument("a timeout is negative; zero waits for nothing");
    }
  }
}

}  // namespace

void check_job(const std::string& job) {
  const auto is_visible = [](unsigned char c) { return c > ' ' && c != 0x7F; };
  if (!is_entry_name(job) || job.size() > kLongestJob ||
      !std::all_of(job.begin(), job.end(), is_visible)) {
    throw std::invalid_argument(fmt::format(
        "a job is a name of 1 to {} characters without slashes and blanks; clients and servers say "
        "the same",
        kLongestJob));
  }
}

void check_directory(const std::string& directory, bool emulated, std::string_view whose) {
  const auto device = pmem::mapped::device_path(directory);
  // It is not created, since a mistyped name would become a folder on an ordinary disk.
  if (!device && kind_of(directory) != PathKind::folder) {
    throw std::invalid_argument(fmt::format("{} directory {}: {}; make it, or name another", whose,
                                            directory, not_a_folder(directory)));
  }
  const bool writable = device ? ::access(device->device.c_str(), R_OK | W_OK) == 0
                               : ::access(directory.c_str(), W_OK | X_OK) == 0;
  if (!writable) {
    throw std::invalid_argument(fmt::format(
        "{} directory {} cannot be written by this user: {}; change its rights, or name "
        "another",
        whose, directory, pmem::mapped::error_text(errno)));
  }
  if (emulated) return;
  const pmem::mapped::Storage storage = pmem::mapped::storage_of(directory);
  if (storage.kind == StorageKind::dax_file_system) return;
  if (storage.kind == StorageKind::device_dax && storage.persistent.value_or(false)) return;
  throw std::invalid_argument(fmt::format(
      "{} directory {} is no persistent memory ({}); name one with DAX, or set emulated", whose,
      directory, storage.promise));
}

systems::remote_log::LogOptions log_options(const LogOptions& options) {
  check_job(options.job);
  check_sizes(options);
  check_limits(options);
  // The log runs on platform shm, so its device is the emulated one, whatever RDMA devices this
  // host has.
  Configuration configuration = options.configuration;
  configuration.flush = configuration.flush.value_or(true);
  configuration.flush_persistence = configuration.flush_persistence.value_or(false);
  configuration.atomic_write = configuration.atomic_write.value_or(true);
  const methods::Advice advice =
      advise(configuration, {.ordered = options.ordered, .size = options.largest_record});
  systems::remote_log::LogOptions result;
  result.method = advice.choices.front().method;
  result.slots = options.records;
  result.largest_record = static_cast<std::uint32_t>(options.largest_record);
  result.receive_medium = options.configuration.receive_buffers_in_pm.value_or(false)
                              ? pmem::Medium::pm
                              : pmem::Medium::dram;
  try {
    methods::check_region(result.setup(), result.region_size());
  } catch (const UsageError& error) {
    throw std::invalid_argument(error.what());
  }
  return result;
}

ShmOptions shm_options(const LogOptions& options, std::uint32_t node) {
  ShmOptions result;
  result.job = options.job;
  result.node_count = 2;
  result.local_nodes = {node};
  result.join_timeout = picoseconds(options.connect_timeout);
  // Only the server has persistent memory; the client maps what the server registers.
  if (node == kServer && !options.directory.empty()) {
    check_directory(options.directory, options.emulated, "the log's");
    result.pm_directory = options.directory;
  }
  return result;
}

std::string differing_options(const systems::remote_log::LogDiffers& problem,
                              const systems::remote_log::LogOptions& here, std::string_view where) {
  const systems::remote_log::KnownOptions& there = problem.known;
  std::vector<std::string> all;
  const auto compare = [&](std::string_view name, const auto& its, const auto& own) {
    if (its && *its != own) {
      all.push_back(fmt::format("{} is {} {}, {} here", name, *its, where, own));
    }
  };
  compare("largest_record", there.largest_record, here.largest_record);
  compare("records", there.slots, here.slots);
  compare("ordered", there.has_tail, here.has_tail());
  // If the orderings differ, so do the methods; naming these too would only confuse.
  const bool same_ordering = !there.has_tail || *there.has_tail == here.has_tail();
  if (same_ordering && !there.method.empty() && there.method != here.method.name) {
    all.push_back(fmt::format("configuration leads to the method '{}' {}, '{}' here", there.method,
                              where, here.method.name));
  }
  return all.empty() ? problem.what() : fmt::format("{}", fmt::join(all, "; "));
}

Picoseconds picoseconds(std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 30);
  return std::min(limit, kLongest);
}

Deadline deadline_after(std::chrono::milliseconds limit) {
  const auto now = std::chrono::steady_clock::now();
  using Clock = std::chrono::steady_clock;
  if (limit >
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max() - now)) {
    return std::nullopt;
  }
  return now + limit;
}

}  // namespace perdura::library
