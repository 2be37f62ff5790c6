#include "bench/remote_file/served_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/fs/file_servers.h"
#include "platform/base/error.h"

namespace perdura::bench {
namespace {

using fs::InodeNumber;
using services::MappedMemory;
using services::MemoryReplica;
using services::MemoryRole;

constexpr Bytes kPiece = 64 * KiB;  // the most that is written at once when a file is made

class SessionWriter final : public FileWriter {
 public:
  SessionWriter(std::shared_ptr<fs::FileSystem> files, Thread& thread, Bytes size)
      : files_(std::move(files)), session_(files_->attach(thread)), buffer_(size) {}

  // The file is held when it has its size, so that all of it can be written in place.
  Task<> make_file(Bytes size) {
    const auto made =
        co_await session_->create(fs::kRootInode, "file", {.mode = S_IFREG | 0644}, {});
    if (!made) refuse(made.error());
    inode_ = made->inode;
    const std::vector<std::byte> zeros(std::min(size, kPiece));
    for (Bytes at = 0; at < size; at += zeros.size()) {
      const auto part = std::span(zeros).first(std::min<Bytes>(zeros.size(), size - at));
      const auto written = co_await session_->write(inode_, at, part, {});
      if (!written) refuse(written.error());
    }
    const auto held = co_await session_->hold(inode_);
    if (!held) refuse(held.error());
  }
  std::span<std::byte> buffer() override { return buffer_; }
  Task<std::string> write(Bytes offset) override {
    const auto written = co_await session_->write(inode_, offset, buffer_, {});
    if (!written) co_return in_words(written.error());
    co_return "";
  }
  Task<std::string> read(Bytes offset) override {
    const auto read = co_await session_->read(inode_, offset, buffer_);
    if (!read) co_return in_words(read.error());
    if (*read != buffer_.size()) co_return "the file has ended";
    co_return "";
  }
  Task<> leave() override {
    co_await session_->release(inode_);
    session_.reset();
    co_await files_->unmount();
  }

 private:
  [[noreturn]] static void refuse(std::errc error) {
    throw PlatformError(fmt::format("making the file: {}", in_words(error)));
  }

  std::shared_ptr<fs::FileSystem> files_;
  std::unique_ptr<fs::Session> session_;
  InodeNumber inode_{};
  std::vector<std::byte> buffer_;
};

class ServedFile final : public RemoteFile {
 public:
  ServedFile(Platform& platform, const fs::FsSystem& system, const RemoteFileOptions& options,
             const GivenParameters& parameters)
      : system_(system),
        options_(options),
        config_(config_of(system, options, parameters)),
        servers_(platform, system, config_) {}

  std::uint32_t workers(NodeId node) const override { return servers_.workers(node); }
  Task<> open(Thread& thread) override { return servers_.open(thread); }
  Task<> serve(Thread& thread) override { return servers_.serve(thread); }
  Task<std::unique_ptr<FileWriter>> connect(Thread& thread) override {
    auto files = co_await system_.mount(thread, FileServers::kName, config_);
    auto writer = std::make_unique<SessionWriter>(std::move(files), thread, options_.write_size);
    co_await writer->make_file(options_.file_size);
    co_return writer;
  }

 private:
  const fs::FsSystem& system_;
  RemoteFileOptions options_;
  fs::FsConfig config_;
  FileServers servers_;
};

// Stores to the primary's copy and syncs that range.
class MemoryWriter final : public FileWriter {
 public:
  MemoryWriter(std::shared_ptr<MemoryReplica> primary, std::unique_ptr<MappedMemory> memory,
               Bytes size)
      : primary_(std::move(primary)), memory_(std::move(memory)), buffer_(size) {}

  std::span<std::byte> buffer() override { return buffer_; }
  Task<std::string> write(Bytes offset) override {
    memory_->region().write(offset, buffer_);
    const auto synced = co_await memory_->sync(services::MemoryRange{offset, buffer_.size()});
    if (!synced) co_return std::string(to_string(synced.error()));
    co_return "";
  }
  Task<std::string> read(Bytes offset) override {
    memory_->region().read(offset, buffer_);
    co_return "";
  }
  Task<> leave() override { return memory_->settle(); }

 private:
  std::shared_ptr<MemoryReplica> primary_;
  std::unique_ptr<MappedMemory> memory_;
  std::vector<std::byte> buffer_;
};

class ReplicatedFile final : public RemoteFile {
 public:
  ReplicatedFile(const services::MemorySystem& system, const RemoteFileOptions& options,
                 CompletionMode completion, const GivenParameters& parameters)
      : system_(system), options_(options), config_(config_of(options, completion, parameters)) {}

  std::uint32_t workers(NodeId) const override { return system_.workers(config_); }
  Task<> open(Thread& thread) override {
    mirror_ = system_.open(thread, "file", config_, MemoryRole::mirror);
    co_return;
  }
  Task<> serve(Thread& thread) override {
    const auto mirror = mirror_;
    co_await mirror->serve(thread);
  }
  Task<std::unique_ptr<FileWriter>> connect(Thread& thread) override {
    auto primary = system_.open(thread, "file", config_, MemoryRole::primary);
    auto memory = co_await primary->map(thread);
    co_return std::make_unique<MemoryWriter>(std::move(primary), std::move(memory),
                                             options_.write_size);
  }

 private:
  const services::MemorySystem& system_;
  RemoteFileOptions options_;
  services::MemoryConfig config_;
  std::shared_ptr<MemoryReplica> mirror_;
};

}  // namespace

fs::FsConfig config_of(const fs::FsSystem& system, const RemoteFileOptions& options,
                       const GivenParameters& parameters) {
  fs::FsConfig config;
  config.size = options.volume_size;
  config.parameters = parameters;
  config.servers.assign(system.cluster->small.begin(), system.cluster->small.end());
  return config;
}

services::MemoryConfig config_of(const RemoteFileOptions& options, CompletionMode completion,
                                 const GivenParameters& parameters) {
  return {.size = options.file_size,
          .nodes = {options.client, 0},
          .completion = completion,
          .parameters = parameters};
}

std::unique_ptr<RemoteFile> file_of(Platform& platform, const fs::FsSystem& system,
                                    const RemoteFileOptions& options,
                                    const GivenParameters& parameters) {
  return std::make_unique<ServedFile>(platform, system, options, parameters);
}

std::unique_ptr<RemoteFile> memory_of(const services::MemorySystem& system,
                                      const RemoteFileOptions& options, CompletionMode completion,
                                      const GivenParameters& parameters) {
  return std::make_unique<ReplicatedFile>(system, options, completion, parameters);
}

}  // namespace perdura::bench
