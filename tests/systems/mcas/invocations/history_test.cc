// Histories of several clients on few keys, of which some call active data objects that change
// values in place: there is an order of all operations that explains each answer
// (services/linearizability.h).
#include <cstring>
#include <random>

#include "services/linearizability.h"
#include "tests/support/seed.h"
#include "tests/systems/mcas/invocations/support.h"

namespace perdura::systems::mcas {
namespace {

using namespace test;
using ado::Invocation;
using ado::Services;

// A key whose value is a number; nothing: it is not there.
struct OneNumber {
  using State = std::optional<std::uint64_t>;
  enum class Kind : std::uint8_t { put, get, erase, add, read, put_and_add };
  struct Operation {
    Kind kind = Kind::get;
    std::uint64_t put = 0;
    State found{};  // or nothing: it was not there
  };
  State initial() const { return std::nullopt; }
  bool changes(const Operation& operation) const {
    return operation.kind != Kind::get && operation.kind != Kind::read;
  }
  std::vector<State> after(const State& state, const Operation& operation, bool answered) const {
    State next;
    switch (operation.kind) {
      case Kind::put:
        return {operation.put};
      case Kind::erase:
        if (answered && operation.found.has_value() != state.has_value()) return {};
        return {std::nullopt};
      case Kind::add:
        next = state.value_or(0) + 1;
        break;
      case Kind::put_and_add:
        next = operation.put + 1;
        break;
      case Kind::get:
      case Kind::read:
        next = state;
        break;
    }
    if (answered && operation.found != next) return {};
    return {next};
  }
  std::vector<State> after_failure(const State& state) const { return {state}; }
};

// A number, as often as no single store changes it.
constexpr std::size_t kWords = 8;
std::string value_of(std::uint64_t number) {
  std::string value;
  for (std::size_t i = 0; i < kWords; ++i) {
    value.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return value;
}
std::uint64_t number_in(const std::string& value) {
  std::uint64_t number = 0;
  std::memcpy(&number, value.data(), std::min(value.size(), sizeof number));
  EXPECT_EQ(value, value_of(number)) << "a torn value";
  return number;
}

// "add" or "read"; answers all of the value.
Task<ado::Result> count(Services& services, const Invocation& work) {
  const Memory memory = services.memory();
  for (std::size_t i = 0; i < kWords && work.request == "add"; ++i) {
    const Bytes word = work.value.offset + i * kWord;
    const std::uint64_t number = memory.region().load(word);
    co_await yield();  // others may run in the middle of it
    memory.store_durably(word, number + 1);
  }
  std::string value(work.value.length, '\0');
  memory.region().read(work.value.offset, std::as_writable_bytes(std::span(value)));
  co_return ado::Result{{value}, {}};
}

class Histories : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Histories, testing::Values("sim", "shm"), platform_name);

TEST_P(Histories, WithCallsAreLinearizable) {
  const std::uint32_t seed = perdura::test::random_seed();
  SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
  constexpr std::size_t kKeys = 2;
  constexpr std::uint64_t kClients = 4;
  constexpr int kOperations = 200;
  using Kind = OneNumber::Kind;
  using Call = services::Call<OneNumber::Operation>;
  std::array<std::array<std::vector<Call>, kKeys>, kClients> calls;
  Cluster cluster(GetParam(), config_with(kFunction), function(count));
  cluster.serve();
  for (std::uint64_t client = 0; client < kClients; ++client) {
    cluster.connect([&, client](objects::Session& session, Thread&) -> Task<> {
      const auto pool = *co_await session.create_pool("pool", 2 * MiB, {});
      std::mt19937_64 random(seed + client);
      for (int i = 0; i < kOperations; ++i) {
        const std::size_t key_number = random() % kKeys;
        const std::string key = "key " + std::to_string(key_number);
        Call call;
        OneNumber::Operation& operation = call.operation;
        operation.kind = static_cast<Kind>(random() % 6);
        operation.put = (client + 1) << 32 | static_cast<std::uint64_t>(i) << 16;
        const std::string value = value_of(operation.put);
        call.start = Executor::current().begin();
        objects::Result<objects::Answers> answers;
        switch (operation.kind) {
          case Kind::put:
            EXPECT_FALSE(error_of(co_await pool->put(as_key(key), as_key(value), {})));
            break;
          case Kind::erase:
            if (!error_of(co_await pool->erase(as_key(key)))) operation.found = 0;
            break;
          case Kind::get: {
            const auto got = co_await pool->get(as_key(key));
            if (got) operation.found = number_in(string_of(*got));
            break;
          }
          case Kind::add:
            answers = co_await pool->invoke(as_key(key), as_key("add"), value.size(),
                                            {.create_on_demand = true, .zero_new_value = true});
            operation.found = number_in(answer_of(answers));
            break;
          case Kind::read:
            answers = co_await pool->invoke(as_key(key), as_key("read"), 0, {.read_only = true});
            if (answers) operation.found = number_in(answer_of(answers));
            break;
          case Kind::put_and_add:
            answers = co_await pool->invoke_put(as_key(key), as_key("add"), as_key(value), 0, {});
            operation.found = number_in(answer_of(answers));
            break;
        }
        call.end = Executor::current().now();
        calls[client][key_number].push_back(call);
      }
    });
  }
  cluster.platform().run();
  for (std::size_t key = 0; key < kKeys; ++key) {
    std::vector<Call> all;
    for (const auto& of_client : calls) {
      all.insert(all.end(), of_client[key].begin(), of_client[key].end());
    }
    EXPECT_GT(all.size(), 200U);
    EXPECT_TRUE(services::check_linearizability(OneNumber{}, std::span<const Call>(all)).accepted())
        << "key " << key;
  }
}

}  // namespace
}  // namespace perdura::systems::mcas
