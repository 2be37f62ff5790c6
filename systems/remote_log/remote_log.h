// The client's side of RemoteLog: appends records to a log in the persistent memory of a server, by
// any method of remote persistence.
#pragma once

#include <memory>
#include <optional>
#include <tl/expected.hpp>

#include "methods/remote_persister.h"
#include "systems/remote_log/log_format.h"

namespace perdura::systems::remote_log {

class RemoteLog {
 public:
  // Connects to the log's server and finds the tail, after which appends continue; it is durable
  // then. Throws as RemotePersister::connect does, but LogDiffers instead of SetupDiffers, and also
  // if the log has another size.
  static Task<std::unique_ptr<RemoteLog>> connect(Thread& thread, fabric::Address server,
                                                  LogOptions options);

  // Appends a record and returns its number. When it returns, the record is persistent if the
  // method is right for the server. If the log is full, waits until the server has applied the
  // oldest records; the client reads the head only when it knows of no free slot. If the server
  // ends meanwhile, the error is `disconnected`.
  Task<tl::expected<std::uint64_t, methods::UpdateError>> append(
      std::span<const std::byte> payload);

  // True once the server has ended or asks the client to disconnect; further appends are pointless.
  bool is_over() { return persister_->is_over(); }

  // Number of records appended since the log was created.
  std::uint64_t tail() const { return tail_; }
  // Number of times that append() had to read the head.
  std::uint64_t head_reads() const { return head_reads_; }

 private:
  RemoteLog(std::unique_ptr<methods::RemotePersister> persister, const LogOptions& options)
      : options_(options), persister_(std::move(persister)) {}
  Task<tl::expected<void, methods::UpdateError>> find_tail();
  // A client that was lost before its last append returned may have left a record that is visible
  // but not durable yet. Records after it would be lost with it, so it is appended once more.
  Task<tl::expected<void, methods::UpdateError>> persist_tail();
  // Puts a record into the persister's room and returns its size; nullopt if it does not exist.
  Task<tl::expected<std::optional<std::size_t>, methods::UpdateError>> read_record(
      std::uint64_t number);
  // Writes the record of this size, in the persister's room, as the last record.
  Task<tl::expected<void, methods::UpdateError>> write(std::uint64_t number, std::size_t size);
  Task<tl::expected<std::uint64_t, methods::UpdateError>> read_word(Bytes offset);

  LogOptions options_;
  std::unique_ptr<methods::RemotePersister> persister_;
  std::uint64_t head_ = 0;  // the value last read
  std::uint64_t tail_ = 0;
  std::uint64_t tail_word_ = 0;  // the word in the region; with a mark if a client has left one
  std::uint64_t head_reads_ = 0;
};

}  // namespace perdura::systems::remote_log
