// A hundred ways of programs to change a file, to sync it and to end: each is replicated when its
// sync has returned, or it is refused, or the run ends with a line and exit code 1. And random
// programs with a model.
#include <spawn.h>

#include <array>

#include "tests/library/mojim/running.h"
#include "tests/support/seed.h"

namespace perdura::test {
namespace {

std::string contents(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
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
  for (const auto& [change, sync] :
       std::array<std::array<const char*, 2>, 5>{{{"store", "msync"},
                                                  {"pwrite", "fsync"},
                                                  {"stdio", "fdatasync"},
                                                  {"store", "none"},
                                                  {"child", "sync"}}}) {
    for (const char* end : {"exit", "kill"}) {
      Row row = of_c(change, sync, end, Then::fails, PERDURA_WAYS_STATIC);
      row.name = "static_" + row.name;
      rows.push_back(row);
    }
  }
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
  std::replace(program.begin(), program.end(), std::string("FILE"), folder.file("a"));
  std::vector<std::string> arguments = mojim("run", "m-sync", folder, program);
  std::replace(arguments.begin(), arguments.end(), std::string("4MiB"), std::string("1MiB"));
  Running running(arguments);
  const std::string said = running.rest();
  const int code = running.wait();
  SCOPED_TRACE(said);
  const std::string here = contents(folder.file("a"));
  const std::string copy = contents(folder.file("b"));
  const std::string before(1 << 20, 'o');
  const auto has = [&](const char* text) { return said.find(text) != std::string::npos; };
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
          of_c("store", "none", "exit", Then::settled)};
}

INSTANTIATE_TEST_SUITE_P(All, Way, testing::ValuesIn(all_rows()), kName);
INSTANTIATE_TEST_SUITE_P(Few, Way, testing::ValuesIn(few_rows()), kName);

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
