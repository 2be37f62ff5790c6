// Perdura as a library: updates remote persistent memory by a method that is proven correct for the
// responder, chosen among all methods. This is the only header that a C++ program needs; link with
// find_package(Perdura) and Perdura::perdura, or pkg-config perdura (perdura-static). perdura_c.h
// has the same calls for C.
//
//   perdura::LogClient log({.job = "demo", .configuration = {.domain = perdura::Domain::dmp}});
//   log.append("a record");     // persistent at the server when it returns
//
// Members of a Configuration that are left empty are detected on this machine; for those that
// cannot be detected, the method must be safe for every value. A Responder describes another
// machine. docs/library.md has the whole example, docs/remote-persistence.md describes the methods,
// and perdura_verbs.h executes a method on a queue pair of the program's own.
//
// Threads: choose() and all functions for Responder may be called by any thread at any time.
// append(), tail() and method() of a LogClient may be called by several threads at once; stop() of
// a LogServer may be called by any thread or signal handler while run() runs. An object must not be
// constructed or destroyed while another thread uses it.
//
// Time limits: no call waits without a limit; LogOptions and PersistOptions set the limits. Sizes
// are in bytes.
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

// The properties of a responder, the machine whose memory is updated ("Correct, Fast Remote
// Persistence", Table 1). An empty member means that the property is not known.
struct Configuration {
  std::optional<Domain> domain{};
  std::optional<bool> ddio{};
  std::optional<bool> receive_buffers_in_pm{};
  std::optional<Transport> transport{};
  // Features that both devices of a connection have (section 3.4). If they are left empty, choose()
  // queries the RDMA devices of this machine; a feature that they do not report counts as missing.
  // For a log, `flush` and `atomic_write` are assumed to be present unless set to false.
  std::optional<bool> flush{};  // FLUSH for global visibility; without it, READ emulates it
  std::optional<bool> flush_persistence{};
  std::optional<bool> atomic_write{};
  std::optional<bool> atomics{};  // CAS; if left empty, assumed except for iWARP
};

// Two updates of which the second is a link to the first that others read: how the link is set. CAS
// serves any number of writers, a WRITE or ATOMIC WRITE of 8 bytes only one at a time.
enum class Publish : std::uint8_t { no, by_cas, by_write };

struct Update {
  // Two updates, of which the second must never be persistent before the first.
  bool ordered = false;
  std::size_t size = 64;        // bytes of the only or first update
  std::size_t second_size = 8;  // bytes of the second update
  bool responder_cpu = true;  // the responder's CPU may take part before the update is acknowledged
  bool replay = true;         // recovery can replay messages in receive buffers
  // "Block durable, then link, then link durable; readers must not overtake": implies `ordered`.
  Publish publish = Publish::no;
};

// A reader of links (Update::publish) has a connection of its own, and a message on it is handled
// by the steps of `responder_of_reader`.
enum class Agent : std::uint8_t { requester, responder, reader, responder_of_reader };

// The action of a step, for programs that execute steps themselves.
enum class Action : std::uint8_t {
  // The requester's actions.
  write,              // RDMA WRITE of the step's update
  write_immediate,    // RDMA WRITE with an immediate that names the update
  send,               // SEND of a message that carries its updates
  send_names,         // SEND of a message that names updates that are already written
  atomic_write,       // ATOMIC WRITE of 8 bytes
  read,               // READ of any written data, which pushes earlier operations out of the device
  flush_visibility,   // RDMA FLUSH, placement type global visibility
  flush_persistence,  // RDMA FLUSH, placement type persistence, of the step's update
  completion,         // wait for the completion of the previous operation
  receive_ack,        // wait for the responder's message
  // The responder's actions.
  receive,  // wait for the requester's next message
  copy,     // store the message's data at its destination
  flush,    // write back the lines of the updates (clwb), then fence
  send_ack,
  // The requester's, in methods that publish.
  compare_and_swap,  // CAS of the link: the writer's from the old link, others' from the same link
  // The reader's.
  read_link,  // READ of the link
};

struct Step {
  std::string agent;     // "requester", "responder", "reader" or "responder of the reader"
  std::string text;      // "write a"
  std::string reason;    // what the step does, and what goes wrong without it
  Agent of{};            // the same as `agent`
  Action action{};       // the same as `text`
  bool first = false;    // concerns the only or first update, "a"
  bool second = false;   // concerns the second update, "b"
  bool fenced = false;   // posted with the fence flag
  bool unmarks = false;  // sets the link without the mark that it bore (Choice::marks)
};

struct Choice {
  std::string method;
  std::vector<Step> steps;  // each agent's steps in order, the requester's first
  bool wasteful = false;    // some step is redundant: the method is also correct without it
  // For Update::publish: true if a link that may not be durable yet bears a mark, which the steps
  // remove and recovery ignores; and a sentence on what readers must do before they rely on a link.
  bool marks = false;
  std::string readers;
};

// No method is safe: what() says why, and what would help.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The correct methods, the best first. Throws Refused if there is none, and std::invalid_argument
// if the update is impossible.
std::vector<Choice> choose(const Configuration& configuration, const Update& update);

// --- a responder elsewhere -----------------------------------------------------------------------

// A description of the machine whose memory is updated, as far as that machine knows itself.
struct Responder {
  std::string host{};    // its own host name
  std::string device{};  // the RDMA device described; empty: all of the machine's devices
  Configuration configuration{};
};

// Describes this machine; what cannot be detected is left empty. `perdura doctor --json` prints the
// same.
Responder this_responder();
// Conversion to JSON, to be sent by any means, and back. responder_from_json() throws
// std::invalid_argument, with a message of one line, if the text does not describe a responder.
std::string to_json(const Responder& responder);
Responder responder_from_json(std::string_view text);

// The features of the requester's device. features_of_device() queries the device of that name,
// such as "mlx5_0"; without a name, it returns the features that all devices of this machine have.
// A feature that is not reported counts as missing.
struct Features {
  bool flush = false;
  bool flush_persistence = false;
  bool atomic_write = false;
  bool atomics = true;  // CAS
};
Features features_of_device(const std::string& device = {});

// The correct methods for updates of a responder that described itself. Nothing is detected on this
// machine: for members that the responder leaves empty, the method must be safe for every value,
// and a feature that either device lacks is not used. Throws like the other choose().
std::vector<Choice> choose(const Responder& responder, const Update& update,
                           const Features& requester);

// --- a log ---------------------------------------------------------------------------------------

// A time limit has expired. The call may be repeated.
class TimedOut : public std::runtime_error {
 public:
  TimedOut(const std::string& what, bool in_doubt)
      : std::runtime_error(what), in_doubt_(in_doubt) {}
  // For append(). True: the record may have been sent; if the server comes back while the client
  // lives, the record is or will be in the log exactly once. False: the record is not in the log
  // and never will be.
  bool in_doubt() const noexcept { return in_doubt_; }

 private:
  bool in_doubt_;
};

// Client and server, or the server and the existing log, differ in sizes, ordering or method:
// what() lists the differences.
class OptionsDiffer : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Options of a log in the persistent memory of a server. Client and server are processes of this
// host that communicate through shared memory.
struct LogOptions {
  std::string job;  // a name without slashes, the same for client and server
  // Where the server's persistent memory is: an existing directory of a DAX file system, or a DAX
  // device ("/dev/dax0.0/logs"). Empty: memory that is freed when the job ends. The client ignores
  // it.
  std::string directory{};
  // Also accept a directory without DAX, whose contents survive processes but not a power failure.
  bool emulated = false;
  Configuration configuration{};
  bool ordered = false;               // use a tail pointer instead of checksums
  std::size_t largest_record = 1024;  // bytes, 1 to 1 GiB - 4 KiB
  std::uint64_t records = 4096;       // capacity: records not yet applied by the server

  // How long calls wait. Zero means not at all, max() without a limit.

  // LogClient waits this long for the server; client and server, for other processes that join or
  // leave the job.
  std::chrono::milliseconds connect_timeout{10'000};
  // append() waits this long for its turn and for the server.
  std::chrono::milliseconds append_timeout{60'000};
  // run() waits this long, after stop(), for the client to end the append in progress.
  std::chrono::milliseconds stop_timeout{1'000};
};

// The client of a log. A log has at most one client at a time.
class LogClient {
 public:
  // Waits for the server. Throws std::invalid_argument for impossible options, Refused,
  // OptionsDiffer, TimedOut, or std::runtime_error if the log has a client already.
  explicit LogClient(const LogOptions& options);
  ~LogClient();
  LogClient(const LogClient&) = delete;
  LogClient& operator=(const LogClient&) = delete;

  // Appends a record and returns its number. When it returns, the record is persistent in the log
  // exactly once, even if the server failed meanwhile: the client then waits until the server is
  // back. Several threads may append at once; records are numbered from 1 in the order in which the
  // calls began. Throws std::invalid_argument if the record is too long, TimedOut, or OptionsDiffer
  // if the server came back with other options.
  //
  // Its level of guarantee (docs/guarantees.md) is `durable` on every server for which the method
  // was chosen: what the client was told and what the server has applied survive. Without DAX
  // (`emulated`, or no directory) it is `visible`: it survives the death of processes, and nothing
  // is said about power failures.
  std::uint64_t append(std::string_view record);

  std::uint64_t tail() const;  // number of the last record in the log that this client knows of
  const std::string& method() const;  // name of the chosen method

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

class LogServer {
 public:
  // Called with each record, in order, by the thread that calls run(). Whatever state it keeps must
  // be durable when it returns. After a failure it may be called again for the last records, with
  // the same numbers, so it must be idempotent. An exception that it throws is rethrown by run().
  using Apply = std::function<void(std::uint64_t number, std::string_view record)>;

  // Throws std::invalid_argument for impossible options, Refused, or std::runtime_error if the log
  // is being served already or other processes of the job keep it from joining.
  LogServer(const LogOptions& options, Apply apply);
  ~LogServer();
  LogServer(const LogServer&) = delete;
  LogServer& operator=(const LogServer&) = delete;

  // Recovers the log and serves it until stop(), which another thread, a signal handler or Apply
  // may call. After stop() no further record is applied, and the client is asked to end the append
  // in progress, so that no append whose record has been applied is left in doubt. Throws
  // OptionsDiffer if the log exists with other options. May be called once per object.
  //
  // The library handles no signals. A program that a signal may end calls stop() in its handler, as
  // examples/remote-log/serve.cc does: a process that dies leaves /dev/shm/perdura-JOB, with
  // its share of memory, which the next server of the job removes.
  void run();
  void stop() noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perdura
