#include "tests/mount/mounted.h"

#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "mount/source.h"
#include "systems/registry/registry.h"

namespace perdura::test {

namespace {

int exit_code_of(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string why_no_mounts() {
  if (geteuid() != 0) return "only root may mount";
  if (access("/dev/fuse", R_OK | W_OK) != 0) return "there is no /dev/fuse";
  return "";
}

std::vector<std::string> mounted_systems() {
  std::vector<std::string> names{"model"};
  for (const fs::FsSystem& system : systems::fs_systems()) {
    // A mount has one place, and no servers.
    if (system.cluster == nullptr) names.emplace_back(system.info.name);
  }
  return names;
}

bool is_persistent(const std::string& system) { return system != "model"; }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Mounted::Mounted(std::string system, std::string options, Bytes size)
    : system_(std::move(system)),
      options_(std::move(options)),
      folder_("/dev/shm", "mounted"),
      directory_(folder_.path() / "on") {
  std::filesystem::create_directory(directory_);
  const mount::MountSource at(place());
  if (is_persistent(system_)) {
    at.run([&](Thread& thread) {
      return systems::find_fs_system(system_).make(thread, at.name(),
                                                   {.size = size, .parameters = {}});
    });
  } else {
    // The model keeps nothing there, but a place is a region.
    std::ofstream(place()).close();
    std::filesystem::resize_file(place(), 4096);
  }
  mount();
}

void Mounted::mount() {
  std::array<int, 2> said{};
  if (pipe(said.data()) != 0) throw std::runtime_error("pipe");
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(said[1], STDOUT_FILENO);
    close(said[0]);
    close(said[1]);
    execl(PERDURA_SERVED, PERDURA_SERVED, system_.c_str(), place().c_str(), directory_.c_str(),
          options_.c_str(), trace_.c_str(), nullptr);
    _exit(3);
  }
  close(said[1]);
  char one = 0;
  const bool serves = read(said[0], &one, 1) == 1;
  close(said[0]);
  if (!serves) throw std::runtime_error("cannot be mounted");
}

int Mounted::await_process() { return exit_code_of(std::exchange(process_, 0)); }

int Mounted::unmount() {
  if (umount2(directory_.c_str(), 0) != 0) return -errno;
  return await_process();
}

void Mounted::kill() {
  ::kill(process_, SIGKILL);
  await_process();
  umount2(directory_.c_str(), MNT_DETACH);
}

Mounted::~Mounted() {
  if (process_ != 0) kill();
}

Reference::Reference() : folder_("/dev/shm", "reference"), directory_(folder_.path() / "on") {
  std::filesystem::create_directory(directory_);
  const std::string image = folder_.path() / "image";
  const std::string make = "truncate -s 256M " + image + " && mkfs.ext4 -q -b 4096 " + image +
                           " 2>/dev/null && mount -o loop " + image + " " + directory_.string() +
                           " 2>/dev/null";
  ext4_ = std::system(make.c_str()) == 0;
  if (ext4_) std::filesystem::remove(directory_ / "lost+found");
}

Reference::~Reference() {
  if (ext4_) umount2(directory_.c_str(), MNT_DETACH);
}

}  // namespace perdura::test
