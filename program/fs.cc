// perdura fs mkfs, check, dump, mount and serve: file systems in persistent memory
// (docs/filesystem.md).
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>

#include "mount/make.h"
#include "mount/mount.h"
#include "mount/source.h"
#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "program/commands.h"
#include "program/fs_cluster.h"
#include "systems/registry/registry.h"

extern char** environ;

namespace perdura::program {
namespace {

using fs::FsSystem;
using mount::MountSource;

struct FsArguments {
  std::string system;
  std::string source;  // a place or, of a system with servers, its configuration file
  std::optional<Bytes> size;
  std::vector<std::string> servers;
  std::string server;
  std::string store;
  std::optional<std::uint64_t> inodes;
  bool force = false;
  bool repair = false;
  std::optional<std::uint64_t> inode;
  mount::MountOptions mount;
  bool foreground = false;
  int ready = -1;
};

// A file system that has servers.
const FsSystem& find_cluster(std::string_view name) {
  const FsSystem& system = systems::find_fs_system(name);
  if (system.cluster != nullptr) return system;
  throw UsageError(fmt::format("{} has no servers; mount it where its memory is", name));
}

void refuse(bool given, std::string_view option, std::string_view why) {
  if (given) throw UsageError(fmt::format("{} {}", option, why));
}

// The file system of commands that examine a source: --system, or else the first one.
const FsSystem& system_of(const FsArguments& arguments) {
  const auto all = systems::fs_systems();
  if (all.empty()) throw UsageError("this perdura has no file system");
  const FsSystem& system =
      arguments.system.empty() ? all.front() : systems::find_fs_system(arguments.system);
  if (system.inspect != nullptr && system.dump != nullptr) return system;
  throw UsageError(fmt::format("{} offers no check and no dump", system.info.name));
}

harness::ExitCode make(const FsArguments& arguments) {
  if (systems::find_fs_system(arguments.system).cluster != nullptr) {
    refuse(arguments.size.has_value(), "--size", "is in the configuration file; leave it out");
    refuse(arguments.inodes.has_value(), "--inodes", "is in the configuration file; leave it out");
    refuse(arguments.force, "--force", "is not offered for it; remove the servers' memory before");
    return make_parts(find_cluster(arguments.system), arguments.source, arguments.servers);
  }
  refuse(!arguments.servers.empty(), "--server", "is for file systems with servers");
  if (!arguments.size) {
    throw UsageError("--size is required (see 'perdura fs mkfs --help')");
  }
  const FsSystem& system = systems::find_fs_system(arguments.system);
  const MountSource source(arguments.source);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  fs::FsConfig config{
      .size = *arguments.size,
      .root_uid = geteuid(),
      .root_gid = getegid(),
      .now = {now.tv_sec, static_cast<std::uint32_t>(now.tv_nsec)},
      .parameters = {},
  };
  if (arguments.inodes) config.parameters["inodes"] = *arguments.inodes;
  const Bytes size = mount::make(system, source, config, arguments.force);
  fmt::print("{}: an empty file system {} of {} bytes\n", source.path(), system.info.name, size);
  if (!mount::is_in_memory(source)) {
    fmt::print(
        "{}: its memory is on a disk and not taken yet: first writes are slower than later\n",
        source.path());
  }
  return harness::ExitCode::done;
}

// Reports a source that cannot be opened as wrong usage: exit code 1 would mean that it is damaged.
void use(const MountSource& source, mount::Access access,
         const std::function<Task<>(Thread&)>& body) {
  try {
    mount::wait_until_free(source, access);
    source.run(body, access);
  } catch (const PlatformError& error) {
    throw UsageError(error.what());
  }
}

harness::ExitCode check(const FsArguments& arguments) {
  const FsSystem& system = system_of(arguments);
  const MountSource source(arguments.source);
  std::vector<fs::Damage> found;
  use(source, arguments.repair ? mount::Access::in_place : mount::Access::private_copy,
      [&](Thread& thread) -> Task<> {
        found = co_await system.inspect(thread, source.name(), arguments.repair);
      });
  bool whole = true;
  for (const fs::Damage& damage : found) {
    fmt::print("{}: {}{}\n", damage.where, damage.what, damage.repaired ? " (repaired)" : "");
    whole = whole && damage.repaired;
  }
  if (found.empty()) {
    fmt::print("{}: nothing is damaged\n", source.path());
  } else if (whole) {
    fmt::print("{}: all of that is repaired\n", source.path());
  }
  return whole ? harness::ExitCode::done : harness::ExitCode::failed;
}

harness::ExitCode dump(const FsArguments& arguments) {
  const FsSystem& system = system_of(arguments);
  const MountSource source(arguments.source);
  std::optional<fs::InodeNumber> inode;
  if (arguments.inode) inode = fs::InodeNumber{*arguments.inode};
  std::string text;
  use(source, mount::Access::private_copy,
      [&](Thread& thread) -> Task<> { text = co_await system.dump(thread, source.name(), inode); });
  fmt::print("{}", text);
  return harness::ExitCode::done;
}

// Tells the waiting parent that the mount is usable, and detaches from terminal and current folder.
void go_to_background(int ready) {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0 || chdir("/") != 0) throw PlatformError("there is no /dev/null");
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, standard);
  close(nowhere);
  if (write(ready, "+", 1) != 1) throw PlatformError("nobody waits for the mount");
  close(ready);
}

// Starts this program again as the serving process, and waits until it serves or has reported why
// it cannot.
harness::ExitCode mount_in_background(const FsArguments& arguments) {
  std::array<int, 2> said{};
  if (pipe2(said.data(), O_CLOEXEC) != 0) {
    throw PlatformError(fmt::format("pipe: {}", std::strerror(errno)));
  }
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  constexpr int kReady = 3;  // the child's descriptor of the pipe
  std::vector<std::string> words{program,
                                 "fs",
                                 "mount",
                                 arguments.system,
                                 arguments.source,
                                 arguments.mount.directory,
                                 fmt::format("--threads={}", arguments.mount.threads),
                                 "--foreground",
                                 fmt::format("--ready={}", kReady)};
  if (!arguments.mount.options.empty()) words.push_back("--options=" + arguments.mount.options);
  if (!arguments.store.empty()) words.push_back("--store=" + arguments.store);
  if (!arguments.mount.trace.empty()) words.push_back("--trace=" + arguments.mount.trace);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, said[1], kReady);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t child = 0;
  const int problem =
      posix_spawn(&child, program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(said[1]);
  if (problem != 0) throw PlatformError(fmt::format("{}: {}", program, std::strerror(problem)));
  char one = 0;
  const bool serves = read(said[0], &one, 1) == 1;
  close(said[0]);
  if (serves) return harness::ExitCode::done;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return static_cast<harness::ExitCode>(WEXITSTATUS(status));
  throw PlatformError(
      fmt::format("the process that serves the mount was ended by signal {}", WTERMSIG(status)));
}

// A file that was named and may not be read is a wrong argument. Everything else is found by
// mounting.
void check_readable(const FsArguments& arguments) {
  const std::string& source = arguments.source;
  const PathKind kind = kind_of(source);
  if (kind == PathKind::unknown || (kind == PathKind::file && !std::ifstream(source))) {
    throw UsageError(fmt::format("{}: {}", source, not_a_file(source)));
  }
  try {
    names_in(arguments.mount.directory);
  } catch (const PlatformError& unreadable) {
    throw UsageError(unreadable.what());
  }
}

harness::ExitCode mount(FsArguments arguments) {
  check_readable(arguments);
  const FsSystem& system = systems::find_fs_system(arguments.system);
  const bool has_servers = system.cluster != nullptr;
  refuse(!has_servers && !arguments.store.empty(), "--store", "is for file systems with servers");
  if (arguments.mount.threads > 0 && !has_servers) {
    fs::FsConfig config;
    config.threads = arguments.mount.threads;
    system.check(config);
  }
  if (arguments.ready < 0 && !arguments.foreground && mount::is_available()) {
    return mount_in_background(arguments);
  }
  std::error_code error;
  const auto directory = std::filesystem::absolute(arguments.mount.directory, error);
  arguments.mount.directory = directory.lexically_normal().string();
  if (arguments.ready >= 0) {
    // The descriptor belongs to this process only; its children must not inherit it.
    fcntl(arguments.ready, F_SETFD, FD_CLOEXEC);
    arguments.mount.ready = [ready = arguments.ready] { go_to_background(ready); };
  }
  if (has_servers) {
    mount_cluster(system, arguments.source, arguments.store, arguments.mount);
  } else {
    mount::serve(system, MountSource(arguments.source), arguments.mount);
  }
  return harness::ExitCode::done;
}

harness::ExitCode serve(const FsArguments& arguments) {
  return serve_part(find_cluster(arguments.system), arguments.source, arguments.server);
}

harness::Command& add_command(harness::Command& fs_command, const char* name, const char* what,
                              const std::shared_ptr<FsArguments>& arguments,
                              harness::ExitCode (*work)(const FsArguments&)) {
  harness::Command& command = fs_command.subcommand(name, what);
  command.does([arguments, work] { return work(*arguments); });
  return command;
}

void add_system(harness::Command& command, FsArguments& arguments) {
  command.option("system", arguments.system, "Which file system: nova, orion (perdura list)")
      .required();
}

constexpr const char* kPlaceOrMetadata =
    "The file that is its memory, on DAX, tmpfs or a disk, or /dev/daxX.Y/NAME; for orion, the one "
    "in the metadata server's directory that has the file system's name";
constexpr const char* kPlaceOrConfiguration =
    "The file that is its memory, on DAX, tmpfs or a disk, or /dev/daxX.Y/NAME; for orion, its "
    "configuration file";

void add_source(harness::Command& command, FsArguments& arguments, const char* what) {
  command.option("place", arguments.source, what).required();
}

void add_system_of_source(harness::Command& command, FsArguments& arguments) {
  command.option("--system", arguments.system,
                 "Which file system it is, if not the first that perdura list names");
}

}  // namespace

void add_fs(harness::Command& program, CommandContext&) {
  harness::Command& command =
      program.subcommand("fs", "Makes, checks, shows and mounts file systems in persistent memory");
  command.require_subcommand();
  const auto arguments = std::make_shared<FsArguments>();

  harness::Command& mkfs =
      add_command(command, "mkfs", "Makes an empty file system", arguments, make);
  add_system(mkfs, *arguments);
  add_source(mkfs, *arguments, kPlaceOrConfiguration);
  mkfs.option("--size", arguments->size, "Size of its memory, in whole blocks: 4GiB")
      .size_with_unit();
  mkfs.option("--inodes", arguments->inodes,
              "How many files there can be; if not given, one for each 8 KiB");
  mkfs.flag("--force", arguments->force, "Replaces what is there when the new one is whole");
  mkfs.option(
          "--server", arguments->servers,
          "A server of the configuration file whose part is made; if not given, all that have an "
          "address of this host")
      .one_value_at_a_time();

  harness::Command& checking = add_command(
      command, "check", "Finds and names what is damaged in a file system that is not mounted",
      arguments, check);
  add_source(checking, *arguments, kPlaceOrMetadata);
  checking.flag("--repair", arguments->repair,
                "Repairs it; what can be read of a damaged file gets into lost+found");
  add_system_of_source(checking, *arguments);

  harness::Command& dumping =
      add_command(command, "dump", "Prints what is stored, readable by a person", arguments, dump);
  add_source(dumping, *arguments, kPlaceOrMetadata);
  dumping.option("inode", arguments->inode, "Dumps one inode only; the root directory is 1");
  add_system_of_source(dumping, *arguments);

  harness::Command& mounting =
      add_command(command, "mount", "Mounts a file system on a directory, until umount(8)",
                  arguments, [](const FsArguments& given) { return mount(given); });
  add_system(mounting, *arguments);
  add_source(mounting, *arguments, kPlaceOrConfiguration);
  mounting.option("directory", arguments->mount.directory, "An empty directory").required();
  mounting.flag("-f,--foreground", arguments->foreground, "Serves it in this process");
  mounting.option("-o,--options", arguments->mount.options,
                  "Options of mount(8), separated by commas: ro,noatime,nosuid,nodev");
  mounting.option(
      "--threads", arguments->mount.threads,
      "How many serve it, as many as the file system takes; 0: four for each core, at most "
      "32");
  mounting.option("--store", arguments->store,
                  "The data store of this host whose memory the mount uses directly");
  mounting.option("--trace", arguments->mount.trace,
                  "Records the accesses of programs to files in this file (perdura trace)");
  // For the process that mount_in_background() starts.
  mounting.option("--ready", arguments->ready).hidden();

  harness::Command& serving =
      add_command(command, "serve", "Serves a part of a file system, until SIGTERM or SIGINT",
                  arguments, serve);
  add_system(serving, *arguments);
  serving.option("config", arguments->source, "Its configuration file, in TOML").required();
  serving.option("server", arguments->server, "The name of the server in that file").required();
}

}  // namespace perdura::program
