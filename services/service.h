// The interface of all services: enough to list their systems, to explore their power failures and
// to report their guarantees without knowing their operations. A new service needs a folder here
// and a line in the table (systems/registry/registry.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "platform/pmem/model/tape.h"
#include "services/crash.h"
#include "services/guarantee.h"
#include "services/setting.h"

namespace perdura::services {

struct SystemInfo {
  std::string_view name;       // as on the command line: lower case with dashes
  std::string_view title;      // as in a legend
  std::string_view paper;      // title, authors, year; section
  std::string_view guarantee;  // the meaning of a change's completion
  // The same as a level, as the paper promises it on its own testbed.
  GuaranteeLevel level = GuaranteeLevel::visible;
  // Parameters of the system that change what it guarantees. Exploration also tries the system with
  // each.
  std::span<const Setting> changes_guarantee{};
  // All of the system's own parameters, `[systems.NAME]` of an experiment.
  std::span<const Parameter> parameters{};
  // True if CrashSetup::correct has an effect: the system can persist by a method that is chosen
  // for the server, instead of in its own way.
  bool chooses_method = false;
  // Operations of RDMA devices that the system needs to run; settings may add to them.
  fabric::DeviceNeeds needs{};

  fabric::DeviceNeeds needs_with(const GivenParameters& given) const {
    fabric::DeviceNeeds all = needs;
    for (const Setting& setting : changes_guarantee) {
      const auto value = given.find(setting.name);
      if (value != given.end() && value->second == setting.value.value()) {
        all = all | setting.needs;
      }
    }
    return all;
  }
};

class Service {
 public:
  virtual ~Service() = default;
  virtual std::string_view name() const = 0;
  // A short description of what the service's clients can do.
  virtual std::string_view what() const = 0;
  virtual std::vector<SystemInfo> systems() const = 0;
  // The subjects of durability, in the words of the service: changes whose completion was reported,
  // and reports of changes that had not completed. "acknowledged writes", "what gets returned".
  virtual std::string_view acknowledged() const = 0;
  virtual std::string_view observed() const = 0;

  // The histories in which power failures are tried; at least one.
  virtual std::span<const CrashSchedule> schedules() const = 0;
  // A factory of identical runs of a schedule with one system of this service; empty if the
  // schedule is for other systems. Throws UsageError, here or when a run is made, if the system
  // does not accept the parameters. `setup.correct` is allowed only if the system chooses a method.
  virtual CrashHistory crash_history(std::string_view system, const CrashSetup& setup,
                                     const CrashSchedule& schedule) const = 0;

  // The number of all sequences of a kind, for explorations of every one of them
  // (explore/sequences.h); 0 if the service has none. They are numbered from 0. A failure is
  // tried in the last operation only, since those before it are the last ones of shorter sequences;
  // in all operations if they are done at once.
  virtual std::uint64_t sequences(const SequenceKind& /*kind*/) const { return 0; }
  virtual CrashSequence crash_sequence(std::string_view /*system*/, const CrashSetup& /*setup*/,
                                       const SequenceKind& /*kind*/,
                                       std::uint64_t /*number*/) const {
    return {};
  }

  // A scenario for `failures` failures whose store and clients are drawn from the tape: the same
  // choices make identical runs. Throws like crash_history(). Each client has a stream of its own,
  // "client-0", "client-1", ..., and 0 is always the simplest choice, so that a client or an
  // operation can be left out of a run without changing the others.
  virtual std::unique_ptr<CrashScenario> generated_scenario(std::string_view system,
                                                            const CrashSetup& setup,
                                                            pmem::Tape& tape,
                                                            std::uint32_t failures) const = 0;
};

// A system and the service that it implements.
struct ServedSystem {
  const Service* service = nullptr;
  SystemInfo info;
};

}  // namespace perdura::services
