// The memory of shm: copies, flushes, files; and receive queues without a fabric around them.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "platform/base/error.h"
#include "platform/fabric/shm/receive_queue.h"
#include "platform/pmem/instructions.h"
#include "platform/pmem/mapped/pool_file.h"
#include "platform/pmem/word_copy.h"
#include "platform/shm/shm_platform.h"
#include "tests/platform/shm/process.h"

namespace perdura::shm_test {

using fabric::shm::BufferClaims;
using fabric::shm::NodeMemory;
using fabric::shm::OwnSegment;
using fabric::shm::ReceiveQueueHeader;
using fabric::shm::ReceiveQueueState;
using pmem::FlushInstruction;
using pmem::mapped::Allocation;
using pmem::mapped::create_pool_file;
using pmem::mapped::open_pool_file;

TEST(WordCopy, CopiesEveryAlignmentAndLengthAndNothingElse) {
  alignas(64) std::array<std::byte, 512> shared;
  std::array<std::byte, 300> source;
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
  for (std::size_t to = 0; to < 16; ++to) {
    for (std::size_t n = 0; n < 200; ++n) {
      const auto data = std::span(source).subspan(n % 9, n);
      for (const auto copy :
           {pmem::stream_to_shared, pmem::copy_to_shared, pmem::copy_between_shared}) {
        shared.fill(std::byte{0xEE});
        copy(&shared[to], data);
        pmem::drain();
        EXPECT_TRUE(std::equal(data.begin(), data.end(), &shared[to]));
        EXPECT_TRUE(to == 0 || shared[to - 1] == std::byte{0xEE});
        EXPECT_EQ(shared[to + n], std::byte{0xEE});
      }
      std::array<std::byte, 300> back;
      back.fill(std::byte{0xDD});
      pmem::copy_from_shared(std::span(back).first(n), &shared[to]);
      EXPECT_TRUE(std::equal(data.begin(), data.end(), back.begin()));
      EXPECT_EQ(back[n], std::byte{0xDD});
    }
  }
}

TEST(WordCopy, NeverTearsAWordThatAnotherThreadWrites) {
  constexpr std::size_t kWords = 100;
  alignas(64) std::array<std::uint64_t, kWords + 1> shared{};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (unsigned version = 0; !stop; ++version) {
      std::array<std::byte, kWords * 8> data;
      data.fill(static_cast<std::byte>(version));
      pmem::copy_to_shared(reinterpret_cast<std::byte*>(shared.data()), data);
    }
  });
  std::size_t torn_objects = 0;
  for (int n = 0; n < 20000; ++n) {
    std::array<std::uint64_t, kWords> copy;
    pmem::copy_from_shared(std::as_writable_bytes(std::span(copy)),
                           reinterpret_cast<const std::byte*>(shared.data()));
    for (const std::uint64_t word : copy) {
      EXPECT_EQ(word, (word & 0xFF) * 0x0101010101010101U);
    }
    if (copy.front() != copy.back()) ++torn_objects;
  }
  stop = true;
  writer.join();
  // Objects are torn now and then; how often depends on the machine.
  RecordProperty("torn_objects", static_cast<int>(torn_objects));
}

TEST(Flush, UsesWhatTheCpuHas) {
  alignas(64) std::array<std::byte, 256> memory{};
  EXPECT_TRUE(available(pmem::flush_instruction()));
  for (const auto instruction :
       {FlushInstruction::clflush, FlushInstruction::clflushopt, FlushInstruction::clwb}) {
    if (!available(instruction)) continue;
    memory.fill(std::byte{3});
    pmem::flush_lines_with(instruction, &memory[10], 200);
    pmem::drain();
    EXPECT_EQ(memory[100], std::byte{3});
  }
}

TEST(Flush, TakesTheEmulatedTimeForEachLine) {
  using std::chrono::steady_clock;
  alignas(64) std::array<std::byte, 1024> memory{};
  pmem::set_write_latency(Microseconds(200));
  const auto before = steady_clock::now();
  pmem::flush_lines(&memory[63], 66);  // three lines
  const auto duration = steady_clock::now() - before;
  pmem::set_write_latency(Nanoseconds(0));
  EXPECT_GE(duration, Microseconds(600));
  EXPECT_LT(duration, Milliseconds(200));
}

TEST(PoolFile, RefusesWhatCannotBe) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/pool";
  EXPECT_THROW(create_pool_file(path, 0, Allocation::now), UsageError);
  EXPECT_THROW(create_pool_file(path, 1ULL << 50, Allocation::now), UsageError);
  EXPECT_THROW(create_pool_file(path, 1ULL << 50, Allocation::on_touch), UsageError);
  EXPECT_FALSE(open_pool_file(path).has_value());
  EXPECT_THROW(create_pool_file(directory.path() + "/no/pool", 4096, Allocation::now),
               PlatformError);
  static_cast<void>(create_pool_file(path, 5000, Allocation::now));
  EXPECT_THROW(create_pool_file(path, 5000, Allocation::now), UsageError);
  EXPECT_EQ(open_pool_file(path)->mapping->size(), 5000U);
  std::ofstream(directory.path() + "/empty").close();
  EXPECT_THROW(open_pool_file(directory.path() + "/empty"), PlatformError);
  EXPECT_THROW(open_pool_file(directory.path()), PlatformError);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    ++files;
  }
  EXPECT_EQ(files, 2U);  // no temporary ones are left
}

// --- receive queues --------------------------------------------------------------------

class ReceiveQueues : public testing::Test {
 protected:
  BufferClaims sender(const ReceiveQueueState& queue, std::uint64_t owner) {
    return {segment_.at<ReceiveQueueHeader>(queue.offset()), queue.slots(), owner};
  }
  static fabric::LocalBuffer buffer(std::uint32_t length) { return {nullptr, 0, length}; }

  TemporaryDirectory directory_;
  OwnSegment segment_{directory_.path() + "/segment", 1, 0};
  NodeMemory memory_{std::make_shared<fabric::shm::NodeSegment>()};
};

TEST_F(ReceiveQueues, GiveBuffersToSendersInTheOrderPosted) {
  ReceiveQueueState queue(segment_, memory_, 3);
  BufferClaims a = sender(queue, 1);
  BufferClaims b = sender(queue, 2);
  EXPECT_FALSE(a.claim().has_value());
  std::uint32_t posted = 0;
  std::uint32_t claimed = 0;
  for (; posted < 3; ++posted) queue.post(buffer(posted), posted);
  for (int round = 0; round < 1000; ++round) {
    // One of them is idle for long times and must find its place again.
    BufferClaims& who = round % 100 == 0 ? b : a;
    const auto claim = who.claim();
    ASSERT_TRUE(claim.has_value());
    EXPECT_EQ(claim->length(), claimed++);
    const auto consumed = queue.consume(claim->ticket);
    ASSERT_TRUE(consumed.has_value());
    EXPECT_EQ(consumed->buffer.length(), claim->length());
    EXPECT_FALSE(queue.consume(claim->ticket).has_value());
    queue.post(buffer(posted), posted);
    ++posted;
  }
}

TEST_F(ReceiveQueues, RecoverBuffersOfSendersThatDiedHoldingThem) {
  ReceiveQueueState queue(segment_, memory_, 4);
  BufferClaims victim = sender(queue, 1);
  BufferClaims other = sender(queue, 2);
  for (std::uint64_t id = 0; id < 4; ++id) queue.post(buffer(64), id);
  const auto lost = victim.claim();
  ASSERT_TRUE(lost.has_value());
  // The others go round the ring many times; the lost buffer's slot is used by others meanwhile.
  for (int i = 0; i < 50; ++i) {
    const auto claim = other.claim();
    ASSERT_TRUE(claim.has_value());
    const auto consumed = queue.consume(claim->ticket);
    EXPECT_NE(consumed->id, 0U);
    queue.post(consumed->buffer, consumed->id);
  }
  const auto lost_again = victim.claim();
  ASSERT_TRUE(lost_again.has_value());
  queue.recover(1);
  EXPECT_FALSE(queue.consume(lost->ticket).has_value());
  std::vector<bool> seen(4);
  for (int i = 0; i < 4; ++i) {
    const auto claim = other.claim();
    ASSERT_TRUE(claim.has_value()) << i;
    seen[queue.consume(claim->ticket)->id] = true;
  }
  EXPECT_EQ(seen, std::vector<bool>(4, true));
}

// A queue may outlive the memory of its buffers, if only by a moment.
TEST_F(ReceiveQueues, RecoverBuffersWhoseRegionIsGone) {
  ReceiveQueueState queue(segment_, memory_, 2);
  alignas(64) std::array<std::byte, 128> bytes;
  memory_.add(bytes.data(), "/nowhere", pmem::Medium::dram);
  auto region = std::make_unique<pmem::Region>("gone", pmem::Medium::dram, bytes.data(),
                                               bytes.size(), nullptr, nullptr);
  queue.post(fabric::LocalBuffer{region.get(), 64, 32}, 7);
  BufferClaims victim = sender(queue, 1);
  const auto before = victim.claim();
  ASSERT_TRUE(before.has_value());
  EXPECT_TRUE(memory_.is_valid(before->pieces[0].key));
  memory_.remove(bytes.data());
  region.reset();
  queue.recover(1);
  const auto after = sender(queue, 2).claim();
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->pieces[0].key, before->pieces[0].key);
  EXPECT_EQ(after->pieces[0].offset, 64U);
  EXPECT_FALSE(memory_.is_valid(after->pieces[0].key));
  EXPECT_EQ(queue.consume(after->ticket)->id, 7U);
}

TEST_F(ReceiveQueues, GiveEachBufferToOneOfManySenders) {
  constexpr int kSenders = 3;
  constexpr std::uint64_t kMessages = 20000;
  ReceiveQueueState queue(segment_, memory_, 8);
  for (std::uint64_t id = 0; id < 8; ++id) queue.post(buffer(1), id);
  std::array<std::atomic<std::uint64_t>, kSenders> reported{};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kSenders; ++i) {
    threads.emplace_back([&, i] {
      BufferClaims claims = sender(queue, static_cast<std::uint64_t>(i) + 1);
      while (!stop) {
        if (reported[static_cast<std::size_t>(i)] != 0) continue;
        if (const auto claim = claims.claim()) {
          reported[static_cast<std::size_t>(i)] = claim->ticket;
        }
      }
    });
  }
  std::vector<int> tickets(kMessages + 100);
  std::uint64_t claimed = 0;
  for (std::uint64_t received = 0; received < kMessages;) {
    for (auto& report : reported) {
      const std::uint64_t ticket = report.exchange(0);
      if (ticket == 0) continue;
      ++received;
      ++claimed;
      if (ticket < tickets.size()) ++tickets[ticket];
      const auto consumed = queue.consume(ticket);
      EXPECT_TRUE(consumed.has_value());
      if (consumed) queue.post(consumed->buffer, consumed->id);
    }
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  for (auto& report : reported) {  // of senders that were not looked at again, however long ago
    if (report == 0) continue;
    ++claimed;
    ++tickets.at(report);
  }
  for (std::uint64_t t = 1; t <= claimed; ++t) EXPECT_EQ(tickets[t], 1) << t;
}

// What a WRITE of these pieces of local memory writes to persistent memory, from a byte on, and
// how it is counted.
struct Gathered {
  std::vector<std::byte> contents;
  pmem::WriteCounts counts;
};
Gathered gather(pmem::WriteMeter::Level level, Bytes to, std::array<Bytes, 3> lengths) {
  ShmOptions options;
  options.node_count = 2;
  options.accounting = level;
  ShmPlatform platform(options);
  const auto registered = platform.create_barrier(2);
  const auto written = platform.create_barrier(2);
  Gathered result;
  result.contents.resize(1024);
  fabric::RemoteKey key;
  platform.start(0, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("to", 1024, pmem::Medium::pm);
    key = thread.endpoint.register_memory(*region, fabric::Access::remote_write).key;
    co_await registered->arrive_and_wait();
    const auto peer = (co_await thread.endpoint.next_connection())->accept({}, {});
    co_await written->arrive_and_wait();
    region->read(0, result.contents);
  });
  platform.start(1, 1, CompletionMode::event, [&](Thread& thread) -> Task<> {
    const auto region = thread.node.create_region("from", 2048, pmem::Medium::dram);
    std::vector<std::byte> bytes(2048);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
    region->write(0, bytes);
    const auto memory = thread.endpoint.register_memory(*region, fabric::Access::local);
    co_await registered->arrive_and_wait();
    const auto made = co_await thread.endpoint.connect({0, 1}, {}, {});
    const auto piece = [&](std::size_t i) {
      return memory.local(i * 512 + i, static_cast<std::uint32_t>(lengths[i]));
    };
    EXPECT_TRUE(co_await made.queue_pair->write({piece(0), piece(1), piece(2)}, {key, to}));
    result.counts = pmem::thread_write_meter().writes().one_sided;
    co_await written->arrive_and_wait();
  });
  platform.run();
  return result;
}

// Without comparison pieces are copied to their place one by one, else they are put together first.
TEST(Gathering, PutsPiecesBehindEachOtherHoweverWritesAreCounted) {
  for (const Bytes to : {0, 3, 64}) {
    for (const auto& lengths : {std::array<Bytes, 3>{64, 400, 0}, {7, 130, 65}, {1, 1, 1}}) {
      SCOPED_TRACE(std::to_string(to) + " " + std::to_string(lengths[0]));
      std::vector<std::byte> expected(1024);
      auto next = expected.begin() + static_cast<std::ptrdiff_t>(to);
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        for (Bytes n = 0; n < lengths[i]; ++n) {
          *next++ = static_cast<std::byte>((i * 512 + i + n) % 251);
        }
      }
      const Gathered issued = gather(pmem::WriteMeter::Level::issued, to, lengths);
      const Gathered compared = gather(pmem::WriteMeter::Level::compared, to, lengths);
      EXPECT_EQ(issued.contents, expected);
      EXPECT_EQ(compared.contents, expected);
      EXPECT_EQ(issued.counts.stores, compared.counts.stores);
      EXPECT_EQ(issued.counts.bytes_issued, compared.counts.bytes_issued);
      EXPECT_EQ(issued.counts.lines, compared.counts.lines);
    }
  }
}

}  // namespace perdura::shm_test
