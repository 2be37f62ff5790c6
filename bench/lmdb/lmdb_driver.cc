#include "bench/lmdb/lmdb_driver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/copies.h"
#include "bench/driver/mounted_directory.h"
#include "bench/driver/server.h"
#include "bench/driver/systems.h"
#include "bench/lmdb/lmdb_parameters.h"
#include "bench/lmdb/program.h"
#include "bench/lmdb/result.h"
#include "bench/operation_kinds.h"
#include "bench/ycsb/point_workload.h"
#include "bench/ycsb/workload_remarks.h"
#include "harness/program/companion.h"
#include "harness/run/interrupt.h"
#include "platform/base/error.h"

namespace perdura::bench {

namespace fs = std::filesystem;
using harness::Measurement;
using harness::Point;
using harness::Verdict;
using services::MemorySystem;
using ycsb::OperationKind;
using ycsb::WorkloadSpec;

namespace {

// LMDB without replication: its file is in memory (tmpfs), which does not survive a power failure, or in a directory
// of this machine.
struct Unreplicated {
  std::string_view name;
  std::string_view title;
  bool syncs;
};
constexpr const char* kMemory = "/dev/shm";

constexpr std::array kUnreplicated{
    Unreplicated{"tmpfs-msync", "tmpfs with msync", true},
    Unreplicated{"tmpfs-nosync", "tmpfs with MDB_NOSYNC", false},
    Unreplicated{kPathSystem, "System calls", true},
};

const Unreplicated* unreplicated(const Point& point) {
  const auto* const found = std::find_if(
      kUnreplicated.begin(), kUnreplicated.end(),
      [&](const Unreplicated& each) { return each.name == point.settings.system.text; });
  return found == kUnreplicated.end() ? nullptr : found;
}

// A folder with a subfolder for each node, in memory or in a directory that is given. Removes those of processes that
// were killed.
class Folder {
 public:
  Folder(NodeId nodes, const fs::path& in) {
    remove_abandoned(in);
    std::string name = in / (kBegin + "XXXXXX");
    if (mkdtemp(name.data()) == nullptr) refuse_path(in);
    path_ = name;
    lock_ = locked(path_);
    if (lock_ < 0) refuse_path(in);
    for (NodeId node = 0; node < nodes; ++node) fs::create_directory(path_ / of(node));
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    close(lock_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }
  std::string file(NodeId node) const { return path_ / of(node) / "data.mdb"; }

 private:
  inline static const std::string kBegin = "perdura-lmdb-";

  static std::string of(NodeId node) { return fmt::format("node-{}", node); }
  // Locks a folder. The kernel unlocks it when this process ends, however that happens. Returns
  // less than 0 if another process has locked it.
  static int locked(const fs::path& folder) {
    const int file = open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) == 0) return file;
    close(file);
    return -1;
  }
  static void remove_abandoned(const fs::path& in) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(in, ignored)) {
      if (!entry.path().filename().string().starts_with(kBegin)) continue;
      const bool has_lock = fs::exists(entry.path() / "lock", ignored);  // else it has just been
                                                                         // made
      const int lock = has_lock ? locked(entry.path()) : -1;
      if (lock < 0) continue;
      fs::remove_all(entry.path(), ignored);
      close(lock);
    }
  }

  fs::path path_;
  int lock_ = -1;
};

// Room for all records that there may ever be, in half-full pages, and as much again for pages that
// readers still use.
Bytes map_size_of(const Point& point) {
  if (const auto given = point.settings.number_if_given("map_size")) return *given;
  constexpr Bytes kPage = 4 * KiB;
  constexpr Bytes kNode = 16;       // LMDB adds 8 bytes and 2 for an index, and rounds up
  constexpr Bytes kLargest = 2000;  // larger entries get pages of their own (LMDB: above 2,038)
  constexpr Bytes kLeast = 16 * MiB;
  const WorkloadSpec& spec = workload_of(point);
  const std::uint64_t inserts =
      spec.uses(OperationKind::insert) ? spec.operation_count + point.settings.number("warmup") : 0;
  const Bytes entry = spec.key_size + spec.max_value_size() + kNode;
  const Bytes taken = entry > kLargest ? round_up(entry, kPage) + kPage : 2 * entry;
  return round_up(2 * (spec.loaded_keys() + inserts) * taken + kLeast, kPage);
}

// The arguments that both commands of perdura-lmdb need.
std::vector<std::string> program_arguments(const Point& point, const std::string& command,
                                           const std::string& file) {
  std::vector<std::string> arguments{
      harness::companion("perdura-lmdb", "install liblmdb-dev and build again"),
      command,
      "--file",
      file,
      "--size",
      fmt::to_string(map_size_of(point)),
      "--workload",
      point.files.front().file};
  const ycsb::Overrides& overrides = overrides_of(point);
  const auto add = [&](const char* option, const auto& value) {
    if (value) arguments.insert(arguments.end(), {option, fmt::to_string(*value)});
  };
  add("--records", overrides.record_count);
  add("--operations", overrides.operation_count);
  add("--key-size", overrides.key_size);
  add("--value-size", overrides.value_size);
  return arguments;
}

std::vector<std::string> run_arguments(const Point& point, const std::string& file) {
  const harness::PointSettings& settings = point.settings;
  std::vector<std::string> arguments = program_arguments(point, "run", file);
  arguments.insert(arguments.end(), {"--warmup", fmt::to_string(settings.number("warmup")),
                                     "--clients", fmt::to_string(settings.number("clients")),
                                     "--seed", fmt::to_string(point.seed)});
  const Unreplicated* const alone = unreplicated(point);
  if (alone != nullptr && !alone->syncs) arguments.emplace_back("--no-sync");
  if (!settings.flag("write_map")) arguments.emplace_back("--no-write-map");
  return arguments;
}

std::vector<std::string> mojim_arguments(const Point& point, const Folder& folder, NodeId copies) {
  const harness::PointSettings& settings = point.settings;
  std::vector<std::string> arguments{fs::read_symlink("/proc/self/exe"),
                                     "mojim",
                                     "run",
                                     "--mode",
                                     settings.system.text,
                                     "--size",
                                     fmt::to_string(map_size_of(point)),
                                     "--primary",
                                     folder.file(0)};
  for (NodeId node = 1; node <= copies; ++node) {
    arguments.insert(arguments.end(), {node == 1 ? "--mirror" : "--backup", folder.file(node)});
  }
  const bool correct = settings.text("persistence") == "correct";
  arguments.insert(arguments.end(), {"--persistence", correct ? "correct" : "paper"});
  for (const char* const property : {"domain", "ddio"}) {
    if (!settings.given(property)) continue;  // the default is the strictest
    arguments.insert(arguments.end(), {fmt::format("--{}", property), settings.text(property)});
  }
  arguments.emplace_back("--");
  return arguments;
}

lmdb::Result result_of(lmdb::Program& program) {
  std::uint64_t count = 0;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  if (program.read(std::as_writable_bytes(std::span(&count, 1))) && count < kMost) {
    std::vector<std::uint64_t> words(count);
    if (program.read(std::as_writable_bytes(std::span(words)))) {
      lmdb::Result result;
      harness::WordReader reader(words);
      visit(reader, result);
      return result;
    }
  }
  throw PlatformError("perdura-lmdb ended while it gave its result");
}

// Checks a node's file as a database of its own: LMDB must open it, with everything that was
// committed.
void check_copy(const Point& point, const Folder& folder, NodeId node, std::uint64_t entries,
                Measurement& measurement) {
  const std::string file = folder.file(node);
  lmdb::Program check([&](int, int) { return program_arguments(point, "check", file); },
                      folder.path());
  const std::string copy = node == 0   ? "the database"
                           : node == 1 ? "the mirror's copy"
                                       : "a backup's copy";
  const int code = check.wait();
  if (code > 0) {
    measurement.judge(Verdict::invalid, fmt::format("{}: {}", copy, check.complaint()));
  } else if (code == 0 && check.output() != fmt::format("{}\n", entries)) {
    measurement.judge(Verdict::invalid,
                      fmt::format("{} has {} entries, and {} were committed", copy,
                                  check.output().substr(0, check.output().find('\n')), entries));
  }
}

void add(const lmdb::Result& result, Measurement& measurement) {
  for (const auto& [number, measured] : result.kinds) {
    harness::KindMeasurement& kind = measurement.kinds[kind_of(static_cast<OperationKind>(number))];
    kind.operations = measured.operations;
    kind.errors = measured.errors;
    kind.not_found = measured.not_found;
    kind.latency = measured.latency;
  }
  measurement.elapsed = result.elapsed;
  measurement.at_work = {
      {measure::clock_of_this_host(), result.all_begin, result.all_end, result.operations_at_work}};
  if (!result.problem.empty()) {
    measurement.judge(result.failed ? Verdict::failed : Verdict::invalid, result.problem);
  }
}

}  // namespace

std::span<const Parameter> LmdbDriver::parameters() const { return lmdb_parameters(); }

std::vector<harness::DriverDeclarations::System> LmdbDriver::systems() const {
  std::vector<harness::DriverDeclarations::System> declared;
  for (const Unreplicated& each : kUnreplicated) {
    const bool is_path = each.name == kPathSystem;
    declared.push_back(
        {each.name, is_path ? path_parameters() : std::span<const Parameter>{}, each.title});
  }
  // perdura mojim run has no options for the systems' parameters.
  for (const MemorySystem& each : systems_) {
    declared.push_back({each.info.name, {}, each.info.title});
  }
  return declared;
}

void LmdbDriver::prepare(Point& point, const harness::Locations& locations) const {
  prepare_workload(point, locations);
  find_file_system(point);
}

std::vector<std::string> LmdbDriver::remarks(const std::vector<Point>& points) const {
  return remarks_on_workloads(points);
}

void LmdbDriver::check_platform(std::string_view platform, const std::string& where) const {
  if (platform == "shm") return;
  throw UsageError(fmt::format(
      "{}: driver lmdb runs programs, which need shared memory and real time; set platform to "
      "\"shm\"",
      where));
}

void LmdbDriver::check(const Point& point) const {
  const harness::PointSettings& settings = point.settings;
  if (point.timeline_interval > Nanoseconds{}) {
    throw UsageError(fmt::format("{}: a program is not recorded over time; remove [timeline]",
                                 settings.system.where));
  }
  constexpr std::uint32_t kLongestKey = 511;  // MDB_MAXKEYSIZE
  if (workload_of(point).key_size > kLongestKey) {
    throw UsageError(fmt::format("{}: LMDB's keys have at most {} bytes; lower key_size",
                                 settings.where("key_size"), kLongestKey));
  }
  if (unreplicated(point) == nullptr) {
    check_server(point, services::info_of(system_of(point, systems_)));
    return;
  }
  for (const char* const property : {"persistence", "domain", "ddio"}) {
    if (!settings.given(property)) continue;
    throw UsageError(fmt::format("{}: '{}' has no effect on {}, which has no copies; remove it",
                                 settings.system.where, property, settings.system.text));
  }
}

harness::Roles LmdbDriver::roles(const harness::PointSettings&, NodeId) const {
  return harness::Roles({{"application", 1}});
}

std::vector<schema::Column> LmdbDriver::columns(std::string_view) const {
  return {{.name = "copies_cpu_us_per_op",
           .shown = {"CPU time of the copies", "CPU time of the copies per operation", "us"},
           .better = schema::Column::Better::less}};
}

std::span<const std::string_view> LmdbDriver::columns_if_unusual() const {
  static constexpr std::array kColumns{kFileSystem.name};
  return kColumns;
}

fs::path LmdbDriver::directory_of_data(const Point& point) const {
  return is_path(point) ? path_of(point) : "";
}

Measurement LmdbDriver::run(Platform&, const Point& point) const {
  const Unreplicated* const alone = unreplicated(point);
  const NodeId copies =
      alone != nullptr ? 0 : copies_of(point.settings, system_of(point, systems_));
  const Folder folder(1 + copies, is_path(point) ? path_of(point) : kMemory);
  Measurement measurement;
  lmdb::Program program(
      [&](int results, int answers) {
        std::vector<std::string> arguments;
        if (alone == nullptr) arguments = mojim_arguments(point, folder, copies);
        const auto of_program = run_arguments(point, folder.file(0));
        arguments.insert(arguments.end(), of_program.begin(), of_program.end());
        arguments.insert(arguments.end(), {"--results", fmt::to_string(results), "--answers",
                                           fmt::to_string(answers)});
        return arguments;
      },
      folder.path());
  std::optional<lmdb::Result> result;
  lmdb::Program::CpuTime before;
  constexpr std::string_view kCopies = " mojim copy ";
  for (std::byte what{}; !result && program.read({&what, 1});) {
    switch (static_cast<char>(what)) {
      case lmdb::kBegins:
        before = program.cpu_time(kCopies);
        program.answer(lmdb::kGoOn);
        break;
      case lmdb::kEnds: {
        const lmdb::Program::CpuTime after = program.cpu_time(kCopies);
        measurement.declared["application_cpu_us_per_op"] =
            to_microseconds(after.without - before.without);
        if (copies > 0) {
          measurement.declared["copies_cpu_us_per_op"] = to_microseconds(after.with - before.with);
        }
        program.answer(lmdb::kGoOn);
        break;
      }
      case lmdb::kResult:
        result = result_of(program);
        break;
      default:
        throw PlatformError("perdura-lmdb says what nobody understands");
    }
  }
  const int code = program.wait();
  if (harness::interrupted()) {
    measurement.interrupted = true;
    return measurement;
  }
  if (result) add(*result, measurement);
  if (code != 0 && measurement.verdict == Verdict::valid) {
    measurement.judge(Verdict::failed, program.complaint());
  }
  if (measurement.verdict != Verdict::valid) return measurement;
  // Copies that a sync point does not wait for may lack the last changes, so they are not checked.
  const NodeId synced = alone != nullptr ? 0 : system_of(point, systems_).synced_copies;
  for (NodeId node = 0; node <= std::min(copies, synced); ++node) {
    check_copy(point, folder, node, result->entries, measurement);
  }
  return measurement;
}

void LmdbDriver::conclude(const Point& point, Measurement& measurement) const {
  if (unreplicated(point) != nullptr) return;
  const services::SystemInfo system = services::info_of(system_of(point, systems_));
  if (const auto level = guarantee_of(point, system)) measurement.guarantee = to_string(*level);
}

}  // namespace perdura::bench
