// What a log in the persistent memory of a server offers: a client appends records, and the server
// applies them in their order, each after it was appended, until its place can be used again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "persistence/chooser.h"
#include "platform/platform.h"
#include "services/service.h"

namespace perdura::services {

struct LogConfig {
  std::uint64_t records = 4096;       // that the log holds
  std::uint32_t largest_record = 64;  // bytes of payload
  // By which an append persists what it writes.
  persistence::Method method{};
};

// What becomes of a record when it is its turn; numbers begin at 1. What it changes must be durable
// when it returns. After a power failure records may be applied again that were not acknowledged.
using ApplyRecord = std::function<void(std::uint64_t number, std::span<const std::byte> payload)>;

// The server's side. Lives on the thread that opened it.
class LogStore {
 public:
  virtual ~LogStore() = default;
  // Serves a client and applies records; does not end by itself.
  virtual Task<> serve() = 0;
  // How many records were applied since the log was made.
  virtual std::uint64_t applied() const = 0;
};

enum class LogError : std::uint8_t {
  too_large,
  disconnected,  // the server is gone; whether the record was appended is unknown
};

// The client's side. A log has one client.
class LogWriter {
 public:
  virtual ~LogWriter() = default;
  // Returns the record's number when it is appended, with the guarantee of the method. Waits while
  // the log is full.
  virtual Task<tl::expected<std::uint64_t, LogError>> append(
      std::span<const std::byte> payload) = 0;
  // How many records there are, those included that were there when this connected.
  virtual std::uint64_t tail() const = 0;
};

// An entry of the table of systems (systems/registry/registry.cc).
struct LogSystem {
  SystemInfo info;
  // The method of the paper for a server, as the system's parameters want it. Throws UsageError for
  // parameters that it does not have.
  persistence::Method (*published)(const pmem::PersistenceModel& model,
                                   const GivenParameters& parameters);
  // What an append asks of a method that makes it durable. Absent if the system persists in its own
  // way only.
  std::optional<persistence::UpdateNeeds> append{};

  // Opens the log `name` of the thread's node, recovering it, or makes it. Throws UsageError if it
  // is there with another configuration.
  std::unique_ptr<LogStore> (*open)(Thread& thread, std::string name, const LogConfig& config,
                                    ApplyRecord apply);
  // Appends go on behind the last record that is there. Throws PlatformError if it cannot connect.
  Task<std::unique_ptr<LogWriter>> (*connect)(Thread& thread, fabric::Address server,
                                              LogConfig config);
};

}  // namespace perdura::services
