#include "bench/remote_file/emulations.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "bench/remote_file/lite_daemon.h"
#include "bench/remote_file/system_calls.h"
#include "bench/remote_file/verbs_file.h"
#include "platform/base/error.h"

namespace perdura::bench {
namespace {

// Reads and writes the client's own memory.
class LocalWriter final : public FileWriter {
 public:
  LocalWriter(Thread& thread, const RemoteFileOptions& options)
      : memory_(thread.node.create_region("file", options.file_size, pmem::Medium::pm)),
        buffer_(options.write_size) {}

  std::span<std::byte> buffer() override { return buffer_; }
  Task<std::string> write(Bytes offset) override {
    memory_->write_streaming(offset, buffer_);
    memory_->drain();
    co_return "";
  }
  Task<std::string> read(Bytes offset) override {
    memory_->read(offset, buffer_);
    co_return "";
  }

 private:
  std::unique_ptr<pmem::Region> memory_;
  std::vector<std::byte> buffer_;
};

class LocalFile final : public RemoteFile {
 public:
  explicit LocalFile(const RemoteFileOptions& options) : options_(options) {}
  Task<> open(Thread&) override { co_return; }
  Task<> serve(Thread&) override { co_return; }
  Task<std::unique_ptr<FileWriter>> connect(Thread& thread) override {
    co_return std::make_unique<LocalWriter>(thread, options_);
  }

 private:
  RemoteFileOptions options_;
};

// An emulation whose own thread WRITEs.
class EmulatedWriter : public FileWriter {
 public:
  EmulatedWriter(Thread& thread, const RemoteFileOptions& options)
      : thread_(thread),
        memory_(thread.node.create_region("buffer", options.write_size, pmem::Medium::dram)),
        registered_(thread.endpoint.register_memory(*memory_, fabric::Access::local)) {}

  Task<> connect() { connection_ = co_await connect_to_file(thread_); }
  std::span<std::byte> buffer() override { return whole_buffer().bytes(); }
  Task<std::string> write(Bytes offset) final {
    const Time begin = thread_.executor.now();
    const fabric::LocalBuffer from = indirect(offset);
    indirection_ += thread_.executor.now() - begin;
    const auto written =
        co_await connection_->queue_pair->write(from, connection_->file.at(offset));
    if (!written) co_return std::string(to_string(written.status));
    co_return "";
  }
  Task<std::string> read(Bytes offset) final {
    const auto read =
        co_await connection_->queue_pair->read(whole_buffer(), connection_->file.at(offset));
    if (!read) co_return std::string(to_string(read.status));
    co_return "";
  }
  Picoseconds indirection() const final { return indirection_; }

 protected:
  // Does what comes before the WRITE, and returns where its data is.
  virtual fabric::LocalBuffer indirect(Bytes offset) = 0;
  fabric::LocalBuffer whole_buffer() const {
    return registered_.local(0, static_cast<std::uint32_t>(memory_->size()));
  }

  Thread& thread_;

 private:
  std::unique_ptr<pmem::Region> memory_;
  fabric::MemoryRegion registered_;
  std::optional<FileConnection> connection_;
  Picoseconds indirection_{};
};

class MojimWriter final : public EmulatedWriter {
 public:
  MojimWriter(Thread& thread, const RemoteFileOptions& options, std::unique_ptr<SystemCalls> calls)
      : EmulatedWriter(thread, options),
        calls_(std::move(calls)),
        copy_(thread.node.create_region("copy", options.file_size, pmem::Medium::pm)),
        registered_(thread.endpoint.register_memory(*copy_, fabric::Access::local)) {}

 private:
  fabric::LocalBuffer indirect(Bytes offset) override {
    copy_->write(offset, buffer());
    calls_->sync(offset, buffer().size());
    return registered_.local(offset, static_cast<std::uint32_t>(buffer().size()));
  }

  std::unique_ptr<SystemCalls> calls_;
  std::unique_ptr<pmem::Region> copy_;
  fabric::MemoryRegion registered_;
};

class OrionWriter final : public EmulatedWriter {
 public:
  OrionWriter(Thread& thread, const RemoteFileOptions& options, std::unique_ptr<SystemCalls> calls)
      : EmulatedWriter(thread, options), calls_(std::move(calls)) {}

 private:
  fabric::LocalBuffer indirect(Bytes offset) override {
    calls_->write(offset, buffer());
    return whole_buffer();
  }

  std::unique_ptr<SystemCalls> calls_;
};

class EmulatedFile final : public VerbsFile {
 public:
  EmulatedFile(Emulation emulation, const RemoteFileOptions& options, bool modelled)
      : VerbsFile(options.file_size),
        emulation_(emulation),
        options_(options),
        modelled_(modelled) {}

  Task<std::unique_ptr<FileWriter>> connect(Thread& thread) override {
    if (emulation_ == Emulation::lite) co_return co_await connect_by_daemon(thread, options_);
    auto calls = modelled_ ? modelled_system_calls(options_.file_size, options_.system_call)
                           : real_system_calls(options_.file_size);
    std::unique_ptr<EmulatedWriter> writer;
    if (emulation_ == Emulation::mojim) {
      writer = std::make_unique<MojimWriter>(thread, options_, std::move(calls));
    } else {
      writer = std::make_unique<OrionWriter>(thread, options_, std::move(calls));
    }
    co_await writer->connect();
    co_return writer;
  }

 private:
  Emulation emulation_;
  RemoteFileOptions options_;
  bool modelled_;
};

}  // namespace

std::unique_ptr<RemoteFile> emulate(Emulation emulation, const RemoteFileOptions& options,
                                    bool modelled) {
  if (emulation == Emulation::local_mmap) return std::make_unique<LocalFile>(options);
  return std::make_unique<EmulatedFile>(emulation, options, modelled);
}

}  // namespace perdura::bench
