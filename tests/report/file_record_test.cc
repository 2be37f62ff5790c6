// Rows that were lost or changed since they were written, though what is left is a sound file.
#include "harness/schema/file_record.h"

#include <fmt/format.h>

#include "platform/base/json.h"
#include "report/result_folder.h"
#include "tests/report/fixture.h"

namespace perdura::report {
namespace {

TEST(FileRecord, CountsRowsWithoutTheHeaderAndLinesWithinCellsOnce) {
  EXPECT_EQ(schema::record_of("").rows, 0U);
  EXPECT_EQ(schema::record_of("a,b\n").rows, 0U);
  EXPECT_EQ(schema::record_of("a,b\n1,2\n3,4").rows, 2U) << "the last line may lack its end";
  EXPECT_EQ(schema::record_of("a,b\n1,\"x\n\"\"y\"\"\n\"\n3,4\n").rows, 2U);
}

// The check value of CRC-32 as zlib, gzip and others compute it.
TEST(FileRecord, HasTheChecksumThatOtherProgramsCompute) {
  EXPECT_EQ(schema::record_of("123456789").crc32, "cbf43926");
  EXPECT_EQ(schema::record_of("123456789").bytes, 9U);
}

class FileRecordTest : public ReportTest {
 protected:
  void SetUp() override {
    ReportTest::SetUp();
    result("run", latency_rows(), latency_figure("14"));
    points_ = read("run/points.csv");
    note({{"files", {{"points.csv", entry(points_)}}}});
  }
  static Json entry(const std::string& text) {
    const schema::FileRecord record = schema::record_of(text);
    return {{"rows", record.rows}, {"bytes", record.bytes}, {"crc32", record.crc32}};
  }
  void note(const Json& manifest) { write("run/manifest.json", manifest.dump()); }
  std::string refusal() {
    const auto folders = read_result_folders(root() / "run");
    return folders ? "" : folders.error().message;
  }

  std::string points_;
};

TEST_F(FileRecordTest, AFolderAsItWasWrittenIsReadWithoutANote) {
  const auto folders = read_result_folders(root() / "run");
  ASSERT_TRUE(folders) << folders.error().message;
  EXPECT_EQ(folders->front().note, "");
}

TEST_F(FileRecordTest, ASizeBelowZeroInTheManifestIsShownAsItIs) {
  for (const std::string size : {"rows", "bytes"}) {
    Json record = entry(points_);
    record[size] = -4;
    note({{"files", {{"points.csv", record}}}});
    EXPECT_EQ(refusal(), (root() / "run/manifest.json").string() + ": is damaged: " + size +
                             " of points.csv is -4 in \"files\"; restore it");
  }
}

TEST_F(FileRecordTest, APointsFileThatIsCutAtAnyLineIsRefused) {
  for (std::size_t end = points_.find('\n'); end + 1 < points_.size();
       end = points_.find('\n', end + 1)) {
    write("run/points.csv", points_.substr(0, end + 1));
    EXPECT_NE(refusal().find("points.csv: is not what was written: it has "), std::string::npos)
        << end;
  }
}

TEST_F(FileRecordTest, TheRefusalSaysWhatIsThereWhatWasAndWhatToDo) {
  const std::string cut = points_.substr(0, points_.rfind('\n', points_.size() - 2) + 1);
  write("run/points.csv", cut);
  EXPECT_EQ(refusal(),
            fmt::format("{}/run/points.csv: is not what was written: it has {}, and manifest.json "
                        "says {}; restore it, or run the experiment again in a new folder; if it "
                        "was changed on purpose, remove its entry from \"files\" in manifest.json, "
                        "and it is read unchecked",
                        root().string(), schema::record_of(cut).words(),
                        schema::record_of(points_).words()));
}

TEST_F(FileRecordTest, ADigitThatChangedIsRefused) {
  std::string changed = points_;
  const std::size_t digit = changed.rfind("60");
  ASSERT_NE(digit, std::string::npos);
  changed[digit] = '5';
  write("run/points.csv", changed);
  EXPECT_NE(refusal(), "");
}

TEST_F(FileRecordTest, AFileThatIsGoneIsRefused) {
  note({{"files", {{"points.csv", entry(points_)}, {"timeline.csv", entry("a\n1\n")}}}});
  EXPECT_NE(refusal().find("timeline.csv: there is no such file, and manifest.json says it has 1 "
                           "row, 4 bytes, CRC-32 "),
            std::string::npos)
      << refusal();
}

TEST_F(FileRecordTest, WhatIsBeingWrittenMayBeAsItWasOrAsItWillBe) {
  note({{"files", {{"points.csv", entry("other\n")}}},
        {"files_before", {{"points.csv", entry(points_)}}}});
  EXPECT_EQ(refusal(), "");
  note({{"files", {{"points.csv", entry(points_)}}},
        {"files_before", {{"points.csv", entry("other\n")}}}});
  EXPECT_EQ(refusal(), "");
  note({{"files", {{"points.csv", entry("one\n")}}},
        {"files_before", {{"points.csv", entry("other\n")}}}});
  EXPECT_NE(refusal(), "");
}

TEST_F(FileRecordTest, WithoutARecordItIsReadWithANote) {
  note({{"files", Json::object()}});
  const auto folders = read_result_folders(root() / "run");
  ASSERT_TRUE(folders) << folders.error().message;
  const std::string expected = (root() / "run").string() +
                               ": points.csv is read unchecked, since manifest.json has no record "
                               "of it";
  EXPECT_EQ(folders->front().note, expected);
  const auto written = write_report(options());
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->notes, std::vector<std::string>{expected});
}

}  // namespace
}  // namespace perdura::report
