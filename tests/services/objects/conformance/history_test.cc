// Histories of several clients on few keys, whose operations overlap: there is an order of them
// that explains each answer (services/linearizability.h).
#include "services/linearizability.h"
#include "tests/services/objects/conformance/support.h"
#include "tests/support/seed.h"

namespace perdura::objects::test {
namespace {

// A key whose value is a number, told by the number itself; 0: it is not there.
struct OneKey {
  using State = std::uint64_t;
  enum class Kind : std::uint8_t { put, put_new, get, erase };
  struct Operation {
    Kind kind = Kind::get;
    std::uint64_t number = 0;  // put, or found
    bool done = false;         // else it said `exists` or `not found`
  };
  State initial() const { return 0; }
  bool changes(const Operation& operation) const { return operation.kind != Kind::get; }
  std::vector<State> after(State state, const Operation& operation, bool answered) const {
    const bool there = state != 0;
    if (!answered) return {state};
    switch (operation.kind) {
      case Kind::put:
        return {operation.number};
      case Kind::put_new:
        if (operation.done == there) return {};
        return {operation.done ? operation.number : state};
      case Kind::erase:
        if (operation.done != there) return {};
        return {0};
      case Kind::get:
        break;
    }
    if (operation.done ? operation.number != state : there) return {};
    return {state};
  }
  std::vector<State> after_failure(State state) const { return {state}; }
};

class Histories : public ObjectsTest {};
INSTANTIATE_TEST_SUITE_P(All, Histories, testing::ValuesIn(all_subjects()), subject_name);

std::uint64_t number_in(std::string_view value) {
  std::uint64_t number = 0;
  std::memcpy(&number, value.data(), sizeof number);
  return number;
}
std::string value_with(std::uint64_t number, Bytes length) {
  std::string value = value_of(number, length);
  std::memcpy(value.data(), &number, sizeof number);
  return value;
}

TEST_P(Histories, AreLinearizable) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  constexpr std::size_t kKeys = 2;
  constexpr std::uint64_t kClients = 4;
  constexpr int kOperations = 250;
  using Call = services::Call<OneKey::Operation>;
  // By client and key, as the clients are threads of their own.
  std::array<std::array<std::vector<Call>, kKeys>, kClients> calls;
  serve();
  for (std::uint64_t client = 0; client < kClients; ++client) {
    connect([&, client](Session& session, Thread& thread) -> Task<> {
      const auto pool = *co_await session.create_pool("pool", 2 * MiB, {});
      DirectMemoryOf memory(session, thread, 64 * KiB);
      std::mt19937_64 random(seed + client);
      for (int i = 0; i < kOperations; ++i) {
        const std::size_t key_number = random() % kKeys;
        const std::string key = "key " + std::to_string(key_number);
        const std::uint64_t number = (client + 1) << 32 | static_cast<std::uint64_t>(i);
        // Values that are inlined, that travel in messages, and that do not.
        constexpr std::array<Bytes, 3> kLengths{8, 500, 10'000};
        const Bytes length = kLengths[random() % kLengths.size()];
        const std::string value = value_with(number, length);
        const PutFlags flags{.no_overwrite = random() % 2 == 0};
        Call call;
        OneKey::Operation& operation = call.operation;
        operation.kind = flags.no_overwrite ? OneKey::Kind::put_new : OneKey::Kind::put;
        operation.number = number;
        call.start = Executor::current().begin();
        switch (random() % 5) {
          case 0:
            operation.done =
                (co_await pool->put_direct(as_key(key), memory.holding(value), flags)).has_value();
            break;
          case 1:
            if (length > 2 * KiB) continue;
            operation.done = (co_await pool->put(as_key(key), as_key(value), flags)).has_value();
            break;
          case 2:
            operation.kind = OneKey::Kind::erase;
            operation.done = (co_await pool->erase(as_key(key))).has_value();
            break;
          default: {
            operation.kind = OneKey::Kind::get;
            const auto got = co_await pool->get_direct(as_key(key), memory.buffer(0, 10'000));
            operation.done = got.has_value();
            if (!got) break;
            const std::string found = memory.text(0, *got);
            operation.number = number_in(found);
            EXPECT_EQ(found, value_with(operation.number, *got)) << "a torn value";
          }
        }
        call.end = Executor::current().now();
        calls[client][key_number].push_back(call);
      }
    });
  }
  platform_->run();
  for (std::size_t key = 0; key < kKeys; ++key) {
    std::vector<Call> all;
    for (const auto& of_client : calls) {
      all.insert(all.end(), of_client[key].begin(), of_client[key].end());
    }
    EXPECT_GT(all.size(), 200U);
    EXPECT_TRUE(services::check_linearizability(OneKey{}, std::span<const Call>(all)).accepted())
        << "key " << key;
  }
}

}  // namespace
}  // namespace perdura::objects::test
