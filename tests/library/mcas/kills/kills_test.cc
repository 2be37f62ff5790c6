// A job of shards, their clients and their processes of active data objects, of which one after the
// other is killed, at any moment (MCAS, sections 3 and 4). Whoever is left goes on; what was
// acknowledged is kept, nothing is torn, no lock stays held, and no memory is lost.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>

#include "library/mcas/config.h"
#include "platform/shm/shm_platform.h"
#include "systems/mcas/pools.h"
#include "tests/library/mcas/kills/registers.h"
#include "tests/library/mcas/support.h"
#include "tests/support/seed.h"

namespace perdura::library_test {
namespace {

using mcas::Client;
using mcas::Pool;
using mcas::Status;

constexpr unsigned kShards = 2;
constexpr unsigned kClientsOfAShard = 2;
constexpr unsigned kClients = kShards * kClientsOfAShard;
constexpr std::size_t kValues = 12;        // keys of each client that it puts
constexpr std::size_t kRegisters = 3;      // keys of each client that it invokes
constexpr const char* kShared = "shared";  // the register of all clients of a shard

std::string value_key(unsigned client, std::size_t key) {
  return fmt::format("client {} value {}", client, key);
}
std::string register_key(unsigned client, std::size_t key) {
  return fmt::format("client {} register {}", client, key);
}

[[noreturn]] void wrong(const std::string& key, const std::string& what) {
  throw std::runtime_error(key + ": " + what);
}

// The changes of a key, which have numbers from 1 on: which one was begun last, and which one has
// been acknowledged last. All in between may have happened. Some changes erase the key.
struct Changes {
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> acknowledged{0};

  static bool erases(std::uint64_t number) { return number % 16 == 15; }
  // The key has what this change has left; 0: nothing has been put, or it was erased. `kept` is
  // what had been acknowledged before the look at it.
  void check(const std::string& key, std::uint64_t found, std::uint64_t kept) const {
    const std::uint64_t last = begun;
    if (found == 0) {
      for (std::uint64_t number = kept; number <= last; ++number) {
        if (number == 0 || erases(number)) return;
      }
      wrong(key, fmt::format("change {} was acknowledged, and the key is gone", kept));
    }
    if (found < kept) wrong(key, fmt::format("change {} was acknowledged, {} found", kept, found));
    if (found > last || erases(found)) wrong(key, fmt::format("nobody made change {}", found));
  }
};

// What clients tell, which outlives them.
struct Told {
  struct OfClient {
    std::array<Changes, kValues> values;
    std::array<Changes, kRegisters> registers;
    std::atomic<std::uint64_t> done{0};          // acknowledged operations of any kind
    std::atomic<std::uint64_t> invoked{0};       // acknowledged invocations
    std::atomic<std::uint64_t> failed{0};        // invocations
    std::atomic<std::uint64_t> disconnected{0};  // operations of any kind
  };
  struct OfShard {
    Changes shared;                 // numbers are how many invocations
    std::atomic<pid_t> process{0};  // that has answered last
  };
  std::array<OfClient, kClients> clients;
  std::array<OfShard, kShards> shards;
  std::atomic<std::uint64_t> undone{0};  // transactions
};

std::uint64_t number_in(const std::string& key, const std::string& value) {
  const std::uint64_t number = version_in(value);
  if (value != value_of(number)) wrong(key, "torn");
  return number;
}
void check_beside(const std::string& key, const std::string& value, const Changes& of_register) {
  std::uint64_t number = 0;
  if (value.size() != kBesideSize) wrong(key, "torn");
  std::memcpy(&number, value.data(), sizeof number);
  if (number > of_register.begun || number % 4 != 0) wrong(key, "nobody has stored this");
}

// --- a client ------------------------------------------------------------------------------------

class Worker {
 public:
  Worker(Told& told, unsigned number, unsigned seed, const mcas::ClientOptions& options)
      : told_(told),
        number_(number),
        mine_(told.clients[number]),
        shard_(told.shards[options.node]),
        random_(seed),
        client_(options),
        pool_(client_.create_pool("p", kPool).value()) {}

  // Throws what is wrong.
  [[noreturn]] void run() {
    for (;;) {
      switch (random_() % 8) {
        case 0:
        case 1:
          change_value(random_() % kValues);
          break;
        case 2:
          look_at_value(random_() % kValues);
          break;
        case 3:
        case 4:
          change_register(random_() % kRegisters);
          break;
        case 5:
          look_at_register(random_() % kRegisters);
          break;
        case 6:
          look_beside_register(random_() % kRegisters);
          break;
        default:
          add_to_shared();
      }
    }
  }

 private:
  // Whether it has been done. No other end of an operation is right.
  bool done(const std::string& key, Status status, bool is_invocation) {
    if (status == Status::ok || status == Status::not_found) {
      ++mine_.done;
      if (is_invocation) ++mine_.invoked;
      return true;
    }
    if (status == Status::disconnected) {
      ++mine_.disconnected;
    } else if (status == Status::failed && is_invocation) {
      ++mine_.failed;
    } else {
      wrong(key, std::string(mcas::to_string(status)));
    }
    return false;
  }

  void change_value(std::size_t at) {
    Changes& changes = mine_.values[at];
    const std::string key = value_key(number_, at);
    const std::uint64_t number = ++changes.begun;
    const Status status = Changes::erases(number) ? pool_.erase(key).status()
                                                  : pool_.put(key, value_of(number)).status();
    if (done(key, status, false)) changes.acknowledged = number;
  }
  void look_at_value(std::size_t at) {
    const Changes& changes = mine_.values[at];
    const std::string key = value_key(number_, at);
    mcas::Result<std::string> value = pool_.get(key);
    if (!done(key, value.status(), false)) return;
    changes.check(key, value.ok() ? number_in(key, value.value()) : 0, changes.acknowledged);
  }

  void change_register(std::size_t at) {
    Changes& changes = mine_.registers[at];
    const std::string key = register_key(number_, at);
    const std::uint64_t number = ++changes.begun;
    if (Changes::erases(number)) {
      if (done(key, pool_.erase(key).status(), false)) changes.acknowledged = number;
      return;
    }
    const auto answer = invoke(key, fmt::format("set {}", number), kCreate);
    if (!answer) return;
    if (*answer != number) wrong(key, fmt::format("{} after it was set to {}", *answer, number));
    changes.acknowledged = number;
  }
  void look_at_register(std::size_t at) {
    const Changes& changes = mine_.registers[at];
    const std::string key = register_key(number_, at);
    if (const auto found = invoke(key, "read", {.read_only = true})) {
      changes.check(key, *found, changes.acknowledged);
    }
  }
  // It is locked while the register's invocation runs.
  void look_beside_register(std::size_t at) {
    const std::string key = beside(register_key(number_, at));
    mcas::Result<std::string> value = pool_.get(key);
    if (done(key, value.status(), false) && value.ok()) {
      check_beside(key, value.value(), mine_.registers[at]);
    }
  }
  void add_to_shared() {
    Changes& changes = shard_.shared;
    const std::uint64_t kept = changes.acknowledged;
    ++changes.begun;
    const auto answer = invoke(kShared, "add", kCreate);
    if (!answer) return;
    if (*answer <= kept || *answer > changes.begun) {
      wrong(kShared, fmt::format("{} after {} of {} calls", *answer, kept, changes.begun));
    }
    ++changes.acknowledged;
  }

  // The number that the register has; 0: there is none. Nothing if the invocation has ended
  // otherwise.
  std::optional<std::uint64_t> invoke(const std::string& key, const std::string& request,
                                      mcas::InvokeFlags flags) {
    mcas::Result<mcas::Answers> answers = pool_.invoke(key, request, Register::kSize, flags);
    if (!done(key, answers.status(), true)) return std::nullopt;
    if (!answers.ok()) return 0;
    const std::optional<RegisterAnswer> answer = RegisterAnswer::of(answers.value().at(0));
    if (!answer) wrong(key, answers.value().at(0));
    shard_.process = answer->process;
    if (answer->undone) ++told_.undone;
    return answer->number;
  }

  static constexpr mcas::InvokeFlags kCreate{.create_on_demand = true, .zero_new_value = true};

  Told& told_;
  unsigned number_;
  Told::OfClient& mine_;
  Told::OfShard& shard_;
  std::mt19937 random_;
  Client client_;
  Pool pool_;
};

// --- what a shard has left -----------------------------------------------------------------------

// Recovers a copy of a shard's memory and looks at all that is in it. Throws what is wrong.
class Inspection {
 public:
  Inspection(const Told& told, unsigned shard, pmem::Region& region,
             const systems::mcas::Parameters& parameters)
      : told_(told), shard_(shard), pools_(region, parameters) {}

  void run() {
    if (const std::string problem = pools_.audit(); !problem.empty()) wrong("audit", problem);
    const auto pool = pools_.open("p");
    if (!pool) return;
    engine_ = (*pool)->engine.get();
    for (unsigned i = 0; i < kClientsOfAShard; ++i) {
      const unsigned client = shard_ * kClientsOfAShard + i;
      for (std::size_t at = 0; at < kValues; ++at) {
        check_value(value_key(client, at), told_.clients[client].values[at]);
      }
      for (std::size_t at = 0; at < kRegisters; ++at) {
        const Changes& changes = told_.clients[client].registers[at];
        const std::string key = register_key(client, at);
        const std::uint64_t kept = changes.acknowledged;
        changes.check(key, number_of(key), kept);
        if (const auto value = get(beside(key))) check_beside(beside(key), *value, changes);
      }
    }
    const Changes& shared = told_.shards[shard_].shared;
    const std::uint64_t kept = shared.acknowledged;
    const std::uint64_t calls = number_of(kShared);
    get(beside(kShared));
    if (calls < kept || calls > shared.begun) {
      wrong(kShared, fmt::format("{} after {} of {} calls", calls, kept, shared.begun));
    }
    const std::uint64_t items = engine_->statistics().items;
    if (items != found_) wrong("pool", fmt::format("{} items, {} found", items, found_));
  }

 private:
  std::optional<std::string> get(const std::string& key) {
    const auto range = engine_->get(std::as_bytes(std::span(key)));
    if (!range) return std::nullopt;
    ++found_;
    std::string value(range->length, '\0');
    pools_.region().read(range->offset, std::as_writable_bytes(std::span(value)));
    return value;
  }
  void check_value(const std::string& key, const Changes& changes) {
    const std::uint64_t kept = changes.acknowledged;
    const auto value = get(key);
    changes.check(key, value ? number_in(key, *value) : 0, kept);
  }
  std::uint64_t number_of(const std::string& key) {
    if (!get(key)) return 0;
    const systems::mcas::ByteRange range = *engine_->get(std::as_bytes(std::span(key)));
    if (!Register::exists(pools_.memory(), range)) return 0;
    const Register found(pools_.memory(), range);
    if (const std::string problem = found.audit(); !problem.empty()) wrong(key, problem);
    return found.number();
  }

  const Told& told_;
  unsigned shard_;
  systems::mcas::Pools pools_;
  systems::mcas::Engine* engine_ = nullptr;
  std::uint64_t found_ = 0;  // keys
};

// --- the kills -----------------------------------------------------------------------------------

enum class Role : std::uint8_t { shard, client, process };
constexpr std::array kRoles{"shards", "clients", "processes"};

class KillsOfMcas : public testing::Test {
 protected:
  KillsOfMcas() { ::setenv("PERDURA_PROGRAMS", PERDURA_TEST_PROGRAMS, 1); }

  void start_client(unsigned client) {
    const unsigned seed = random_();
    clients_[client] = Child([this, client, seed] {
      Worker(*told_.operator->(), client, seed, shards_.client(client / kClientsOfAShard)).run();
    });
  }
  // Waits until every client has got this much further, whatever it does, also by invocations.
  // False if one gets nowhere, or somebody has ended.
  bool all_go_on(std::uint64_t operations) {
    std::array<std::uint64_t, kClients> done{};
    std::array<std::uint64_t, kClients> invoked{};
    for (unsigned i = 0; i < kClients; ++i) {
      done[i] = told_->clients[i].done + operations;
      invoked[i] = told_->clients[i].invoked + 1;
    }
    bool all_run = true;
    const bool went_on = test::wait_until([&] {
      bool all = true;
      for (unsigned i = 0; i < kClients; ++i) {
        const Told::OfClient& client = told_->clients[i];
        all = all && client.done >= done[i] && client.invoked >= invoked[i];
        all_run = all_run && clients_[i].runs();
      }
      for (unsigned i = 0; i < kShards; ++i) all_run = all_run && shards_.server(i).runs();
      return all || !all_run;
    });
    EXPECT_TRUE(all_run) << "somebody has ended who was not killed";
    return went_on && all_run;
  }

  void kill_one(Role role) {
    switch (role) {
      case Role::shard: {
        const unsigned shard = random_() % kShards;
        shards_.kill(shard);
        inspect(shard);
        shards_.start(shard);
        break;
      }
      case Role::client: {
        const unsigned client = random_() % kClients;
        clients_[client].end();
        start_client(client);
        break;
      }
      case Role::process:
        kill_process(random_() % kShards);
        break;
    }
    ++kills_[static_cast<std::size_t>(role)];
  }

  void run(unsigned rounds) {
    const unsigned seed = test::random_seed();
    SCOPED_TRACE(testing::Message() << "PERDURA_TEST_SEED=" << seed);
    random_.seed(seed);
    shards_.start_all();
    for (unsigned i = 0; i < kClients; ++i) start_client(i);
    ASSERT_TRUE(all_go_on(1));
    for (unsigned round = 0; round < rounds && !HasFailure(); ++round) {
      const auto role = static_cast<Role>(random_() % kRoles.size());
      SCOPED_TRACE(testing::Message()
                   << "round " << round << ", of the " << kRoles[static_cast<std::size_t>(role)]);
      kill_one(role);
      ASSERT_TRUE(all_go_on(random_() % 40));
    }
    for (Child& client : clients_) client.end();
    for (unsigned i = 0; i < kShards; ++i) {
      shards_.kill(i);
      inspect(i);
    }
    expect_few_failures();
    for (std::size_t i = 0; i < kRoles.size(); ++i) {
      RecordProperty(kRoles[i], std::to_string(kills_[i]));
    }
    RecordProperty("undone", std::to_string(told_->undone));
  }
  unsigned kills(Role role) const { return kills_[static_cast<std::size_t>(role)]; }

  Shared<Told> told_;

 private:
  // Nobody fails or is disconnected but by a kill of what it uses, and then once.
  void expect_few_failures() {
    std::uint64_t failed = 0;
    std::uint64_t disconnected = 0;
    for (const Told::OfClient& client : told_->clients) {
      failed += client.failed;
      disconnected += client.disconnected;
    }
    EXPECT_LE(failed, kClientsOfAShard * kills(Role::process));
    EXPECT_LE(disconnected, kClientsOfAShard * kills(Role::shard));
  }

  // In a process of its own, as a platform cannot be left before its end.
  void inspect(unsigned shard) {
    Child inspection([&] {
      const mcas::ShardConfig config = mcas::Config::read(shards_.file()).shards.at(shard);
      ShmOptions options;
      options.pm_directory_of_nodes = shards_.directory();
      options.pm_access = pmem::mapped::Access::private_copy;
      ShmPlatform platform(options);
      platform.start(0, 0, CompletionMode::event, [&](Thread& thread) -> Task<> {
        const auto region = thread.node.open_region(config.name);
        Inspection(*told_.operator->(), shard, *region, systems::mcas::Parameters::of(config.store))
            .run();
        co_return;
      });
      platform.run();
    });
    EXPECT_EQ(inspection.wait(), 0) << "shard " << Shards::name(shard);
  }

  void kill_process(unsigned shard) {
    std::atomic<pid_t>& process = told_->shards[shard].process;
    // 0 until it has told its number; and 0 would be this test and those that have started it.
    EXPECT_TRUE(test::wait_until([&] {
      const pid_t number = process;
      return number > 0 && ::kill(number, SIGKILL) == 0;
    }));
  }

  // Only root can isolate the processes.
  Shards shards_{kShards,
                 fmt::format("plugins = \"{}\"\nplugin_isolation = {}", PERDURA_REGISTERS_PLUGIN,
                             ::geteuid() == 0),
                 {"engine = \"hstore\"", "engine = \"hstore-cc\""}};
  std::array<Child, kClients> clients_;
  std::mt19937 random_;
  std::array<unsigned, kRoles.size()> kills_{};
};

TEST_F(KillsOfMcas, LoseNothing) { run(60); }

TEST_F(KillsOfMcas, FiveHundredLoseNothing) {
  run(500);
  for (const Role role : {Role::shard, Role::client, Role::process}) {
    EXPECT_GE(kills(role), 100U) << kRoles[static_cast<std::size_t>(role)];
  }
  EXPECT_GT(told_->undone, 0U) << "no transaction was interrupted";
}

}  // namespace
}  // namespace perdura::library_test
