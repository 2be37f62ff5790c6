// Shards in processes of their own, for tests of the library's clients, and their configuration
// file. With PERDURA_TEST_PLATFORM=verbs they and their clients use an RDMA device of this host.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "perdura_objects.h"
#include "platform/fabric/tcp/sockets.h"
#include "tests/library/processes.h"
#include "tests/support/wait_until.h"

namespace perdura::library_test {

inline constexpr std::uint64_t kPool = 8 << 20;

// The value of a version: of several sizes, inlined and not.
inline std::string value_of(std::uint64_t version) {
  return std::to_string(version) + ":" + std::string(version % 7 * 50, 'v');
}
inline std::uint64_t version_in(const std::string& value) { return std::stoull(value); }

// The program in which shards run plugins is that of the build.
inline void use_programs_of_the_build() { ::setenv("PERDURA_PROGRAMS", PERDURA_TEST_PROGRAMS, 1); }
// The lines of a configuration by which plugins are isolated where this machine can isolate any.
inline std::string isolation() {
  use_programs_of_the_build();
  return ::geteuid() == 0 ? "" : "plugin_isolation = false\n";
}
// The lines by which a shard has this plugin, and this engine unless it is the usual one.
inline std::string with_plugin(const std::string& plugin, const std::string& engine = "") {
  return "plugins = [\"" + plugin + "\"]\n" +
         (engine.empty() ? "" : "engine = \"" + engine + "\"\n") + isolation();
}

// Tests of one engine each, by name: "All/Suite.Test/hstore_cc".
inline std::string name_of_engine(const testing::TestParamInfo<const char*>& engine) {
  std::string name = engine.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// A job of its own with shards "a", "b", ..., whose memory is on the tmpfs.
class Shards {
 public:
  // `of_each`: what the file says of one of them beside what it says of all.
  explicit Shards(unsigned count, const std::string& defaults = "",
                  const std::vector<std::string>& of_each = {}) {
    static std::atomic<int> next{0};
    test::remove_leftovers();
    job_ = test::job_name("mcas") + "-" + std::to_string(next++);
    directory_ = "/dev/shm/perdura-pools-" + job_;
    std::filesystem::create_directories(directory_);
    const char* const platform = std::getenv("PERDURA_TEST_PLATFORM");
    std::ofstream file(this->file());
    file << "job = \"" << job_ << "\"\n";
    if (platform != nullptr) file << "platform = \"" << platform << "\"\n";
    file << "[defaults]\ndirectory = \"" << directory_ << "\"\nemulated = true\nmemory = 33554432\n"
         << defaults << "\n[cluster]\nheartbeat_ms = 20\npatience_ms = 400\n";
    for (unsigned i = 0; i < count; ++i) {
      file << "[shards." << name(i) << "]\nnode = " << i << "\n";
      addresses_.push_back(platform == nullptr || std::string(platform) == "shm" ? "" : address());
      if (!addresses_[i].empty()) file << "address = \"" << addresses_[i] << "\"\n";
      if (i < of_each.size()) file << of_each[i] << "\n";
    }
    servers_.resize(count);
  }
  ~Shards() {
    servers_.clear();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
    std::filesystem::remove_all("/dev/shm/perdura-" + job_, ignored);
  }
  Shards(const Shards&) = delete;
  Shards& operator=(const Shards&) = delete;

  // An address that is free now.
  static std::string address() {
    return "127.0.0.1:" + std::to_string(fabric::tcp::listen_on("127.0.0.1").port);
  }
  static std::string name(unsigned shard) { return std::string(1, static_cast<char>('a' + shard)); }
  std::string file() const { return directory_ + "/shards.toml"; }
  std::string text() const {
    std::ifstream file(this->file());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const std::string& directory() const { return directory_; }
  const std::string& job() const { return job_; }
  std::vector<mcas::Shard> list() const { return mcas::ShardList::read(file()).shards; }

  // What it says on stderr goes to the file `log`, if one is named.
  void start(unsigned shard, const std::string& log = "") {
    servers_[shard] = Child([this, shard, log] {
      if (!log.empty() && ::dup2(::creat(log.c_str(), 0600), STDERR_FILENO) < 0) {
        throw std::runtime_error(log + " cannot be written");
      }
      mcas::Server({.file = file(), .shards = {name(shard)}}).run();
    });
  }
  void start_all() {
    for (unsigned i = 0; i < servers_.size(); ++i) start(i);
  }
  // By SIGKILL.
  void kill(unsigned shard) { servers_[shard].end(); }
  Child& server(unsigned shard) { return servers_[shard]; }

  mcas::ClientOptions client(unsigned shard = 0) const {
    return {.job = job_,
            .node = shard,
            .connect_timeout = kStartOfAShard,
            .address = addresses_[shard]};
  }
  mcas::ClusterOptions cluster() const {
    return {.job = job_,
            .shards = list(),
            .connect_timeout = kStartOfAShard,
            .patience = std::chrono::milliseconds(400)};
  }

 private:
  // On an emulated machine that others use, too, the usual ten seconds are not enough.
  static constexpr std::chrono::minutes kStartOfAShard{1};

  std::string job_;
  std::string directory_;
  std::vector<std::string> addresses_;
  std::vector<Child> servers_;
};

}  // namespace perdura::library_test
