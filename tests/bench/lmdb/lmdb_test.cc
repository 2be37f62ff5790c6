// The driver of LMDB: every system runs every kind of operation, copies are looked at by LMDB
// itself, and what cannot be is said in one line.
#include <lmdb.h>
#include <sys/file.h>

#include <filesystem>
#include <map>
#include <set>

#include "harness/schema/csv_table.h"
#include "tests/harness/cli/program.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;

using Row = std::map<std::string, std::string>;

class Lmdb : public testing::Test {
 protected:
  Lmdb() {
    std::string name = fs::temp_directory_path() / "perdura-lmdb-test-XXXXXX";
    folder_ = mkdtemp(name.data());
    std::ofstream(folder_ / "all-kinds") << "recordcount=100\noperationcount=200\nfieldcount=1\n"
                                            "fieldlength=300\nreadproportion=1\n"
                                            "updateproportion=1\ninsertproportion=1\n"
                                            "scanproportion=1\nreadmodifywriteproportion=1\n"
                                            "deleteproportion=0.3\nmaxscanlength=20\n";
  }
  ~Lmdb() override { fs::remove_all(folder_); }

  std::string file(const char* name) const { return folder_ / name; }

  Outcome run(const std::string& more) const {
    return perdura(fmt::format(
        "run lmdb-shm --out {} --set repetitions=1 --set workload.records=100 "
        "--set workload.operations=200 --set workload.warmup=20 --set workload.value_size=300 "
        "--set 'matrix.workload=[\"{}\"]' {}",
        file("results"), file("all-kinds"), more));
  }
  // Of the last run.
  std::vector<Row> points() const {
    std::vector<Row> rows;
    const auto table = schema::read_csv(file("results") + "/points.csv");
    EXPECT_TRUE(table.has_value());
    for (const schema::CsvRow& row : table->rows) {
      Row& named = rows.emplace_back();
      for (std::size_t i = 0; i < row.cells.size(); ++i) named[table->header[i]] = row.cells[i];
    }
    return rows;
  }

  fs::path folder_;
};

TEST_F(Lmdb, EachSystemRunsEachKindOfOperation) {
  const std::vector<std::string> systems{
      "tmpfs-nosync", "tmpfs-msync", "s-unreplicated", "m-async", "m-sync",     "m-syncflush",
      "m-syncdisk",   "m-syncsec",   "m-syncseceth",   "e-chain", "e-broadcast"};
  const Outcome outcome =
      run(fmt::format("--set 'matrix.system=[\"{}\"]'", fmt::join(systems, "\", \"")));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  std::map<std::string, std::set<std::string>> kinds;
  for (const Row& row : points()) {
    SCOPED_TRACE(row.at("system") + " " + row.at("operation"));
    EXPECT_EQ(row.at("verdict"), "valid") << row.at("reason");
    EXPECT_EQ(row.at("errors"), "0");
    EXPECT_NE(row.at("latency_mean_us"), "");
    // Nobody counts writes of a program.
    EXPECT_EQ(row.at("nvm_bytes_issued_per_op"), "");
    if (row.at("operation") != "all") {
      kinds[row.at("system")].insert(row.at("operation"));
      continue;
    }
    EXPECT_EQ(row.at("operations"), "200");
    EXPECT_GT(schema::parse_number(row.at("application_cpu_us_per_op")), 0.0);
    const bool has_copies = row.at("system").find("-sync") == 1 || row.at("system")[0] == 'e' ||
                            row.at("system") == "m-async";
    if (has_copies) {
      EXPECT_GT(schema::parse_number(row.at("copies_cpu_us_per_op")), 0.0);
    } else {
      EXPECT_EQ(row.at("copies_cpu_us_per_op"), "");
    }
  }
  EXPECT_EQ(kinds.size(), systems.size());
  for (const auto& [system, its] : kinds) EXPECT_EQ(its.size(), 6U) << system;
}

TEST_F(Lmdb, SaysWhatIsGuaranteed) {
  const Outcome outcome =
      run("--set 'matrix.system=[\"m-sync\"]' --set 'matrix.persistence=[\"paper\", \"correct\"]' "
          "--set 'workload.domain=\"dmp\"' --set 'workload.ddio=\"on\"' "
          "--set 'matrix.write_map=[true, false]' --set workload.clients=2");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  for (const Row& row : points()) {
    EXPECT_EQ(row.at("verdict"), "valid") << row.at("reason");
    EXPECT_EQ(row.at("guarantee"), row.at("persistence") == "correct" ? "durable" : "none");
  }
}

TEST_F(Lmdb, AFullFileFailsThePoint) {
  const Outcome outcome =
      run("--set 'matrix.system=[\"tmpfs-msync\", \"m-sync\"]' --set workload.map_size=1048576 "
          "--set workload.records=20000");
  EXPECT_EQ(outcome.code, 1);
  for (const Row& row : points()) {
    EXPECT_EQ(row.at("verdict"), "failed");
    EXPECT_NE(row.at("reason").find("LMDB is out of space; raise map_size"), std::string::npos)
        << row.at("reason");
  }
}

// The program says of the mirror's copy that it has other entries than were committed.
TEST_F(Lmdb, ACopyThatDiffersMakesThePointInvalid) {
  fs::copy(PERDURA_PROGRAM, folder_ / "perdura");
  fs::copy(fs::path(PERDURA_PROGRAM).parent_path() / "libperdura_mojim.so",
           folder_ / "libperdura_mojim.so");
  std::ofstream(folder_ / "perdura-lmdb")
      << "#!/bin/sh\ncase \"$*\" in\n  check*node-1*) echo 7 ;;\n  *) exec " << PERDURA_LMDB
      << " \"$@\" ;;\nesac\n";
  fs::permissions(folder_ / "perdura-lmdb", fs::perms::owner_all);
  const Outcome outcome = shell(fmt::format(
      "cd {} && {} run lmdb-shm --out {} --set repetitions=1 --set workload.records=100 --set "
      "workload.operations=200 --set workload.warmup=20 --set 'matrix.workload=[\"update-only\"]' "
      "--set 'matrix.system=[\"m-sync\"]'",
      PERDURA_SOURCE_DIR, file("perdura"), file("results")));
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  const Row row = points().front();
  EXPECT_EQ(row.at("verdict"), "invalid");
  EXPECT_EQ(row.at("reason"), "the mirror's copy has 7 entries, and 100 were committed");
}

// The kernel says what is mounted there, so that results of different file systems are told apart.
TEST_F(Lmdb, WorksInADirectoryOfThisMachine) {
  const fs::path directory = folder_ / "data";
  fs::create_directory(directory);
  const Outcome outcome =
      run(fmt::format("--path {} --set 'matrix.write_map=[true, false]'", directory.string()));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  for (const Row& row : points()) {
    EXPECT_EQ(row.at("system"), "path");
    EXPECT_EQ(row.at("verdict"), "valid") << row.at("reason");
    EXPECT_NE(row.at("file_system"), "");
  }
  EXPECT_TRUE(fs::is_empty(directory));
  const Outcome without = run("--set 'matrix.system=[\"path\"]'");
  EXPECT_EQ(without.code, 2);
  EXPECT_NE(without.text.find("the system path needs a directory; give --path DIR"),
            std::string::npos)
      << without.text;
}

// Of a process that was killed; one that lives keeps its folder.
TEST_F(Lmdb, RemovesWhatOthersHaveLeft) {
  const fs::path left = "/dev/shm/perdura-lmdb-left";
  const fs::path used = "/dev/shm/perdura-lmdb-used";
  for (const fs::path& folder : {left, used}) {
    fs::create_directory(folder);
    std::ofstream(folder / "lock").flush();
  }
  const int lock = open((used / "lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_EQ(run("--set 'matrix.system=[\"tmpfs-msync\"]'").code, 0);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(used));
  close(lock);
  fs::remove_all(used);
}

TEST_F(Lmdb, RefusesWhatCannotBe) {
  const auto refusal = [&](const std::string& more) {
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
    return outcome.text;
  };
  EXPECT_NE(refusal("--platform sim").find("set platform to \"shm\""), std::string::npos);
  EXPECT_NE(refusal("--set 'matrix.system=[\"tmpfs-msync\"]' --set "
                    "'workload.persistence=\"correct\"'")
                .find("has no effect on tmpfs-msync"),
            std::string::npos);
  EXPECT_NE(refusal("--set 'systems.m-sync.log_slots=10'").find("log_slots"), std::string::npos);
  EXPECT_NE(refusal("--set timeline.interval_us=100").find("not recorded over time"),
            std::string::npos);
  EXPECT_NE(refusal("--set workload.key_size=512").find("at most 511 bytes"), std::string::npos);
  const Outcome ranks = mpirun(2, "run lmdb-shm --out " + file("results"));
  EXPECT_EQ(ranks.code, 2) << ranks.text;
}

// What a copy is judged by: an entry that LMDB finds in order, but that nobody has written.
TEST_F(Lmdb, ChecksEachEntry) {
  const std::string database =
      fmt::format("--file {} --size 4MiB --workload {}", file("data"), file("all-kinds"));
  EXPECT_EQ(shell(fmt::format("{} run {}", PERDURA_LMDB, database)).code, 0);
  const Outcome right = shell(fmt::format("{} check {}", PERDURA_LMDB, database));
  EXPECT_EQ(right.code, 0) << right.text;
  MDB_env* env = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi table = 0;
  MDB_cursor* cursor = nullptr;
  MDB_val key;
  MDB_val value;
  ASSERT_EQ(mdb_env_create(&env), 0);
  ASSERT_EQ(mdb_env_set_mapsize(env, 4 << 20), 0);
  ASSERT_EQ(mdb_env_open(env, file("data").c_str(), MDB_NOSUBDIR, 0644), 0);
  ASSERT_EQ(mdb_txn_begin(env, nullptr, 0, &transaction), 0);
  ASSERT_EQ(mdb_dbi_open(transaction, nullptr, 0, &table), 0);
  ASSERT_EQ(mdb_cursor_open(transaction, table, &cursor), 0);
  ASSERT_EQ(mdb_cursor_get(cursor, &key, &value, MDB_FIRST), 0);
  std::string changed(static_cast<const char*>(value.mv_data), value.mv_size);
  changed[changed.size() / 2] ^= 1;
  value.mv_data = changed.data();
  ASSERT_EQ(mdb_cursor_put(cursor, &key, &value, MDB_CURRENT), 0);
  mdb_cursor_close(cursor);
  ASSERT_EQ(mdb_txn_commit(transaction), 0);
  mdb_env_close(env);
  const Outcome wrong = shell(fmt::format("{} check {}", PERDURA_LMDB, database));
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.text.find("1 of "), std::string::npos) << wrong.text;
  EXPECT_NE(wrong.text.find("entries are wrong"), std::string::npos) << wrong.text;
}

TEST_F(Lmdb, OutputThatCannotBeWrittenIsNoSuccess) {
  EXPECT_EQ(shell(fmt::format("({} --help > /dev/full)", PERDURA_LMDB)).code, 1);
}

}  // namespace
}  // namespace perdura
