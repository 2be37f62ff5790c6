// A plugin that keeps the last versions of a value (MCAS, Appendix C). The client's half, which
// makes requests and reads responses, is in this header, too.
//
// The value of a key is an arena (containers/arena.h) with a list of versions, the newest one
// first. A put adds a version and drops the oldest one in one transaction, so after a failure at
// any time there are either the versions from before it or those from after it. The first put of a
// key resizes its value to the length of an arena and formats it. A key that an invocation creates
// must be created as zeros.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "systems/mcas/ado/plugin.h"

namespace perdura::systems::mcas::ado {

class Versioning final : public Plugin {
 public:
  struct Settings {
    std::uint64_t versions = 4;
    Bytes arena = 64 * KiB;  // length of each value, with all versions and their undo log
    Bytes log = 4 * KiB;
  };
  explicit Versioning(const Settings& settings) : settings_(settings) {}

  // --- the client's half -------------------------------------------------------------------------

  // The response to a put is empty.
  static std::string put_request(std::string_view value) { return "put " + std::string(value); }
  // Puts the detached value that comes with the invocation.
  static std::string put_request() { return "put"; }
  // Requests the value from `back` puts before the last one.
  static std::string get_request(std::uint64_t back) { return "get " + std::to_string(back); }
  // Returns nothing if there is no such version.
  static std::optional<std::string> version_of(const std::string& response) {
    if (response.empty()) return std::nullopt;
    return response.substr(1);
  }

  // --- the shard's half --------------------------------------------------------------------------

  // Undoes what was interrupted, in all values that are arenas and not locked by others.
  Task<> launched(Services& services) override;
  Task<Result> do_work(Services& services, const Invocation& work) override;

 private:
  Task<Result> put(Services& services, const Invocation& work, std::string value);
  Result get(Services& services, const Invocation& work, std::uint64_t back);

  Settings settings_;
};

}  // namespace perdura::systems::mcas::ado
