#include "tests/mount/two_mounts.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>

#include "platform/fabric/tcp/sockets.h"
#include "systems/registry/registry.h"

namespace perdura::test {

namespace {

int await_end(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct StartedProgram {
  pid_t process = 0;
  int said = -1;
  std::string what;
};

// Starts the program, which says by `ready`, one of its descriptors, that it is ready.
StartedProgram begin_to_start(std::vector<std::string> words, int ready) {
  words.insert(words.begin(), PERDURA_PROGRAM);
  std::array<int, 2> said{};
  if (pipe(said.data()) != 0) throw std::runtime_error("pipe");
  const pid_t process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(said[1], ready);
    for (const int end : said) {
      if (end != ready) close(end);
    }
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(PERDURA_PROGRAM, arguments.data());
    _exit(3);
  }
  close(said[1]);
  return {process, said[0], words[1] + " " + words[2]};
}

// Waits for the first byte, and returns the process.
pid_t await_start(const StartedProgram& program) {
  constexpr int kMinute = 60'000;
  char one = 0;
  pollfd said{.fd = program.said, .events = POLLIN, .revents = 0};
  const bool says = poll(&said, 1, kMinute) == 1;
  const bool runs = says && read(program.said, &one, 1) == 1;
  close(program.said);
  if (runs) return program.process;
  if (!says) {
    ::kill(program.process, SIGKILL);
    await_end(program.process);
    throw std::runtime_error(program.what + ": says nothing for a minute");
  }
  throw std::runtime_error(
      fmt::format("{}: ended with {}", program.what, await_end(program.process)));
}

pid_t start(std::vector<std::string> words, int ready) {
  return await_start(begin_to_start(std::move(words), ready));
}

bool has_ended(pid_t process) {
  siginfo_t about{};
  return waitid(P_PID, static_cast<id_t>(process), &about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         about.si_pid != 0;
}

// Pairs of ports at which nobody listens at this moment, the first of each pair. They are none of
// those that the kernel gives to connections, which could have them while a server is not running.
std::vector<std::uint16_t> free_ports(std::size_t count) {
  constexpr int kFirst = 20'000;
  constexpr int kPorts = 10'000;
  std::vector<fabric::tcp::ListeningSocket> sockets;
  std::vector<std::uint16_t> ports;
  for (int at = getpid() * 16 % kPorts; ports.size() < count; at = (at + 2) % kPorts) {
    const auto port = static_cast<std::uint16_t>(kFirst + at);
    auto first = fabric::tcp::try_to_listen("127.0.0.1", port);
    auto second = fabric::tcp::try_to_listen("127.0.0.1", static_cast<std::uint16_t>(port + 1));
    if (!first || !second) continue;
    ports.push_back(port);
    sockets.push_back(std::move(*first));
    sockets.push_back(std::move(*second));
  }
  return ports;
}

// Some systems have all data at the metadata server.
bool has_stores(const std::string& system) {
  const auto servers = systems::find_fs_system(system).cluster->small;
  return std::any_of(servers.begin(), servers.end(),
                     [](const auto& server) { return server.role == fs::FsRole::store; });
}

}  // namespace

TwoMounts::TwoMounts(const MountedCluster& cluster)
    : cluster_(cluster),
      system_(cluster.system),
      folder_("/dev/shm", "two-mounts"),
      a_(folder_.path() / "a"),
      b_(folder_.path() / "b") {
  std::filesystem::create_directory(a_);
  std::filesystem::create_directory(b_);
  const std::vector<std::string> names = configure(configuration(), cluster);
  const pid_t making = fork();
  if (making == 0) {
    freopen("/dev/null", "w", stdout);
    execl(PERDURA_PROGRAM, PERDURA_PROGRAM, "fs", "mkfs", system_.c_str(), configuration().c_str(),
          nullptr);
    _exit(3);
  }
  if (await_end(making) != 0) throw std::runtime_error("cannot be made");
  serve(names);
  mount(a_);
  mount(b_);
}

// Returns the names of the servers.
std::vector<std::string> TwoMounts::configure(const std::string& file,
                                              const MountedCluster& cluster) const {
  std::vector<std::string> names{"mds"};
  if (has_stores(system_)) names.emplace_back("left");
  if (cluster.stores > 1) names.emplace_back("right");
  if (cluster.has_mirror) names.emplace_back("mirror");
  const std::vector<std::uint16_t> ports = free_ports(names.size());
  std::ofstream text(file);
  text << fmt::format("name = \"home\"\nplatform = \"{}\"\nsize = {}\n[parameters]\n{}\n",
                      cluster.platform, cluster.size, cluster.parameters);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const char* const role = name == "mds" ? "metadata" : name == "mirror" ? "mirror" : "store";
    text << fmt::format("[servers.{}]\nrole = \"{}\"\ndirectory = \"{}/{}\"\n", name, role,
                        folder_.path().string(), name);
    if (cluster.platform == "sockets") {
      text << fmt::format("address = \"127.0.0.1:{}\"\n", ports[i]);
    }
  }
  return names;
}

TwoMounts::~TwoMounts() {
  while (!mounts_.empty()) kill(mounts_.begin()->first);
  while (!servers_.empty()) end_server(servers_.begin()->first);
}

// All at once, since a server may wait for another one.
void TwoMounts::serve(const std::vector<std::string>& names) {
  std::vector<StartedProgram> programs;
  for (const std::string& name : names) {
    programs.push_back(
        begin_to_start({"fs", "serve", system_, configuration(), name}, STDOUT_FILENO));
    servers_[name] = programs.back().process;
  }
  for (const StartedProgram& program : programs) await_start(program);
}

void TwoMounts::serve_elsewhere(const std::string& name) {
  MountedCluster other = cluster_;
  other.platform = "sockets";
  const std::string file = folder_.path() / "other.toml";
  configure(file, other);
  const pid_t process = start({"fs", "serve", system_, file, name}, STDOUT_FILENO);
  ::kill(process, SIGKILL);
  await_end(process);
}

std::vector<std::string> TwoMounts::servers() const {
  std::vector<std::string> names;
  for (const auto& [name, process] : servers_) names.push_back(name);
  return names;
}

std::optional<std::string> TwoMounts::ended() const {
  for (const auto& [name, process] : servers_) {
    if (has_ended(process)) return name;
  }
  for (const auto& [directory, process] : mounts_) {
    if (has_ended(process)) return directory.string();
  }
  return std::nullopt;
}

int TwoMounts::end_server(const std::string& name, int signal) {
  const pid_t process = servers_.extract(name).mapped();
  ::kill(process, signal);
  return await_end(process);
}

void TwoMounts::mount(const std::filesystem::path& directory,
                      const std::vector<std::string>& options) {
  constexpr int kReady = 3;
  std::vector<std::string> words{"fs",
                                 "mount",
                                 system_,
                                 configuration(),
                                 directory,
                                 "--foreground",
                                 fmt::format("--ready={}", kReady),
                                 "--threads=3"};
  words.insert(words.end(), options.begin(), options.end());
  mounts_[directory] = start(words, kReady);
}

int TwoMounts::unmount(const std::filesystem::path& directory) {
  if (umount2(directory.c_str(), 0) != 0) return -errno;
  return await_end(mounts_.extract(directory).mapped());
}

void TwoMounts::kill(const std::filesystem::path& directory) {
  const std::filesystem::path where = directory;
  const pid_t process = mounts_.extract(where).mapped();
  ::kill(process, SIGKILL);
  await_end(process);
  umount2(where.c_str(), MNT_DETACH);
}

std::vector<std::string> systems_by_any_mount() {
  std::vector<std::string> names = mounted_systems();
  for (const fs::FsSystem& system : systems::fs_systems()) {
    if (system.cluster != nullptr) names.emplace_back(system.info.name);
  }
  return names;
}

std::vector<std::string> ways_to_mount() {
  std::vector<std::string> ways = mounted_systems();
  for (const fs::FsSystem& system : systems::fs_systems()) {
    if (system.cluster == nullptr) continue;
    for (const std::string& platform : kPlatformsOfOneHost) {
      ways.push_back(fmt::format("{}_{}", system.info.name, platform));
    }
  }
  return ways;
}

AnyMounts::AnyMounts(const std::string& way) {
  const auto alone = mounted_systems();
  if (std::find(alone.begin(), alone.end(), way) != alone.end()) {
    one_ = std::make_unique<Mounted>(way);
  } else {
    const std::size_t end = way.rfind('_');
    two_ = std::make_unique<TwoMounts>(MountedCluster{
        .system = way.substr(0, end), .platform = way.substr(end + 1), .size = 256 * MiB});
  }
}

}  // namespace perdura::test
