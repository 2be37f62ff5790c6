// Records the operations of a client of any key-value system, on any platform.
//
// An operation is logged when it starts, as one whose outcome is unknown, and completed when it
// ends. So an operation that is never answered stays unknown, whether its coroutine was destroyed
// (a client that is killed on `sim`), an exception left it, or the process was killed. For the last
// case the log can be placed in memory that outlives the process.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "services/kv/history/history.h"
#include "services/kv/kv.h"

namespace perdura::kv {

// The operations of one client. One thread writes it; nothing is shared or locked.
class OperationLog {
 public:
  // Uses memory of its own, which grows. `expected`: the number of operations for which it is
  // reserved, so that nothing is allocated within a measurement.
  explicit OperationLog(std::size_t expected = 0) { own_.reserve(expected); }

  // Uses memory of the caller, such as a mapping with MAP_SHARED: bytes_for(capacity) zeroed bytes,
  // aligned to 8. Another process can read the log by read(), even if this one was killed at any
  // point. Appends to what the memory holds already.
  static std::size_t bytes_for(std::size_t capacity);
  explicit OperationLog(std::span<std::byte> memory);
  // The operations in such memory. If it is being written, operations in flight may be missing.
  static std::vector<history::Operation> read(std::span<const std::byte> memory);

  // Logs an operation and returns its index. Throws PlatformError if the caller's memory is full.
  std::size_t begin(const history::Operation& operation);
  // Adds the answer of an operation.
  void complete(std::size_t index, std::uint64_t version, Time end, history::Outcome outcome);

  std::span<const history::Operation> operations() const;

 private:
  struct Header {
    std::uint64_t count = 0;
  };

  std::vector<history::Operation> own_;
  Header* header_ = nullptr;  // lies in the caller's memory
  std::span<history::Operation> entries_;
};

// Interprets keys and values for a recorder. One object serves one client.
class Format {
 public:
  virtual ~Format() = default;
  // A number that identifies the key.
  virtual std::uint64_t key_number(Key key) = 0;
  // The version of the put that wrote this value for this key; nullopt if no put can have written
  // it.
  virtual std::optional<std::uint64_t> version(Key key, Value value) = 0;
};

// A session that forwards everything to another one and logs it. Operations that begin at the same
// moment are not ordered, with one exception: an operation that begins at the moment at which the
// client's previous one ended is dated a picosecond later, since the client saw that answer.
class RecordedSession final : public KvSession {
 public:
  // All arguments must outlive the session.
  RecordedSession(KvSession& session, std::uint32_t client, Format& format, OperationLog& log)
      : session_(session), client_(client), format_(format), log_(log) {}

  Task<Result<Bytes>> get(Key key, std::span<std::byte> into) override;
  // Throws std::invalid_argument if the format does not know the value's version.
  Task<Result<void>> put(Key key, Value value) override;
  Task<Result<void>> erase(Key key) override;
  SessionCounts counts() const override { return session_.counts(); }
  std::vector<double> metrics() const override { return session_.metrics(); }

 private:
  std::size_t begin(history::Kind kind, Key key, std::uint64_t version);
  void end(std::size_t index, std::uint64_t version, history::Outcome outcome, Time when);

  KvSession& session_;
  std::uint32_t client_;
  Format& format_;
  OperationLog& log_;
  Time last_end_ = Time::min();
};

}  // namespace perdura::kv
