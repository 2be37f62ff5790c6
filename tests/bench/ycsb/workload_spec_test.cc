#include "bench/ycsb/workload_spec.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace perdura::ycsb {
namespace {

tl::expected<WorkloadSpec, Error> spec_of(std::string_view text, const Overrides& overrides = {}) {
  const auto properties = Properties::parse(text, "file");
  if (!properties) return tl::unexpected(properties.error());
  return workload_from_properties(*properties, overrides);
}

std::string message_for(std::string_view text) {
  const auto spec = spec_of(text);
  return spec ? "(accepted)" : spec.error().message;
}

TEST(WorkloadSpec, HasTheDefaultsOfYcsb) {
  const auto spec = spec_of("recordcount=1000");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->record_count, 1000U);
  EXPECT_EQ(spec->loaded_keys(), 1000U);
  EXPECT_EQ(spec->max_value_size(), 1000U);
  EXPECT_DOUBLE_EQ(spec->share(OperationKind::read), 0.95);
  EXPECT_DOUBLE_EQ(spec->share(OperationKind::update), 0.05);
  EXPECT_EQ(spec->request_distribution, RequestDistribution::uniform);
  EXPECT_EQ(spec->insert_order, kv::InsertOrder::hashed);
  EXPECT_EQ(spec->max_scan_length, 1000U);
  EXPECT_DOUBLE_EQ(spec->zipfian_constant, 0.99);
}

// Laid out as YCSB's own files are: long blank tails in the comments, the old package name of the
// workload class, properties that mean nothing here.
TEST(WorkloadSpec, ReadsAFileOfYcsbUnchanged) {
  const auto spec = spec_of(
      "# License text                                                        \n"
      "#                                                                     \n"
      "\n# Scans and inserts\n#                        \n\n"
      "recordcount=1000\noperationcount=1000\nworkload=com.yahoo.ycsb.workloads.CoreWorkload\n\n"
      "readallfields=true\n\nreadproportion=0\nupdateproportion=0\nscanproportion=0.95\n"
      "insertproportion=0.05\n\nrequestdistribution=zipfian\n\nmaxscanlength=100\n\n"
      "scanlengthdistribution=uniform\n\n\n");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->operation_count, 1000U);
  EXPECT_EQ(spec->request_distribution, RequestDistribution::zipfian);
  EXPECT_DOUBLE_EQ(spec->share(OperationKind::scan), 0.95);
  EXPECT_DOUBLE_EQ(spec->share(OperationKind::insert), 0.05);
  EXPECT_EQ(spec->max_scan_length, 100U);
}

TEST(WorkloadSpec, AcceptsThePropertiesOfYcsbThatMeanNothingHere) {
  EXPECT_EQ(message_for("recordcount=1\ntable=usertable\nexportfile=x\ndataintegrity=true\n"
                        "measurementtype=histogram\nhistogram.buckets=1000\nstatus.interval=1\n"
                        "timeseries.granularity=1000\nreadallfieldsbyname=true\ncolumnfamily=cf\n"
                        "hdrhistogram.percentiles=95,99"),
            "(accepted)");
}

// Every property that YCSB's template sets or has in a comment, those of a database's binding among
// them, in Java's notations.
TEST(WorkloadSpec, ReadsWhatYcsbsTemplateNames) {
  const auto spec = spec_of(
      "! defaults\nworkload=site.ycsb.workloads.CoreWorkload\nrecordcount : 1000000\n"
      "operationcount 3000000\n#insertcount=\ninsertstart=0\nfieldcount=10\nfieldlength=100\n"
      "minfieldlength=1\nreadallfields=true\nwriteallfields=false\nfieldlengthdistribution=\\\n"
      "    constant\nreadproportion=0.95\nupdateproportion=0.05\ninsertproportion=0\n"
      "readmodifywriteproportion=0\nscanproportion=0\nminscanlength=1\nmaxscanlength=1000\n"
      "scanlengthdistribution=uniform\ninsertorder=hashed\nrequestdistribution=zipfian\n"
      "hotspotdatafraction=0.2\nhotspotopnfraction=0.8\nmaxexecutiontime= \ntable=usertable\n"
      "columnfamily=\nmeasurementtype=histogram\nmeasurement.raw.output_file = /tmp/a\\:b\n"
      "measurement.histogram.verbose = false\nmeasurement.trackjvm = false\n"
      "histogram.buckets=1000\ntimeseries.granularity=1000\nhdrhistogram.fileoutput=false\n"
      "reportlatencyforeacherror=false\nlatencytrackederrors=\"a,b\"\n"
      "core_workload_insertion_retry_limit = 0\ncore_workload_insertion_retry_interval = 3\n"
      "htrace.sampler.classes=ProbabilitySampler\ngoogle.bigtable.project.id=mine\n");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->record_count, 1'000'000U);
  EXPECT_EQ(spec->operation_count, 3'000'000U);
  EXPECT_EQ(spec->field_length_distribution, LengthDistribution::constant);
  EXPECT_EQ(spec->asked.max_execution_seconds, std::nullopt);
  EXPECT_EQ(spec->asked.insertion_retry_limit, std::nullopt);
  EXPECT_EQ(spec->asked.of_bindings,
            (std::vector<std::string>{"google.bigtable.project.id", "htrace.sampler.classes"}));
}

TEST(WorkloadSpec, RemembersWhatIsAskedOfYcsbsClient) {
  const auto spec = spec_of(
      "recordcount=1\nthreadcount=4\ntarget=10\nmaxexecutiontime=60\nwriteallfields=TRUE\n"
      "readallfields=no\ndotransactions=false\ncore_workload_insertion_retry_limit=2");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->asked.thread_count, 4U);
  EXPECT_EQ(spec->asked.target, 10U);
  EXPECT_EQ(spec->asked.max_execution_seconds, 60U);
  EXPECT_EQ(spec->asked.insertion_retry_limit, 2U);
  EXPECT_TRUE(spec->asked.write_all_fields);
  EXPECT_FALSE(spec->asked.read_all_fields);
  EXPECT_TRUE(spec->asked.load_only);
  const auto defaults = spec_of("recordcount=1\ntarget=0\nmaxexecutiontime=0");
  ASSERT_TRUE(defaults.has_value()) << defaults.error().message;
  EXPECT_EQ(defaults->asked.target, std::nullopt) << "0 is no limit";
  EXPECT_EQ(defaults->asked.max_execution_seconds, std::nullopt);
  EXPECT_FALSE(defaults->asked.write_all_fields);
  EXPECT_EQ(message_for("threadcount=some"),
            "file:1: threadcount='some' is not a whole number; correct the value");
}

TEST(WorkloadSpec, RefusesOtherWorkloadsThanYcsbsCore) {
  for (const char* name : {"site.ycsb.workloads.CoreWorkload", "CoreWorkload", "core"}) {
    EXPECT_EQ(message_for(std::string("recordcount=1\nworkload=") + name), "(accepted)");
  }
  EXPECT_EQ(message_for("recordcount=1\nworkload=site.ycsb.workloads.TimeSeriesWorkload"),
            "file:2: workload=site.ycsb.workloads.TimeSeriesWorkload is not supported, only YCSB's "
            "CoreWorkload is; to run the file as one, remove the line");
}

TEST(WorkloadSpec, ReadsEveryPropertyThatItUses) {
  const auto spec = spec_of(
      "recordcount=100\noperationcount=7\ninsertstart=10\ninsertcount=20\ninsertorder=ordered\n"
      "readproportion=1\nupdateproportion=2\ninsertproportion=3\nscanproportion=4\n"
      "readmodifywriteproportion=5\ndeleteproportion=6\nrequestdistribution=hotspot\n"
      "zipfianconstant=0.5\nhotspotdatafraction=0.1\nhotspotopnfraction=0.7\n"
      "exponential.percentile=90\nexponential.frac=0.25\nkeysize=30\nkeyprefix=k\nzeropadding=12\n"
      "fieldcount=2\nfieldlength=64\nminfieldlength=8\nfieldlengthdistribution=uniform\n"
      "minscanlength=5\nmaxscanlength=9\nscanlengthdistribution=zipfian");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->operation_count, 7U);
  EXPECT_EQ(spec->first_key(), 10U);
  EXPECT_EQ(spec->loaded_keys(), 20U);
  EXPECT_EQ(spec->first_new_key(), 100U);
  EXPECT_EQ(spec->insert_order, kv::InsertOrder::ordered);
  EXPECT_EQ(spec->proportions, (std::array{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}));
  EXPECT_DOUBLE_EQ(spec->share(OperationKind::erase), 6.0 / 21);
  EXPECT_EQ(spec->request_distribution, RequestDistribution::hotspot);
  EXPECT_DOUBLE_EQ(spec->zipfian_constant, 0.5);
  EXPECT_DOUBLE_EQ(spec->hotspot_data_fraction, 0.1);
  EXPECT_DOUBLE_EQ(spec->hotspot_operation_fraction, 0.7);
  EXPECT_DOUBLE_EQ(spec->exponential_percentile, 90);
  EXPECT_DOUBLE_EQ(spec->exponential_fraction, 0.25);
  EXPECT_EQ(spec->key_size, 30U);
  EXPECT_EQ(spec->key_prefix, "k");
  EXPECT_EQ(spec->zero_padding, 12U);
  EXPECT_EQ(spec->max_value_size(), 128U);
  EXPECT_EQ(spec->min_field_length, 8U);
  EXPECT_EQ(spec->field_length_distribution, LengthDistribution::uniform);
  EXPECT_EQ(spec->min_scan_length, 5U);
  EXPECT_EQ(spec->scan_length_distribution, LengthDistribution::zipfian);
}

TEST(WorkloadSpec, RefusesAnUnknownPropertyAndSaysWhere) {
  EXPECT_EQ(message_for("recordcount=1\n\nreadpropotion=1"),
            "file:3: unknown property 'readpropotion'; did you mean 'readproportion'?");
  EXPECT_EQ(message_for("recordcount=1\nfrequency=x"),
            "file:2: unknown property 'frequency'; remove the line or correct the name");
  EXPECT_EQ(message_for("recordcount=1\nhistogram.bucket=x"),
            "file:2: unknown property 'histogram.bucket'; did you mean 'histogram.buckets'?");
}

// The names of properties in other projects' files, of which a new one is a line in a file of the
// folder.
Properties names_of(const char* file) {
  const auto properties =
      Properties::read_file(std::filesystem::path(PERDURA_PROPERTY_NAMES) / file);
  EXPECT_TRUE(properties) << properties.error().message;
  EXPECT_GE(properties->entries().size(), 3U);
  return *properties;
}

TEST(PropertyNames, EveryPropertyOfYcsbIsAccepted) {
  for (const char* file : {"ycsb-template", "ycsb-client"}) {
    const Properties names = names_of(file);
    Properties whole = names;
    whole.set("recordcount", "1000", "test");
    const auto spec = workload_from_properties(whole);
    EXPECT_TRUE(spec.has_value()) << spec.error().message;
    for (const auto& [name, entry] : names.entries()) {
      const std::string text = name + "=" + entry.value;
      EXPECT_EQ(message_for("recordcount=1000\nscanproportion=0\n" + text), "(accepted)");
    }
  }
}

TEST(PropertyNames, AFileOfTimeSeriesIsRefusedForItsWorkload) {
  Properties names = names_of("ycsb-time-series");
  const auto refused = workload_from_properties(names);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find(
                "workload=site.ycsb.workloads.TimeSeriesWorkload is not supported"),
            std::string::npos)
      << refused.error().message;
}

TEST(PropertyNames, TheNameOfAnotherProgramGetsAHint) {
  const Properties names = names_of("other-programs");
  for (const auto& [name, entry] : names.entries()) {
    const std::string message = message_for("recordcount=1\n" + name + "=1");
    EXPECT_TRUE(message.starts_with("file:2: unknown property '" + name + "', which is a name of "))
        << message;
    EXPECT_TRUE(message.ends_with("; write '" + entry.value + "'")) << message;
    EXPECT_TRUE(message_for("recordcount=1\n" + entry.value + "=1").find("unknown") ==
                std::string::npos);
  }
}

TEST(WorkloadSpec, RefusesMalformedNumbersAndNames) {
  EXPECT_EQ(message_for("recordcount=1e6"),
            "file:1: recordcount='1e6' is not a whole number; correct the value");
  EXPECT_EQ(message_for("recordcount="),
            "file:1: recordcount='' is not a whole number; correct the value");
  EXPECT_EQ(message_for("recordcount=-1"),
            "file:1: recordcount='-1' is not a whole number; correct the value");
  EXPECT_EQ(message_for("recordcount=99999999999999999999"),
            "file:1: recordcount=99999999999999999999 is out of range; use a smaller number");
  EXPECT_EQ(message_for("fieldlength=4294967296"),
            "file:1: fieldlength=4294967296 is out of range; use a smaller number");
  EXPECT_EQ(message_for("readproportion=half"),
            "file:1: readproportion='half' is not a number; correct the value");
  EXPECT_EQ(message_for("readproportion=nan"),
            "file:1: readproportion='nan' is not a number; correct the value");
  EXPECT_EQ(message_for("insertorder=random"),
            "file:1: insertorder=random is not supported; use one of hashed, ordered");
  EXPECT_EQ(
      message_for("scanlengthdistribution=constant"),
      "file:1: scanlengthdistribution=constant is not supported; use one of uniform, zipfian");
}

TEST(WorkloadSpec, RefusesWhatDoesNotFitTogether) {
  for (const char* text : {
           "recordcount=0",                          // nothing to read
           "recordcount=5\nreadproportion=-1",       // negative
           "recordcount=5\ninsertproportion=1e308",  // neither a part nor a percentage
           "recordcount=5\nreadproportion=0\nupdateproportion=0",  // nothing to do
           "recordcount=5\ninsertstart=6",                         // beyond the records
           "recordcount=5\ninsertstart=2\ninsertcount=4",          // beyond the records
           "recordcount=5\nzipfianconstant=1",                     // the formula divides by zero
           "recordcount=5\nhotspotdatafraction=1.5",               // no fraction
           "recordcount=5\nexponential.percentile=100",            // infinite rate
           "recordcount=5\nkeysize=0",                             // no keys
           "recordcount=300\nkeysize=1",                           // too few keys
           "recordcount=5\nkeysize=10\nzeropadding=12",            // padding wider than the key
           "recordcount=5\nfieldlengthdistribution=uniform\nminfieldlength=101",  // empty range
           "recordcount=5\nfieldcount=0",                                         // no value
           "recordcount=5\nfieldcount=100000\nfieldlength=100000",                // overflow
           "recordcount=5\nminscanlength=0",                                      // empty scan
           "recordcount=5\nminscanlength=1001",                                   // empty range
       }) {
    EXPECT_TRUE(message_for(text).starts_with("file:")) << text << " -> " << message_for(text);
  }
  EXPECT_EQ(message_for("recordcount=5\n\ninsertcount=4\ninsertstart=2"),
            "file:4, file:3, file:1: insertstart=2 and insertcount=4 reach beyond recordcount=5; "
            "raise recordcount to their sum");
  EXPECT_EQ(message_for("recordcount=0\nreadproportion=0\nupdateproportion=0\ninsertproportion=1"),
            "(accepted)");
  EXPECT_EQ(message_for("recordcount=256\nkeysize=1"), "(accepted)");
}

TEST(WorkloadSpec, TakesOverridesOfASweep) {
  const auto spec =
      spec_of("recordcount=1000\ninsertstart=10\ninsertcount=20\nzeropadding=20",
              {.record_count = 50, .operation_count = 9, .key_size = 8, .value_size = 256});
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(spec->loaded_keys(), 50U);
  EXPECT_EQ(spec->operation_count, 9U);
  EXPECT_EQ(spec->key_format().size(), 8U);
  EXPECT_EQ(spec->max_value_size(), 256U);
  EXPECT_FALSE(with_overrides(*spec, {.key_size = 0}).has_value());
}

TEST(WorkloadSpec, ComesFromEachOfOurFiles) {
  struct Expected {
    const char* file;
    OperationKind kind;
    double share;
  };
  for (const Expected& expected :
       std::initializer_list<Expected>{{"workloada", OperationKind::update, 0.5},
                                       {"workloadb", OperationKind::read, 0.95},
                                       {"workloadc", OperationKind::read, 1},
                                       {"workloadd", OperationKind::insert, 0.05},
                                       {"workloade", OperationKind::scan, 0.95},
                                       {"workloadf", OperationKind::read_modify_write, 0.5},
                                       {"update-only", OperationKind::update, 1},
                                       {"create-only", OperationKind::insert, 1},
                                       {"delete-only", OperationKind::erase, 1}}) {
    const auto spec = workload_from_file(std::filesystem::path(PERDURA_WORKLOADS) / expected.file);
    ASSERT_TRUE(spec.has_value()) << spec.error().message;
    EXPECT_DOUBLE_EQ(spec->share(expected.kind), expected.share) << expected.file;
  }
}

TEST(WorkloadSpec, NamesTheFileWhenItsPartsDoNotFit) {
  const auto path = std::filesystem::path(PERDURA_WORKLOADS) / "workloada";
  const auto spec = workload_from_file(path, {.record_count = 0});
  ASSERT_FALSE(spec.has_value());
  EXPECT_EQ(spec.error().message,
            path.string() +
                ": recordcount=0 leaves no records to operate on; set recordcount (or insertcount) "
                "above 0");
}

TEST(WorkloadSpec, SharesOperationsAmongClients) {
  EXPECT_EQ(operations_of_client(10, 0, 3), 4U);
  EXPECT_EQ(operations_of_client(10, 1, 3), 3U);
  EXPECT_EQ(operations_of_client(10, 2, 3), 3U);
  EXPECT_EQ(operations_of_client(2, 2, 3), 0U);
}

}  // namespace
}  // namespace perdura::ycsb
