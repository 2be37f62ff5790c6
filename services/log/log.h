// A log in a server's persistent memory: a client appends records, and the server applies them in
// their order, after which their space can be reused.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "methods/chooser.h"
#include "platform/platform.h"
#include "services/service.h"

namespace perdura::services {

struct LogConfig {
  std::uint64_t records = 4096;       // capacity of the log
  std::uint32_t largest_record = 64;  // bytes of payload
  // The method by which an append persists its data.
  methods::Method method{};
  GivenParameters parameters{};  // those of the system that were given
};

// Applies a record when its turn has come; numbers start at 1. Its effects must be durable when it
// returns. After a power failure, records that were not acknowledged may be applied again.
using ApplyRecord = std::function<void(std::uint64_t number, std::span<const std::byte> payload)>;

// The server's side. Lives on the thread that opened it.
class LogStore {
 public:
  virtual ~LogStore() = default;
  // Serves a client and applies records; does not return by itself.
  virtual Task<> serve() = 0;
  // The number of records applied since the log was made.
  virtual std::uint64_t applied() const = 0;
  // Applies every record that has been appended, while no client is at work.
  virtual Task<> apply_all() = 0;
};

enum class LogError : std::uint8_t {
  too_large,
  disconnected,  // the server is gone; the record may or may not have been appended
};
std::string_view to_string(LogError error);

// The client's side. A log has one client.
class LogWriter {
 public:
  virtual ~LogWriter() = default;
  // Returns the record's number once it is appended, with the guarantee of the method. Waits while
  // the log is full.
  virtual Task<tl::expected<std::uint64_t, LogError>> append(
      std::span<const std::byte> payload) = 0;
  // The number of records, including those that existed when this writer connected.
  virtual std::uint64_t tail() const = 0;
};

// An entry of the table of systems (systems/registry/registry.cc).
struct LogSystem {
  SystemInfo info;
  // The paper's method for a server, given the system's parameters. Throws UsageError for
  // parameters that the system does not have.
  methods::Method (*published)(const pmem::PersistenceModel& model,
                               const GivenParameters& parameters);
  // The needs of an append when a durable method is chosen. Absent if the system only persists in
  // its own way.
  std::optional<methods::UpdateNeeds> append{};

  // Opens the log `name` on the thread's node and recovers it, or makes it. Throws UsageError if it
  // exists with another configuration.
  std::unique_ptr<LogStore> (*open)(Thread& thread, std::string name, const LogConfig& config,
                                    ApplyRecord apply);
  // Appends continue after the last existing record. Throws PlatformError if it cannot connect.
  Task<std::unique_ptr<LogWriter>> (*connect)(Thread& thread, fabric::Address server,
                                              LogConfig config);
};

// The entry of the system, which also says whether it can persist by a method that is chosen.
SystemInfo info_of(const LogSystem& system);

}  // namespace perdura::services
