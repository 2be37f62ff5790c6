// The guarantee of each system on each kind of server, as found by exploration. The data is
// explored.csv, a copy of the table of whole systems that `perdura guarantees` writes; results and
// legends use it to state what was found rather than what is promised. scripts/reference
// regenerates it; a test compares it with an exploration.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/model/persistence.h"
#include "services/service.h"

namespace perdura::explore {

// A way to run a system that changes what it guarantees.
struct ExploredSetting {
  std::string name;  // its name in the table; empty: as published
  GivenParameters parameters;
  bool correct = false;        // puts persist by the method that is correct for the server
  bool keeps_nothing = false;  // it is not explored: its level is `none`
};
// The settings of a system; the published one comes first.
std::vector<ExploredSetting> explored_settings(const services::SystemInfo& system);

// The setting of these parameters. If the table has none, its name lists the parameters.
ExploredSetting given_setting(const services::SystemInfo& system, const GivenParameters& parameters,
                              bool correct);

// The names of a row and of a column of the table: "erda, persist_before_update", "dmp no-ddio
// iwarp".
std::string explored_name(const services::SystemInfo& system, const ExploredSetting& setting);
std::string explored_name(const pmem::PersistenceModel& model);
// The columns of the table: the kinds of servers that can make a difference to a whole system.
std::vector<pmem::PersistenceModel> explored_models();
// The commit that the table is from; "unknown" if the sources were no git repository.
std::string_view explored_revision();

// A cell of the table says what was found, or begins with this and says why the system cannot run
// there.
inline constexpr std::string_view kRefused = "refused: ";

struct ExploredCell {
  std::optional<services::GuaranteeLevel> level;
  std::string refused;  // why; empty if it was explored
};
// The cell of the explored setting that is closest to the given one; nothing if the table has none.
std::optional<ExploredCell> explored_cell(const services::SystemInfo& system,
                                          const GivenParameters& parameters, bool correct,
                                          const pmem::PersistenceModel& model);

// Returns the weakest level found on these servers, without those on which the system cannot run.
// Returns nothing if the table lacks one of them, or if the system can run on none.
std::optional<services::GuaranteeLevel> explored_level(
    const services::SystemInfo& system, const GivenParameters& parameters, bool correct,
    std::span<const pmem::PersistenceModel> servers);

}  // namespace perdura::explore
