// How socket endpoints of a job on one host find each other: each listening endpoint has a file in
// the job's directory.
#pragma once

#include <string>

#include "platform/fabric/shm/job.h"
#include "platform/fabric/tcp/rendezvous.h"

namespace perdura {

// The file is node-N.socket-P and contains "TCP-PORT TOKEN" in hexadecimal. It is removed with the
// other files of its node: by the node's process when it ends, or by the one that takes its place.
// Until then the file of a killed process names a port on which no process, or another one,
// listens.
class ShmRendezvous final : public fabric::tcp::Rendezvous {
 public:
  explicit ShmRendezvous(fabric::shm::Job& job);

  std::uint64_t job() const override { return token_; }
  std::string host() const override { return "127.0.0.1"; }
  void publish(fabric::Address address, const fabric::tcp::Listener& listener) override;
  void withdraw(fabric::Address address) override;
  std::optional<fabric::tcp::Listener> find(fabric::Address address) override;

 private:
  std::string path(fabric::Address address) const;

  fabric::shm::Job& job_;
  std::uint64_t token_;
};

}  // namespace perdura
