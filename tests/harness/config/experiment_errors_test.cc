// Each mistake in an experiment gives one line that says what is wrong, where, and what to do.
#include <gtest/gtest.h>

#include <fstream>

#include "harness/config/document.h"
#include "harness/config/experiment.h"
#include "platform/base/error.h"
#include "tests/harness/declarations.h"
#include "tests/support/temporary_directory.h"

namespace perdura::harness {
namespace {

struct Mistake {
  const char* text;
  const char* message;
};

// Lines 1 to 5 of every text below; {} stands for them.
constexpr std::string_view kStart =
    "name = \"x\"\n"
    "[workload]\n"
    "workload = \"workloada\"\n"
    "system = \"erda\"\n"
    "[systems]\n";

const Mistake kMistakes[] = {
    {"", "x.toml: name is missing; add name = \"...\""},
    {"name = 5", "x.toml:1: name must be text in quotes, but is 5"},
    {"name = \"a/b\"",
     "x.toml:1: name names a folder, so it may hold letters, digits, '-', '_' and '.' only"},
    {"name = \"x\"", "x.toml: no system; add system = [\"...\"] to [matrix] (see 'perdura list')"},
    {"name = \"x\"\nworkload.system = \"erda\"",
     "x.toml: no workload; add workload = [\"...\"] to [matrix] (see 'perdura list')"},
    {"name = \"x\"\nfoo = 1",
     "x.toml:2: unknown key 'foo'; known are: name, description, driver, platform, profile, seed, "
     "repetitions, accounting, workload, roles, matrix, systems, shm, verbs, timeline, figure, "
     "table"},
    {"name = \"x\"\nname = \"y\"",
     "x.toml:2: Error while parsing key-value pair: cannot redefine existing string 'name'"},
    {"{}[workload]",
     "x.toml:6: Error while parsing table header: cannot redefine existing table 'workload'"},
    {"name = \"x\"\nworkload = 3", "x.toml:2: workload must be a section, [workload], but is 3"},
    {"name = \"x\"\nseed = -1",
     "x.toml:2: seed must be a whole number from 0 to 9223372036854775807, but is -1"},
    {"name = \"x\"\nseed = 1.5",
     "x.toml:2: seed must be a whole number from 0 to 9223372036854775807, but is 1.5"},
    {"name = \"x\"\nrepetitions = 0",
     "x.toml:2: repetitions must be a whole number from 1 to 10000, but is 0"},
    {"name = \"x\"\naccounting = \"all\"",
     "x.toml:2: accounting must be \"issued\" or \"compared\" (docs/accounting.md)"},
    {"name = \"x\"\n[workload]\n\nfoo = 1",
     "x.toml:4: unknown key 'foo' in [workload]; known are: system, completion, workload, records, "
     "operations, "
     "warmup, key_size, value_size, clients, client_nodes, queue_depth, servers, server_threads, "
     "resizes, load, offered_load, duration_ms, until_full, ramp_ms, steady_slope, "
     "steady_window_ms, check_history, history_folder, domain, ddio, receive_buffers, transport, "
     "persistence"},
    {"name = \"x\"\n[workload]\ncheck_history = 2",
     "x.toml:3: check_history in [workload] must be true or false, but is 2"},
    {"name = \"x\"\n[workload]\ncheck_history = \"true\"",
     "x.toml:3: check_history in [workload] must be true or false, but is \"true\""},
    {"{}[matrix]\ncheck_history = [false, true]",
     "x.toml:7: check_history in [matrix] can have one value only: points.csv has no column to "
     "tell "
     "its rows apart"},
    {"name = \"x\"\n[workload]\nclients = \"2\"",
     "x.toml:3: clients in [workload] must be a whole number from 1 to 65535, but is \"2\""},
    {"name = \"x\"\n[workload]\nclients = 0",
     "x.toml:3: clients in [workload] must be a whole number from 1 to 65535, but is 0"},
    {"name = \"x\"\n[workload]\nclients = [1, 2]",
     "x.toml:3: clients in [workload] is a list; lists go to [matrix]"},
    {"name = \"x\"\n[workload]\ncompletion = \"busy\"",
     "x.toml:3: completion in [workload] must be \"event\" or \"polling\", but is \"busy\""},
    {"name = \"x\"\n[workload]\nsystem = \"\"", "x.toml:3: system in [workload] must not be empty"},
    {"name = \"x\"\n[workload]\nload = \"open\"",
     "x.toml:3: load in [workload] must be \"closed\", \"fixed\" or \"poisson\", but is \"open\""},
    {"{}[matrix]\nload = [\"fixed\"]\noffered_load = [0]",
     "x.toml:8: offered_load in [matrix] must be a whole number from 1 to 1000000000, but is 0"},
    {"{}[matrix]\nduration_ms = [5]",
     "x.toml:7: duration_ms needs operations = ..., the most that may be measured, for which the "
     "store is made large enough"},
    {"{}[matrix]\nduration_ms = [0]",
     "x.toml:7: duration_ms in [matrix] must be a whole number from 1 to 3600000, but is 0"},
    {"{}[matrix]\nduration_ms = [5, 6]",
     "x.toml:7: duration_ms in [matrix] can have one value only: points.csv has no column to tell "
     "its rows apart"},
    {"{}[matrix]\nramp_ms = [5]",
     "x.toml:7: ramp_ms needs warmup = ..., the most operations before the measured ones"},
    {"{}[matrix]\nsteady_slope = [0.1]",
     "x.toml:7: steady_slope needs steady_window_ms = ..., the time within which the rate is "
     "looked at"},
    {"{}[matrix]\nsteady_window_ms = [1]",
     "x.toml:7: steady_window_ms needs steady_slope = ..., the part by which the rate may change "
     "within it"},
    {"{}[matrix]\nsteady_slope = [0.1]\nsteady_window_ms = [1]",
     "x.toml:7: steady_slope needs warmup = ..., the most operations before the measured ones"},
    {"name = \"x\"\n[workload]\nsteady_slope = 0.0",
     "x.toml:3: steady_slope in [workload] must be a decimal number above 0, at most 1, such as "
     "0.02, but is 0"},
    {"name = \"x\"\n[workload]\nsteady_slope = 2",
     "x.toml:3: steady_slope in [workload] must be a decimal number above 0, at most 1, such as "
     "0.02, but is 2"},
    {"{}[roles]\nserver = 1",
     "x.toml:7: unknown key 'server' in [roles] (did you mean 'server_completion'?); known are: "
     "server_completion, client_completion"},
    {"{}[roles]\nserver_completion = \"sleep\"",
     "x.toml:7: server_completion in [roles] must be \"event\" or \"polling\", but is \"sleep\""},
    {"{}[roles]\nserver_completion = \"event\"\n[matrix]\ncompletion = [\"polling\"]",
     "x.toml:6: completion is given for both roles and in [roles]; keep one"},
    {"{}[matrix]\nclients = 2",
     "x.toml:7: clients in [matrix] must be a list with at least one value, but is 2"},
    {"{}[matrix]\nclients = []",
     "x.toml:7: clients in [matrix] must be a list with at least one value, but is empty"},
    {"{}[matrix]\nclients = [1,\n\"a\"]",
     "x.toml:8: clients in [matrix] must be a whole number from 1 to 65535, but is \"a\""},
    {"{}[matrix]\nclients = [1, 2, 1]", "x.toml:7: clients in [matrix] has a value twice"},
    {"name = \"x\"\n[workload]\ndomain = \"adr\"",
     "x.toml:3: domain in [workload] must be \"dmp\", \"mhp\" or \"wsp\", but is \"adr\""},
    {"name = \"x\"\n[workload]\nddio = true",
     "x.toml:3: ddio in [workload] must be text in quotes, but is true"},
    {"{}[matrix]\nddio = [\"on\",\n\"no\"]",
     "x.toml:8: ddio in [matrix] must be \"on\" or \"off\", but is \"no\""},
    {"{}[matrix]\nreceive_buffers = [\"DRAM\"]",
     "x.toml:7: receive_buffers in [matrix] must be \"dram\" or \"pm\", but is \"DRAM\""},
    {"{}[matrix]\ntransport = [\"infiniband\"]",
     "x.toml:7: transport in [matrix] must be \"ib\", \"roce\" or \"iwarp\", but is "
     "\"infiniband\""},
    {"name = \"x\"\ndriver = \"remote-log\"\n[workload]\nupdate = \"compound\"",
     "x.toml:4: update in [workload] must be \"single\" or \"ordered\", but is \"compound\""},
    {"{}[matrix]\ncompletion = [\"event\", \"polling\"]",
     "x.toml:7: completion in [matrix] can have one value only: points.csv has no column to tell "
     "its "
     "rows apart"},
    {"{}[matrix]\nsystem = [\"a\"]",
     "x.toml:7: system in [matrix] is in [workload] too (x.toml:4); keep one"},
    {"{}[systems.erda]\nheads = \"many\"",
     "x.toml:7: heads in [systems.erda] must be a whole number from 1 to 255, but is \"many\""},
    {"{}[systems.v]\nvariant_of = 1",
     "x.toml:7: variant_of in [systems.v] must be text in quotes, but is 1"},
    {"{}[systems.v]\nvariant_of = \"\"", "x.toml:7: variant_of in [systems.v] must not be empty"},
    {"{}[systems.v]\nvariant_of = \"erda\"\ntitle = 1",
     "x.toml:8: title in [systems.v] must be text in quotes, but is 1"},
    {"{}[systems.v]\ntitle = \"\"",
     "x.toml:7: title in [systems.v] must not be empty, nor hold a comma, a quotation mark or a "
     "line end"},
    {"{}[systems.v]\ntitle = \"a, b\"",
     "x.toml:7: title in [systems.v] must not be empty, nor hold a comma, a quotation mark or a "
     "line end"},
    {"{}[systems.v]\nvariant_of = \"erda\"\nheads = \"2\"",
     "x.toml:8: heads in [systems.v] must be a whole number from 1 to 255, but is \"2\""},
    {"{}[systems.\"a,b\"]\nvariant_of = \"erda\"",
     "x.toml:6: a,b in [systems] names rows of the results, so it may hold letters, digits, '-', "
     "'_' and '.' only"},
    {"{}erda = 5", "x.toml:6: erda in [systems] must be a section, [systems.erda], but is 5"},
    {"{}[shm]\nlatency = 1",
     "x.toml:7: unknown key 'latency' in [shm]; known are: network_latency_ns, write_latency_ns, "
     "pm_directory"},
    {"{}[timeline]",
     "x.toml:6: interval_us in [timeline] is missing; add whole microseconds, interval_us = ..."},
    {"{}[timeline]\ninterval_ms = 1",
     "x.toml:7: unknown key 'interval_ms' in [timeline] (did you mean 'interval_us'?); known are: "
     "interval_us"},
    {"{}[timeline]\ninterval_us = 9",
     "x.toml:7: interval_us in [timeline] must be a whole number from 10 to 60000000, but is 9"},
    {"{}[timeline]\ninterval_us = 0.5",
     "x.toml:7: interval_us in [timeline] must be a whole number from 10 to 60000000, but is 0.5"},
    // What a report would refuse (report_errors_test.cc), before hours are spent on it.
    {"{}[[figure]]\nid = \"a\"\nplot = \"lines\"\nx = \"clients\"\ny = \"latency_mean_us\"",
     "x.toml:6: figure a: needs title = \"...\"; see docs/figures.md"},
    {"{}[[figure]]\nid = \"a\"\ntitle = \"\"\nplot = \"lines\"\nx = \"clients\"\ny = "
     "\"latency_mean_us\"",
     "x.toml:8: figure a: needs title = \"...\"; see docs/figures.md"},
    {"{}[[figure]]\nid = \"a\"\ntitle = \"t\"\nplot = \"lines\"\nx = \"clients\"\ny = \"speed\"",
     "x.toml:11: figure a: points.csv has no column 'speed' (did you mean 'seed'?); "
     "docs/results.md lists them; see docs/figures.md"},
    {"{}[[figure]]\nid = \"a\"\ntitle = \"t\"\nplot = \"lines\"\nx = \"clients\"\ny = "
     "\"velocity\"",
     "x.toml:11: figure a: points.csv has no column 'velocity'; docs/results.md lists them; see "
     "docs/figures.md"},
    {"{}[[figure]]\nid = \"a\"\ntitle = \"t\"\nplot = \"lines\"\nx = \"clients\"\ny = "
     "\"throughput_ops\"",
     "x.toml:11: figure a: points.csv has no column 'throughput_ops' (did you mean "
     "'throughput_ops_s'?); docs/results.md lists them; see docs/figures.md"},
    {"{}[[table]]\nid = \"a\"\ntitle = \"t\"\nkind = \"average\"\nx = \"clients\"\n"
     "y = \"latency_mean_us\"\ncolor = \"red\"",
     "x.toml:12: table a: unknown key 'color'; known are: baseline, group, id, kind, normalize, "
     "paper, series, title, where, x, y; see docs/figures.md"},
    {"{}[[figure]]\nid = \"a\"\ntitel = \"t\"\nplot = \"lines\"\nx = \"clients\"\n"
     "y = \"latency_mean_us\"",
     "x.toml:8: figure a: unknown key 'titel' (did you mean 'title'?); known are: at, baseline, "
     "data, id, normalize, paper, plot, series, title, where, x, y; see docs/figures.md"},
    {"{}[[figure]]\nid = \"a\"\ntitle = 5\nplot = \"lines\"\nx = \"clients\"\n"
     "y = \"latency_mean_us\"",
     "x.toml:8: figure a: title must be a string, but is 5; see docs/figures.md"},
    {"{}[[figure]]\nid = \"a\"\ntitle = \"t\"\nplot = \"lines\"\nx = \"clients\"\ny = "
     "\"guarantee\"",
     "x.toml:11: figure a: y takes a column of numbers, and guarantee has words; see "
     "docs/figures.md"},
    {"{}[[figure]]\nid = \"a\"\ntitle = \"t\"\nplot = \"lines\"\nx = \"clients\"\ny = "
     "\"throughput_ops\"",
     "x.toml:11: figure a: points.csv has no column 'throughput_ops' (did you mean "
     "'throughput_ops_s'?); docs/results.md lists them; see docs/figures.md"},
    {"{}[[table]]\nid = \"a\"\ntitle = \"t\"\nkind = \"average\"\nx = \"clients\"\ny = "
     "\"system\"",
     "x.toml:11: table a: y takes a column of numbers, and system has words; see "
     "docs/figures.md"},
    {"{}[[figure]]\nid = \"a\"\ntitle = \"t\"\nplot = \"over-time\"\ndata = \"timeline\"",
     "x.toml:10: figure a is drawn over time; add [timeline] with interval_us = ..."},
    {"{}[verbs]\nspeed = 1",
     "x.toml:7: unknown key 'speed' in [verbs]; known are: device, port, gid_index, odp, "
     "pm_directory"},
    {"{}[verbs]\nport = 0",
     "x.toml:7: port in [verbs] must be a whole number from 1 to 255, but is 0"},
    {"{}[verbs]\ndevice = 5", "x.toml:7: device in [verbs] must be text in quotes, but is 5"},
    {"{}[shm]\npm_directory = 1",
     "x.toml:7: pm_directory in [shm] must be text in quotes, but is 1"},
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreNamedWithTheirPlace) {
  std::string text = GetParam().text;
  if (text.starts_with("{}")) text = std::string(kStart) + text.substr(2);
  try {
    read_experiment(Document::parse(text, "x.toml"), test::declarations());
    FAIL() << "no error; expected: " << GetParam().message;
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(Experiment, Mistakes, testing::ValuesIn(kMistakes));

TEST(ExperimentErrors, NameTheOverrideThatIsWrong) {
  const Override change = parse_override("workload.clients=0");
  try {
    read_experiment(Document::parse(std::string(kStart), "x.toml", std::span(&change, 1)),
                    test::declarations());
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "--set workload.clients=0: clients in [workload] must be a whole number from 1 to "
                 "65535, but is 0");
  }
}

TEST(ExperimentErrors, NameTheFileThatIsEmpty) {
  const test::TemporaryDirectory folder(testing::TempDir(), "empty-experiment");
  const std::string file = folder.path() / "empty.toml";
  std::ofstream{file};
  try {
    load_experiment(file, test::declarations());
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), file + ": is empty");
  }
}

TEST(ExperimentErrors, NameTheFileThatIsMissing) {
  try {
    load_experiment("no/such.toml", test::declarations());
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "no/such.toml: there is no such file");
  }
}

}  // namespace
}  // namespace perdura::harness
