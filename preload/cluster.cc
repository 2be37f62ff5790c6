#include "preload/cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "methods/chooser.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/host/os_thread.h"
#include "preload/reader_processes.h"
#include "systems/registry/registry.h"

namespace perdura::preload {

namespace fs = std::filesystem;
using services::MemoryConfig;
using services::MemoryReplica;
using services::MemoryRole;
using services::MemorySystem;

namespace {

constexpr char kBetween = ':';  // separates files in a variable
constexpr Bytes kPage = 4 * KiB;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    throw UsageError(
        fmt::format("{} is not set; start the program with 'perdura mojim run'", name));
  }
  return value;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(kBetween, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

[[noreturn]] void fail(const std::string& file, const char* what) {
  throw PlatformError(fmt::format("{}: {}: {}", file, what, std::strerror(errno)));
}

void give_size(const std::string& file, Bytes size, bool create) {
  const int flags = O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0);
  const int descriptor = open(file.c_str(), flags, 0644);
  if (descriptor < 0) fail(file, "cannot be opened");
  struct stat found {};
  fstat(descriptor, &found);
  const auto has = static_cast<Bytes>(found.st_size);
  // Allocate it all now, including holes, so that a full medium is noticed now.
  constexpr Bytes kBlock = 512;
  const bool is_whole = has >= size && static_cast<Bytes>(found.st_blocks) * kBlock >= size;
  const int problem =
      is_whole || has > size ? 0 : posix_fallocate(descriptor, 0, static_cast<off_t>(size));
  close(descriptor);
  if (problem == ENOSPC) {
    throw UsageError(fmt::format("{}: there is no room for {} bytes", file, size));
  }
  errno = problem;
  if (problem != 0) fail(file, "cannot get its size");
  if (has > size) {
    throw UsageError(
        fmt::format("{}: has {} bytes, and the region has {}; raise --size", file, has, size));
  }
}

// The folder with the node's persistent memory.
fs::path folder_of_memory(const std::string& file) {
  const fs::path elsewhere = fs::path(state_folder(file)) / "log";
  return is_link(elsewhere) ? elsewhere : fs::path(state_folder(file));
}

void give_log(const std::string& file, const std::string& log) {
  const fs::path folder = state_folder(file);
  const fs::path elsewhere = folder / "log";
  std::error_code error;
  if (!is_link(elsewhere)) {
    if (is_there(folder / (std::string(kRegion) + ".logs"))) {
      throw UsageError(
          fmt::format("{} has its log in {} already; leave --log out", file, folder.string()));
    }
    if (is_there(fs::path(log) / (std::string(kRegion) + ".logs"))) {
      throw UsageError(
          fmt::format("--log {}: has the log of another file; name another folder", log));
    }
    fs::create_directories(log, error);
    if (!error) fs::create_directory_symlink(log, elsewhere, error);
    if (error) throw PlatformError(fmt::format("{}: {}", log, error.message()));
  }
  if (!fs::equivalent(elsewhere, log, error)) {
    throw UsageError(fmt::format("{} has its log in {}; leave --log out, or name that folder", file,
                                 fs::read_symlink(elsewhere).string()));
  }
}

// Gives a node's file another name, under which the service knows it.
void link_file(const std::string& file, const fs::path& known, bool is_same_medium) {
  std::error_code error;
  if (is_there(known)) return;
  fs::create_directories(known.parent_path(), error);
  if (is_same_medium) {
    fs::create_hard_link(file, known, error);
  } else {
    fs::create_symlink(file, known, error);
  }
  if (error) throw PlatformError(fmt::format("{}: {}", known.string(), error.message()));
}

}  // namespace

Cluster Cluster::from_environment() {
  Cluster cluster;
  cluster.job = variable("PERDURA_MOJIM_JOB");
  cluster.mode = variable("PERDURA_MOJIM_MODE");
  const std::string size = variable("PERDURA_MOJIM_SIZE");
  const auto read = std::from_chars(size.data(), size.data() + size.size(), cluster.size);
  if (read.ec != std::errc() || read.ptr != size.data() + size.size()) {
    throw UsageError(fmt::format("PERDURA_MOJIM_SIZE is '{}'; it must be a number of bytes", size));
  }
  cluster.files = split(variable("PERDURA_MOJIM_FILES"));
  const std::string domain = variable("PERDURA_MOJIM_DOMAIN");
  cluster.domain = domain == "paper" ? "" : domain;
  cluster.ddio = variable("PERDURA_MOJIM_DDIO") == "on";
  return cluster;
}

std::vector<std::string> Cluster::environment() const {
  std::string all;
  for (const std::string& file : files) all += (all.empty() ? "" : ":") + file;
  return {"PERDURA_MOJIM_JOB=" + job,
          "PERDURA_MOJIM_MODE=" + mode,
          fmt::format("PERDURA_MOJIM_SIZE={}", size),
          "PERDURA_MOJIM_FILES=" + all,
          "PERDURA_MOJIM_DOMAIN=" + (domain.empty() ? "paper" : domain),
          fmt::format("PERDURA_MOJIM_DDIO={}", ddio ? "on" : "off")};
}

const MemorySystem& Cluster::system() const {
  const MemorySystem& system = systems::find_memory_system(mode);
  const std::size_t copies = files.size() - 1;
  if (copies > 0 && system.copies.most == 0) {
    throw UsageError(fmt::format("{} has no copies; leave --mirror and --backup out", mode));
  }
  if (copies == 0 && system.copies.least > 0) {
    throw UsageError(fmt::format("{} needs a mirror; add --mirror FILE", mode));
  }
  if (copies < system.copies.least) {
    throw UsageError(fmt::format("{} needs a backup; add --backup FILE", mode));
  }
  if (copies > system.copies.most) {
    throw UsageError(
        system.copies.most == 1
            ? fmt::format("{} has no backups; leave --backup out", mode)
            : fmt::format("{} has no more than {} backups", mode, system.copies.most - 1));
  }
  return system;
}

MemoryConfig Cluster::config() const {
  MemoryConfig config{.size = size, .threads = 1};
  config.nodes.resize(files.size());
  std::iota(config.nodes.begin(), config.nodes.end(), NodeId{0});
  const MemorySystem& memory = system();
  if (!domain.empty() && memory.update) {
    const auto configurations = methods::configurations({.domain = domain,
                                                         .ddio = ddio ? "on" : "off",
                                                         .receive_buffers = "pm",
                                                         .transport = "ib"});
    config.method = methods::choose(configurations, *memory.update, {});
  }
  return config;
}

MemoryRole Cluster::role(NodeId node) const {
  return node == 0 ? MemoryRole::primary : node == 1 ? MemoryRole::mirror : MemoryRole::backup;
}

void prepare_files(const Cluster& cluster, NodeId node) {
  const std::string& file = cluster.files.at(node);
  if (cluster.size == 0 || cluster.size % kPage != 0) {
    throw UsageError(fmt::format("{}: the size must be whole pages of {} bytes", file, kPage));
  }
  const fs::path folder = state_folder(file);
  const fs::path known = folder / kRegion;
  give_size(file, cluster.size, node > 0);
  std::error_code error;
  fs::create_directory(folder, error);
  if (is_there(known) && !fs::equivalent(file, known, error)) {
    throw UsageError(
        fmt::format("{} is another file than the one that {} belongs to; remove the folder if the "
                    "copies of the former file are not needed any more",
                    file, folder.string()));
  }
  link_file(file, known, true);
  if (node == 1 && !cluster.log.empty()) give_log(file, cluster.log);
  if (node > 0 && cluster.system().copies_on_disk) {
    link_file(file, folder / ".disk" / (std::string(kRegion) + ".disk"), true);
  } else if (is_link(folder / "log")) {
    link_file(file, folder / "log" / kRegion, false);
  }
}

namespace {

void link_folder(const fs::path& link, const fs::path& folder) {
  std::error_code error;
  if (fs::read_symlink(link, error) == folder) return;
  fs::remove(link, error);
  fs::create_directory_symlink(folder, link, error);
  // Another process of the cluster may have made it meanwhile.
  if (error && fs::read_symlink(link) != folder) {
    throw PlatformError(fmt::format("{}: {}", link.string(), error.message()));
  }
}

}  // namespace

std::unique_ptr<ShmPlatform> join(const Cluster& cluster, std::vector<NodeId> nodes) {
  // The platform looks for the nodes' memory in this folder, which has links to the nodes' own
  // folders.
  const fs::path links = state_folder(cluster.files.front()) + ".nodes";
  const fs::path links_to_disk = links / "disk";
  std::error_code error;
  fs::create_directories(links_to_disk, error);
  for (NodeId node = 0; node < cluster.files.size(); ++node) {
    const fs::path folder = state_folder(cluster.files[node]);
    fs::create_directory(folder, error);
    const std::string name = fmt::format("node-{}", node);
    link_folder(links / name, folder_of_memory(cluster.files[node]));
    link_folder(links_to_disk / name, folder / ".disk");
  }
  ShmOptions options;
  options.job = nodes.empty() ? "" : cluster.job;
  options.node_count = static_cast<NodeId>(cluster.files.size());
  options.local_nodes = std::move(nodes);
  options.pm_directory = links.string();
  options.disk_directory = links_to_disk.string();
  options.accounting = pmem::WriteMeter::Level::issued;
  // A node that has died does not answer. All others are running before the program begins, but on
  // a busy host they may have to wait for a processor.
  options.fabric.connection_timeout = Milliseconds(5000);
  return std::make_unique<ShmPlatform>(std::move(options));
}

namespace {

// Ends this process at once: its copy is as durable as it would be at any other end.
void end_with(int life) {
  char nothing = 0;
  while (read(life, &nothing, 1) < 0 && errno == EINTR) {
  }
  _exit(0);
}

}  // namespace

void serve_copy(const Cluster& cluster, NodeId node, int life,
                const std::function<void()>& serves) {
  OsThread([life] { end_with(life); }, ThreadSignals::blocked).detach();
  prepare_files(cluster, node);
  const MemorySystem& system = cluster.system();
  ReaderProcesses readers(cluster.files.at(node), ReaderProcesses::Role::copy);
  MemoryConfig config = cluster.config();
  config.readers = &readers;
  const auto platform = join(cluster, {node});
  std::shared_ptr<MemoryReplica> replica;
  for (std::uint32_t worker = 0; worker < system.workers(config); ++worker) {
    platform->start_service(node, static_cast<fabric::Port>(worker), CompletionMode::event,
                            [&](Thread& thread) -> Task<> {
                              if (thread.endpoint.address().port == 0) {
                                replica = system.open(thread, kRegion, config, cluster.role(node));
                              }
                              while (!replica) co_await sleep_for(Microseconds(100));
                              if (thread.endpoint.address().port == 0) serves();
                              co_await replica->serve(thread);
                            });
  }
  platform->run();
}

bool recover_copy(const Cluster& cluster, NodeId node, bool missed) {
  prepare_files(cluster, node);
  bool complete = false;
  ReaderProcesses readers(cluster.files.at(node), ReaderProcesses::Role::copy);
  MemoryConfig config = cluster.config();
  config.readers = &readers;
  const auto platform = join(cluster, {});
  platform->start(node, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const MemorySystem& system = cluster.system();
    const auto copy = system.open(thread, kRegion, config, cluster.role(node));
    // A copy for which applications wait is not marked: it may be the only one that has what they
    // were told is safe, if the primary had not noticed that it was gone.
    if (missed && node > system.synced_copies) copy->note_missed();
    complete = copy->is_complete();
    co_return;
  });
  platform->run();
  return complete;
}

}  // namespace perdura::preload
