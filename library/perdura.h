// Perdura as a library: remote updates of persistent memory by the method that is right for the
// responder, chosen among all and proven. One header; find_package(Perdura), Perdura::perdura, or
// pkg-config perdura (perdura-static). perdura_c.h has the same calls for C.
//
//   perdura::LogClient log({.job = "demo", .configuration = {.domain = perdura::Domain::dmp}});
//   log.append("a record");     // persistent at the server when it returns
//
// What a configuration leaves open is detected on this machine, and what cannot be detected must be
// safe either way; of another machine, a Responder tells. docs/library.md has the whole example,
// docs/remote-persistence.md the methods, and perdura_verbs.h follows a method on a queue pair of
// the program's own.
//
// Threads: choose() and everything about Responder may be called by any thread at any time. Of a
// LogClient, append(), tail() and method() may be called by several threads at once; of a
// LogServer, stop() may be called by any thread, or by a signal handler, while run() runs. Objects
// are made and destroyed by one thread while no other uses them.
//
// Limits: no call waits without a limit; those of LogOptions say how long. Sizes are bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "perdura_version.h"

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

enum class Agent : std::uint8_t { requester, responder };

// What a step does, for programs that follow it.
enum class Action : std::uint8_t {
  // Of the requester.
  write,              // RDMA WRITE of the step's update
  write_immediate,    // WRITE with an immediate that names the update
  send,               // SEND of a message that carries its updates
  send_names,         // SEND of a message that names its updates, already written
  atomic_write,       // ATOMIC WRITE of 8 bytes
  read,               // READ of anything written, for what it pushes before it
  flush_visibility,   // RDMA FLUSH, placement type global visibility
  flush_persistence,  // RDMA FLUSH, placement type persistence, of the step's update
  completion,         // wait for the completion of the operation before
  receive_ack,        // wait for the responder's message
  // Of the responder.
  receive,  // wait for the requester's next message
  copy,     // store what the message carried where it belongs
  flush,    // write the lines of the updates back (clwb) and fence
  send_ack,
};

struct Step {
  std::string agent;    // "requester" or "responder"
  std::string text;     // "write a"
  std::string reason;   // what it does, and what happens without it
  Agent of{};           // as `agent`
  Action action{};      // as `text`
  bool first = false;   // it is about the update, or the first of two, "a"
  bool second = false;  // it is about the second, "b"
  bool fenced = false;  // posted with the fence flag
};

struct Choice {
  std::string method;
  std::vector<Step> steps;  // the requester's, then the responder's, each in order
  bool wasteful = false;    // right without some step, too
};

// Nothing can be made safe: what() says why and what would help.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The right methods, the best first. Throws Refused if there is none, std::invalid_argument if the
// update is impossible.
std::vector<Choice> choose(const Configuration& configuration, const Update& update);

// --- a responder elsewhere -----------------------------------------------------------------------

// What the machine whose memory is updated is, as far as is known there.
struct Responder {
  std::string host{};    // as it calls itself
  std::string device{};  // its RDMA device that this is about; empty: all of them
  Configuration configuration{};
};

// Of this machine; what cannot be detected is left open. `perdura doctor --json` prints the same.
Responder this_responder();
// As JSON, to be sent by any means, and back. Throws std::invalid_argument, in one line, for what
// is no description of a responder.
std::string to_json(const Responder& responder);
Responder responder_from_json(std::string_view text);

// What the requester's device has: "mlx5_0", or what all devices of this machine have. What is not
// told counts as missing.
struct Features {
  bool flush = false;
  bool flush_persistence = false;
  bool atomic_write = false;
};
Features features_of_device(const std::string& device = {});

// The right methods for updates of a responder that described itself. This machine is not asked
// for anything: what the responder leaves open must be safe either way, and what one of the two
// devices lacks is not used. Throws as above.
std::vector<Choice> choose(const Responder& responder, const Update& update,
                           const Features& requester);

// --- a log ---------------------------------------------------------------------------------------

// The time is over. A call that throws this may be made again.
class TimedOut : public std::runtime_error {
 public:
  TimedOut(const std::string& what, bool in_doubt)
      : std::runtime_error(what), in_doubt_(in_doubt) {}
  // Of append(): the record was under way. It is, or comes to be, in the log once, if the server
  // comes back while the client lives. If false, it never will be.
  bool in_doubt() const noexcept { return in_doubt_; }

 private:
  bool in_doubt_;
};

// Client and server, or the server and the log that is there, have other sizes, another ordering or
// another method: what() says which.
class OptionsDiffer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A log in the persistent memory of a server, on shared memory of this host.
struct LogOptions {
  std::string job;          // client and server say the same: a name, without slashes
  std::string directory{};  // of the server's persistent memory: a DAX file system or device
                            // ("/dev/dax0.0/logs"); it must exist. Empty: memory that goes away
                            // with the job. The client needs none.
  bool emulated = false;    // take a directory without DAX, too, whose contents survive processes
                            // and not a power failure
  Configuration configuration{};
  bool ordered = false;               // a tail pointer in place of checksums
  std::size_t largest_record = 1024;  // bytes, 1 to 1 GiB - 4 KiB
  std::uint64_t records = 4096;       // that the log holds until the server has applied them

  // How long calls wait; zero waits for nothing, max() for ever.
  std::chrono::milliseconds connect_timeout{10'000};  // LogClient's for the server, and both for
                                                      // processes that join or leave the job
  std::chrono::milliseconds append_timeout{60'000};   // append(), for its turn and for the server
  std::chrono::milliseconds stop_timeout{1'000};      // run() after stop(), for the client to end
                                                      // what it is about
};

// One client a log.
class LogClient {
 public:
  // Waits for the server. Throws std::invalid_argument for options that cannot be, Refused,
  // OptionsDiffer, TimedOut, or std::runtime_error if the log has a client already.
  explicit LogClient(const LogOptions& options);
  ~LogClient();
  LogClient(const LogClient&) = delete;
  LogClient& operator=(const LogClient&) = delete;

  // When it returns, the record is persistent, once, whatever happened to the server meanwhile:
  // the client waits until it is there again. Several threads may append at once: each record gets
  // its number, from 1, in the order in which the calls began. Throws std::invalid_argument if the
  // record is too long, TimedOut, or OptionsDiffer if the server came back with other options.
  std::uint64_t append(std::string_view record);

  std::uint64_t tail() const;         // the number of the last record in the log, as known here
  const std::string& method() const;  // that was chosen

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

class LogServer {
 public:
  // Is given each record in order, on the thread that serves. What it keeps of it must be durable
  // when it returns; after a failure it may be given the last ones again, with the same numbers.
  // What it throws leaves run().
  using Apply = std::function<void(std::uint64_t number, std::string_view record)>;

  // Throws std::invalid_argument for options that cannot be, Refused, or std::runtime_error if the
  // log is being served already or processes do not let it join.
  LogServer(const LogOptions& options, Apply apply);
  ~LogServer();
  LogServer(const LogServer&) = delete;
  LogServer& operator=(const LogServer&) = delete;

  // Recovers the log and serves it until stop(), which another thread, a signal handler or Apply
  // may call. After stop() no further record is applied, and the client is asked to end the append
  // that is under way: none whose record has been applied is left in doubt. Throws OptionsDiffer if
  // the log is there with other options. Once an object.
  void run();
  void stop() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perdura
