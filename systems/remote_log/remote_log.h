// The client's side of RemoteLog: appends records to a log in the persistent memory of a server, by
// any method of remote persistence.
#pragma once

#include <memory>
#include <tl/expected.hpp>

#include "persistence/remote_persister.h"
#include "systems/remote_log/log_format.h"

namespace perdura::bench {

class RemoteLog {
 public:
  // Connects to the server of the log, and looks for its tail: appends go on behind the last
  // record. Throws as RemotePersister::connect does, but LogDiffers for a
  // SetupDiffers, and also if the log has another size.
  static Task<std::unique_ptr<RemoteLog>> connect(Thread& thread, fabric::Address server,
                                                  LogOptions options);

  // Appends a record; when it is done, the record is persistent if the method is right for the
  // server. If the log is full, waits until the server has applied what is oldest: the client asks
  // for the head only when it knows of no free slot. Returns the record's number. If the server
  // ends meanwhile, that is `disconnected`, too.
  Task<tl::expected<std::uint64_t, persistence::UpdateError>> append(
      std::span<const std::byte> payload);

  // True once the server is gone or asks the client to go: another append is pointless.
  bool is_over() { return persister_->is_over(); }

  std::uint64_t tail() const { return tail_; }              // records in the log since it was made
  std::uint64_t head_reads() const { return head_reads_; }  // while appending

 private:
  RemoteLog(std::unique_ptr<persistence::RemotePersister> persister, const LogOptions& options)
      : options_(options), persister_(std::move(persister)) {}
  Task<tl::expected<void, persistence::UpdateError>> find_tail();
  Task<tl::expected<std::uint64_t, persistence::UpdateError>> read_word(Bytes offset);

  LogOptions options_;
  std::unique_ptr<persistence::RemotePersister> persister_;
  std::uint64_t head_ = 0;  // as known
  std::uint64_t tail_ = 0;
  std::uint64_t head_reads_ = 0;
};

}  // namespace perdura::bench
