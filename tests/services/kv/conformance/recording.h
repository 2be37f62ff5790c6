// Records what the clients of a test do, so that it can be checked afterwards.
#pragma once

#include <deque>

#include "services/kv/history/checker.h"
#include "services/kv/recorder.h"
#include "tests/services/kv/conformance/support.h"

namespace perdura::systems::test {

// Of key_of() and value_of().
class TestFormat final : public kv::Format {
 public:
  std::uint64_t key_number(kv::Key key) override {
    std::uint64_t number = 0;
    std::memcpy(&number, key.data(), std::min(key.size(), sizeof number));
    return number;
  }
  std::optional<std::uint64_t> version(kv::Key key, kv::Value value) override {
    return version_of(key_number(key), value);
  }
};

class Recording {
 public:
  // So many operations of each client are expected.
  explicit Recording(std::size_t expected = 1 << 14) : expected_(expected) {}

  using Client = std::function<Task<>(kv::KvSession&, Thread&)>;
  // Makes the session of a client another one that is to be recorded in its place.
  using Wrap = std::function<std::unique_ptr<kv::KvSession>(kv::KvSession&)>;

  // The client, as KvTest::connect() takes it. This object must outlive the run.
  Client of(Client client, Wrap wrap = {}) {
    Entry& entry =
        entries_.emplace_back(Entry{.log = kv::OperationLog(expected_),
                                    .number = static_cast<std::uint32_t>(entries_.size()),
                                    .client = std::move(client),
                                    .wrap = std::move(wrap)});
    return [&entry](kv::KvSession& session, Thread& thread) { return run(entry, session, thread); };
  }

  history::History history() const {
    history::History all;
    for (const Entry& entry : entries_) all.add(entry.log.operations());
    return all;
  }
  const kv::OperationLog& log(std::size_t client) const { return entries_[client].log; }

 private:
  struct Entry {
    kv::OperationLog log;
    std::uint32_t number = 0;
    Client client;
    Wrap wrap;
  };

  static Task<> run(Entry& entry, kv::KvSession& session, Thread& thread) {
    const auto wrapped = entry.wrap ? entry.wrap(session) : nullptr;
    TestFormat format;
    kv::RecordedSession recorded(wrapped ? *wrapped : session, entry.number, format, entry.log);
    co_await entry.client(recorded, thread);
  }

  std::size_t expected_;
  std::deque<Entry> entries_;
};

}  // namespace perdura::systems::test
