// What a profile's numbers do: more of a time makes nothing faster, more of a bandwidth nothing
// slower, over the whole range that a profile may have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>
#include <sstream>

#include "platform/base/error.h"
#include "platform/runtime/work.h"
#include "platform/sim/sim_platform.h"
#include "tests/support/platforms.h"
#include "tests/support/temporary_directory.h"

namespace perdura::sim {
namespace {

using fabric::Access;
using fabric::RemoteAddress;

// A number of a profile's file, by its line, since sections have keys of the same name.
struct Number {
  std::size_t line;
  std::string section;
  std::string key;
  double value;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream input(text);
  for (std::string line; std::getline(input, line);) lines.push_back(line);
  return lines;
}

std::vector<Number> numbers_in(const std::vector<std::string>& lines) {
  std::vector<Number> numbers;
  std::string section;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (std::regex_search(lines[i], match, std::regex("^\\[([a-z]+)\\]"))) section = match[1];
    if (std::regex_search(lines[i], match, std::regex("^([a-z0-9_]+) *= *([0-9.]+)"))) {
      numbers.push_back({i, section, match[1], std::stod(match[2])});
    }
  }
  return numbers;
}

Profile with(std::vector<std::string> lines, const Number& number, double value) {
  std::ostringstream line;
  line.precision(17);
  const bool is_whole = !number.key.ends_with("_ns") && value == std::floor(value) &&
                        number.key.find("bandwidth") == std::string::npos;
  if (is_whole) {
    line << number.key << " = " << static_cast<std::int64_t>(value);
  } else {
    line << number.key << " = " << std::fixed << value;
  }
  lines[number.line] = line.str();
  const perdura::test::TemporaryDirectory folder(testing::TempDir(), "changed-profile");
  const std::string path = folder.path() / "changed.toml";
  std::ofstream file(path);
  for (const std::string& text : lines) file << text << '\n';
  file.close();
  return load_profile(path);
}

// A testbed whose NICs look translations up, in a cache that is too small.
constexpr const char* kTranslation = R"(
[translation]
page_bytes = 4096
cache_entries = 8
cache_ways = 2
miss_ns = 500
misses_under_way = 2
registration_ns = 2000
registration_entry_ns = 300
change_ns = 1000
)";

// One client's operations one after the other, so that each must wait for all that a profile says;
// then two threads of the server that share what it has.
Picoseconds time_of_everything(const Profile& profile, CompletionMode mode) {
  constexpr std::uint32_t kSize = 16 * KiB;
  SimPlatform platform(profile, 2);
  fabric::RemoteKey key;
  platform.start_service(0, 0, mode, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("pm", 256 * KiB, pmem::Medium::pm);
    const auto dram = thread.node.create_region("dram", 256 * KiB, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, Access::remote_all);
    const auto local = thread.endpoint.register_memory(*dram, Access::remote_all);
    key = memory.key;
    const auto receives = thread.endpoint.create_receive_queue(4);
    fabric::CompletionQueue completions;
    const auto request = co_await thread.endpoint.next_connection();
    const auto peer =
        request->accept({.receive_queue = receives.get(), .completions = &completions}, {});
    // The first message finds no buffer.
    co_await sleep_for(Milliseconds(1));
    std::vector<std::byte> bytes(kSize);
    for (;;) {
      receives->post(memory.local(128 * KiB, kSize), 0);
      const auto message = co_await completions.next();
      if (message.status != fabric::Status::success) break;
      charge(Work::dispatch);
      region->read(128 * KiB, bytes);
      crc32(1, bytes);
      hash64(bytes);
      equal_bytes(bytes, bytes);
      dram->read(0, bytes);
      dram->write(0, bytes);
      dram->persist(0, kSize);
      region->load(0);
      region->store(0, 1);
      region->write(64 * KiB, bytes);
      region->persist(64 * KiB, kSize);
      region->write_streaming(64 * KiB, bytes);
      region->drain();
      peer->post_unsignaled({.opcode = fabric::Opcode::send, .local = local.local(0, kSize)});
    }
  });
  Picoseconds time{};
  platform.start(1, 1, mode, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("local", 64 * KiB, pmem::Medium::dram);
    const auto memory = thread.endpoint.register_memory(*region, Access::local);
    const auto receives = thread.endpoint.create_receive_queue(4);
    fabric::CompletionQueue completions;
    const auto connection = co_await thread.endpoint.connect(
        {0, 0}, {.receive_queue = receives.get(), .completions = &completions}, {});
    if (connection.status != fabric::Status::success) {
      // Too slow for the time within which a connection must be made.
      time = Picoseconds::max();
      co_return;
    }
    fabric::QueuePair& peer = *connection.queue_pair;
    const Time begin = thread.executor.now();
    for (int round = 0; round < 3; ++round) {
      thread.endpoint.deregister_memory(thread.endpoint.register_memory(*region, Access::local));
      receives->post(memory.local(32 * KiB, kSize), 0);
      EXPECT_TRUE(co_await peer.send(memory.local(0, kSize)));
      EXPECT_EQ((co_await completions.next()).status, fabric::Status::success);
      const RemoteAddress there{key, 0};
      EXPECT_TRUE(co_await peer.read(memory.local(0, kSize), there));
      EXPECT_TRUE(co_await peer.write(memory.local(0, kSize), there));
      EXPECT_TRUE(co_await peer.read(memory.local(0, 64), there));
      EXPECT_EQ((co_await peer.fetch_and_add(there, 1)).status, fabric::Status::success);
    }
    time = thread.executor.now() - begin;
  });
  platform.run();
  return time;
}

enum class Effect { slower, faster, either };

// What more of it does.
Effect effect_of(const Number& number) {
  const auto is = [&](std::initializer_list<const char*> keys) {
    return std::any_of(keys.begin(), keys.end(),
                       [&](const char* key) { return number.key == key; });
  };
  if (number.key.find("bandwidth") != std::string::npos) return Effect::faster;
  if (is({"cores", "misses_under_way"})) return Effect::faster;
  // Turns of longer slices are fewer; larger packets have fewer headers, and leave later.
  if (is({"time_slice_ns", "mtu_bytes"})) return Effect::either;
  if (number.key.find("_ns") != std::string::npos) return Effect::slower;
  if (is({"wakeups", "header_bytes"})) return Effect::slower;
  return Effect::either;
}

// Without contention nothing depends on these.
bool matters(const Number& number, CompletionMode mode) {
  const bool waits = mode == CompletionMode::event;
  if (number.key == "cores" || number.key == "context_switch_ns" || number.key == "timeout_ns" ||
      number.key == "sleep_cpu_ns" || number.key == "wakeup_cpu_ns") {
    return false;
  }
  if (number.key == "arm_ns") return false;  // while nobody asks for the thread
  if (number.key == "wakeups" || number.key == "wakeup_latency_ns") return waits;
  if (number.key == "poll_ns") return !waits;
  // No fence waits for DRAM.
  return number.section != "dram" || number.key != "write_latency_ns";
}

TEST(ProfileEffects, MoreOfATimeIsNeverFasterAndMoreOfABandwidthNeverSlower) {
  const auto lines =
      lines_of(load_profile(perdura::test::profile_path("erda-connectx3")).text + kTranslation);
  std::size_t moved = 0;
  for (const Number& number : numbers_in(lines)) {
    const Effect effect = effect_of(number);
    if (effect == Effect::either) continue;
    std::vector<double> values;
    if (number.key.find("bandwidth") != std::string::npos) {
      values = {1e-3, 1e-2, 0.1, 1, number.value, 2 * number.value, 1e2, 1e4, 1e6};
    } else if (number.key == "cores") {
      values = {1, 2, 8, 65536};
    } else if (number.key == "misses_under_way") {
      values = {1, 2, 4, 4096};
    } else if (number.key == "wakeups") {
      values = {0, 1, 2, 10, 1000};
    } else if (number.key == "header_bytes") {
      values = {0, 30, 1000, 65536};
    } else if (number.key.ends_with("per_byte")) {
      values = {0, number.value, 2 * number.value, 10, 1000};
    } else {
      values = {0, number.value, 2 * number.value, 1e6, 1e7, 1e9};
      // A wait is over at the next turn of the timer, so each of these divides the next.
      if (number.key == "rnr_timer_ns") values = {1e3, 1e5, 1e6, 1e7, 1e9};
    }
    std::sort(values.begin(), values.end());
    for (const CompletionMode mode : {CompletionMode::polling, CompletionMode::event}) {
      std::vector<Picoseconds> times;
      for (const double value : values) {
        times.push_back(time_of_everything(with(lines, number, value), mode));
        ASSERT_GT(times.back(), Picoseconds(0));
      }
      if (effect == Effect::faster) std::reverse(times.begin(), times.end());
      EXPECT_TRUE(std::is_sorted(times.begin(), times.end()))
          << "[" << number.section << "] " << number.key << ": " << testing::PrintToString([&] {
               std::vector<std::int64_t> counts;
               for (const Picoseconds time : times) counts.push_back(time.count());
               return counts;
             }());
      if (matters(number, mode)) {
        EXPECT_LT(times.front(), times.back()) << "[" << number.section << "] " << number.key;
        ++moved;
      }
    }
  }
  EXPECT_GT(moved, 50U);
}

// A larger cache misses less; larger pages do, too, and a range of any length is one entry.
TEST(ProfileEffects, TranslationsCostLessInALargerCacheAndOfLargerPages) {
  const auto lines =
      lines_of(load_profile(perdura::test::profile_path("erda-connectx3")).text + kTranslation);
  const auto time = [&](const std::string& key, double value) {
    for (const Number& number : numbers_in(lines)) {
      if (number.section != "translation" || number.key != key) continue;
      return time_of_everything(with(lines, number, value), CompletionMode::polling);
    }
    throw std::logic_error(key);
  };
  EXPECT_LT(time("cache_entries", 64), time("cache_entries", 8));
  EXPECT_LT(time("cache_ways", 8), time("cache_ways", 1))
      << "entries of one set drive each other out";
  EXPECT_LT(time("page_bytes", 65536), time("page_bytes", 4096));
  EXPECT_LT(time("page_bytes", 0), time("page_bytes", 65536));
}

TEST(ProfileEffects, TranslationsThatMakeNoSenseAreRefused) {
  const auto lines =
      lines_of(load_profile(perdura::test::profile_path("erda-connectx3")).text + kTranslation);
  for (const auto& [key, value] : {std::pair("cache_entries", 0.0),
                                   {"cache_entries", 7.0},
                                   {"cache_ways", 0.0},
                                   {"cache_ways", 3.0},
                                   {"page_bytes", 63.0},
                                   {"miss_ns", 1e12},
                                   {"misses_under_way", 0.0}}) {
    for (const Number& number : numbers_in(lines)) {
      if (number.section != "translation" || number.key != key) continue;
      EXPECT_THROW(with(lines, number, value), UsageError) << key << " = " << value;
    }
  }
}

}  // namespace
}  // namespace perdura::sim
