// Erda, Table 1: the number of NVM bytes written by create, update and delete, measured.
#include "tests/services/kv/conformance/support.h"

namespace perdura::systems::test {
namespace {

struct Sizes {
  Bytes key;
  Bytes value;
};

// The systems of that paper.
std::vector<Subject> compared_by_erda() {
  std::vector<Subject> subjects = all_subjects();
  std::erase_if(subjects, [](const Subject& subject) {
    return subject.system != "erda" && subject.system != "redo-logging" &&
           subject.system != "read-after-write";
  });
  return subjects;
}

class Table1 : public KvTest {};
INSTANTIATE_TEST_SUITE_P(All, Table1, testing::ValuesIn(compared_by_erda()), subject_name);

TEST_P(Table1, IsReproducedExactly) {
  for (const Sizes size : {Sizes{8, 16}, {16, 16}, {16, 64}, {16, 1024}, {24, 100}, {32, 4096}}) {
    SCOPED_TRACE(testing::Message() << "key " << size.key << ", value " << size.value);
    SetUp();
    config_.key_size = size.key;
    config_.value_size = config_.max_value_size = size.value;
    const Bytes n = size.key + size.value;
    const bool erda = GetParam().system == "erda";
    const Bytes create = erda ? size.key + 10 + n : size.key + 12 + 2 * n;
    const Bytes update = erda ? 9 + n : 4 + 2 * n;
    const Bytes erase = erda ? size.key + 9 : size.key + 8;

    constexpr std::uint64_t kOperations = 20;
    // The server settles and counts between the phases; everybody meets at the barrier.
    const auto barrier = platform().create_barrier(2);
    std::vector<pmem::Writes> counted(8);
    std::vector<pmem::Writes> by_client(8);
    auto count_phases = [&](kv::KvPartition& partition, Node& node) -> Task<> {
      for (int phase = 0; phase < 4; ++phase) {
        co_await barrier->arrive_and_wait();
        co_await partition.settle();
        counted[phase] = node.pm_writes();
        co_await barrier->arrive_and_wait();
      }
    };
    platform().start_service(0, 0, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto partition = system().open(thread, "pool0", config_);
      thread.executor.spawn(count_phases(*partition, thread.node));
      co_await partition->serve();
    });
    platform().start(1, 10, CompletionMode::polling, [&](Thread& thread) -> Task<> {
      const auto session = co_await system().connect(thread, {0, 0}, config_);
      for (int phase = 0; phase < 4; ++phase) {
        by_client[phase] = thread.node.pm_writes();
        co_await barrier->arrive_and_wait();
        co_await barrier->arrive_and_wait();
        for (std::uint64_t i = 0; i < kOperations && phase < 3; ++i) {
          const Buffer key = key_of(i + 1, size.key);
          const Buffer value = value_of(i, phase + 1, size.value);
          const auto done =
              phase == 2 ? co_await session->erase(key) : co_await session->put(key, value);
          EXPECT_TRUE(done.has_value());
        }
      }
    });
    run();
    auto per_operation = [&](int phase) {
      pmem::Writes writes = counted[phase + 1];
      writes += by_client[phase + 1];
      writes -= counted[phase];
      writes -= by_client[phase];
      return static_cast<double>(writes.total().field_bits) / 8 / kOperations;
    };
    EXPECT_EQ(per_operation(0), create) << "create";
    EXPECT_EQ(per_operation(1), update) << "update";
    EXPECT_EQ(per_operation(2), erase) << "delete";
  }
}

}  // namespace
}  // namespace perdura::systems::test
