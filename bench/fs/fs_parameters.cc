#include "bench/fs/fs_parameters.h"
#include "bench/driver/mounted_directory.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "bench/server_parameters.h"
#include "platform/base/units.h"

namespace perdura::bench {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;  // the largest count

using Usual = FileWorkloadEntry::Usual;

constexpr std::array kNames{Usual{"directory_width", 1000}, Usual{"depth", 1}};
constexpr std::array kExisting{Usual{"files", 1000}, Usual{"directory_width", 1000},
                               Usual{"depth", 1}};
constexpr std::array kOpen{Usual{"files", 100}, Usual{"directory_width", 1000}, Usual{"depth", 1}};
constexpr std::array kWhole{Usual{"files", 1000}, Usual{"directory_width", 1000}, Usual{"depth", 1},
                            Usual{"file_size", 16 * KiB}, Usual{"io_size", 1 * MiB}};
constexpr std::array kReads{Usual{"file_size", 16 * MiB}, Usual{"io_size", 4 * KiB},
                            Usual{"shared_file", 0}};
constexpr std::array kWrites{Usual{"file_size", 16 * MiB}, Usual{"io_size", 4 * KiB},
                             Usual{"fsync_every", 0}, Usual{"shared_file", 0}};
constexpr std::array kMixes{Usual{"file_size", 16 * MiB}, Usual{"io_size", 4 * KiB},
                            Usual{"fsync_every", 0}, Usual{"read_percent", 50},
                            Usual{"shared_file", 0}};
constexpr std::array kAppends{Usual{"append_size", 4 * KiB}, Usual{"fsync_every", 0},
                              Usual{"shared_file", 0}};
constexpr std::array kVarmail{Usual{"files", 1000}, Usual{"directory_width", 1'000'000},
                              Usual{"file_size", 16 * KiB}, Usual{"io_size", 1 * MiB},
                              Usual{"append_size", 16 * KiB}};
constexpr std::array kFileserver{Usual{"files", 1000}, Usual{"directory_width", 20},
                                 Usual{"file_size", 128 * KiB}, Usual{"io_size", 1 * MiB},
                                 Usual{"append_size", 16 * KiB}};
constexpr std::array kWebserver{Usual{"files", 1000}, Usual{"directory_width", 20},
                                Usual{"file_size", 16 * KiB}, Usual{"io_size", 1 * MiB},
                                Usual{"append_size", 16 * KiB}};
constexpr std::array kTree{Usual{"depth", 2}, Usual{"branching", 2}, Usual{"directory_width", 100},
                           Usual{"file_size", 0}, Usual{"io_size", 1 * MiB}};

constexpr std::uint64_t kOfPersonalities = 8;  // threads, as in Orion

// Files are created with other sizes than the initial ones, and grow until they are deleted, so the
// sizes of reads and writes settle once most of the initial files have been deleted. 80 % of all
// files exist, and one of them is deleted in each round of 13 or 11 operations: this is about four
// times as many rounds as there are files.
constexpr std::uint64_t kUntilSettled = 40;

constexpr FileWorkloadEntry kWorkloads[] = {
    {"create", "files are created and closed", 1, kNames},
    {"mkdir", "directories are made", 1, kNames},
    {"unlink", "files are removed", 1, kNames},
    {"rmdir", "empty directories are removed", 1, kNames},
    {"stat", "attributes of files are looked up by name, at random", 1, kExisting},
    {"utimens", "times of open files are set in turn", 1, kOpen},
    {"rename", "files get other names in their directories", 1, kExisting},
    {"open-read-close", "files are opened, read whole and closed, at random", 1, kWhole},
    {"read", "a file is read from its beginning to its end", 1, kReads},
    {"write", "a file is overwritten from its beginning to its end", 1, kWrites},
    {"rw", "reads and writes from a file's beginning to its end", 1, kMixes},
    {"randread", "a file is read at random places", 1, kReads},
    {"randwrite", "a file is overwritten at random places", 1, kWrites},
    {"randrw", "reads and writes at random places of a file", 1, kMixes},
    {"append", "a file grows", 1, kAppends},
    {"fsync", "each write at a random place of a file is followed by fsync", 1, kReads},
    {"varmail", "Filebench's mail server", kOfPersonalities, kVarmail, kUntilSettled},
    {"fileserver", "Filebench's file server", kOfPersonalities, kFileserver, kUntilSettled},
    {"webserver", "Filebench's web server", kOfPersonalities, kWebserver},
    {"mdtest", "trees are made, looked at and removed, as by mdtest", 1, kTree},
};

constexpr auto kWorkloadNames = [] {
  std::array<std::string_view, std::size(kWorkloads)> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kWorkloads[i].name;
  return names;
}();

constexpr std::array<std::string_view, 5> kOfClusters{"application_nodes", "application_at",
                                                      "mirrors", "groups", "replicas"};

constexpr std::array<std::string_view, 10> kOfWorkloads{
    "files", "file_size", "io_size",      "append_size", "directory_width",
    "depth", "branching", "read_percent", "fsync_every", "shared_file"};

constexpr std::array<std::string_view, 2> kApplicationPlaces{"nodes", "stores"};

constexpr Parameter kParameters[] = {
    {.name = "workload",
     .type = OneOf{kWorkloadNames},
     .identifies = true,
     .what = "what the threads do"},
    {.name = "operations",
     .type = Count{1, kLargest},
     .what = "measured, of all threads together; of mdtest, if left out: each tree once"},
    {.name = "warmup",
     .type = Count{0, kLargest},
     .what = "operations before that, of all threads together; if left out 40 for each file of "
             "varmail and fileserver, else none"},
    {.name = "threads",
     .type = Count{1, 1024},
     .identifies = true,
     .noun = "threads",
     .title = "Application threads",
     .what = "threads of the application; if left out 8 for Filebench's personalities, else 1"},
    {.name = "queue_depth",
     .type = Count{1, 4096},
     .usual = 1,
     .identifies = true,
     .what = "operations under way per thread, each with files of its own"},
    {.name = "size",
     .type = Count{1 << 20, kLargest},
     .usual = 256 * MiB,
     .unit = "bytes",
     .what = "persistent memory that the file system has"},
    {.name = "files",
     .type = Count{1, std::uint64_t{1} << 31},
     .identifies = true,
     .noun = "files",
     .title = "Files",
     .what = "files that a personality may have; otherwise those of each thread"},
    {.name = "file_size",
     .type = Count{0, kLargest},
     .identifies = true,
     .noun = "file size",
     .title = "File size",
     .unit = "bytes",
     .what = "size of a file; for a personality the mean of a gamma distribution"},
    {.name = "io_size",
     .type = Count{1, std::uint64_t{1} << 30},
     .identifies = true,
     .noun = "I/O size",
     .title = "I/O size",
     .unit = "bytes",
     .what = "size of a read or write; whole files are read and written in such pieces"},
    {.name = "append_size",
     .type = Count{1, std::uint64_t{1} << 30},
     .identifies = true,
     .noun = "append size",
     .title = "Append size",
     .unit = "bytes",
     .what = "size of an append; a personality draws it from 0 to this less 1"},
    {.name = "directory_width",
     .type = Count{2, kLargest},
     .identifies = true,
     .noun = "directory width",
     .title = "Entries of a directory",
     .what = "entries of a directory; size of a file; for a personality the mean of a gamma "
             "distribution"},
    {.name = "depth",
     .type = Count{1, 64},
     .identifies = true,
     .noun = "depth",
     .title = "Depth of directories",
     .what = "directories on the way to a file; of mdtest levels below the root of a tree"},
    {.name = "branching",
     .type = Count{1, 1024},
     .identifies = true,
     .noun = "branching factor",
     .title = "Branching factor",
     .what = "for mdtest, directories in each directory above the lowest level"},
    {.name = "read_percent",
     .type = Count{0, 100},
     .identifies = true,
     .noun = "share of reads",
     .title = "Reads",
     .unit = "%",
     .what = "share of reads in a mix of reads and writes"},
    {.name = "fsync_every",
     .type = Count{0, kLargest},
     .identifies = true,
     .noun = "writes per fsync",
     .title = "Writes per fsync",
     .what = "a thread calls fsync after so many writes; 0: never"},
    {.name = "shared_file",
     .type = Count{0, 1},
     .usual = 0,
     .identifies = true,
     .noun = "shared file",
     .title = "Shared file",
     .what = "1: all threads use the same file"},
    {.name = "think_us",
     .type = Count{0, 1'000'000'000},
     .usual = 0,
     .identifies = true,
     .noun = "time between operations",
     .title = "Time between operations",
     .unit = "us",
     .what = "time that passes before each operation, in which nothing is done: what a program and "
             "system calls take"},
    {.name = "replication",
     .type = Name{},
     .usual = "none",
     .identifies = true,
     .noun = "replication",
     .title = "Replication",
     .what = "the system of replicated memory in whose region the file system is"},
    {.name = "application_nodes",
     .type = Count{1, 1024},
     .usual = 1,
     .identifies = true,
     .noun = "application nodes",
     .title = "Nodes of the application",
     .what = "nodes over which the threads are shared out, at most one for each thread, of a file "
             "system that has servers"},
    {.name = "application_at",
     .type = OneOf{kApplicationPlaces},
     .usual = "nodes",
     .identifies = true,
     .noun = "place of the application",
     .title = "Place of the application",
     .what = "where the threads of the application are: on nodes of their own, or on those of the "
             "stores"},
    {.name = "mirrors",
     .type = Count{0, 1},
     .usual = 0,
     .identifies = true,
     .noun = "mirrors",
     .title = "Mirrors of the metadata server",
     .what = "nodes that mirror the metadata, of a file system that has servers"},
    {.name = "groups",
     .type = Count{1, 1024},
     .usual = 1,
     .identifies = true,
     .noun = "replication groups",
     .title = "Replication groups",
     .what = "groups of data stores, each of which holds `size` bytes"},
    {.name = "replicas",
     .type = Count{1, 64},
     .usual = 1,
     .identifies = true,
     .noun = "replicas",
     .title = "Data stores of a group",
     .what = "data stores in each group, which hold the same"},
    kDomain,
    kDdio,
    kReceiveBuffers,
    kTransport,
    kPersistence,
    kFileSystem,
};

}  // namespace

std::span<const Parameter> fs_parameters() { return kParameters; }
std::span<const FileWorkloadEntry> file_workloads() { return kWorkloads; }
std::span<const std::string_view> parameters_of_workloads() { return kOfWorkloads; }
std::span<const std::string_view> parameters_of_clusters() { return kOfClusters; }

const FileWorkloadEntry& file_workload(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kWorkloads), std::end(kWorkloads),
                   [&](const FileWorkloadEntry& each) { return each.name == name; });
  if (found == std::end(kWorkloads)) throw std::logic_error("no such workload");
  return *found;
}

}  // namespace perdura::bench
