// APPEND: a WRITE at the current size of a registration of extents, which it then moves.
#include <algorithm>
#include <cstring>
#include <map>

#include "platform/base/error.h"
#include "tests/platform/conformance/conformance.h"

namespace perdura::conformance {

using fabric::Access;
using fabric::Completion;
using fabric::Extent;
using fabric::ExtentMap;
using fabric::RangeFault;
using fabric::RangeFaults;
using fabric::RemoteKey;
using fabric::Status;
using pmem::Medium;

namespace {

// Where the registration's size is in the region.
constexpr Bytes kSize = 32 * KiB;

// A registration of a server's region with appends.
struct Appendable {
  RangeFaults faults;
  ExtentMap map;

  Appendable(Side& server, std::initializer_list<Extent> extents,
             Access access = Access::remote_all)
      : map(server.thread.endpoint.register_extents(*server.region, extents, access)) {
    server.thread.endpoint.allow_appends(map, kSize, faults);
  }
};

std::vector<std::byte> joined(std::vector<std::byte> first, const std::vector<std::byte>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

TEST_P(FabricAccess, AnAppendPlacesItsDataAtTheSizeAndThenMovesIt) {
  PERDURA_NEEDS(appends);
  for (const Medium medium : {Medium::dram, Medium::pm}) {
    PairOptions options;
    options.memory = medium;
    RemoteKey key;
    connected(
        options,
        [&](Side& server) -> Task<> {
          server.region->store(kSize, 5);
          // The second append goes over both extents.
          Appendable file(server, {{0, 4096, 50}, {50, 1003, 150}});
          key = file.map.key;
          co_await server.meet();
          co_await server.meet();
          EXPECT_EQ(server.region->load(kSize), 145U);
          const auto whole =
              joined(contents(*server.region, 4096, 50), contents(*server.region, 1003, 150));
          auto expected =
              joined(std::vector<std::byte>(5), joined(pattern(30, 1), pattern(110, 2)));
          expected.resize(200);
          EXPECT_EQ(whole, expected);
          co_await server.meet();
        },
        [&](Side& client) -> Task<> {
          fabric::QueuePair& peer = *client.queue_pair;
          co_await client.meet();
          client.region->write(0, pattern(30, 1));
          const Completion first = co_await peer.append(client.local(0, 30), key);
          EXPECT_TRUE(first);
          EXPECT_EQ(first.old_value, 5U);
          client.region->write(100, pattern(110, 2));
          const fabric::LocalPieces pieces(client.local(100, 60), client.local(160, 50));
          const Completion second = co_await peer.append(pieces, key);
          EXPECT_EQ(second.old_value, 35U);
          const Completion none = co_await peer.append(client.local(0, 0), key);
          EXPECT_TRUE(none);
          EXPECT_EQ(none.old_value, 145U);
          EXPECT_TRUE(co_await peer.read(client.local(1000, 140), {key, 5}));
          EXPECT_EQ(contents(*client.region, 1000, 140), joined(pattern(30, 1), pattern(110, 2)));
          co_await client.meet();
          co_await client.meet();
        });
  }
}

TEST_P(FabricAccess, AnAppendWithoutMemoryWaitsForIt) {
  PERDURA_NEEDS(appends);
  RemoteKey key;
  connected(
      [&](Side& server) -> Task<> {
        fabric::Endpoint& endpoint = server.thread.endpoint;
        Appendable file(server, {{0, 0, 64}});
        key = file.map.key;
        co_await server.meet();
        EXPECT_EQ(co_await file.faults.next(), (RangeFault{key, 80}));
        EXPECT_EQ(server.region->load(kSize), 40U) << "an append that waits has no effect";
        // Not enough yet: it is asked for again.
        co_await endpoint.map_extent(file.map, {64, 64, 8});
        EXPECT_EQ(co_await file.faults.next(), (RangeFault{key, 80}));
        co_await endpoint.map_extent(file.map, {72, 4096, 100});
        co_await server.meet();
        EXPECT_EQ(server.region->load(kSize), 80U);
        EXPECT_EQ(contents(*server.region, 40, 32), contents(*server.region, 0, 32));
      },
      [&](Side& client) -> Task<> {
        fabric::QueuePair& peer = *client.queue_pair;
        co_await client.meet();
        client.region->write(0, joined(pattern(32), pattern(8, 1)));
        EXPECT_EQ((co_await peer.append(client.local(0, 40), key)).old_value, 0U);
        const Completion waited = co_await peer.append(client.local(0, 40), key);
        EXPECT_TRUE(waited);
        EXPECT_EQ(waited.old_value, 40U);
        // A completion does not say that the data has been placed; that of a later READ does.
        EXPECT_TRUE(co_await peer.read(client.local(8192, 8), {key, 0}));
        co_await client.meet();
      });
}

TEST_P(FabricAccess, AnAppendWithoutMemoryEndsWithItsRetries) {
  PERDURA_NEEDS(appends);
  if (!GetParam().gives_up) GTEST_SKIP() << "a sender waits for ever";
  PairOptions options;
  options.platform.receiver_not_ready_retries = 2;
  RemoteKey key;
  connected(
      options,
      [&](Side& server) -> Task<> {
        Appendable file(server, {{0, 0, 64}});
        key = file.map.key;
        co_await server.meet();
        co_await server.meet();
        EXPECT_EQ(server.region->load(kSize), 0U);
      },
      [&](Side& client) -> Task<> {
        co_await client.meet();
        EXPECT_EQ((co_await client.queue_pair->append(client.local(0, 65), key)).status,
                  Status::receiver_not_ready);
        co_await client.meet();
      });
}

TEST_P(FabricAccess, AnAppendNeedsTheRightToWriteAndARegistrationThatAllowsIt) {
  PERDURA_NEEDS(appends);
  enum class Wrong { right, not_allowed, one_range, gone, key };
  for (const Wrong wrong :
       {Wrong::right, Wrong::not_allowed, Wrong::one_range, Wrong::gone, Wrong::key}) {
    RemoteKey key;
    connected(
        [&](Side& server) -> Task<> {
          fabric::Endpoint& endpoint = server.thread.endpoint;
          const Access access = wrong == Wrong::right ? Access::remote_read : Access::remote_all;
          Appendable file(server, {{0, 0, 64}}, access);
          key = file.map.key;
          const std::array same{Extent{0, 0, 64}};
          if (wrong == Wrong::not_allowed) {
            key = endpoint.register_extents(*server.region, same, access).key;
          }
          if (wrong == Wrong::one_range) key = server.memory.key;
          if (wrong == Wrong::key) key.value += 4096;
          if (wrong == Wrong::gone) endpoint.deregister_memory(file.map);
          co_await server.meet();
          co_await server.meet();
          EXPECT_EQ(contents(*server.region, 0, kMemory), std::vector<std::byte>(kMemory));
        },
        [&](Side& client) -> Task<> {
          co_await client.meet();
          client.region->write(0, pattern(8));
          EXPECT_EQ((co_await client.queue_pair->append(client.local(0, 8), key)).status,
                    Status::remote_access_error)
              << static_cast<int>(wrong);
          co_await client.meet();
        });
  }
}

TEST_P(FabricAccess, TheWordOfASizeIsAlignedAndInTheRegion) {
  with_idle_server([](Side& client) -> Task<> {
    fabric::Endpoint& endpoint = client.thread.endpoint;
    if (!endpoint.capabilities().extents) co_return;
    const ExtentMap map = endpoint.register_extents(*client.region, {}, Access::remote_all);
    RangeFaults faults;
    const auto allows = [&](Bytes word) {
      try {
        endpoint.allow_appends(map, word, faults);
        return true;
      } catch (const PlatformError&) {
        return false;
      }
    };
    EXPECT_EQ(allows(kMemory - 8), endpoint.capabilities().appends);
    for (const Bytes word : {Bytes{4}, kMemory - 4, kMemory, kMemory + 8, ~Bytes{7}}) {
      EXPECT_FALSE(allows(word)) << word;
    }
    endpoint.deregister_memory(map);
    EXPECT_FALSE(allows(0));
  });
}

// A file system cuts a file while peers append to it: it takes the extents away, and when that has
// been done no append is under way, so that it may set the size.
TEST_P(FabricAccess, WithoutExtentsTheSizeIsTheOwners) {
  PERDURA_NEEDS(appends);
  constexpr int kCuts = 100;
  constexpr std::uint64_t kMark = 0x0123456789ABCDEF;
  RemoteKey key;
  bool cutting = true;
  connected(
      [&](Side& server) -> Task<> {
        fabric::Endpoint& endpoint = server.thread.endpoint;
        Appendable file(server, {{0, 0, 32 * KiB}});
        key = file.map.key;
        co_await server.meet();
        for (int i = 0; i < kCuts; ++i) {
          co_await endpoint.unmap_extents(file.map, 0, 32 * KiB);
          const Bytes size = server.region->load(kSize);
          EXPECT_EQ(size % 24, 0U);
          for (Bytes at = 0; at < size; at += kWord) {
            EXPECT_EQ(server.region->load(at), kMark) << at << " of " << size;
            server.region->store(at, 0);
          }
          server.region->store(kSize, 0);
          co_await sleep_for(Microseconds(3));
          EXPECT_EQ(server.region->load(kSize), 0U) << "appended to nothing";
          co_await endpoint.map_extent(file.map, {0, 0, 32 * KiB});
          while (server.region->load(kSize) == 0) co_await sleep_for(Nanoseconds(200));
        }
        // The file may be full meanwhile. An append that waits in it must end, or the client does
        // not learn that this is over.
        co_await endpoint.unmap_extents(file.map, 0, 32 * KiB);
        server.region->store(kSize, 0);
        cutting = false;
        co_await endpoint.map_extent(file.map, {0, 0, 32 * KiB});
        co_await server.meet();
      },
      [&](Side& client) -> Task<> {
        co_await client.meet();
        for (const Bytes at : {0, 8, 16}) client.region->store(at, kMark);
        while (std::atomic_ref(cutting).load()) {
          const Completion done = co_await client.queue_pair->append(client.local(0, 24), key);
          EXPECT_TRUE(done);
          EXPECT_EQ(done.old_value % 24, 0U);
          if (!done) break;
        }
        co_await client.meet();
      });
}

namespace {

constexpr std::uint32_t kAppenders = 4;
constexpr std::uint64_t kRecords = 300;
constexpr std::uint64_t kLongest = 40;  // words
constexpr Bytes kRoom = kAppenders * kRecords * kLongest * kWord;
constexpr Bytes kStep = 1000;  // no multiple of a record or of a line

// The words of a record: its length, its writer, its number, and then words that tell the same.
std::vector<std::uint64_t> record_of(std::uint64_t writer, std::uint64_t number) {
  std::vector<std::uint64_t> words(3 + (writer * 7 + number * 5) % (kLongest - 3));
  std::fill(words.begin(), words.end(), writer << 32 | number);
  words[0] = words.size();
  words[1] = writer;
  words[2] = number;
  return words;
}

// Checks that a file consists of whole records, those of each writer in their order, and returns
// how many it has.
std::uint64_t check_records(std::span<const std::uint64_t> file) {
  std::map<std::uint64_t, std::uint64_t> next;
  std::uint64_t records = 0;
  while (file.size() >= 3) {
    const std::vector<std::uint64_t> expected = record_of(file[1], next[file[1]]++);
    if (file.size() < expected.size() ||
        !std::equal(expected.begin(), expected.end(), file.begin())) {
      ADD_FAILURE() << "record " << records << " is torn or out of order";
      return records;
    }
    file = file.subspan(expected.size());
    ++records;
  }
  EXPECT_TRUE(file.empty());
  return records;
}

}  // namespace

// Whoever reads a size finds records that are whole and lie side by side, whatever is appended at
// the same time, while the file grows by small extents.
TEST_P(FabricContention, AppendsNeitherOverlapNorLeaveGaps) {
  PERDURA_NEEDS(appends);
  const auto platform = make({.node_count = 3});
  const auto barrier = platform->create_barrier(kAppenders + 1);
  RemoteKey key;
  std::uint64_t ended = 0;
  platform->start(0, 1, mode(), [&](Thread& thread) -> Task<> {
    auto region = thread.node.create_region("file", 2 * kRoom + kWord, Medium::pm);
    const ExtentMap map = thread.endpoint.register_extents(*region, {}, Access::remote_all);
    RangeFaults faults;
    thread.endpoint.allow_appends(map, 2 * kRoom, faults);
    key = map.key;
    std::vector<std::unique_ptr<fabric::QueuePair>> peers;
    for (std::uint32_t i = 0; i < kAppenders; ++i) {
      peers.push_back((co_await thread.endpoint.next_connection())->accept({}, {}));
    }
    // The file's parts lie in the region in the opposite order, so that none adjoin there.
    const auto place_of = [](Bytes at) { return 2 * kRoom - kStep - at / kStep * 1500; };
    const auto whole = [&](Bytes size) {
      std::vector<std::byte> bytes(size);
      for (Bytes at = 0; at < size; at += kStep) {
        region->read(place_of(at), std::span(bytes).subspan(at, std::min(kStep, size - at)));
      }
      std::vector<std::uint64_t> words(size / kWord);
      std::memcpy(words.data(), bytes.data(), words.size() * kWord);
      return words;
    };
    Bytes mapped = 0;
    std::uint64_t seen = 0;
    while (std::atomic_ref(ended).load() < kAppenders) {
      for (Bytes size = region->load(2 * kRoom); mapped < size + 2 * kLongest * kWord;) {
        co_await thread.endpoint.map_extent(map, {mapped, place_of(mapped), kStep});
        mapped += kStep;
      }
      const std::uint64_t records = check_records(whole(region->load(2 * kRoom)));
      EXPECT_GE(records, seen);
      seen = records;
      co_await sleep_for(Microseconds(20));
    }
    EXPECT_EQ(check_records(whole(region->load(2 * kRoom))), kAppenders * kRecords);
    co_await barrier->arrive_and_wait();
  });
  for (std::uint32_t i = 0; i < kAppenders; ++i) {
    platform->start(
        1 + i % 2, static_cast<fabric::Port>(10 + i), mode(), [&, i](Thread& thread) -> Task<> {
          auto region = thread.node.create_region("records", 64 * KiB, Medium::dram);
          const auto memory = thread.endpoint.register_memory(*region, Access::local);
          auto peer = co_await thread.endpoint.connect({0, 1}, {}, {});
          Bytes last = 0;
          for (std::uint64_t n = 0; n < kRecords; ++n) {
            const auto words = record_of(i, n);
            const auto bytes = std::as_bytes(std::span(words));
            region->write(0, bytes);
            const auto length = static_cast<std::uint32_t>(bytes.size());
            const Completion done = co_await peer.queue_pair->append(memory.local(0, length), key);
            EXPECT_TRUE(done);
            EXPECT_TRUE(n == 0 || done.old_value > last);
            last = done.old_value;
          }
          // The completion of a READ says that all of it has been placed.
          EXPECT_TRUE(co_await peer.queue_pair->read(memory.local(0, 8), {key, 0}));
          std::atomic_ref(ended).fetch_add(1);
          co_await barrier->arrive_and_wait();
        });
  }
  platform->run();
}

}  // namespace perdura::conformance
