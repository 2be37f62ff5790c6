// novad's server and its clients as real processes, killed by SIGKILL at random moments. A writer
// changes a file and its name, and a reader READs the file by its filekey. Whatever had returned is
// there afterwards, in place whatever had been synced; no read is torn; and nothing is damaged or
// stays in use.
//
//   PERDURA_NOVAD_KILLS=500 build/.../perdura_novad_test --gtest_filter='KillOfNovad*Hundreds*'
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <random>

#include "platform/base/error.h"
#include "tests/support/kill_loop.h"
#include "tests/support/wait_until.h"
#include "tests/systems/novad/support.h"

namespace perdura::systems::novad::test {
namespace {

using fs::Attributes;
using fs::kRootInode;
using perdura::test::Processes;
using perdura::test::SharedMemory;
using perdura::test::StepsBeforeKill;
using perdura::test::wait_until;

constexpr StepsBeforeKill kSteps{5, 60};
constexpr std::uint64_t kReadsBetween = 20;
constexpr std::uint64_t kKills = 6;
constexpr std::uint64_t kHundreds = 300;
constexpr NodeId kWriter = 1;
constexpr NodeId kReader = 2;

// A file consists of slots, which end within blocks, and a slot of words, each of which says the
// version of the slot that wrote it.
constexpr std::size_t kSlots = 4;
constexpr std::size_t kWords = 5001;
constexpr Bytes kSlotBytes = kWords * sizeof(std::uint64_t);
using Words = std::vector<std::uint64_t>;

Words words_of(std::uint64_t version) {
  Words words(kWords);
  for (std::size_t i = 0; i < kWords; ++i) words[i] = version << 16 | i;
  return words;
}
std::span<const std::byte> bytes_of_words(const Words& words) {
  return std::as_bytes(std::span(words));
}

// Each mount of the writer has a file of its own: what a killed one had under way may still change
// that file for a while, but no other.
struct FileRecord {
  struct Slot {
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> done{0};  // the last one that the file system promises to keep
  };
  std::array<Slot, kSlots> slots{};
  std::atomic<std::uint64_t> renames{0};  // those that have returned
};

// The processes tell each other of their progress here; the memory outlives each of them.
struct Shared {
  static constexpr std::uint64_t kFiles = 1 << 12;
  std::array<FileRecord, kFiles> files{};
  std::atomic<std::uint64_t> names{0};  // files that have been begun
  std::atomic<std::uint64_t> file{0};   // the newest that is complete
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> by_filekey{0};  // reads that were READs
  std::atomic<bool> is_audited{false};
  std::atomic<std::uint64_t> wrong{0};
  std::array<char, 200> why{};  // the first that was wrong

  void note(const std::string& text) {
    if (++wrong == 1) text.copy(why.data(), why.size() - 1);
  }
};

std::string name_of_file(std::uint64_t file, std::uint64_t renames) {
  return fmt::format("{}-{}", file, renames);
}

bool is_gone(std::errc error) { return error == std::errc::not_connected; }

struct KillCase {
  Processes::Over over;
  bool in_place;
};

// --- the processes

class Cluster {
 public:
  explicit Cluster(const KillCase& each)
      : shared_(new (memory_.bytes().data()) Shared),
        in_place_(each.in_place),
        processes_("novad-kill", each.over),
        config_{.size = 16 * MiB,
                .threads = 4,
                .parameters = {{"writes", std::string(each.in_place ? "in-place" : "atomic")}},
                .servers = {{kServer, fs::FsRole::metadata, 0}}} {}

  Shared& shared() { return *shared_; }
  Processes& processes() { return processes_; }

  pid_t start_server() {
    return processes_.start(kServer, [this](Thread& thread) { return serve(thread); });
  }
  pid_t start_writer() {
    return processes_.start(kWriter, [this](Thread& thread) { return write(thread); });
  }
  pid_t start_reader() {
    return processes_.start(kReader, [this](Thread& thread) { return read(thread); });
  }

  bool progress(std::uint64_t writes, std::uint64_t reads) {
    const std::uint64_t write_goal = shared_->writes + writes;
    const std::uint64_t read_goal = shared_->reads + reads;
    return wait_until([&] { return shared_->writes >= write_goal && shared_->reads >= read_goal; });
  }

  // When the clients are gone: all that they held is released, and what is stored is consistent.
  void expect_order(pid_t server) {
    const pid_t auditor =
        processes_.start(kWriter, [this](Thread& thread) { return audit(thread); });
    EXPECT_TRUE(wait_until([&] { return shared_->is_audited.load(); }))
        << "inodes of clients that were killed stay in use";
    processes_.kill_process(auditor);
    processes_.kill_process(server);
    shared_->is_audited = false;
    const pid_t inspector =
        processes_.start(kServer, [this](Thread& thread) { return inspect(thread); });
    EXPECT_TRUE(wait_until([&] { return shared_->is_audited.load(); }));
    processes_.kill_process(inspector);
    EXPECT_EQ(shared_->wrong, 0U) << shared_->why.data();
  }

 private:
  Task<> serve(Thread& thread) {
    try {
      co_await kNovad.make(thread, "home", config_);
    } catch (const UsageError&) {
      // It exists, and the kills begin when it does.
    }
    const auto server = co_await kNovad.cluster->open(thread, "home", config_);
    const std::string contradiction = co_await server->audit();
    if (!contradiction.empty()) shared_->note(contradiction);
    if (!server->damage().empty()) shared_->note(server->damage());
    co_await server->serve(thread);
  }

  Task<std::shared_ptr<fs::FileSystem>> mount(Thread& thread) {
    for (;;) {
      try {
        co_return co_await kNovad.mount(thread, "home", config_);
      } catch (const PlatformError&) {
      }
      co_await sleep_for(Microseconds(200));
    }
  }

  Task<> write(Thread& thread) {
    for (;;) {
      const auto files = co_await mount(thread);
      const auto session = files->attach(thread);
      co_await check_last_file(*session);
      const std::optional<fs::InodeNumber> file = co_await new_file(*session);
      if (file) co_await change(*session, *file);
    }
  }

  // Notes an error that nothing explains.
  template <class T>
  bool is_done(const fs::Result<T>& result, const char* what) {
    if (result) return true;
    if (!is_gone(result.error())) {
      shared_->note(fmt::format("{}: {}", what, std::make_error_code(result.error()).message()));
    }
    return false;
  }

  // A file that is complete from its first name on; nothing if the server is gone.
  Task<std::optional<fs::InodeNumber>> new_file(fs::Session& session) {
    const std::uint64_t number = ++shared_->names;
    FileRecord& record = shared_->files.at(number);
    const auto made = co_await session.create_unnamed({.mode = S_IFREG | 0600}, {});
    if (!is_done(made, "create")) co_return std::nullopt;
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      record.slots.at(slot).begun = 1;
      const Words words = words_of(1);
      const auto written =
          co_await session.write(made->inode, slot * kSlotBytes, bytes_of_words(words), {});
      if (!is_done(written, "write")) co_return std::nullopt;
    }
    const auto synced = co_await session.sync(made->inode);
    if (!is_done(synced, "sync")) co_return std::nullopt;
    for (FileRecord::Slot& slot : record.slots) slot.done = 1;
    const auto linked = co_await session.link(made->inode, kRootInode, name_of_file(number, 0), {});
    if (!is_done(linked, "link")) co_return std::nullopt;
    // It has no name, and is held until the client is gone.
    const auto unnamed = co_await session.create_unnamed({.mode = S_IFREG | 0600}, {});
    if (!is_done(unnamed, "create")) co_return std::nullopt;
    shared_->file = number;
    co_return made->inode;
  }

  // Writes and renames the newest file until the server is gone.
  Task<> change(fs::Session& session, fs::InodeNumber file) {
    const std::uint64_t number = shared_->file;
    FileRecord& record = shared_->files.at(number);
    std::array<std::uint64_t, kSlots> returned{};
    for (std::size_t i = 0;; ++i) {
      const std::size_t slot = i % kSlots;
      const std::uint64_t version = ++record.slots.at(slot).begun;
      const Words words = words_of(version);
      const auto written =
          co_await session.write(file, slot * kSlotBytes, bytes_of_words(words), {});
      if (!is_done(written, "write")) co_return;
      returned.at(slot) = version;
      if (in_place_ && i % 3 == 0) {
        const auto synced = co_await session.sync(file);
        if (!is_done(synced, "sync")) co_return;
      }
      if (!in_place_ || i % 3 == 0) {
        for (std::size_t each = 0; each < kSlots; ++each) {
          if (returned.at(each) > 0) record.slots.at(each).done = returned.at(each);
        }
      }
      if (i % 5 == 0) {
        const auto renamed = co_await session.rename(
            kRootInode, name_of_file(number, record.renames), kRootInode,
            name_of_file(number, record.renames + 1), fs::RenameMode::replace, {});
        if (!is_done(renamed, "rename")) co_return;
        ++record.renames;
      }
      ++shared_->writes;
    }
  }

  // The file of the last mount, by the name that it had or the one that it was being given. It is
  // read by requests first, then by its filekey.
  Task<> check_last_file(fs::Session& session) {
    const std::uint64_t number = shared_->file;
    if (number == 0) co_return;
    const auto found = co_await find(session, number);
    if (!is_done(found, "the file is not there")) co_return;
    for (const bool is_held : {false, true}) {
      if (is_held) {
        const auto held = co_await session.hold(found->inode);
        if (!is_done(held, "hold")) co_return;
      }
      for (std::size_t slot = 0; slot < kSlots; ++slot) {
        co_await check_slot(session, found->inode, number, slot);
      }
    }
    co_await session.release(found->inode, 1);
    for (std::uint64_t each = number; each <= shared_->names; ++each) {
      const std::uint64_t renames = shared_->files.at(each).renames;
      co_await session.unlink(kRootInode, name_of_file(each, renames), {});
      co_await session.unlink(kRootInode, name_of_file(each, renames + 1), {});
    }
  }

  // It has one of two names, and which may change between the look-ups.
  Task<fs::Result<Attributes>> find(fs::Session& session, std::uint64_t number) {
    const std::uint64_t renames = shared_->files.at(number).renames;
    auto found = co_await session.look_up(kRootInode, name_of_file(number, renames));
    if (!found && !is_gone(found.error())) {
      found = co_await session.look_up(kRootInode, name_of_file(number, renames + 1));
    }
    co_return found;
  }

  // Returns false if the server is gone.
  Task<bool> check_slot(fs::Session& session, fs::InodeNumber file, std::uint64_t number,
                        std::size_t slot) {
    const FileRecord::Slot& record = shared_->files.at(number).slots.at(slot);
    Words words(kWords);
    const std::uint64_t least = record.done;
    const auto read =
        co_await session.read(file, slot * kSlotBytes, std::as_writable_bytes(std::span(words)));
    if (!is_done(read, "read")) co_return false;
    const std::uint64_t most = record.begun;
    if (*read != kSlotBytes) shared_->note(fmt::format("a read of {} bytes", *read));
    for (std::size_t i = 0; i < kWords; ++i) {
      const std::uint64_t version = words[i] >> 16;
      const bool is_torn = !in_place_ && version != words[0] >> 16;
      if ((words[i] & 0xffff) == i && version >= least && version <= most && !is_torn) continue;
      shared_->note(fmt::format("file {} slot {} word {}: {} of {}, after {} to {}", number, slot,
                                i, version, words[0] >> 16, least, most));
      break;
    }
    co_return true;
  }

  Task<> read(Thread& thread) {
    for (;;) {
      const auto files = co_await mount(thread);
      const auto session = files->attach(thread);
      bool is_connected = true;
      while (is_connected) is_connected = co_await read_newest(*session);
    }
  }

  // Reads the newest file several times while it is held, whether it has a name or not.
  Task<bool> read_newest(fs::Session& session) {
    const std::uint64_t number = shared_->file;
    if (number == 0) {
      co_await sleep_for(Microseconds(50));
      co_return true;
    }
    const auto found = co_await find(session, number);
    // It may have been renamed often meanwhile, or removed.
    if (!found) co_return !is_gone(found.error());
    const auto held = co_await session.hold(found->inode);
    if (!held) co_return !is_gone(held.error());
    const auto attributes = co_await session.attributes(found->inode);
    if (!is_done(attributes, "attributes")) co_return false;
    const auto reads = static_cast<std::uint64_t>(SessionCounts(session).reads);
    bool is_connected = true;
    for (std::size_t i = 0; i < 3 * kSlots && is_connected; ++i) {
      if (attributes->generation != found->generation) break;
      is_connected = co_await check_slot(session, found->inode, number, i % kSlots);
      ++shared_->reads;
    }
    shared_->by_filekey += static_cast<std::uint64_t>(SessionCounts(session).reads) - reads;
    co_await session.release(found->inode, 1);
    co_return is_connected;
  }

  Task<> audit(Thread& thread) {
    const auto files = co_await mount(thread);
    const auto session = files->attach(thread);
    for (;;) {
      const auto entries = co_await session->entries(kRootInode, 0, 1000);
      if (!is_done(entries, "entries")) co_return;
      for (const fs::DirectoryEntry& entry : *entries) {
        co_await session->unlink(kRootInode, entry.name, {});
      }
      const auto statistics = co_await session->statistics();
      if (!is_done(statistics, "statistics")) co_return;
      if (statistics->free_inodes + 1 == statistics->inodes) break;
      co_await sleep_for(Microseconds(500));
    }
    shared_->is_audited = true;
    for (;;) co_await sleep_for(Milliseconds(1));
  }

  Task<> inspect(Thread& thread) {
    for (const fs::Damage& each : co_await kNovad.inspect(thread, "home", false)) {
      shared_->note(each.where + ": " + each.what);
    }
    shared_->is_audited = true;
    for (;;) co_await sleep_for(Milliseconds(1));
  }

  SharedMemory memory_{sizeof(Shared)};
  Shared* shared_;
  const bool in_place_;
  Processes processes_;
  const fs::FsConfig config_;
};

// --- the tests

std::string name_of_case(const testing::TestParamInfo<KillCase>& info) {
  return std::string(info.param.over == Processes::Over::sockets ? "sockets" : "shm") +
         (info.param.in_place ? "_in_place" : "_atomic");
}

class KillOfNovad : public testing::TestWithParam<KillCase> {
 protected:
  using Start = pid_t (Cluster::*)();
  static constexpr std::array<Start, 3> kAll{&Cluster::start_server, &Cluster::start_writer,
                                             &Cluster::start_reader};

  // In each round one of the processes is killed and started again, each of them as often as the
  // others.
  void kill_in_rounds(std::uint64_t rounds) {
    const std::uint32_t seed = perdura::test::random_seed();
    SCOPED_TRACE(fmt::format("PERDURA_TEST_SEED={}", seed));
    std::mt19937 random(seed);
    Cluster cluster(GetParam());
    std::array<pid_t, kAll.size()> running{};
    for (std::size_t i = 0; i < kAll.size(); ++i) running.at(i) = (cluster.*kAll.at(i))();
    std::array<std::size_t, kAll.size()> order{0, 1, 2};
    for (std::uint64_t round = 0; round < rounds; ++round) {
      if (round % kAll.size() == 0) std::shuffle(order.begin(), order.end(), random);
      const std::size_t victim = order.at(round % kAll.size());
      const std::uint64_t steps = kSteps.least + random() % (kSteps.below - kSteps.least);
      ASSERT_TRUE(cluster.progress(steps, kReadsBetween))
          << "before kill " << round + 1 << "; " << cluster.shared().why.data();
      ASSERT_EQ(cluster.shared().wrong, 0U) << cluster.shared().why.data();
      cluster.processes().kill_process(running.at(victim));
      running.at(victim) = (cluster.*kAll.at(victim))();
    }
    ASSERT_TRUE(cluster.progress(kSteps.least, kReadsBetween)) << cluster.shared().why.data();
    EXPECT_GT(cluster.shared().by_filekey, rounds) << "the reader has asked the server";
    for (const std::size_t client : {1, 2}) cluster.processes().kill_process(running.at(client));
    cluster.expect_order(running[0]);
  }
};

INSTANTIATE_TEST_SUITE_P(All, KillOfNovad,
                         testing::Values(KillCase{Processes::Over::shared_memory, false},
                                         KillCase{Processes::Over::shared_memory, true},
                                         KillCase{Processes::Over::sockets, false},
                                         KillCase{Processes::Over::sockets, true}),
                         name_of_case);

TEST_P(KillOfNovad, LosesNothingThatHasReturned) { kill_in_rounds(kKills); }

TEST_P(KillOfNovad, LosesNothingInHundreds) {
  const char* const given = std::getenv("PERDURA_NOVAD_KILLS");
  kill_in_rounds(given == nullptr ? kHundreds : std::strtoull(given, nullptr, 10));
}

}  // namespace
}  // namespace perdura::systems::novad::test
