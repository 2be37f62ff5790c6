// What exploration has found that each system guarantees on each kind of server: a copy of the
// table of whole systems that `perdura guarantees` writes (explored.csv), so that results and
// legends say what is kept rather than what is promised. scripts/reference makes it anew; a test
// compares it with an exploration.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/model/persistence.h"
#include "services/service.h"

namespace perdura::bench {

// A way to run a system that changes what it guarantees.
struct ExploredSetting {
  std::string_view name;  // in the table; empty: as published
  GivenParameters parameters;
  bool correct = false;  // puts persist by the method for the server
};
// Of a system, as published first.
std::vector<ExploredSetting> explored_settings(const services::SystemInfo& system);

// As a row and a column of the table are called: "erda, persist_before_update", "dmp no-ddio
// iwarp".
std::string explored_name(const services::SystemInfo& system, const ExploredSetting& setting);
std::string explored_name(const pmem::PersistenceModel& model);
// The columns, and the kinds of servers that a whole system can tell apart.
std::vector<pmem::PersistenceModel> explored_models();

// Of the setting that is most like it; nothing if the system was not explored.
std::optional<services::GuaranteeLevel> explored_level(const services::SystemInfo& system,
                                                       const GivenParameters& parameters,
                                                       bool correct,
                                                       const pmem::PersistenceModel& model);

}  // namespace perdura::bench
