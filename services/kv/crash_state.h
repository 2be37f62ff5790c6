// The current operations of the clients of a key-value system, and what recovery has left them: the
// part of a SystemState that is the same for all key-value systems.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "services/kv/history/history.h"
#include "services/kv/kv.h"
#include "services/kv/recorder.h"
#include "services/system_state.h"

namespace perdura::services {

class KvCrashState {
 public:
  // `changed` is called whenever an operation begins or ends.
  KvCrashState(const kv::KvSystem& system, std::function<void()> changed)
      : system_(system), changed_(std::move(changed)) {}
  KvCrashState(const KvCrashState&) = delete;
  KvCrashState& operator=(const KvCrashState&) = delete;

  void describe(SystemState& state) const;
  bool operation_under_way() const { return !under_way_.empty(); }
  // The number of gets that have returned a version whose put was not acknowledged yet.
  std::uint64_t early_reads() const { return early_reads_; }

  // The sum of KvSpace::steps of all open partitions.
  std::uint64_t steps_begun() const;

  // Registers a partition for as long as it is open.
  class Opened {
   public:
    Opened(KvCrashState& state, const kv::KvPartition& partition)
        : state_(state), place_(state.open_.insert(state.open_.end(), &partition)) {}
    ~Opened() { state_.open_.erase(place_); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    KvCrashState& state_;
    std::list<const kv::KvPartition*>::iterator place_;
  };

 private:
  friend class ObservedSession;
  struct Operation {
    history::Kind kind{};
    std::uint64_t key = 0;
    std::uint64_t version = 0;  // version of a put
    bool read = false;          // a get has returned the version of this put, which is not
                                // acknowledged yet
  };
  class UnderWay;

  void note_read(std::uint64_t key, std::uint64_t version);
  void note_found(std::uint64_t key, std::optional<std::uint64_t> version);
  void describe(const kv::KvPartition& partition, SystemState& state) const;

  const kv::KvSystem& system_;
  std::function<void()> changed_;
  std::list<const kv::KvPartition*> open_;
  std::list<Operation> under_way_;
  std::map<std::uint64_t, std::uint64_t> acknowledged_;  // the last version of each key; 0: none
  std::map<std::uint64_t, bool> found_;                  // the keys that the inspector has got, and
                                                         // whether they were there
  std::uint64_t early_reads_ = 0;
  std::uint64_t newest_found_ = 0;  // keys with the version that was acknowledged last
  std::uint64_t others_found_ = 0;  // keys with another version
  std::uint64_t lost_ = 0;          // keys that are absent although a version was acknowledged
};

// A session that forwards everything to another one and reports it to the state of the run.
class ObservedSession final : public kv::KvSession {
 public:
  // `inspects`: the client reads what recovery has left. All arguments must outlive the session.
  ObservedSession(kv::KvSession& session, KvCrashState& state, kv::Format& format, bool inspects)
      : session_(session), state_(state), format_(format), inspects_(inspects) {}

  Task<kv::Result<Bytes>> get(kv::Key key, std::span<std::byte> into) override;
  Task<kv::Result<void>> put(kv::Key key, kv::Value value) override;
  Task<kv::Result<void>> erase(kv::Key key) override;
  kv::SessionCounts counts() const override { return session_.counts(); }
  std::vector<double> metrics() const override { return session_.metrics(); }

 private:
  kv::KvSession& session_;
  KvCrashState& state_;
  kv::Format& format_;
  bool inspects_;
};

}  // namespace perdura::services
