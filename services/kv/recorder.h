// Records what a client of a key-value system does, in whatever system and on whatever platform.
//
// An operation is written down when it starts, as one whose outcome is unknown, and completed when
// it ends. So what is never answered stays unknown: because the coroutine was destroyed, as when a
// client is killed on `sim`, because an exception left it, or because the process was killed; for
// the last case a log can be put into memory that outlives the process.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "services/kv/history/history.h"
#include "services/kv/kv.h"

namespace perdura::history {

// The operations of one client. One thread writes it; nothing in it is shared or locked.
class OperationLog {
 public:
  // In memory of its own, which grows; reserve for as many as are expected, so that nothing is
  // allocated within a measurement.
  explicit OperationLog(std::size_t expected = 0) { own_.reserve(expected); }

  // In memory of the caller, such as a mapping with MAP_SHARED, of bytes_for(capacity) zeroed bytes
  // aligned to 8. What is logged can be read by read() in another process, even if this one was
  // killed at any point. Continues behind what the memory holds already.
  static std::size_t bytes_for(std::size_t capacity);
  explicit OperationLog(std::span<std::byte> memory);
  // The operations in such memory. While somebody writes it, those under way may be missing.
  static std::vector<Operation> read(std::span<const std::byte> memory);

  // Returns the operation's place. Throws PlatformError if the caller's memory is full.
  std::size_t begin(const Operation& operation);
  // With what the operation's answer was.
  void complete(std::size_t place, std::uint64_t version, Time end, Outcome outcome);

  std::span<const Operation> operations() const;

 private:
  struct Header {
    std::uint64_t count = 0;
  };

  std::vector<Operation> own_;
  Header* header_ = nullptr;  // of the caller's memory
  std::span<Operation> entries_;
};

// What a recorder has to know of keys and values. One object serves one client.
class Format {
 public:
  virtual ~Format() = default;
  // A number that no other key has.
  virtual std::uint64_t key_number(systems::Key key) = 0;
  // The version of the put that wrote this value for this key; nothing if no put can have.
  virtual std::optional<std::uint64_t> version(systems::Key key, systems::Value value) = 0;
};

// A session that passes everything on to another and logs it. Which of several operations at the
// same moment came first is not recorded, except that an operation which begins at the moment when
// the client's previous one ended is dated a picosecond later: it saw the answer.
class RecordedSession final : public systems::KvSession {
 public:
  // All must outlive the session.
  RecordedSession(systems::KvSession& session, std::uint32_t client, Format& format,
                  OperationLog& log)
      : session_(session), client_(client), format_(format), log_(log) {}

  Task<systems::Result<Bytes>> get(systems::Key key, std::span<std::byte> into) override;
  // Throws std::invalid_argument if the format does not know the value's version.
  Task<systems::Result<void>> put(systems::Key key, systems::Value value) override;
  Task<systems::Result<void>> erase(systems::Key key) override;
  systems::SessionCounts counts() const override { return session_.counts(); }
  std::vector<double> metrics() const override { return session_.metrics(); }

 private:
  std::size_t begin(Kind kind, systems::Key key, std::uint64_t version);
  void end(std::size_t place, std::uint64_t version, Outcome outcome, Time when);

  systems::KvSession& session_;
  std::uint32_t client_;
  Format& format_;
  OperationLog& log_;
  Time last_end_ = Time::min();
};

}  // namespace perdura::history
