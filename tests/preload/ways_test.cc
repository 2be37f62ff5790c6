// Some two hundred ways of programs to change a file, to sync it and to end: each is replicated
// when its sync has returned, or it is refused, or the run ends with a line and exit code 1. And
// random programs with a model.
#include <spawn.h>

#include <algorithm>
#include <array>

#include "platform/base/units.h"
#include "tests/preload/running.h"
#include "tests/support/seed.h"

namespace perdura::test {
namespace {

std::string contents(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// As the record of the run says.
std::string end_of_run(const std::string& file) {
  std::ifstream record(file + ".mojim/run");
  std::string line;
  for (int number = 0; number < 3; ++number) std::getline(record, line);
  return line;
}

enum class Then : std::uint8_t {
  replicated,   // the copy has what was synced, after kill -9 at that moment
  refused,      // a call fails, and nothing of it is in the file or at the copy
  fails,        // a sync fails, or nothing could be watched: a line and exit code 1
  settled,      // it ends in an orderly way without a sync, and the copy has all
  rolled_back,  // it fails without a sync, and the copy has what was synced before
};

struct Row {
  std::string name;
  std::vector<std::string> program;  // FILE stands for the file
  Then then = Then::replicated;
  std::string says{};  // a part of what is said
  std::string size = "1MiB";
};

std::string named(std::string text) {
  for (char& one : text) {
    if (std::isalnum(static_cast<unsigned char>(one)) == 0) one = '_';
  }
  return text;
}

Row of_c(const std::string& change, const std::string& sync, const std::string& end, Then then,
         const char* program = PERDURA_WAYS) {
  return {named(change + " " + sync + " " + end), {program, "FILE", change, sync, end}, then};
}

Row of_static(const std::string& change, const std::string& sync, const std::string& end,
              Then then) {
  Row row = of_c(change, sync, end, then, PERDURA_WAYS_STATIC);
  row.name = "static_" + row.name;
  return row;
}

Row that_says(Row row, const std::string& says) {
  row.says = says;
  return row;
}

// A file of this size; the program is told so.
Row with_size(Row row, Bytes size) {
  row.program.push_back(fmt::format("{}", size));
  row.size = fmt::format("{}MiB", size / MiB);
  return row;
}

// Compiled if there is a compiler.
Row of_go(const std::string& change, const std::string& sync, const std::string& end, Then then) {
  return {named("go " + change + " " + sync + " " + end),
          {PERDURA_WAYS_GO, "FILE", change, sync, end},
          then};
}
Row of_java(const std::string& change, const std::string& sync, const std::string& end, Then then) {
  return {named("java " + change + " " + sync + " " + end),
          {PERDURA_JAVA, "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", PERDURA_WAYS_JAVA,
           "Ways", "FILE", change, sync, end},
          then};
}

// FILE is its first argument; it makes the file as ways.c does.
Row of_python(const std::string& name, const std::string& script, Then then = Then::replicated) {
  const std::string before =
      "import mmap, os, signal, sys, multiprocessing, subprocess\n"
      "name = sys.argv[1]\n"
      "f = open(name, 'w+b', buffering=0)\n"
      "f.write(b'o' * (1 << 20))\n"
      "m = mmap.mmap(f.fileno(), 1 << 20)\n"
      "m.flush()\n"
      "def synced():\n"
      "  print('synced', flush=True)\n"
      "  os.kill(os.getpid(), signal.SIGKILL)\n";
  return {"python_" + name, {"python3", "-c", before + script, "FILE"}, then};
}

// `program` first, so that the file is there and replicated.
Row of_shell(const std::string& name, const std::string& script, Then then) {
  const std::string before = PERDURA_WAYS " \"$0\" store fsync exit\n";
  return {"shell_" + name, {"sh", "-c", before + script, "FILE"}, then};
}

// They go on when the program that the run has started has ended, or was killed.
void add_of_daemons(std::vector<Row>& rows) {
  for (const char* change : {"store", "stdio", "child", "child-without-library"}) {
    rows.push_back(of_c(change, "fsync", "daemon-kill", Then::replicated));
    rows.push_back(of_c(change, "none", "daemon-exit", Then::settled));
    rows.push_back(of_c(change, "msync-all", "orphan-kill", Then::replicated));
  }
  rows.push_back(of_c("store", "none", "daemon-kill", Then::rolled_back));
  // The end of the other one is orderly, and the library in it sends what it has changed.
  rows.push_back(of_c("store", "none", "orphan-exit", Then::replicated));
  rows.push_back(of_static("store", "none", "orphan-exit", Then::rolled_back));
  rows.push_back(of_static("store", "fsync", "daemon-kill", Then::replicated));
  rows.push_back(of_static("store", "none", "daemon-exit", Then::settled));
  rows.push_back(of_static("store", "fsync", "orphan-kill", Then::replicated));
}

// Programs whose system calls do not pass the C library, or that are of another language.
void add_of_other_compilers(std::vector<Row>& rows) {
  for (const char* change :
       {"store", "write", "stdio", "sendfile", "aio_write", "hole", "thread", "child", "grandchild",
        "other-program", "moved", "smaller", "fixed", "unmapped", "closed", "scattered"}) {
    rows.push_back(of_static(change, "fsync", "kill", Then::replicated));
  }
  for (const char* sync : {"msync", "msync-all", "msync-async", "fdatasync", "fsync-of-a-reader",
                           "sync", "syncfs", "sync_file_range", "aio_fsync", "syscall-fsync",
                           "gmsync", "thread", "handler", "child", "other-program"}) {
    rows.push_back(of_static("store", sync, "kill", Then::replicated));
  }
  for (const char* sync : {"O_SYNC", "O_DSYNC", "RWF_DSYNC"}) {
    rows.push_back(of_static("store", sync, "kill", Then::refused));
  }
  for (const char* change : {"beyond", "appended", "renamed-over", "removed-and-made"}) {
    rows.push_back(of_static(change, "fsync", "kill", Then::fails));
    rows.push_back(of_static(change, "none", "exit", Then::fails));
  }
  for (const char* change : {"longer-mapping", "synchronous-mapping"}) {
    rows.push_back(of_static(change, "fsync", "kill", Then::refused));
  }
  for (const char* change : {"store", "stdio", "child"}) {
    rows.push_back(of_static(change, "none", "exit", Then::settled));
  }
  rows.push_back(of_static("store", "none", "kill", Then::rolled_back));
  // A process with the library, whose calls go around it.
  for (const char* change : {"instruction", "child-without-library"}) {
    rows.push_back(of_c(change, "fsync", "kill", Then::replicated));
    rows.push_back(of_c(change, "msync-all", "kill", Then::replicated));
  }
  for (const char* sync : {"instruction-fsync", "instruction-msync", "instruction-sync"}) {
    rows.push_back(of_c("store", sync, "kill", Then::replicated));
  }
  for (const char* sync : {"instruction-O_DSYNC", "io_uring", "kernel-aio"}) {
    rows.push_back(of_c("store", sync, "kill", Then::refused));
  }
  for (const auto& [change, sync] :
       std::array<std::array<const char*, 2>, 6>{{{"store", "msync"},
                                                  {"store", "fsync"},
                                                  {"pwrite", "fsync"},
                                                  {"pwrite", "fdatasync"},
                                                  {"goroutine", "msync"},
                                                  {"store", "sync"}}}) {
    rows.push_back(of_go(change, sync, "kill", Then::replicated));
  }
  rows.push_back(of_go("synchronous", "none", "kill", Then::refused));
  rows.push_back(of_go("renamed-over", "fsync", "exit", Then::fails));
  rows.push_back(of_go("store", "none", "exit", Then::settled));
  rows.push_back(of_go("store", "none", "kill", Then::rolled_back));
  for (const auto& [change, sync] :
       std::array<std::array<const char*, 2>, 6>{{{"put", "force-memory"},
                                                  {"put", "force-file"},
                                                  {"write", "force-data"},
                                                  {"transfer", "force-file"},
                                                  {"rws", "none"},
                                                  {"rwd", "none"}}}) {
    rows.push_back(of_java(change, sync, "kill", Then::replicated));
  }
  rows.push_back(of_java("put", "none", "exit", Then::settled));
  rows.push_back(of_java("put", "none", "kill", Then::rolled_back));
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (const char* change : {"store",       "write",           "pwrite",
                             "writev",      "pwritev",         "pwritev2",
                             "sendfile",    "copy_file_range", "splice",
                             "stdio",       "stdio-emptied",   "open-emptied",
                             "syscall",     "aio_write",       "hole",
                             "truncate",    "ftruncate",       "truncate-by-number",
                             "read-into",   "recv-into",       "stat-into",
                             "thread",      "handler",         "child",
                             "grandchild",  "other-program",   "protected",
                             "moved",       "smaller",         "remapped",
                             "fixed",       "hole-and-again",  "unmapped",
                             "dropped",     "removed",         "closed",
                             "own-handler", "blocked-signals", "scattered",
                             "contained"}) {
    rows.push_back(of_c(change, "fsync", "kill", Then::replicated));
  }
  for (const char* sync :
       {"msync", "msync-all", "msync-async", "fdatasync", "fsync-of-a-reader", "sync", "syncfs",
        "sync_file_range", "aio_fsync", "syscall-fsync", "syscall-msync", "gmsync", "thread",
        "handler", "child", "other-program", "O_SYNC", "O_DSYNC", "RWF_DSYNC"}) {
    rows.push_back(of_c("store", sync, "kill", Then::replicated));
  }
  for (const char* sync : {"stdio-O_SYNC", "aio_write-O_SYNC", "dprintf-O_SYNC"}) {
    rows.push_back(of_c("store", sync, "kill", Then::refused));
  }
  for (const char* change : {"beyond", "appended", "longer", "renamed-over", "removed-and-made",
                             "synchronous-mapping", "longer-mapping"}) {
    rows.push_back(of_c(change, "fsync", "kill", Then::refused));
  }
  for (const char* change : {"appended-by-stdio", "renamed-over-by-another"}) {
    rows.push_back(of_c(change, "fsync", "exit", Then::fails));
    rows.push_back(of_c(change, "none", "exit", Then::fails));
  }
  rows.push_back(of_c("store", "gmsync-elsewhere", "kill", Then::fails));
  for (const char* change : {"store", "stdio", "child", "unmapped", "other-program", "closed"}) {
    rows.push_back(of_c(change, "none", "exit", Then::settled));
  }
  for (const char* end : {"_exit", "quick_exit", "exec", "exit-while-others-sync"}) {
    rows.push_back(of_c("store", "none", end, Then::settled));
  }
  rows.push_back(of_c("store", "none", "abort", Then::rolled_back));
  rows.push_back(of_c("store", "none", "kill", Then::rolled_back));
  rows.push_back(
      that_says(of_c("store", "gmsync-of-too-many", "exit", Then::fails), "a sync has failed"));
  rows.push_back(of_c("store", "gmsync-of-too-many-and-fsync", "exit", Then::settled));
  rows.push_back(
      that_says(with_size(of_c("all", "gmsync-of-too-much", "exit", Then::fails), 20 * MiB),
                "a sync has failed"));
  rows.push_back(with_size(of_c("pages", "fsync", "kill", Then::replicated), 160 * MiB));
  add_of_daemons(rows);
  add_of_other_compilers(rows);
  rows.push_back(of_python("flush", "m[0:7] = b'newdata'\nm.flush()\nsynced()\n"));
  rows.push_back(
      of_python("fsync", "os.pwrite(f.fileno(), b'newdata', 0)\nos.fsync(f)\nsynced()\n"));
  rows.push_back(of_python("file",
                           "with open(name, 'r+') as g:\n  g.write('newdata')\n  g.flush()\n"
                           "  os.fsync(g)\n  synced()\n"));
  rows.push_back(of_python("child",
                           "def work():\n  m[0:7] = b'newdata'\n"
                           "c = multiprocessing.get_context('fork').Process(target=work)\n"
                           "c.start()\nc.join()\nm.flush()\nsynced()\n"));
  rows.push_back(of_python("child_syncs",
                           "def work():\n  m[0:7] = b'newdata'\n  m.flush()\n"
                           "c = multiprocessing.get_context('fork').Process(target=work)\n"
                           "c.start()\nc.join()\nsynced()\n"));
  rows.push_back(of_python("other_program",
                           "subprocess.run(['dd', 'of=' + name, 'conv=notrunc', 'status=none'],"
                           " input=b'newdata', check=True)\nos.fsync(f)\nsynced()\n"));
  rows.push_back(of_python("replace",
                           "open(name + '.new', 'w').close()\n"
                           "try:\n  os.replace(name + '.new', name)\n"
                           "except PermissionError:\n  print('refused', flush=True)\n"
                           "  os._exit(9)\n",
                           Then::refused));
  rows.push_back(of_python("no_sync", "m[0:7] = b'newdata'\n", Then::settled));
  rows.push_back(of_shell("echo_and_sync",
                          "printf newdata | dd of=\"$0\" conv=notrunc status=none; sync \"$0\"\n"
                          "echo synced; kill -9 $$",
                          Then::replicated));
  rows.push_back(of_shell("redirected", "printf newdata 1<>\"$0\"; sync; echo synced; kill -9 $$",
                          Then::replicated));
  rows.push_back(of_shell("no_sync", "printf newdata 1<>\"$0\"; echo synced", Then::settled));
  rows.push_back(
      of_shell("appended", "echo more >> \"$0\" && exit 0\necho refused; exit 9", Then::refused));
  rows.push_back(of_shell("moved",
                          "LD_PRELOAD= cp \"$0\" \"$0.new\"\n"
                          "LD_PRELOAD= mv \"$0.new\" \"$0\"; exit 0",
                          Then::fails));
  rows.push_back(of_shell("many_programs",
                          "for i in 1 2 3; do sh -c 'sh -c \"true\"'; /bin/true; done\n"
                          "sh -c \"" PERDURA_WAYS " $0 stdio msync exit\" && kill -9 $$",
                          Then::replicated));
  return rows;
}

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Way : public testing::TestWithParam<Row> {};

TEST_P(Way, IsReplicatedOrRefusedOrFails) {
  const SharedFolder folder;
  std::vector<std::string> program = GetParam().program;
  if (program.front().empty()) GTEST_SKIP() << "there was no compiler for it when this was built";
  std::replace(program.begin(), program.end(), std::string("FILE"), folder.file("a"));
  std::vector<std::string> arguments = mojim("run", "m-sync", folder, program);
  std::replace(arguments.begin(), arguments.end(), std::string("4MiB"), GetParam().size);
  Running running(arguments);
  const std::string said = running.rest();
  const int code = running.wait();
  SCOPED_TRACE(said);
  const std::string here = contents(folder.file("a"));
  const std::string copy = contents(folder.file("b"));
  const std::string before(1 << 20, 'o');
  const auto has = [&](const std::string& text) { return said.find(text) != std::string::npos; };
  EXPECT_TRUE(has(GetParam().says));
  if (here != copy) {
    EXPECT_NE(end_of_run(folder.file("a")), "settled");
    EXPECT_EQ(end_of_run(folder.file("a")), end_of_run(folder.file("b")));
    // It says what is not at the copies.
    EXPECT_TRUE(code != 0);
  }
  switch (GetParam().then) {
    case Then::replicated:
      EXPECT_EQ(code, 1) << "it was killed";
      EXPECT_TRUE(has("synced\n"));
      EXPECT_TRUE(here == copy);
      EXPECT_FALSE(copy == before);
      break;
    case Then::refused:
      EXPECT_EQ(code, 9);
      EXPECT_TRUE(has("refused"));
      EXPECT_TRUE(here == copy);
      break;
    case Then::fails:
      EXPECT_NE(code, 0);
      EXPECT_TRUE(has("perdura mojim: "));
      break;
    case Then::settled:
      EXPECT_EQ(code, 0);
      EXPECT_TRUE(here == copy);
      EXPECT_EQ(copy.substr(0, 7), "newdata");
      break;
    case Then::rolled_back:
      EXPECT_EQ(code, 1);
      EXPECT_TRUE(copy == before);
      break;
  }
}

const auto kName = [](const auto& one) { return one.param.name; };

// Some of them, so that the others can be left to long tests.
std::vector<Row> few_rows() {
  return {of_c("store", "msync", "kill", Then::replicated),
          of_c("stdio", "fsync", "kill", Then::replicated),
          of_c("child", "sync", "kill", Then::replicated),
          of_c("renamed-over", "fsync", "kill", Then::refused),
          of_c("appended-by-stdio", "fsync", "exit", Then::fails),
          of_c("store", "none", "exit", Then::settled),
          of_static("store", "fsync", "kill", Then::replicated),
          that_says(of_c("store", "gmsync-of-too-many", "exit", Then::fails), "a sync has failed"),
          of_c("child-without-library", "instruction-fsync", "daemon-kill", Then::replicated)};
}

INSTANTIATE_TEST_SUITE_P(All, Way, testing::ValuesIn(all_rows()), kName);
INSTANTIATE_TEST_SUITE_P(Few, Way, testing::ValuesIn(few_rows()), kName);

// A kernel that holds no calls, such as for a program that a run within a run starts: of what goes
// around the C library nothing is known, and nothing is said.
TEST(UnwatchedProgram, IsSaidToHoldNoMoreThanIsKnown) {
  const SharedFolder outer;
  for (const char* program : {PERDURA_WAYS, PERDURA_WAYS_STATIC}) {
    const SharedFolder folder;
    std::vector<std::string> inner =
        mojim("run", "m-sync", folder, {program, folder.file("a"), "store", "fsync", "exit"});
    inner.insert(inner.begin(), {"env", "-u", "LD_PRELOAD"});
    Running running(mojim("run", "m-sync", outer, inner));
    const std::string said = running.rest();
    EXPECT_EQ(running.wait(), 1) << said << "the outer one has replicated nothing";
    EXPECT_EQ(said.find("holds all sync points"), std::string::npos) << said;
    const char* const expected = program == std::string(PERDURA_WAYS)
                                     ? "has made by calls of the C library"
                                     : "or cannot be watched (it is linked statically";
    EXPECT_NE(said.find(expected), std::string::npos) << said;
  }
}

void run_generated(int programs) {
  std::mt19937 random(random_seed());
  for (int i = 0; i < programs; ++i) {
    const SharedFolder folder;
    const std::string seed = fmt::format("{}", random());
    const std::string syncs = fmt::format("{}", 1 + random() % 200);
    SCOPED_TRACE(fmt::format("generated FILE MODEL {} {}", seed, syncs));
    Running running(mojim("run", "m-sync", folder,
                          {PERDURA_GENERATED, folder.file("a"), folder.file("c"), seed, syncs}));
    const std::string said = running.rest();
    EXPECT_EQ(running.wait(), 1) << said;
    ASSERT_TRUE(fs::exists(folder.file("c"))) << said;
    ASSERT_TRUE(contents(folder.file("b")) == contents(folder.file("c"))) << said;
  }
}

TEST(GeneratedPrograms, LeaveTheirModelAtTheCopy) { run_generated(4); }
TEST(ManyGeneratedPrograms, LeaveTheirModelAtTheCopy) { run_generated(60); }

}  // namespace
}  // namespace perdura::test
