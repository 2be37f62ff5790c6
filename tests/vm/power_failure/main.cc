// One life of a machine whose power fails: a server that recovers its stores, and clients that find
// what is left, check the history of all lives so far, and go on until the power fails again.
//
//   perdura_power_failure server|clients --record FILE --pm DIRECTORY --matrix FILE [--last]
//       [--device NAME --meeting FILE]
//
// Two processes, on platform shm; with a device each, on verbs, where the server leaves in the file
// where it is to be met. The exit code is 1, after the operations that contradict each other, if
// something was lost that the guarantee matrix does not say may be.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "platform/base/error.h"
#include "platform/shm/shm_platform.h"
#include "services/kv/value.h"
#ifdef PERDURA_HAVE_VERBS
#include "platform/verbs/verbs_platform.h"
#endif
#include "tests/vm/power_failure/record.h"
#include "tests/vm/power_failure/stores.h"

namespace perdura::test {
namespace {

using history::Kind;
using kv::Error;
using kv::KvSession;

constexpr NodeId kServer = 0;
constexpr NodeId kClientNode = 1;

struct Options {
  std::string role;
  std::string record;
  std::string pm_directory;
  std::string matrix;
  std::string device{};
  std::string meeting{};
  std::vector<std::string> stores{};
  unsigned seed = 1;
  bool last = false;  // no failure to come: the clients end when all is checked
};

struct NotKept : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using KeyBytes = std::array<std::byte, 16>;

class Format final : public kv::Format {
 public:
  std::uint64_t key_number(kv::Key key) override {
    std::uint64_t number = 0;
    std::memcpy(&number, key.data(), std::min(key.size(), sizeof number));
    return number;
  }
  std::optional<std::uint64_t> version(kv::Key key, kv::Value value) override {
    return kv::check_value(value, key_number(key));
  }
};

class Life {
 public:
  Life(const Options& options, std::vector<Store> stores)
      : options_(options), stores_(std::move(stores)), record_(options.record) {
    if (stores_.size() > Record::kStores) {
      throw UsageError(
          fmt::format("{} stores; a record has places for {}", stores_.size(), Record::kStores));
    }
  }

  void run() {
    const bool server = options_.role == "server";
    const NodeId node = server ? kServer : kClientNode;
    const std::unique_ptr<Platform> platform = make_platform(node);
    if (server) record_.enter(Phase::recovering);
    for (std::size_t store = 0; store < stores_.size(); ++store) {
      const auto port = static_cast<fabric::Port>(store);
      if (server) {
        platform->start_service(node, port, CompletionMode::event,
                                [this, store](Thread& thread) { return serve(thread, store); });
      } else {
        platform->start(node, port, CompletionMode::event,
                        [this, store](Thread& thread) { return use(thread, store); });
      }
    }
    platform->run();
  }

 private:
  std::unique_ptr<Platform> make_platform(NodeId node) const {
    if (options_.device.empty()) {
      return std::make_unique<ShmPlatform>(ShmOptions{.job = "power-failure",
                                                      .node_count = 2,
                                                      .local_nodes = {node},
                                                      .pm_directory = options_.pm_directory});
    }
#ifdef PERDURA_HAVE_VERBS
    VerbsOptions verbs;
    verbs.node_count = 2;
    verbs.local_nodes = {node};
    verbs.device.name = options_.device;
    verbs.pm_directory = options_.pm_directory;
    if (node == kServer) {
      verbs.listener = std::make_shared<fabric::verbs::ControlListener>();
      const std::string unfinished = options_.meeting + ".new";
      std::ofstream(unfinished) << verbs.listener->address();
      std::filesystem::rename(unfinished, options_.meeting);
    } else {
      std::ifstream meeting;
      for (; !meeting.is_open(); meeting.open(options_.meeting)) std::this_thread::yield();
      std::getline(meeting, verbs.coordinator);
    }
    return std::make_unique<VerbsPlatform>(std::move(verbs));
#else
    throw UsageError("--device: this program was built without libibverbs");
#endif
  }

  Task<> serve(Thread& thread, std::size_t number) {
    const Store& store = stores_[number];
    const auto partition = store.system->open(thread, store.pool, store.config);
    co_await partition->serve();
  }

  Task<> use(Thread& thread, std::size_t number) {
    std::array<std::unique_ptr<KvSession>, Record::kClients> sessions;
    for (auto& session : sessions) session = co_await connect(thread, number);
    record_.begin_life(number);
    co_await find(*sessions[0], number);
    check(number);
    if (options_.last) co_return;
    if (++checked_ == stores_.size()) record_.enter(Phase::working);
    for (std::size_t client = 1; client < sessions.size(); ++client) {
      thread.executor.spawn(change(*sessions[client], number, client));
    }
    co_await change(*sessions[0], number, 0);
  }

  // As soon as the server has recovered.
  Task<std::unique_ptr<KvSession>> connect(Thread& thread, std::size_t number) const {
    const Store& store = stores_[number];
    const fabric::Address server{kServer, static_cast<fabric::Port>(number)};
    for (;;) {
      bool failed = false;
      std::unique_ptr<KvSession> session;
      try {
        session = co_await store.system->connect(thread, server, store.config);
      } catch (const PlatformError&) {
        failed = true;
      }
      if (!failed) co_return session;
      co_await sleep_for(Milliseconds(1));
    }
  }

  // Reads every key.
  Task<> find(KvSession& session, std::size_t number) {
    kv::OperationLog log = record_.log(number, 0);
    Format format;
    kv::RecordedSession recorded(session, 0, format, log);
    std::vector<std::byte> value(stores_[number].config.value_size);
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const KeyBytes key_bytes = bytes_of(key);
      const kv::Key name = std::span(key_bytes).first(stores_[number].config.key_size);
      const auto got = co_await recorded.get(name, value);
      if (!got) expect(got.error() == Error::not_found, number, "a get", got.error());
    }
  }

  void check(std::size_t number) const {
    const Store& store = stores_[number];
    const auto verdict = history::check(record_.history(number), store.promise);
    if (!verdict.accepted()) {
      throw NotKept(fmt::format("{}: {}", store.name, describe(verdict)));
    }
    const bool strict = store.promise.undone == history::Promise::Undone::nothing;
    fmt::print("{}: {} operations, nothing lost{}\n", store.name, verdict.operations,
               strict ? "" : " but what may be: the last change of a key");
  }

  Task<> change(KvSession& session, std::size_t number, std::size_t client) {
    kv::OperationLog log = record_.log(number, client);
    Format format;
    kv::RecordedSession recorded(session, static_cast<std::uint32_t>(client), format, log);
    std::mt19937_64 random(options_.seed + number * Record::kClients + client);
    std::vector<std::byte> value(stores_[number].config.value_size);
    constexpr Kind kKinds[] = {Kind::put, Kind::put, Kind::put, Kind::put,
                               Kind::put, Kind::get, Kind::get, Kind::erase};
    for (;;) {
      const std::uint64_t key = random() % kKeys;
      const KeyBytes key_bytes = bytes_of(key);
      const kv::Key name = std::span(key_bytes).first(stores_[number].config.key_size);
      switch (kKinds[random() % std::size(kKinds)]) {
        case Kind::put: {
          // Unlike those of earlier lives and of the other client.
          const std::uint64_t version = log.operations().size() * Record::kClients + client + 1;
          kv::fill_value(value, key, version);
          const auto stored = co_await recorded.put(name, value);
          if (!stored) {
            expect(stored.error() == Error::out_of_space, number, "a put", stored.error());
          }
          break;
        }
        case Kind::get: {
          const auto got = co_await recorded.get(name, value);
          if (!got) expect(got.error() == Error::not_found, number, "a get", got.error());
          break;
        }
        case Kind::erase: {
          const auto erased = co_await recorded.erase(name);
          if (!erased) {
            expect(erased.error() == Error::not_found, number, "a delete", erased.error());
          }
          break;
        }
      }
      record_.count_operation();
    }
  }

  void expect(bool expected, std::size_t number, std::string_view what, Error error) const {
    if (expected) return;
    throw NotKept(fmt::format("{}: {} fails: {}", stores_[number].name, what, to_string(error)));
  }

  static KeyBytes bytes_of(std::uint64_t key) {
    KeyBytes bytes{};
    std::memcpy(bytes.data(), &key, sizeof key);
    return bytes;
  }

  const Options& options_;
  std::vector<Store> stores_;
  Record record_;
  std::atomic<std::size_t> checked_{0};
};

int run(int argc, char** argv) {
  CLI::App app("A life of a machine whose power fails");
  Options options;
  app.add_option("role", options.role)->required()->check(CLI::IsMember({"server", "clients"}));
  app.add_option("--record", options.record)->required();
  app.add_option("--pm", options.pm_directory)->required();
  app.add_option("--matrix", options.matrix)->required();
  auto* const device = app.add_option("--device", options.device);
  app.add_option("--meeting", options.meeting)->needs(device);
  device->needs("--meeting");
  app.add_option("--stores", options.stores)->delimiter(',');
  app.add_option("--seed", options.seed);
  app.add_flag("--last", options.last);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    Life(options, make_stores(options.matrix, options.stores, false)).run();
  } catch (const UsageError& error) {
    fmt::print(stderr, "perdura_power_failure {}: {}\n", options.role, error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "perdura_power_failure {}: {}\n", options.role, error.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace perdura::test

int main(int argc, char** argv) { return perdura::test::run(argc, argv); }
