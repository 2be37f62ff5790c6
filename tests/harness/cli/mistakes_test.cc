// One line for each mistake, and exit code 2.
#include <algorithm>
#include <regex>

#include "tests/harness/cli/program.h"
#include "tests/harness/help_text.h"

namespace perdura {
namespace {

struct Mistake {
  const char* arguments;
  const char* beginning;  // of the one line
};

const Mistake kMistakes[] = {
    {"", "perdura: A subcommand is required (see 'perdura --help')"},
    {"compare a b c -z",
     "perdura: The following arguments were not expected: c -z (see 'perdura compare --help')"},
    // What is there, but is something else.
    {"advise --responder " PERDURA_SOURCE_DIR,
     "perdura: advise: --responder " PERDURA_SOURCE_DIR ": is a folder; give a file; "},
    {"advise --responder /dev/null",
     "perdura: advise: --responder /dev/null: is neither a file nor a folder; give a file; "},
    {"doctor --root " PERDURA_SOURCE_DIR "/README.md",
     "perdura: doctor: --root " PERDURA_SOURCE_DIR "/README.md: is a file, not a folder; "},
    {"run --continue " PERDURA_SOURCE_DIR "/README.md",
     "perdura: --continue " PERDURA_SOURCE_DIR "/README.md: is a file, not a folder; "},
    {"probe --platform shm -o " PERDURA_SOURCE_DIR "/README.md",
     "perdura: --out " PERDURA_SOURCE_DIR "/README.md: is a file, not a folder\n"},
    {"run erda-latency -o " PERDURA_SOURCE_DIR "/README.md",
     "perdura: --out " PERDURA_SOURCE_DIR "/README.md: is a file, not a folder\n"},
    {"run erda-shm --set 'shm.pm_directory=\"" PERDURA_SOURCE_DIR "/README.md\"'",
     "perdura: --set shm.pm_directory=\"" PERDURA_SOURCE_DIR
     "/README.md\": pm_directory " PERDURA_SOURCE_DIR "/README.md"
     ": is a file, not a folder; "},
    {"crash " PERDURA_SOURCE_DIR,
     "perdura: crash: " PERDURA_SOURCE_DIR ": is a folder; give a file\n"},
    {"dance",
     "perdura: unknown command 'dance'; known are: list, plan, run, probe, report, claims, "
     "compare, doctor, advise, crash, guarantees, history, soak, litmus, mcas, mojim, fs, "
     "trace, completion"},
    {"fs chek x",
     "perdura: unknown fs command 'chek' (did you mean 'check'?); known are: mkfs, check, dump, "
     "mount, serve\n"},
    {"rnu erda-latency", "perdura: unknown command 'rnu' (did you mean 'run'?); known are: list, "},
    {"run", "perdura: experiment is required"},
    {"run erda-latency --fast", "perdura: The following argument was not expected: --fast"},
    {"probe", "perdura: --platform is required"},
    {"probe --platform moon", "perdura: --platform: unknown platform 'moon'; known are: sim, shm"},
    {"probe --platform shm --set none",
     "perdura: --set: none not in {memory,rdma,translations,all}"},
    {"probe --platform shm --pm-directory /nowhere",
     "perdura: --pm-directory: pm_directory /nowhere: there is no such folder"},
    {"probe --platform shm --set rdma --pm-directory /proc",
     "perdura: cannot create the directory /proc/perdura-run-"},
    {"probe --platform shm --device ''", "perdura: --device: must not be empty"},
    {"probe --platform sim", "perdura: probe: platform sim needs a profile; add "},
    {"probe --platform sim --profile nosuch", "perdura: --profile: unknown profile 'nosuch'"},
    {"probe --platform sim --profile erda-connectx3 --pm-directory /tmp",
     "perdura: --pm-directory is for real memory; leave it out on sim"},
    {"probe --platform shm --device mlx5_0",
     "perdura: --device, --port, --gid-index and --odp are "},
    {"probe --platform verbs --port 0", "perdura: --port: Value 0 not in range"},
    {"probe --platform shm --out " PERDURA_SOURCE_DIR,
     "perdura: --out " PERDURA_SOURCE_DIR ": holds something already; choose another folder"},
    {"crash nosuch", "perdura: crash: 'nosuch' is no method, no system and no file"},
    {"crash write --domain ram", "perdura: --domain: ram not in {dmp,mhp,wsp}"},
    {"crash write --domain adr",
     "perdura: --domain: adr not in {dmp,mhp,wsp}; ADR is dmp, eADR is mhp, and a battery "},
    {"crash " PERDURA_SOURCE_DIR "/methods/taxonomy.metods",
     "perdura: crash: '" PERDURA_SOURCE_DIR "/methods/taxonomy.metods' is no method, no system and "
     "no file (did you mean '" PERDURA_SOURCE_DIR "/methods/taxonomy.methods'?); "},
    {"list methods wirte-flush",
     "perdura: unknown method 'wirte-flush' (did you mean 'write-flush'?); known are: write-"},
    {"list systems erda", "perdura: list: a system has no text; 'perdura list' describes all"},
    {"list methods write --json", "perdura: name excludes --json (see 'perdura list --help')"},
    {"plan erda-latency --set 'matrix.system=[\"continuity\"]' --set 'matrix.value_size=[64]'",
     "perdura: --set matrix.value_size=[64]: continuity: value_size is 64, but must be 0 to 15"},
    {"crash erda --steps",
     "perdura: crash: --steps is for a method's order of steps, not for a system's histories\n"},
    {"crash erda --parameter regions", "perdura: crash: --parameter regions: give NAME=VALUE"},
    {"crash write --schedule slow-writer",
     "perdura: crash: --schedule is for a system's histories, not for a method's order of steps\n"},
    {"crash write --strategy bounded", "perdura: crash: --strategy is for sequences of operations"},
    {"crash erda --strategy pct:0", "perdura: --strategy: 'pct:0' is not one of sequences:1 to "},
    {"crash erda --strategy random:3", "perdura: --strategy: 'random:3' is not one of "},
    {"crash erda --strategy sequences:1,placements", "perdura: --strategy: 'sequences:1,placem"},
    {"crash erda --strategy pct --points /2",
     "perdura: crash: --points is for a system's histories; with --strategy only /STRIDE is, for "
     "--fails power,power\n"},
    {"crash erda --strategy random --fails client",
     "perdura: crash: --fails client is for a system's histories; with --strategy the power of "},
    {"crash erda --strategy sequences:1", "perdura: service kv has no sequences of 1 operations"},
    {"crash nova --strategy sequences:1 --fails power,power",
     "perdura: crash: --fails power,power is for schedules of a system"},
    {"crash nova --strategy pairs:2", "perdura: --strategy: 'pairs:2' is not one of "},
    {"crash nova --strategy pairs --fails client",
     "perdura: nova's clients are threads of its servers' processes; use --fails process\n"},
    {"crash erda --fails power,power",
     "perdura: crash: --fails power,power is for schedules of a system (--strategy)"},
    {"crash m-async --domain wsp --ddio on --transport ib --fails connection",
     "perdura: crash: nothing failed: at none of the "},
    {"crash erda --fails client:2", "perdura: --fails: 'client:2' is not one of power, process, "},
    {"crash erda --fails process --images 3",
     "perdura: crash: --images is for power failures; with --fails process there is one image"},
    {"crash erda --points 5-4", "perdura: --points: '5-4' is not FIRST, FIRST-LAST or FIRST-, "},
    {"crash erda --points 1/0", "perdura: --points: '1/0' is not FIRST, "},
    {"crash erda --histories 3",
     "perdura: crash: --histories is for schedules of a system (--strategy), not for a system's "},
    {"crash erda --strategy random --histories 3x",
     "perdura: --histories: '3x' is not HISTORIES or HISTORIESxSCHEDULES, both from 1 to "},
    {"crash erda --schedule fast",
     "perdura: --schedule: fast not in {equal-writers,slow-writer,appends,threads,session,"
     "sessions,copies,writers,pools}"},
    {"doctor --root /nowhere", "perdura: doctor: --root /nowhere: there is no such folder"},
    {"advise --responder /nowhere", "perdura: advise: --responder /nowhere: there is no such file"},
    {"advise --responder " PERDURA_SOURCE_DIR "/README.md",
     "perdura: advise: --responder " PERDURA_SOURCE_DIR "/README.md: "},
    {"crash write --images many", "perdura: --images: "},
    {"crash write --images 0",
     "perdura: --images: must be 'all' or a whole number from 1 to 1000000000, not '0' (see "},
    {"advise --domain dmp --ddio off --receive-buffers dram --operation send --one-sided",
     "perdura: advise: a SEND ends in a receive buffer in DRAM"},
    {"crash wirte-flush",
     "perdura: crash: 'wirte-flush' is no method, no system and no file (did you mean "
     "'write-flush'?); perdura list names"},
    {"crash redo-loging",
     "perdura: crash: 'redo-loging' is no method, no system and no file (did "
     "you mean 'redo-logging'?); perdura list names"},
    {"run erda-latncy",
     "perdura: unknown experiment 'erda-latncy' (did you mean 'erda-latency'?); known are: "},
    {"run erda-latency --profile erda-conectx3",
     "perdura: --profile erda-conectx3: unknown profile 'erda-conectx3' (did you mean "
     "'erda-connectx3'?); known are: "},
    {"run erda-latency --platfrom shm",
     "perdura: The following arguments were not expected: --platfrom shm; did you mean "
     "--platform? (see 'perdura run --help')"},
    {"run erda-latency --site exmaple",
     "perdura: --site: unknown site 'exmaple' (did you mean 'example'?)"},
    {"run erda-latency --set workload.clinets=5",
     "perdura: --set workload.clinets=5: unknown key 'clinets' in [workload] (did you mean "
     "'clients'?); known are: "},
    {"run erda-latency --set 'matrix.system=[\"redo-loging\"]'",
     "perdura: --set matrix.system=[\"redo-loging\"]: unknown system 'redo-loging' (did you mean "
     "'redo-logging'?); known are: "},
    {"list expriments", "perdura: what: expriments not in {"},
    {"completion tcsh", "perdura: shell: tcsh not in {bash,fish}"},
    {"run nosuch", "perdura: unknown experiment 'nosuch'; known are: "},
    {"run no/such.toml", "perdura: experiment no/such.toml: there is no such file"},
    {"run erda-latency --profile nosuch",
     "perdura: --profile nosuch: unknown profile 'nosuch'; known are: "},
    {"run erda-latency --platform moon",
     "perdura: --platform moon: unknown platform 'moon'; known are: sim, shm, verbs"},
    {"run erda-latency --seed soon", "perdura: --seed soon: 'soon' is not a TOML value"},
    {"run erda-latency --seed 18446744073709551615",
     "perdura: --seed 18446744073709551615: '18446744073709551615' is too large; whole numbers go "
     "from 0 to 9223372036854775807"},
    {"run erda-latency --seed -1", "perdura: --seed -1: seed must be a whole number"},
    {"run erda-latency --set workload.operations", "perdura: --set workload.operations: write "},
    {"run erda-latency --set workload.speed=5",
     "perdura: --set workload.speed=5: unknown key 'speed' in [workload]; known are: "},
    {"run erda-latency --set 'matrix.system=[\"moon\"]'",
     "perdura: --set matrix.system=[\"moon\"]: unknown system 'moon'; known are: erda"},
    {"run erda-latency --set 'systems.erda.variant_of=\"redo-logging\"'",
     "perdura: --set systems.erda.variant_of=\"redo-logging\": variant_of in [systems.erda]: "
     "'erda' is "
     "a system; "},
    {"run erda-latency --set 'systems.mine.variant_of=\"moon\"'",
     "perdura: --set systems.mine.variant_of=\"moon\": variant_of in [systems.mine]: unknown "
     "system "
     "'moon'; known are: erda"},
    {"run erda-latency --set 'matrix.workload=[\"workloade\"]'",
     "perdura: --set matrix.workload=[\"workloade\"]: workload workloade scans"},
    {"run fs-micro --path /tmp --set workload.size=4194304",
     "perdura: --set workload.size=4194304: size has no effect on what is mounted at a path; "
     "remove it"},
    {"run erda-latency --heartbeat -1",
     "perdura: --heartbeat: '-1' is neither 0 nor a number of seconds from 0.1 to 86400"},
    {"run erda-latency --heartbeat nan", "perdura: --heartbeat: 'nan' is neither 0 nor "},
    {"run erda-latency --heartbeat 0.0004", "perdura: --heartbeat: '0.0004' is neither 0 nor "},
    {"run erda-latency --heartbeat 0.001", "perdura: --heartbeat: '0.001' is neither 0 nor "},
    {"run erda-latency --heartbeat 86401", "perdura: --heartbeat: '86401' is neither 0 nor "},
    {"run erda-latency --heartbeat soon", "perdura: --heartbeat: 'soon' is neither 0 nor "},
    {"run erda-latency --out /proc", "perdura: --out /proc: the folder is not empty"},
    {"run erda-latency --out /proc/x", "perdura: --out /proc/x: cannot be created: "},
    {"run erda-latency --out /dev/null/x", "perdura: --out /dev/null/x: cannot be created: "},
    {"run erda-latency --out /dev/null",
     "perdura: --out /dev/null: is neither a file nor a folder; give a folder"},
    {"run erda-latency --out ''", "perdura: --out: must not be empty"},
    {"run --continue ''", "perdura: --continue: must not be empty"},
    {"run erda-latency --site ''", "perdura: --site: must not be empty"},
    {"run erda-latency --profile ''", "perdura: --profile: must not be empty"},
    {"compare no/such/folder", "perdura: B is required"},
    {"compare no/such/folder .", "perdura: compare no/such/folder: there is no such folder"},
    {"compare /proc /proc", "perdura: compare: /proc: no points.csv here or one folder below"},
    {"compare . . --threshold much", "perdura: --threshold: must be a number from 0 to 1000, not"},
    {"compare . . --threshold nan",
     "perdura: --threshold: must be a number from 0 to 1000, not 'nan' (see"},
    {"compare . . --threshold -1", "perdura: --threshold: must be a number from 0 to 1000, not"},
    {"compare . . --threshold inf", "perdura: --threshold: must be a number from 0 to 1000, not"},
    {"compare . . --alpha nan", "perdura: --alpha: must be a number from 1e-09 to 0.5, not 'nan'"},
    {"compare . . --alpha 0", "perdura: --alpha: must be a number from 1e-09 to 0.5, not '0'"},
    {"run erda-latency --site nosuch",
     "perdura: --site: unknown site 'nosuch'; known are: example"},
    {"run erda-shm --set 'shm.pm_directory=\"/no/such\"'",
     "perdura: --set shm.pm_directory=\"/no/such\": pm_directory /no/such: there is no such "
     "folder; mount "},
    {"run erda-shm --set 'shm.pm_directory=\"/dev/null\"'",
     "perdura: --set shm.pm_directory=\"/dev/null\": pm_directory /dev/null: is neither "},
    {"run erda-shm --set 'shm.pm_directory=\".\"'",
     "perdura: --set shm.pm_directory=\".\": pm_directory .: must begin with a '/'"},
    {"plan nosuch", "perdura: unknown experiment 'nosuch'; known are: "},
    {"plan", "perdura: experiment is required"},
    {"plan erda-latency --like no/such/folder", "perdura: --like no/such/folder: "},
    {"claims", "perdura: folder is required"},
    {"claims no/such/folder", "perdura: claims no/such/folder: there is no such folder"},
    {"claims /proc", "perdura: claims: /proc: no points.csv here or one folder below"},
    {"report no/such/folder", "perdura: report no/such/folder: there is no such folder"},
    {"report ''", "perdura: folder: must not be empty (see 'perdura report --help')"},
    {"history ''", "perdura: file: must not be empty (see 'perdura history --help')"},
    {"mcas serve ''", "perdura: config: must not be empty (see 'perdura mcas serve --help')"},
    {"fs mount nova file ''",
     "perdura: directory: must not be empty (see 'perdura fs mount --help"},
    // Numbers that the parser would take for others.
    {"litmus --seed -1",
     "perdura: --seed: must be a whole number from 0 to 18446744073709551615, not '-1' (see "},
    {"litmus --seed 99999999999999999999999",
     "perdura: --seed: must be a whole number from 0 to 18446744073709551615, not '9999999999999"},
    {"litmus --seed 0x10", "perdura: --seed: must be a whole number from 0 to "},
    {"litmus --runs 0", "perdura: --runs: must be a whole number from 1 to 1000000, not '0' (see"},
    {"fs dump file -1", "perdura: inode: must be a whole number from 0 to "},
    {"fs mkfs nova file --size 1MiB --inodes -1",
     "perdura: --inodes: must be a whole number from 0 to "},
    {"fs mkfs nova file --size 99999999999999999999999999",
     "perdura: --size: 99999999999999999999999999 is larger than "},
    {"fs mkfs nova file --size 99999999999999999999999999.5",
     "perdura: --size: 99999999999999999999999999.5 is larger than "},
    {"fs mkfs nova file --size 99999999999EiB", "perdura: --size: 99999999999EiB is larger than "},
    {"fs mkfs nova file --size -1", "perdura: --size: -1 is negative"},
    {"mojim run --size 99999999999999999999999999 --mode m-sync --primary f -- true",
     "perdura: --size: 99999999999999999999999999 is larger than "},
    // Help is that of the command, even of one below another.
    {"fs mkfs nova file", "perdura: --size is required (see 'perdura fs mkfs --help')"},
    {"mojim run", "perdura: --mode is required (see 'perdura mojim run --help')"},
    {"mcas check", "perdura: config is required (see 'perdura mcas check --help')"},
    {"fs check place --reapir",
     "perdura: The following argument was not expected: --reapir; did you mean --repair? (see "
     "'perdura fs check --help')"},
    {"fs", "perdura: A subcommand is required (see 'perdura fs --help')"},
    // An unknown option is told before what is missing.
    {"plan --nonsense",
     "perdura: The following argument was not expected: --nonsense (see 'perdura plan --help')"},
    {"run --contniue",
     "perdura: The following argument was not expected: --contniue; did you mean --continue? "
     "(see "},
    {"litmus --seed 010", "perdura: --seed: must be written without zeros before it, not '010'"},
    // Where nothing can be written is told before minutes of work.
    {"crash erda --domain dmp --ddio off --diagram /nowhere/x.svg",
     "perdura: crash: --diagram /nowhere/x.svg: /nowhere: there is no such folder\n"},
    {"crash erda --diagram /proc", "perdura: crash: --diagram /proc: is a folder; give a file\n"},
    {"crash --replay nowhere --diagram /nowhere/x.svg",
     "perdura: crash: --diagram /nowhere/x.svg: /nowhere: there is no such folder\n"},
    {"crash erda --strategy bounded --out " PERDURA_SOURCE_DIR "/README.md",
     "perdura: crash: --out " PERDURA_SOURCE_DIR "/README.md: is a file, not a folder\n"},
    {"soak --out " PERDURA_SOURCE_DIR "/README.md/x",
     "perdura: soak: --out " PERDURA_SOURCE_DIR "/README.md/x: " PERDURA_SOURCE_DIR
     "/README.md: is a file, not a folder\n"},
    {"compare . . --out " PERDURA_SOURCE_DIR "/README.md",
     "perdura: compare: --out " PERDURA_SOURCE_DIR "/README.md: is a file, not a folder\n"},
    {"report . --out " PERDURA_SOURCE_DIR "/README.md",
     "perdura: report: --out " PERDURA_SOURCE_DIR "/README.md: is a file, not a folder\n"},
    {"guarantees --out " PERDURA_SOURCE_DIR "/README.md",
     "perdura: guarantees: --out " PERDURA_SOURCE_DIR "/README.md: is a file, not a folder\n"},
    {"history nowhere --edn /nowhere/x",
     "perdura: history: --edn /nowhere/x: /nowhere: there is no such folder\n"},
    {"plan erda-latency --hostfile /nowhere/x",
     "perdura: --hostfile /nowhere/x: /nowhere: there is no such folder\n"},
    {"report . --out " PERDURA_SOURCE_DIR "/tests",
     "perdura: report: --out " PERDURA_SOURCE_DIR "/tests: is not empty, and holds no report; name "
     "another folder\n"},
    // A finding's file says what it was found with.
    {"crash --replay file --domain dmp",
     "perdura: crash: --replay excludes --domain: the file says what to repeat\n"},
    {"crash --replay file --seed 1", "perdura: crash: --replay excludes --seed: the file says "},
    {"crash --replay file --profile nope", "perdura: crash: --replay excludes --profile: the "},
    {"crash --replay file --persistence paper", "perdura: crash: --replay excludes --persistence"},
    {"crash --replay file --json", "perdura: crash: --replay excludes --json: the file says "},
    {"crash erda --replay file", "perdura: "},
    // An active data object whose file is not there, or is none, would be missed only when it runs.
    {"crash mcas --parameter plugins=/nowhere.so --domain dmp --ddio on --transport ib",
     "perdura: crash: --parameter plugins=/nowhere.so: plugins that are files are for 'perdura "
     "run' and 'perdura mcas serve'; an exploration takes built-in ones"},
    {"crash mcas-pools --parameter plugins=passthru,./x --domain dmp --ddio on --transport ib",
     "perdura: crash: --parameter plugins=passthru,./x: plugins that are files are for 'perdura "},
    {"crash mcas-pools --parameter plugins=passthru --parameter plugin_cores=99999 --domain dmp "
     "--ddio on --transport ib",
     "perdura: mcas: plugin_cores has 99999; cores have numbers from 0 to 1023\n"},
    {"plan mcas-ado --set 'systems.mcas-pools.plugins=\"/nowhere.so\"'",
     "perdura: --set systems.mcas-pools.plugins=\"/nowhere.so\": mcas: plugin '/nowhere.so' "},
    {"run mcas-ado --set 'systems.mcas-pools.plugins=\"" PERDURA_SOURCE_DIR "/README.md\"'",
     "perdura: --set systems.mcas-pools.plugins=\"" PERDURA_SOURCE_DIR
     "/README.md\": mcas: plugin '" PERDURA_SOURCE_DIR "/README.md' "},
    {"plan erda-latency --set 'matrix.system=[\"mcas\"]' --set "
     "'systems.mcas.plugins=\"/nowhere.so\"'",
     "perdura: --set systems.mcas.plugins=\"/nowhere.so\": mcas: a store of keys and values calls "
     "no plugins; take the system mcas-pools"},
    {"crash mcas --parameter plugins=passthru --domain dmp --ddio on --transport ib",
     "perdura: mcas: a store of keys and values calls no plugins; take the system mcas-pools"},
    {"crash mcas --parameter plugin_signals=true --domain dmp --ddio on --transport ib",
     "perdura: mcas: plugin_signals is for plugins, and there are none; name some in plugins, or "},
    {"crash mcas-pools --parameter plugin_peer=77 --domain dmp --ddio on --transport ib",
     "perdura: mcas: plugin_peer is for plugins, and there are none; name some in plugins, or "},
    {"advise --flush --no-flush",
     "perdura: --flush excludes --no-flush (see 'perdura advise --help')"},
    {"advise --no-atomics --atomics", "perdura: --atomics excludes --no-atomics (see 'perdura "},
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreToldInOneLineWithExitCode2) {
  const Outcome outcome = perdura(GetParam().arguments);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.text.starts_with(GetParam().beginning)) << outcome.text;
  EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
}

INSTANTIATE_TEST_SUITE_P(Cli, Mistakes, testing::ValuesIn(kMistakes));

// A variable of a script that is not set becomes "", which is no value that anyone means. Only what
// a history's registers hold at first may be "".
TEST(EmptyValues, AreRefusedByEveryOptionOfEveryCommand) {
  static const std::regex kTakesValue("\n  (?:-[a-zA-Z],)?(--[a-z-]+) [A-Z]+[^,a-z]");
  std::vector<std::string> commands;
  for (const std::string& name : test::listed_commands(perdura("--help").text)) {
    const auto below = test::listed_commands(perdura(name + " --help").text);
    if (below.empty()) commands.push_back(name);
    for (const std::string& inner : below) commands.push_back(name + " " + inner);
  }
  std::size_t tried = 0;
  for (const std::string& command : commands) {
    const std::string help = perdura(command + " --help").text;
    for (std::sregex_iterator found(help.begin(), help.end(), kTakesValue), end; found != end;
         ++found) {
      const std::string option = found->str(1);
      if (option == "--initial") continue;
      const Outcome outcome = perdura(fmt::format("{} {} ''", command, option));
      EXPECT_EQ(outcome.code, 2) << command << ' ' << option;
      EXPECT_TRUE(outcome.text.starts_with(fmt::format("perdura: {}: must not be empty", option)))
          << command << ": " << outcome.text;
      ++tried;
    }
  }
  EXPECT_GT(tried, 100U);
}

// What a command prints is its result: whoever has closed standard output gets none, as if the disk
// were full.
TEST(ClosedOutput, IsTheFailureOfWhatPrints) {
  for (const char* arguments :
       {"list", "list systems", "list --json", "plan erda-latency", "plan erda-latency --json",
        "doctor", "doctor --json", "completion bash", "advise --domain wsp --ddio on", "--version",
        "--help", "run --help", "crash write --domain wsp --ddio on"}) {
    const Outcome outcome = shell(fmt::format("({} >&-)", perdura_command(arguments)));
    EXPECT_EQ(outcome.code, 1) << arguments;
    EXPECT_EQ(outcome.text, "perdura: standard output: cannot be written: it is closed\n")
        << arguments;
  }
}

TEST(EmptyValues, AreTheInitialValueOfRegistersToo) {
  EXPECT_TRUE(perdura("history /nowhere --initial ''").text.starts_with("perdura: history: /nowh"));
}

}  // namespace
}  // namespace perdura
