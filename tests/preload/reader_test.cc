// perdura mojim read: programs that know nothing of Mojim and read a copy while a run goes on. They
// see no sync point in part; and whatever happens to them, the run goes on.
#include <cstddef>
#include <random>

#include "preload/shared_readers.h"
#include "tests/preload/running.h"
#include "tests/support/seed.h"

namespace perdura::test {
namespace {

constexpr const char* kEndless = "100000000";

std::vector<std::string> write_pages(const SharedFolder& folder, const std::string& mode,
                                     const std::string& last) {
  return mojim("run", mode, folder, {PERDURA_PAGES, "write", folder.file("a"), last});
}

std::vector<std::string> reading(const std::string& copy, const std::vector<std::string>& program) {
  std::vector<std::string> arguments{PERDURA_PROGRAM, "mojim", "read", copy, "--"};
  arguments.insert(arguments.end(), program.begin(), program.end());
  return arguments;
}

std::vector<std::string> read_pages(const std::string& copy, const std::string& how,
                                    const std::string& until) {
  return reading(copy, {PERDURA_PAGES, how, copy, until});
}

void read_lines(Running& running, int count) {
  for (int i = 0; i < count; ++i) ASSERT_TRUE(running.line());
}

// Ends a run whose program would never end.
std::string end_writer(Running& run) {
  const pid_t writer = run.child("pages write");
  EXPECT_GT(writer, 0);
  kill(writer, SIGKILL);
  std::string rest = run.rest();
  EXPECT_EQ(run.wait(), 1);
  return rest;
}

// A process that serves a copy is in the middle of a change of it.
bool is_changing(const std::string& copy) {
  std::ifstream file(copy + ".mojim/readers");
  file.seekg(offsetof(preload::SharedReaders, sequence));
  std::uint32_t sequence = 0;
  file.read(reinterpret_cast<char*>(&sequence), sizeof sequence);
  return sequence % 2 != 0;
}

// Stops the mirror's process in the middle of a change, or after one, and kills it.
void kill_mirror(Running& run, const std::string& copy, bool in_change) {
  const pid_t mirror = run.child("mojim copy 1");
  ASSERT_GT(mirror, 0);
  for (;;) {
    ASSERT_TRUE(run.line());
    kill(mirror, SIGSTOP);
    ASSERT_TRUE(Running::wait_until_stopped(mirror));
    if (is_changing(copy) == in_change) break;
    kill(mirror, SIGCONT);
  }
  kill(mirror, SIGKILL);
}

class ReaderOf : public testing::TestWithParam<std::string> {};

// Section 3.2: no reader has a page of a checkpoint while that is applied.
TEST_P(ReaderOf, SeesNoSyncPointInPart) {
  const bool has_backup = GetParam().starts_with("e-");
  const std::string last = GetParam() == "m-sync" ? "500" : "200";
  for (const char* how : {"map", "private", "fork", "send", "read"}) {
    SCOPED_TRACE(how);
    const SharedFolder folder;
    const std::string copy = folder.file(has_backup ? "c" : "b");
    Running run(write_pages(folder, GetParam(), last));
    EXPECT_EQ(run.line(), "1");
    Running reader(read_pages(copy, how, last));
    const std::string output = run.rest();
    EXPECT_EQ(run.wait(), 0) << output;
    const std::string read = reader.rest();
    EXPECT_EQ(reader.wait(), 0) << read << output;
  }
}

// A program may end while its last sync points are on their way to a mirror that hangs.
TEST(Program, EndsWhileItsMirrorHangs) {
  const SharedFolder folder;
  Running run(mojim("run", "m-async", folder, {PERDURA_PAGES, "end", folder.file("a"), "5"}));
  for (const char* number : {"1", "2", "3", "4"}) EXPECT_EQ(run.line(), number);
  const pid_t program = run.child("perdura_pages");
  const pid_t mirror = run.child("mojim copy 1");
  ASSERT_TRUE(program > 0 && mirror > 0);
  ASSERT_TRUE(Running::wait_until_stopped(program));
  kill(mirror, SIGSTOP);
  ASSERT_TRUE(Running::wait_until_stopped(mirror));
  kill(program, SIGCONT);
  EXPECT_EQ(run.line(), "5");
  const std::string output = run.rest();
  EXPECT_EQ(run.wait(), 0) << output;
}

INSTANTIATE_TEST_SUITE_P(Modes, ReaderOf,
                         testing::Values("m-sync", "m-async", "m-syncdisk", "e-broadcast"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// One that was there before the run, goes on when it has ended, and reads what the next one
// changes.
TEST(Reader, OutlivesRuns) {
  const SharedFolder folder;
  Running first(write_pages(folder, "m-sync", "10"));
  first.rest();
  EXPECT_EQ(first.wait(), 0);
  Running reader(read_pages(folder.file("b"), "map", "300"));
  EXPECT_EQ(reader.line(), "reads");
  EXPECT_EQ(reader.line(), "10");
  for (const char* last : {"100", "200", "300"}) {
    Running next(write_pages(folder, "m-sync", last));
    const std::string output = next.rest();
    EXPECT_EQ(next.wait(), 0) << output;
  }
  const std::string read = reader.rest();
  EXPECT_EQ(reader.wait(), 0) << read;
}

TEST(Reader, ThatIsKilledIsNotWaitedFor) {
  const unsigned seed = random_seed();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const SharedFolder folder;
  Running run(write_pages(folder, "m-sync", kEndless));
  EXPECT_EQ(run.line(), "1");
  for (int i = 0; i < 20; ++i) {
    Running reader(read_pages(folder.file("b"), i % 2 == 0 ? "map" : "read", kEndless));
    for (auto lines = random() % 10; lines > 0; --lines) ASSERT_TRUE(reader.line());
    read_lines(run, static_cast<int>(random() % 50));
    kill(reader.id(), SIGKILL);
    EXPECT_EQ(reader.wait(), -SIGKILL);
    read_lines(run, 100);
  }
  const std::string output = end_writer(run);
  EXPECT_EQ(output.find("has not left"), std::string::npos) << output;
  Running reader(read_pages(folder.file("b"), "read", "2000"));
  const std::string read = reader.rest();
  EXPECT_EQ(reader.wait(), 0) << read;
}

TEST(Reader, ThatHangsIsEnded) {
  const SharedFolder folder;
  Running run(write_pages(folder, "m-sync", kEndless));
  EXPECT_EQ(run.line(), "1");
  Running reader(read_pages(folder.file("b"), "map", kEndless));
  EXPECT_EQ(reader.line(), "reads");
  kill(reader.id(), SIGSTOP);
  const std::string end = fmt::format("{}: process {} has not left what a sync point changes",
                                      folder.file("b"), reader.id());
  for (auto line = run.line(); line && line->find(end) == std::string::npos;) line = run.line();
  EXPECT_EQ(reader.wait(), -SIGKILL);
  read_lines(run, 1000);
  end_writer(run);
}

// It waits for pages that nobody will give back, and must not see what is there.
TEST(Reader, EndsWhenTheMirrorIsKilledInTheMiddleOfACheckpoint) {
  const SharedFolder folder;
  const std::string copy = folder.file("b");
  Running run(write_pages(folder, "m-sync", kEndless));
  EXPECT_EQ(run.line(), "1");
  Running reader(read_pages(copy, "map", kEndless));
  EXPECT_EQ(reader.line(), "reads");
  ASSERT_NO_FATAL_FAILURE(kill_mirror(run, copy, true));
  const std::string read = reader.rest();
  EXPECT_EQ(reader.wait(), 2);
  EXPECT_NE(read.find("may hold a sync point in part, since its process was killed"),
            std::string::npos)
      << read;
  // Nor does one that begins now; the run goes on without the mirror, and completes its copy then.
  Running refused(read_pages(copy, "map", "1"));
  const std::string why = refused.rest();
  EXPECT_EQ(refused.wait(), 2) << why;
  EXPECT_EQ(std::count(why.begin(), why.end(), '\n'), 1) << why;
  read_lines(run, 100);
  end_writer(run);
  Running later(read_pages(copy, "read", "1"));
  const std::string output = later.rest();
  EXPECT_EQ(later.wait(), 0) << output;
}

// What the mirror has missed it gets with all of the file, which is no state of it meanwhile.
TEST(Reader, WaitsWhileTheCopyIsGivenTheFile) {
  const SharedFolder folder;
  const std::string copy = folder.file("b");
  Running run(write_pages(folder, "m-sync", kEndless));
  EXPECT_EQ(run.line(), "1");
  Running reader(read_pages(copy, "map", kEndless));
  EXPECT_EQ(reader.line(), "reads");
  ASSERT_NO_FATAL_FAILURE(kill_mirror(run, copy, false));
  read_lines(run, 3000);
  end_writer(run);
  Running next(write_pages(folder, "m-sync", kEndless));
  std::uint64_t last = 0;
  while (last == 0) {
    const auto line = next.line();
    ASSERT_TRUE(line);
    last = std::strtoull(line->c_str(), nullptr, 10);
  }
  for (std::uint64_t read = 0; read < last + 10;) {
    const auto line = reader.line();
    ASSERT_TRUE(line);
    ASSERT_EQ(line->find("page"), std::string::npos) << *line;
    read = std::strtoull(line->c_str(), nullptr, 10);
  }
  end_writer(next);
}

// The mirror's copy becomes the program's file, in which its stores are seen at once.
TEST(Reader, EndsWhenTheCopyIsPromoted) {
  const SharedFolder folder;
  Running first(write_pages(folder, "m-sync", "10"));
  first.rest();
  EXPECT_EQ(first.wait(), 0);
  Running reader(read_pages(folder.file("b"), "map", kEndless));
  EXPECT_EQ(reader.line(), "reads");
  EXPECT_EQ(reader.line(), "10");
  Running next({PERDURA_PROGRAM, "mojim", "run", "--mode", "m-sync", "--size", "4MiB", "--take",
                "primary", "--primary", folder.file("b"), "--mirror", folder.file("a"), "--",
                PERDURA_PAGES, "write", folder.file("b"), "20"});
  const std::string output = next.rest();
  EXPECT_EQ(next.wait(), 0) << output;
  const std::string read = reader.rest();
  EXPECT_EQ(reader.wait(), 2) << read;
  EXPECT_NE(read.find("is the program's own file and no copy"), std::string::npos) << read;
}

// LMDB's tools and its library, in a copy that a writer changes meanwhile. A reader of the writer's
// own keeps LMDB from using pages again that readers of the copy still need: it does not know of
// them.
TEST(Reader, LmdbReadsTheCopy) {
  constexpr std::uint64_t kLast = 400;
  const SharedFolder folder;
  const std::string copy = folder.file("b");
  Running run({PERDURA_PROGRAM, "mojim", "run", "--mode", "m-sync", "--size", "64MiB", "--primary",
               folder.file("a"), "--mirror", copy, "--", PERDURA_LMDB_WRITER, folder.file("a"), "1",
               fmt::format("{}", kLast), "keep"});
  EXPECT_EQ(run.line(), "1");
  const auto read_with = [&](const std::vector<std::string>& program) {
    Running reader(reading(copy, program));
    std::string output = reader.rest();
    EXPECT_EQ(reader.wait(), 0) << output;
    return output;
  };
  for (std::uint64_t last = 0; last < kLast && !HasFailure();) {
    const bool was_last = run.has_ended();
    const std::string found = read_with({PERDURA_LMDB_WRITER, copy});
    EXPECT_GE(std::strtoull(found.c_str(), nullptr, 10), last);
    last = std::strtoull(found.c_str(), nullptr, 10);
    ASSERT_TRUE(last == kLast || !was_last) << run.rest();
    EXPECT_NE(read_with({PERDURA_MDB_DUMP, "-n", copy}).find("DATA=END"), std::string::npos);
    read_with({PERDURA_MDB_STAT, "-n", "-e", "-f", copy});
  }
  const std::string output = run.rest();
  EXPECT_EQ(run.wait(), 0) << output;
}

TEST(Reader, WrongUseGetsOneLine) {
  const SharedFolder folder;
  const std::string copy = folder.file("b");
  Running first(write_pages(folder, "m-sync", "3"));
  first.rest();
  EXPECT_EQ(first.wait(), 0);
  const auto expect_refusal = [&](const std::vector<std::string>& arguments,
                                  const std::string& words) {
    Running wrong(arguments);
    const std::string output = wrong.rest();
    EXPECT_EQ(wrong.wait(), 2) << output;
    EXPECT_NE(output.find(words), std::string::npos) << output;
    EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
  };
  expect_refusal(read_pages(copy, "store", "0"), "the program maps it to write to it");
  expect_refusal(read_pages(copy, "open", "0"), "the program changes its mapping to write to it");
  expect_refusal(read_pages(copy, "overwrite", "0"), "the program writes to it");
  expect_refusal(read_pages(folder.file("a"), "map", "0"), "is the program's own file and no copy");
  std::ofstream(folder.file("c")) << "no copy";
  expect_refusal(read_pages(folder.file("c"), "map", "0"), "is no copy");
  expect_refusal(read_pages(folder.file("d"), "map", "0"), "there is no such file");
  expect_refusal({PERDURA_PROGRAM, "mojim", "read", copy}, "command is required");
  expect_refusal(reading(copy, {"/no/such/program"}), "/no/such/program: No such file");
}

}  // namespace
}  // namespace perdura::test
