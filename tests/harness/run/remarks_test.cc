// What a run says of a workload file that asks for something else than is run.
#include "bench/ycsb/workload_remarks.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "bench/kv/kv_parameters.h"
#include "bench/ycsb/point_workload.h"
#include "bench/ycsb/properties.h"

namespace perdura::bench {
namespace {

using harness::Point;
using Lines = std::vector<std::string>;

Point point(const std::string& text, const ycsb::Overrides& overrides = {}) {
  Point point(kv_parameters());
  own_workload(point).name = "w";
  point.settings.set("clients", 2);
  const auto properties = ycsb::Properties::parse(text, "w");
  const auto spec = ycsb::workload_from_properties(properties.value(), overrides);
  EXPECT_TRUE(spec.has_value()) << text;
  if (spec) own_workload(point).spec = *spec;
  return point;
}

// Nothing of it is run in another way than YCSB would.
const std::string kPlain =
    "recordcount=10\nfieldcount=1\nreadproportion=0.5\nupdateproportion=0.5\n";

Lines remarks(const std::string& more) { return remarks_on_workloads({point(kPlain + more)}); }

TEST(Remarks, AreNotMadeOfWhatIsRunAsItIsAskedFor) {
  EXPECT_EQ(remarks(""), Lines{});
  EXPECT_EQ(remarks("threadcount=2\ndataintegrity=true\nwriteallfields=false\ntable=t"), Lines{});
  Point limited = point(kPlain + "target=100\nmaxexecutiontime=3");
  limited.settings.set("offered_load", 100);
  limited.settings.set("duration_ms", 3000);
  EXPECT_EQ(remarks_on_workloads({limited}), Lines{});
}

TEST(Remarks, NameEachPropertyAndWhatIsDoneInstead) {
  for (const std::string_view asked :
       {"threadcount=4", "target=100", "maxexecutiontime=3", "dotransactions=false",
        "core_workload_insertion_retry_limit=2"}) {
    const Lines lines = remarks(std::string(asked));
    ASSERT_EQ(lines.size(), 1U) << asked;
    EXPECT_TRUE(lines[0].starts_with(std::string("workload w: ").append(asked) + ": ")) << lines[0];
  }
  EXPECT_EQ(remarks("google.bigtable.project.id=p\nhbase.usepagefilter=false"),
            Lines{"workload w: google.bigtable.project.id, hbase.usepagefilter: ignored, as for a "
                  "database binding of YCSB"});
}

TEST(Remarks, SayThatARecordIsOneValue) {
  const auto of_fields = [](const std::string& more, const ycsb::Overrides& overrides = {}) {
    return remarks_on_workloads({point("recordcount=10\n" + more, overrides)});
  };
  EXPECT_EQ(of_fields(""),
            Lines{"workload w: writeallfields=false, which is the default: a record is one value "
                  "here: all 1000 bytes of it are written; set workload.value_size for values of "
                  "another size"});
  EXPECT_EQ(of_fields("writeallfields=true"), Lines{});
  EXPECT_EQ(of_fields("readproportion=1\nupdateproportion=0"), Lines{}) << "writes nothing";
  EXPECT_EQ(of_fields("readproportion=0\nupdateproportion=0\nreadmodifywriteproportion=1").size(),
            1U);
  EXPECT_EQ(of_fields("readproportion=1\nupdateproportion=0\nreadallfields=false"),
            Lines{"workload w: readallfields=false: a record is one value here: all 1000 bytes of "
                  "it are read; set workload.value_size for values of another size"});
}

// The sizes of the file's fields have no effect then, and its updates would still be of one field.
TEST(Remarks, SayThatTheExperimentsValueSizeTakesThePlaceOfFields) {
  const auto sized = [](const std::string& more, std::uint32_t size) {
    return point("recordcount=10\nreadproportion=0.5\nupdateproportion=0.5\n" + more,
                 {.value_size = size});
  };
  const std::string beginning =
      "workload w: writeallfields=false, which is the default: the file's field sizes are not "
      "used, since the experiment sets value_size; an update writes the whole value of ";
  EXPECT_EQ(remarks_on_workloads({sized("writeallfields=false", 64)}),
            Lines{beginning + "64 bytes"});
  EXPECT_EQ(remarks_on_workloads({sized("", 1024), sized("", 16), sized("", 4096)}),
            Lines{beginning + "16 to 4096 bytes"})
      << "one line for all points";
  EXPECT_EQ(remarks_on_workloads({sized("writeallfields=true\nreadallfields=false", 64)}),
            Lines{"workload w: readallfields=false: the file's field sizes are not used, since the "
                  "experiment sets value_size; a read reads the whole value of 64 bytes"});
  EXPECT_EQ(remarks_on_workloads({sized("writeallfields=true", 64)}), Lines{});
  EXPECT_EQ(remarks_on_workloads({sized("fieldcount=1", 64)}), Lines{}) << "one field anyway";
}

TEST(Remarks, SayWhoseNewestRecordsAreRead) {
  const std::string inserts = "insertproportion=0.5\nrequestdistribution=";
  for (const char* distribution : {"latest", "exponential"}) {
    const Lines lines = remarks(inserts + distribution);
    ASSERT_EQ(lines.size(), 1U) << distribution;
    EXPECT_NE(lines[0].find("not the newest of all clients"), std::string::npos) << lines[0];
  }
  EXPECT_EQ(remarks(inserts + "zipfian"), Lines{});
  Point alone = point(kPlain + inserts + "latest");
  alone.settings.set("clients", 1);
  EXPECT_EQ(remarks_on_workloads({alone}), Lines{});
}

TEST(Remarks, AreMadeOnceHoweverManyPointsTheyConcern) {
  const Point one = point(kPlain + "threadcount=4");
  Point other = one;
  own_workload(other).name = "v";
  EXPECT_EQ(remarks_on_workloads({one, one, other, other}).size(), 2U);
}

}  // namespace
}  // namespace perdura::bench
