// How socket endpoints of a job on several hosts find each other: an endpoint that begins to listen
// announces the addresses of its host and its TCP port to all processes, which remember them. All
// processes of a job join before any endpoint can listen, so none misses an announcement.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "platform/fabric/tcp/rendezvous.h"
#include "platform/fabric/verbs/fixed_job.h"

namespace perdura {

class VerbsRendezvous final : public fabric::tcp::Rendezvous {
 public:
  explicit VerbsRendezvous(std::uint64_t job) : job_(job) {}
  // The random token of the coordinator's listener; 0 for a process alone.
  static std::uint64_t job_of(const fabric::verbs::ControlListener* listener,
                              const std::string& coordinator);
  // Must be called before the first endpoint listens.
  void set_control(fabric::verbs::FixedJob& control) { control_ = &control; }

  std::uint64_t job() const override { return job_; }
  std::string host() const override { return "0.0.0.0"; }
  void publish(fabric::Address address, const fabric::tcp::Listener& listener) override;
  void withdraw(fabric::Address address) override;
  std::optional<fabric::tcp::Listener> find(fabric::Address address) override;

  // An announcement of another process.
  void take(const fabric::verbs::Message& message);

 private:
  using Key = std::pair<fabric::NodeId, fabric::Port>;

  std::uint64_t job_;
  fabric::verbs::FixedJob* control_ = nullptr;
  std::mutex mutex_;
  std::map<Key, fabric::tcp::Listener> known_;
};

}  // namespace perdura
