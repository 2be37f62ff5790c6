#include <cmath>

#include "platform/base/json.h"
#include "report/compare/output.h"

namespace perdura::compare {
namespace {

Json columns_of(const Point& point, const schema::Schema& schema) {
  const auto names = point_columns(schema);
  Json columns;
  for (std::size_t i = 0; i < point.size(); ++i) {
    columns[std::string(names[i])] = point[i];
  }
  return columns;
}

/// JSON has no infinity; null stands for any value that is not finite.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const QuantityComparison& entry, const schema::Schema& schema) {
  Json json;
  json["verdict"] = to_string(entry.change);
  json["point"] = columns_of(entry.point, schema);
  json["quantity"] = entry.quantity;
  json["a"] = entry.a;
  json["b"] = entry.b;
  json["repetitions_a"] = entry.repetitions_a;
  json["repetitions_b"] = entry.repetitions_b;
  json["ratio"] = number(entry.ratio);
  json["ratio_low"] = entry.interval ? number(entry.interval->low) : nullptr;
  json["ratio_high"] = entry.interval ? number(entry.interval->high) : nullptr;
  json["p"] = entry.p ? number(*entry.p) : nullptr;
  return json;
}

}  // namespace

std::string as_json(const Comparison& comparison) {
  Json json;
  json["threshold_percent"] = comparison.options.threshold_percent;
  json["alpha"] = comparison.options.alpha;
  json["provenance"] = comparison.matching.modelled ? "modelled" : "measured";
  json["tested"] = comparison.tested;
  json["by_threshold"] = comparison.by_threshold;
  json["repetitions_needed"] = comparison.repetitions_needed;
  for (const ChangeKind change : {ChangeKind::worse, ChangeKind::undecided, ChangeKind::unclear,
                                  ChangeKind::unchanged, ChangeKind::better}) {
    json[std::string(to_string(change))] = comparison.count(change);
  }
  const schema::Schema& schema = comparison.matching.schema;
  const auto side = [](Side of) { return of == Side::a ? "a" : "b"; };
  json["comparisons"] = Json::array();
  for (const QuantityComparison& entry : comparison.entries)
    json["comparisons"].push_back(json_of(entry, schema));
  json["unmatched"] = Json::array();
  for (const Unmatched& each : comparison.matching.unmatched) {
    json["unmatched"].push_back({{"only_in", side(each.side)},
                                 {"point", columns_of(each.point, schema)},
                                 {"quantity", each.quantity}});
  }
  json["differing"] = Json::array();
  for (const Differing& each : comparison.matching.differing) {
    Json differences = Json::object();
    for (const Difference& difference : each.differences) {
      differences[difference.key] = {difference.first, difference.second};
    }
    json["differing"].push_back({{"first", each.first.string()},
                                 {"second", each.second.string()},
                                 {"differences", std::move(differences)}});
  }
  json["lost"] = Json::array();
  for (const Lost& each : comparison.matching.lost) {
    json["lost"].push_back({{"point", columns_of(each.point, schema)},
                            {"missing", each.missing()},
                            {"valid_a", each.valid_a},
                            {"not_valid_a", each.not_valid_a},
                            {"valid_b", each.valid_b},
                            {"not_valid_b", each.not_valid_b}});
  }
  json["not_valid"] = Json::array();
  for (const NotValid& each : comparison.matching.not_valid) {
    json["not_valid"].push_back({{"run", side(each.side)},
                                 {"point", columns_of(each.point, schema)},
                                 {"repetition", each.repetition},
                                 {"verdict", each.verdict},
                                 {"reason", each.reason}});
  }
  json["noisy"] = Json::array();
  for (const Noisy& each : comparison.matching.noisy) {
    json["noisy"].push_back({{"run", side(each.side)},
                             {"point", columns_of(each.point, schema)},
                             {"noisy", each.noisy},
                             {"valid", each.valid},
                             {"noise", each.noise}});
  }
  return json.dump(2) + '\n';
}

}  // namespace perdura::compare
