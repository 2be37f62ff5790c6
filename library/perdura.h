// Perdura as a library: remote updates of persistent memory by the method that is right for the
// responder, chosen among all and proven. One header; find_package(Perdura), Perdura::perdura.
//
//   perdura::LogClient log({.job = "demo", .configuration = {.domain = perdura::Domain::dmp}});
//   log.append("a record");     // persistent at the server when it returns
//
// What a configuration leaves open is detected on this machine, and what cannot be detected must be
// safe either way. docs/library.md has the whole example; docs/remote-persistence.md the methods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace perdura {

enum class Domain : std::uint8_t { dmp, mhp, wsp };  // ADR, eADR, battery
enum class Transport : std::uint8_t { infiniband, roce, iwarp };

// A responder: the machine whose memory is updated ("Correct, Fast Remote Persistence", Table 1).
struct Configuration {
  std::optional<Domain> domain{};
  std::optional<bool> ddio{};
  std::optional<bool> receive_buffers_in_pm{};
  std::optional<Transport> transport{};
  // Of both devices of a connection (section 3.4). choose() asks the RDMA devices of this machine
  // for what is left open; what they do not tell counts as missing. A log's devices have the first
  // and the last unless this says otherwise.
  std::optional<bool> flush{};  // for global visibility; without it, READ emulates it
  std::optional<bool> flush_persistence{};
  std::optional<bool> atomic_write{};
};

struct Update {
  bool ordered = false;         // two updates, the second never persistent before the first
  std::size_t size = 64;        // bytes of the update, or of the first
  std::size_t second_size = 8;  // bytes of the second
  bool responder_cpu = true;    // may take part before the update is acknowledged
  bool replay = true;           // recovery can make sense of messages in receive buffers
};

struct Step {
  std::string agent;   // "requester" or "responder"
  std::string text;    // "write a"
  std::string reason;  // what it does, and what happens without it
};

struct Choice {
  std::string method;
  std::vector<Step> steps;
  bool wasteful = false;  // right without some step, too
};

// Nothing can be made safe: what() says why and what would help.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The right methods, the best first. Throws Refused if there is none.
std::vector<Choice> choose(const Configuration& configuration, const Update& update);

// A log in the persistent memory of a server, on shared memory of this host.
struct LogOptions {
  std::string job;          // client and server say the same
  std::string directory{};  // of the server's persistent memory: a DAX file system for the real
                            // thing; empty: memory that goes away with the job
  Configuration configuration{};
  bool ordered = false;               // a tail pointer in place of checksums
  std::size_t largest_record = 1024;  // bytes
  std::uint64_t records = 4096;       // that the log holds until the server has applied them
};

// One client a log.
class LogClient {
 public:
  // Waits for the server. Throws Refused, or std::runtime_error if the log has other options.
  explicit LogClient(const LogOptions& options);
  ~LogClient();
  LogClient(const LogClient&) = delete;
  LogClient& operator=(const LogClient&) = delete;

  // When it returns, the record is persistent, once, whatever happened to the server meanwhile:
  // the client waits until it is there again. Returns the record's number, from 1. Throws
  // std::invalid_argument if the record is too long.
  std::uint64_t append(std::string_view record);

  std::uint64_t tail() const;         // the number of the last record in the log
  const std::string& method() const;  // that was chosen

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

class LogServer {
 public:
  // Is given each record in order. What it keeps of it must be durable when it returns; after a
  // failure it may be given the last ones again, with the same numbers.
  using Apply = std::function<void(std::uint64_t number, std::string_view record)>;

  // Throws Refused, or std::runtime_error if the log is there with other options.
  LogServer(const LogOptions& options, Apply apply);
  ~LogServer();
  LogServer(const LogServer&) = delete;
  LogServer& operator=(const LogServer&) = delete;

  // Recovers the log and serves it until stop(), which another thread or a signal handler may call.
  void run();
  void stop() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perdura
