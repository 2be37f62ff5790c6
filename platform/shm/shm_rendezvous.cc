#include "platform/shm/shm_rendezvous.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura {

using fabric::Address;
using fabric::tcp::Listener;

ShmRendezvous::ShmRendezvous(fabric::shm::Job& job)
    : job_(job),
      // A later job of the same name starts another clock.
      token_(hash64(std::as_bytes(std::span(job.directory())), job.control().clock.epoch)) {}

std::string ShmRendezvous::path(Address address) const {
  return fmt::format("{}.socket-{}", job_.node_path(address.node), address.port);
}

void ShmRendezvous::publish(Address address, const Listener& listener) {
  // Renamed into place, so that it is never read half written.
  const std::string name = path(address);
  const std::string written = name + ".new";
  std::ofstream file(written);
  file << fmt::format("{:x} {:x}\n", listener.port, listener.token);
  file.close();
  std::error_code error;
  std::filesystem::rename(written, name, error);
  if (!file || error) {
    throw PlatformError(fmt::format("connections over TCP: cannot write {}", name));
  }
}

void ShmRendezvous::withdraw(Address address) {
  std::error_code ignored;
  std::filesystem::remove(path(address), ignored);
}

std::optional<Listener> ShmRendezvous::find(Address address) {
  std::ifstream file(path(address));
  Listener listener{.hosts = {host()}};
  if (!(file >> std::hex >> listener.port >> listener.token)) return std::nullopt;
  return listener;
}

}  // namespace perdura
