// Traces are read as they were written, and damaged ones are refused with the place.
#include "services/fs/trace/trace.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "services/fs/trace/trace_reader.h"
#include "services/fs/trace/trace_text.h"
#include "services/fs/trace/trace_writer.h"
#include "tests/support/seed.h"
#include "tests/support/temporary_directory.h"

namespace perdura::fs {
namespace {

struct WrittenTrace {
  std::vector<TracedFile> files;
  std::vector<TraceRecord> records;  // with those of files
};

class TraceFileTest : public testing::Test {
 protected:
  TraceFileTest() : folder_("/tmp", "trace"), path_((folder_.path() / "trace").string()) {}

  // A record `file` takes the next of the files.
  void write(const WrittenTrace& trace) const {
    TraceWriter writer(path_);
    for (const TraceRecord& record : trace.records) {
      if (record.kind == TraceKind::file) {
        writer.add_file(trace.files[record.file].name, record.offset);
      } else {
        writer.add(record);
      }
    }
    writer.finish();
    EXPECT_EQ(writer.records(), trace.records.size());
  }
  WrittenTrace read() const {
    TraceReader reader(path_);
    WrittenTrace trace;
    while (const auto record = reader.next()) trace.records.push_back(*record);
    EXPECT_EQ(reader.next(), std::nullopt);
    EXPECT_EQ(reader.records(), trace.records.size());
    trace.files = reader.files();
    return trace;
  }
  // The reader's complaint about the trace; empty if it has none.
  std::string complaint() const {
    try {
      read();
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  }
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace_bytes(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
  }

  test::TemporaryDirectory folder_;
  std::string path_;
};

WrittenTrace random_trace(std::mt19937_64& random, int count) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  WrittenTrace trace;
  for (int i = 0; i < count; ++i) {
    if (trace.files.empty() || below(20) == 0) {
      const Bytes size = below(3) == 0 ? kLargestTraced : below(MiB);
      trace.files.push_back({std::string(below(40), 'n') + std::string(below(2), '\n'), size});
      trace.records.push_back(
          {TraceKind::file, static_cast<std::uint32_t>(trace.files.size() - 1), size});
      continue;
    }
    TraceRecord record{static_cast<TraceKind>(2 + below(7)),
                       static_cast<std::uint32_t>(below(trace.files.size()))};
    const Bytes most = below(10) == 0 ? kLargestTraced : MiB;
    if (is_access(record.kind) || record.kind == TraceKind::truncate) {
      record.offset = below(4) == 0 ? most : below(most);
    }
    if (is_access(record.kind)) record.length = below(most - record.offset + 1);
    trace.records.push_back(record);
  }
  return trace;
}

TEST_F(TraceFileTest, IsReadAsItWasWritten) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const int count : {0, 1, 2, 100, 30000}) {
    const WrittenTrace trace = random_trace(random, count);
    write(trace);
    const WrittenTrace got = read();
    EXPECT_EQ(got.files, trace.files);
    EXPECT_EQ(got.records, trace.records);
  }
}

TEST_F(TraceFileTest, AccessesInSequenceTakeFewBytes) {
  WrittenTrace trace{.files = {{"log", 0}}, .records = {{TraceKind::file, 0, 0}}};
  constexpr int kAccesses = 10000;
  for (Bytes i = 0; i < kAccesses; ++i) {
    trace.records.push_back({TraceKind::write, 0, i * 100, 100});
  }
  write(trace);
  EXPECT_LT(bytes().size(), 4 * kAccesses + 100);
}

TEST_F(TraceFileTest, AnyChangedByteIsNoticedAndAnyMissingOne) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  write(random_trace(random, 40));
  const std::string whole = bytes();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << random() % 8));
    replace_bytes(damaged);
    const std::string said = complaint();
    EXPECT_NE(said, "") << i;
    EXPECT_EQ(said.find('\n'), std::string::npos);
    replace_bytes(whole.substr(0, i));
    EXPECT_NE(complaint(), "") << i;
  }
  replace_bytes(whole + "x");
  EXPECT_NE(complaint().find("bytes follow its end"), std::string::npos) << complaint();
  replace_bytes(whole);
  EXPECT_EQ(complaint(), "");
}

TEST_F(TraceFileTest, TheMessageNamesTheFileTheByteAndTheRecord) {
  WrittenTrace trace{.files = {{"a", 5}}, .records = {{TraceKind::file, 0, 5}}};
  trace.records.push_back({TraceKind::sync, 0});
  write(trace);
  std::string damaged = bytes();
  damaged[17] ^= 1;  // in the block after the head of the file and the block's own
  replace_bytes(damaged);
  EXPECT_EQ(
      complaint(),
      path_ + ": is damaged at byte 8, record 0: the check sum of a block of 6 bytes is wrong");
  replace_bytes("nothing of the kind");
  EXPECT_NE(complaint().find(path_ + ": is no trace"), std::string::npos);
}

// The head of a trace, a block of these bytes with the right check sum, and no end.
std::string with_block(const std::string& bytes) {
  std::string text(detail::kTraceMagic.begin(), detail::kTraceMagic.end());
  const auto add = [&](std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) text += static_cast<char>(number >> shift);
  };
  add(static_cast<std::uint32_t>(bytes.size()));
  add(crc32(0, std::as_bytes(std::span(bytes))));
  return text + bytes;
}

TEST_F(TraceFileTest, RecordsThatCannotBeAreRefused) {
  const std::string file("\x01\x05\x01n", 4);
  const std::string ten(10, '\xFF');
  const std::vector<std::pair<std::string, std::string>> wrong{
      {std::string("\0", 1), "byte 16, record 0: there are no records of kind 0"},
      {"\x09", "there are no records of kind 9"},
      {std::string("\x02\0", 2), "file 0 has not occurred"},
      {file + "\x02\x01", "byte 20, record 1: file 1 has not occurred"},
      {file + "\x02", "a block ends within a record"},
      {file + "\x02" + ten, "a number has more than 64 bits"},
      {file + std::string("\x04\0\x01\x01", 4), "no file is that large"},  // before its start
      {std::string("\x01\x05\x02n", 4), "a block ends within a name"},
      {std::string("\x01\x05\x81\x7Fn", 5), "no name is that long"},
      {"\x01" + std::string(9, '\xFF') + std::string("\x01\0", 2), "no file is that large"}};
  for (const auto& [bytes, what] : wrong) {
    replace_bytes(with_block(bytes));
    EXPECT_NE(complaint().find(what), std::string::npos) << what << ": " << complaint();
  }
}

TEST_F(TraceFileTest, NoBytesDoHarm) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes("\x01\x05\x01n", 4);
    for (std::uint64_t i = 0; i < 1 + random() % 30; ++i) {
      bytes += static_cast<char>(random() % 3 == 0 ? random() : random() % 9);
    }
    replace_bytes(with_block(bytes));
    EXPECT_NE(complaint(), "") << "it has no end";
  }
}

TEST_F(TraceFileTest, WhoeverWasKilledLeavesNoTrace) {
  {
    TraceWriter writer(path_);
    writer.add_file("a", 5);
  }
  EXPECT_NE(complaint().find("it ends within"), std::string::npos) << complaint();
}

TEST_F(TraceFileTest, TextSaysTheSame) {
  const std::uint32_t seed = test::random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  WrittenTrace trace = random_trace(random, 500);
  trace.files.push_back({"a \\ of\tmany\x7Fkinds  ", 7});
  trace.records.push_back({TraceKind::file, static_cast<std::uint32_t>(trace.files.size() - 1), 7});
  {
    TraceWriter writer(path_);
    for (const TraceRecord& record : trace.records) {
      const std::string line = trace_line(record, trace.files[record.file]);
      EXPECT_EQ(line.find('\n'), std::string::npos);
      add_trace_line(line, writer);
    }
    writer.finish();
  }
  const WrittenTrace got = read();
  EXPECT_EQ(got.files, trace.files);
  EXPECT_EQ(got.records, trace.records);
}

TEST_F(TraceFileTest, LinesThatSayNothingOfTheKindAreRefused) {
  TraceWriter writer(path_);
  EXPECT_THROW(add_trace_line("open 0", writer), UsageError);
  add_trace_line("file 10", writer);
  for (const char* line :
       {"file", "file x", "file -1", "file 9223372036854775808", "open 1", "open", "open 0 1",
        "read 0 1", "read 0 0 9223372036854775808", "write 0 1 9223372036854775807", "jump 0",
        "truncate 0", "read 0 1 2 3", "file 1 a\\2", "file 1 a\\xy"}) {
    EXPECT_THROW(add_trace_line(line, writer), UsageError) << line;
  }
  add_trace_line("", writer);
  add_trace_line("# of no interest", writer);
  EXPECT_EQ(writer.records(), 1U);
}

}  // namespace
}  // namespace perdura::fs
