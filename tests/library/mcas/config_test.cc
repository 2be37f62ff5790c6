// The configuration file: what it may say, and the one line that says what is wrong with it.
#include "library/mcas/config.h"

#include <gtest/gtest.h>

#include "platform/base/error.h"

namespace perdura::mcas {
namespace {

constexpr const char* kWhole = R"(job = "accounts"
[defaults]
directory = "/mnt/pmem0"
memory = 1_048_576
engine = "hstore-cc"
completion = "polling"
[shards.right]
node = 7
cores = [2, 3]
numa_node = 1
sessions = 9
[shards.left]
node = 3
engine = "hstore"
directory = "/dev/dax0.0/left"
emulated = true
[cluster]
heartbeat_ms = 10
patience_ms = 70
)";

TEST(McasConfig, SaysWhatEachShardIs) {
  const Config config = Config::parse(kWhole, "f");
  EXPECT_EQ(config.job, "accounts");
  ASSERT_EQ(config.shards.size(), 2U);
  const ShardConfig& left = config.shards[0];
  EXPECT_EQ(left.name, "left");
  EXPECT_EQ(left.node, 3U);
  EXPECT_EQ(left.directory, "/dev/dax0.0/left");
  EXPECT_TRUE(left.emulated);
  EXPECT_EQ(left.store.parameters.at("engine").text(), "hstore");
  EXPECT_EQ(left.store.sessions, objects::Config{}.sessions);
  EXPECT_EQ(left.store.max_message_value, objects::Config{}.max_message_value);
  const ShardConfig& right = config.shard("right");
  EXPECT_EQ(right.directory, "/mnt/pmem0");
  EXPECT_FALSE(right.emulated);
  EXPECT_EQ(right.store.memory, MiB);
  EXPECT_EQ(right.store.sessions, 9U);
  EXPECT_EQ(right.store.parameters.at("engine").text(), "hstore-cc");
  EXPECT_EQ(right.completion, CompletionMode::polling);
  EXPECT_EQ(right.placement.cores, (std::vector<unsigned>{2, 3}));
  EXPECT_EQ(right.placement.numa_node, 1U);
  EXPECT_EQ(config.cluster.heartbeat, Milliseconds(10));
  EXPECT_EQ(config.cluster.patience, Milliseconds(70));
}

constexpr const char* kVerbs = R"(job = "accounts"
platform = "verbs"
[verbs]
device = "rxe0"
port = 2
gid_index = 0
odp = true
[shards.right]
node = 7
address = "server-2:4711"
[shards.left]
node = 3
address = "10.0.0.1:4711"
)";

TEST(McasConfig, SaysWhereShardsAreOnVerbs) {
  EXPECT_FALSE(Config::parse(kWhole, "f").network.rdma);
  EXPECT_EQ(Config::parse(kWhole, "f").shards[0].address, "");
  const Config config = Config::parse(kVerbs, "f");
  EXPECT_TRUE(config.network.rdma);
  EXPECT_EQ(config.network.device.name, "rxe0");
  EXPECT_EQ(config.network.device.port, 2U);
  EXPECT_EQ(config.network.device.gid_index, 0U);
  EXPECT_TRUE(config.network.device.on_demand_paging);
  EXPECT_EQ(config.shard("left").address, "10.0.0.1:4711");
  EXPECT_EQ(config.shard("right").address, "server-2:4711");
  const Config plain = Config::parse(
      "job = \"x\"\nplatform = \"verbs\"\n[shards.a]\nnode = 0\naddress = \"h:1\"\n", "f");
  EXPECT_TRUE(plain.network.rdma);
  EXPECT_EQ(plain.network.device.name, "");
  EXPECT_FALSE(plain.network.device.port.has_value());
  EXPECT_FALSE(plain.network.device.gid_index.has_value());
}

struct Mistake {
  const char* name;
  const char* replaced;
  const char* by;
  const char* said;
  const char* in = kWhole;
};

class McasConfigMistake : public testing::TestWithParam<Mistake> {};

TEST_P(McasConfigMistake, IsSaidInOneLineWithFileLineAndKey) {
  std::string text = GetParam().in;
  const std::size_t at = text.find(GetParam().replaced);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, std::string(GetParam().replaced).size(), GetParam().by);
  try {
    Config::parse(text, "f");
    FAIL() << text;
  } catch (const UsageError& problem) {
    const std::string said = problem.what();
    EXPECT_EQ(said.rfind(GetParam().said, 0), 0U) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

constexpr Mistake kMistakes[] = {
    {"no_toml", "[defaults]", "[defaults", "f:2: "},
    {"no_job", "job = \"accounts\"", "", "f:1: job is missing"},
    {"bad_job", "accounts", "a b", "f:1: job: a job is a name"},
    {"job_of_another_type", "\"accounts\"", "3", "f:1: job must be"},
    {"unknown_section", "[cluster]", "[clusters]", "f:17: unknown key 'clusters'"},
    {"no_section", "[defaults]", "defaults = 3\n[shards.x]",
     "f:2: defaults must be a section, [defaults]"},
    {"unknown_key", "sessions", "session", "f:11: unknown key 'session' in [shards.right]"},
    {"unknown_default", "memory", "node", "f:4: unknown key 'node' in [defaults]"},
    {"no_node", "node = 3", "", "f:12: node in [shards.left] is missing"},
    {"large_node", "node = 3", "node = 256", "f:13: node in [shards.left] must be"},
    {"same_node", "node = 7", "node = 3", "f:8: node in [shards.right] is 3, as that of"},
    {"no_memory", "1_048_576", "0", "f:4: memory in [defaults] must be"},
    {"negative_memory", "1_048_576", "-1", "f:4: memory in [defaults] must be"},
    {"little_memory", "1_048_576", "20_000", "f:12: [shards.left]: mcas: "},
    {"wrong_engine", "\"hstore\"", "\"x\"", "f:14: engine in [shards.left] must be"},
    {"list_of_engines", "\"hstore\"", "[\"hstore\"]", "f:14: engine in [shards.left] must be"},
    {"bad_parameter", "emulated = true", "first_segment = 3",
     "f:16: [shards.left]: mcas: first_segment is 3"},
    {"peer_of_itself", "emulated = true", "plugin_peer = 3",
     "f:16: plugin_peer in [shards.left] is 3, which is the shard itself"},
    {"usual_peer_of_itself", "engine = \"hstore-cc\"", "plugin_peer = 7",
     "f:7: plugin_peer in [shards.right] is 7, which is the shard itself"},
    {"cores_are_no_list", "[2, 3]", "2",
     "f:9: cores in [shards.right] must be a list of numbers, but is 2"},
    {"cores_are_no_numbers", "[2, 3]", "[2, \"3\"]", "f:9: cores in [shards.right] must be"},
    {"name", "[shards.left]", "[shards.\"../left\"]", "f:12: [shards.../left]: the name"},
    {"platform", "\"verbs\"", "\"sim\"", "f:2: platform must be", kVerbs},
    {"verbs_is_not_said", "platform = \"verbs\"", "", "f:3: verbs is for", kVerbs},
    {"unknown_verbs", "odp", "odb", "f:7: unknown key 'odb' in [verbs]", kVerbs},
    {"port", "port = 2", "port = 0", "f:5: port in [verbs] must be", kVerbs},
    {"no_address", "address = \"10.0.0.1:4711\"", "", "f:11: address in [shards.left] is missing",
     kVerbs},
    {"address_without_port", "10.0.0.1:4711", "10.0.0.1",
     "f:13: address in [shards.left] must be one host's name or IPv4 address and a port", kVerbs},
    {"address_of_any_host", "10.0.0.1:4711", "0.0.0.0:4711",
     "f:13: address in [shards.left] must be one host's", kVerbs},
    {"address_of_no_host", "10.0.0.1:4711", "999.1.1.1:4711",
     "f:13: address in [shards.left] must be one host's", kVerbs},
    {"address_of_many_hosts", "10.0.0.1:4711", "224.0.0.1:4711",
     "f:13: address in [shards.left] must be one host's", kVerbs},
    {"no_plugins", "emulated = true", "plugins = []",
     "f:16: plugins in [shards.left] names none; leave it out"},
    {"peer_is_no_shard", "emulated = true", "plugin_peer = 9",
     "f:12: plugin_peer of [shards.left] is 9, which is the node of no shard; there are: 3 "
     "(left), "
     "7 (right)"},
    {"same_address", "10.0.0.1:4711", "server-2:4711",
     "f:10: address in [shards.right] is server-2:4711, as that of [shards.left]", kVerbs},
    {"address_on_shm", "emulated = true", "address = \"10.0.0.1:4711\"",
     "f:16: address in [shards.left] is for platform"},
    {"address_of_all", "memory", "address", "f:4: unknown key 'address' in [defaults]"},
    {"mistyped_patience", "patience_ms = 70", "patient_ms = 0",
     "f:19: unknown key 'patient_ms' in [cluster] (did you mean 'patience_ms'?)"},
    {"mistyped_beside_a_wrong_value", "heartbeat_ms = 10\npatience_ms",
     "heartbeat_ms = 0\npatient_ms", "f:19: unknown key 'patient_ms' in [cluster]"},
    {"list_as_a_number", "1_048_576", "[1]", "f:4: memory in [defaults] must be a whole number"},
    {"impatient", "patience_ms = 70", "patience_ms = 19", "f:19: patience_ms in [cluster]"},
};
std::string mistake_name(const testing::TestParamInfo<Mistake>& mistake) {
  return mistake.param.name;
}
INSTANTIATE_TEST_SUITE_P(All, McasConfigMistake, testing::ValuesIn(kMistakes), mistake_name);

TEST(McasConfig, HasAShard) {
  EXPECT_THROW(Config::parse("job = \"x\"", "f"), UsageError);
  EXPECT_THROW(Config::parse("job = \"x\"\n[shards]", "f"), UsageError);
  EXPECT_THROW(Config::read("/nowhere"), UsageError);
  EXPECT_THROW(Config::read("/"), UsageError);
  EXPECT_THROW(Config::parse(kWhole, "f").shard("middle"), UsageError);
}

}  // namespace
}  // namespace perdura::mcas
