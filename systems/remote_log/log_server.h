// The server's side of RemoteLog: serves the log to a client, and applies its records in the
// background, so that their slots can be used again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "persistence/responder.h"
#include "systems/remote_log/log_format.h"

namespace perdura::bench {

class LogServer {
 public:
  // What becomes of a record when it is its turn. What it changes must be durable when it returns.
  using Apply = std::function<void(std::uint64_t number, std::span<const std::byte> payload)>;

  // Opens the log in the persistent region `name` of the thread's node, recovering it, or makes it.
  // Throws LogDiffers if it is there with other options, OptionsDiffer if it is no log, UsageError
  // if the method cannot run here.
  LogServer(Thread& thread, const std::string& name, const LogOptions& options, Apply apply);

  // Serves the client; does not end by itself.
  Task<> serve() { return responder_->serve(); }
  // Applies records as they come, looking for them at least this often; does not end by itself.
  Task<> collect(Picoseconds interval);

  // Applies no more, and asks the client to go: what is under way is ended, nothing is in doubt.
  void begin_end();
  bool has_client() const { return responder_->has_requesters(); }

  // Applies the records that are there, at most so many, and publishes the new head, durably.
  // Returns how many.
  std::uint64_t apply_some(std::uint64_t most);

  std::uint64_t head() const { return head_; }
  const persistence::Responder& responder() const { return *responder_; }

 private:
  void make();
  void check_shape(const std::string& name) const;

  LogOptions options_;
  Apply apply_;
  std::unique_ptr<pmem::Region> region_;
  std::shared_ptr<persistence::Responder> responder_;
  std::uint64_t head_ = 0;
  bool ending_ = false;
  std::vector<std::byte> record_;
};

}  // namespace perdura::bench
