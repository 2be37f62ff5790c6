// The columns of points.csv (docs/results.md), in their order: the one list that both the writer
// and the reader go by.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace perdura::report {

struct Column {
  enum class Kind { text, number };
  std::string_view name;
  Kind kind = Kind::number;
};

// Written into each row; no other is read.
inline constexpr int kSchemaVersion = 5;

inline constexpr std::array kPointColumns{
    Column{"schema_version"},
    Column{"experiment", Column::Kind::text},
    Column{"platform", Column::Kind::text},
    Column{"provenance", Column::Kind::text},
    Column{"profile", Column::Kind::text},
    Column{"system", Column::Kind::text},
    Column{"workload", Column::Kind::text},
    Column{"key_size"},
    Column{"value_size"},
    Column{"records"},
    Column{"clients"},
    Column{"queue_depth"},
    Column{"server_threads"},
    Column{"resizes"},
    Column{"load", Column::Kind::text},
    Column{"offered_load"},
    Column{"domain", Column::Kind::text},
    Column{"ddio", Column::Kind::text},
    Column{"receive_buffers", Column::Kind::text},
    Column{"transport", Column::Kind::text},
    Column{"update", Column::Kind::text},
    Column{"persistence", Column::Kind::text},
    Column{"seed"},
    Column{"repetition"},
    Column{"operation", Column::Kind::text},
    Column{"verdict", Column::Kind::text},
    Column{"reason", Column::Kind::text},
    Column{"method", Column::Kind::text},
    Column{"guarantee", Column::Kind::text},
    Column{"operations"},
    Column{"errors"},
    Column{"not_found"},
    Column{"torn_reads"},
    Column{"elapsed_s"},
    Column{"throughput_ops_s"},
    Column{"tail_percent"},
    Column{"long_tail", Column::Kind::text},
    Column{"saturated", Column::Kind::text},
    Column{"latency_mean_us"},
    Column{"latency_min_us"},
    Column{"latency_p50_us"},
    Column{"latency_p90_us"},
    Column{"latency_p99_us"},
    Column{"latency_p999_us"},
    Column{"latency_p9999_us"},
    Column{"latency_max_us"},
    Column{"latency_mean_low_us"},
    Column{"latency_mean_high_us"},
    Column{"latency_p50_low_us"},
    Column{"latency_p50_high_us"},
    Column{"latency_p90_low_us"},
    Column{"latency_p90_high_us"},
    Column{"latency_p99_low_us"},
    Column{"latency_p99_high_us"},
    Column{"latency_p999_low_us"},
    Column{"latency_p999_high_us"},
    Column{"latency_p9999_low_us"},
    Column{"latency_p9999_high_us"},
    Column{"response_mean_us"},
    Column{"response_min_us"},
    Column{"response_p50_us"},
    Column{"response_p90_us"},
    Column{"response_p99_us"},
    Column{"response_p999_us"},
    Column{"response_p9999_us"},
    Column{"response_max_us"},
    Column{"response_mean_low_us"},
    Column{"response_mean_high_us"},
    Column{"response_p50_low_us"},
    Column{"response_p50_high_us"},
    Column{"response_p90_low_us"},
    Column{"response_p90_high_us"},
    Column{"response_p99_low_us"},
    Column{"response_p99_high_us"},
    Column{"response_p999_low_us"},
    Column{"response_p999_high_us"},
    Column{"response_p9999_low_us"},
    Column{"response_p9999_high_us"},
    Column{"harness_ns_per_op"},
    Column{"server_cpu_us_per_op"},
    Column{"client_cpu_us_per_op"},
    Column{"nvm_field_bytes_per_op"},
    Column{"nvm_bytes_issued_per_op"},
    Column{"nvm_bytes_programmed_per_op"},
    Column{"nvm_bits_flipped_per_op"},
    Column{"nvm_flushes_per_op"},
    Column{"nvm_fences_per_op"},
    Column{"nvm_lines_per_op"},
    Column{"nvm_media_bytes_per_op"},
    Column{"nvm_local_bytes_per_op"},
    Column{"nvm_one_sided_bytes_per_op"},
    Column{"one_sided_reads_per_op"},
    Column{"space_used_percent"},
};

// Behind those above, in folders of real platforms only: how quiet the hosts were.
inline constexpr std::array kNoiseColumns{
    Column{"noise", Column::Kind::text}, Column{"load_average"},
    Column{"runnable_before_per_core"},  Column{"runnable_per_core"},
    Column{"waiting_threads"},           Column{"steal_percent"},
    Column{"slowdown_percent"},
};

// The columns that say which point a row belongs to: they come first, in every file, and end with
// the repetition.
inline constexpr std::size_t kIdentityColumns = [] {
  std::size_t count = 0;
  while (kPointColumns[count].name != "repetition") ++count;
  return count + 1;
}();

// latency_mean_us to latency_p9999_high_us, and the same of response_*.
inline constexpr std::size_t kLatencyColumns = 20;

// The columns of probes.csv (docs/probe.md) that points.csv does not have: what was probed, and
// what was found.
inline constexpr std::array<std::string_view, 14> kProbeSettings{
    "probe", "medium",      "pattern", "cache",       "pages",        "numa", "dimms",
    "size",  "queue_pairs", "regions", "region_size", "read_percent", "unit", "threads"};
inline constexpr std::array<std::string_view, 4> kProbeReadings{"value", "low", "high",
                                                                "repetitions"};

// The columns of timeline.csv after those of the identity.
inline constexpr std::array kTimelineColumns{
    Column{"time_ms"},        Column{"operations"},   Column{"latency_mean_us"},
    Column{"latency_max_us"}, Column{"free_percent"}, Column{"cleanings"},
    Column{"cleanings_now"},
};

}  // namespace perdura::report
