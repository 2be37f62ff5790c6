// A file system over servers of this host, for tests: they and two mounts of it are processes of
// their own. A process that does not start within a minute is an exception.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/base/units.h"
#include "tests/mount/mounted.h"
#include "tests/support/temporary_directory.h"

namespace perdura::test {

// How the processes of one host can reach each other, by the configuration file's names.
inline const std::vector<std::string> kPlatformsOfOneHost{"sockets", "shm"};

struct MountedCluster {
  std::string system = "orion";
  std::string platform = "sockets";  // one of kPlatformsOfOneHost
  std::string parameters{};          // lines of the configuration file's [parameters]
  Bytes size = 64 * MiB;
  bool has_mirror = false;
  std::size_t stores = 1;  // at most 2, of one group, if the system has stores
};

class TwoMounts {
 public:
  explicit TwoMounts(const MountedCluster& cluster);
  ~TwoMounts();
  TwoMounts(const TwoMounts&) = delete;
  TwoMounts& operator=(const TwoMounts&) = delete;

  // Where the first and the second mount are.
  const std::filesystem::path& a() const { return a_; }
  const std::filesystem::path& b() const { return b_; }
  std::string configuration() const { return folder_.path() / "home.toml"; }

  void mount(const std::filesystem::path& directory, const std::vector<std::string>& options = {});
  int unmount(const std::filesystem::path& directory);  // the exit code of the process
  // Kills the process that serves the mount, in the middle of whatever it does; and unmounts.
  void kill(const std::filesystem::path& directory);
  // The exit code of a server that got the signal.
  int end_server(const std::string& name, int signal = SIGTERM);
  void serve(const std::vector<std::string>& names);
  // Serves a part once more, by another configuration file: of the same servers, with other
  // addresses.
  void serve_elsewhere(const std::string& name);
  // mds, mirror, left and right, as far as they run.
  std::vector<std::string> servers() const;
  // Names a server or a mount whose process has ended by itself; nothing if all run.
  std::optional<std::string> ended() const;

 private:
  std::vector<std::string> configure(const std::string& file, const MountedCluster& cluster) const;

  MountedCluster cluster_;
  std::string system_;
  TemporaryDirectory folder_;
  std::filesystem::path a_;
  std::filesystem::path b_;
  std::map<std::string, pid_t> servers_;
  std::map<std::filesystem::path, pid_t> mounts_;
};

// All systems that can be mounted, those of mounted_systems() and those with servers.
std::vector<std::string> systems_by_any_mount();

// The systems of mounted_systems(), and each with servers on each platform of one host:
// "orion_sockets".
std::vector<std::string> ways_to_mount();

// A mounted file system of any system. If it has servers, there are two mounts of it; otherwise
// both are the same.
class AnyMounts {
 public:
  explicit AnyMounts(const std::string& way);  // one of ways_to_mount()
  const std::filesystem::path& a() const { return two_ ? two_->a() : one_->path(); }
  const std::filesystem::path& b() const { return two_ ? two_->b() : one_->path(); }

 private:
  std::unique_ptr<Mounted> one_;
  std::unique_ptr<TwoMounts> two_;
};

}  // namespace perdura::test
