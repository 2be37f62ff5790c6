#include "tests/vm/power_failure/stores.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/schema/csv_table.h"
#include "platform/base/error.h"
#include "systems/registry/registry.h"

namespace perdura::test {
namespace {

using history::Promise;

Promise promise_of(const schema::CsvTable& matrix, const std::string& name,
                   std::string_view machine) {
  const auto column = matrix.column(machine);
  const auto row = std::find_if(matrix.rows.begin(), matrix.rows.end(),
                                [&](const schema::CsvRow& each) { return each.cells[0] == name; });
  if (!column || row == matrix.rows.end()) {
    throw UsageError(fmt::format("{}: nothing about '{}' on '{}'; write it with perdura guarantees",
                                 matrix.file.string(), name, machine));
  }
  const std::string& level = row->cells[*column];
  if (level == "durable") return {.undone = Promise::Undone::nothing};
  if (level == "ordered") return {.undone = Promise::Undone::last_version};
  throw UsageError(
      fmt::format("{}: '{}' is {} on '{}', for which histories with power failures are not "
                  "checked; select others",
                  matrix.file.string(), name, level, machine));
}

// Small, so that logs go around and are cleaned within the test.
kv::KvConfig config_of(const kv::KvSystem& system) {
  const Bytes value_size = system.fit_value(256);
  kv::KvConfig config{.key_size = system.fit_key(16),
                      .value_size = value_size,
                      .max_value_size = value_size,
                      .records = kKeys,
                      .writes = 10'000,
                      .sessions = 8,
                      .parameters = {}};
  if (system.name == "erda") {
    config.parameters = {
        {"heads", 1}, {"regions", 8}, {"region_bytes", 16 * KiB}, {"segment_bytes", 2 * KiB}};
  } else if (system.name == "redo-logging" || system.name == "read-after-write") {
    config.parameters = {{"log_slots", 16}};
  }
  return config;
}

}  // namespace

std::vector<Store> make_stores(const std::string& matrix, const std::vector<std::string>& selected,
                               bool iwarp) {
  const auto table = schema::read_csv(matrix);
  if (!table) throw UsageError(table.error().message);
  const pmem::PersistenceModel model{
      .domain = pmem::PersistenceDomain::mhp,
      .ddio = true,
      .transport = iwarp ? pmem::Transport::iwarp : pmem::Transport::infiniband};
  std::vector<Store> stores;
  std::vector<std::string> names;
  for (const kv::KvSystem& system : systems::kv_systems()) {
    for (const bool correct : {false, true}) {
      if (correct && !system.put) continue;
      Store store{
          .name = fmt::format("{}{}", system.name, correct ? ", persistence = correct" : ""),
          .pool = fmt::format("{}{}", system.name, correct ? "-correct" : ""),
          .system = &system,
          .config = config_of(system)};
      names.push_back(store.pool);
      if (!selected.empty() &&
          std::find(selected.begin(), selected.end(), store.pool) == selected.end()) {
        continue;
      }
      if (correct) {
        store.config.put_method = methods::choose(
            {{model, pmem::Medium::dram}, {model, pmem::Medium::pm}}, *system.put, {});
      }
      store.promise = promise_of(*table, store.name, iwarp ? "mhp ddio iwarp" : "mhp ddio");
      stores.push_back(std::move(store));
    }
  }
  for (const std::string& name : selected) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw UsageError(
          fmt::format("unknown store '{}'; known are: {}", name, fmt::join(names, ", ")));
    }
  }
  return stores;
}

}  // namespace perdura::test
