// The server's side of RemoteLog: serves the log to a client, and applies its records in the
// background, so that their slots can be reused.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "methods/responder.h"
#include "systems/remote_log/log_format.h"

namespace perdura::systems::remote_log {

class LogServer {
 public:
  // Called for each record in order. Its effects must be durable when it returns.
  using Apply = std::function<void(std::uint64_t number, std::span<const std::byte> payload)>;

  // Opens and recovers the log in the persistent region `name` of the thread's node, or creates it.
  // Throws LogDiffers if it exists with other options, OptionsDiffer if the region is not a log,
  // and UsageError if the method cannot run here.
  LogServer(Thread& thread, const std::string& name, const LogOptions& options, Apply apply);

  // Serves the client; does not return.
  Task<> serve() { return responder_->serve(); }
  // Applies records as they arrive, checking for them at least this often; does not return.
  Task<> collect(Picoseconds interval);

  // Stops applying records and asks the client to disconnect: it completes its operation in flight,
  // so that no outcome remains unknown.
  void begin_end();
  bool has_client() const { return responder_->has_requesters(); }

  // Applies at most `most` of the records that have arrived, and durably publishes the new head.
  // Returns the number applied.
  std::uint64_t apply_some(std::uint64_t most);

  std::uint64_t head() const { return head_; }
  const methods::Responder& responder() const { return *responder_; }

 private:
  void make();
  void check_shape(const std::string& name) const;

  LogOptions options_;
  Apply apply_;
  std::unique_ptr<pmem::Region> region_;
  std::shared_ptr<methods::Responder> responder_;
  std::uint64_t head_ = 0;
  bool ending_ = false;
  std::vector<std::byte> record_;
};

}  // namespace perdura::systems::remote_log
