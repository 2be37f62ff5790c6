// Each command under a limit of each kind that a host may have: it works, or it ends with one line
// that says what there is too little of, and exit code 1 or 2, and leaves nothing.
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <regex>
#include <stdexcept>

#include "tests/harness/limits/commands.h"

namespace perdura {
namespace {

namespace fs = std::filesystem;
using test::CommandRow;
using test::Home;
using test::Start;

constexpr rlim_t kMiB = rlim_t{1} << 20;

// Where a point fails, and not its run, the results say why.
const std::string kInResults = "|see verdict and reason in ";

struct Limit {
  std::string kind;  // each command is tried with one limit of each kind
  std::string name;
  std::string named_by;  // a regular expression: what the complaint must have in it
  std::function<void()> in_process = [] {};
  bool is_mute = false;             // the command has no place where it could complain
  std::function<void()> of_host{};  // changes the test's own host, until the undoing
  std::function<void()> undo{};
};

void require(bool done) {
  if (!done) throw std::runtime_error(std::strerror(errno));
}

void limit_to(__rlimit_resource resource, rlim_t most) {
  const rlimit limit{most, most};
  require(setrlimit(resource, &limit) == 0);
}

// In the new process: it becomes one of a user whose processes are counted for this test alone, and
// who may do nothing that only root may.
void become_nobody() {
  const uid_t user = static_cast<uid_t>(100'000) + static_cast<uid_t>(getppid());
  require(setgroups(0, nullptr) == 0);
  require(setresgid(user, user, user) == 0);
  require(setresuid(user, user, user) == 0);
}

void add_memory_limits(std::vector<Limit>& all) {
  const std::string why = "out of memory|annot allocate memory|ulimit -|no room";
  for (const rlim_t mib : {200, 400, 1000, 64, 320}) {
    all.push_back({"address space", fmt::format("ulimit -v, {} MiB", mib), why,
                   [mib] { limit_to(RLIMIT_AS, mib * kMiB); }});
  }
  for (const rlim_t mib : {4, 16, 64, 48, 96}) {
    all.push_back({"data", fmt::format("ulimit -d, {} MiB", mib), why,
                   [mib] { limit_to(RLIMIT_DATA, mib * kMiB); }});
  }
  // A user without a name may not mount, or not even open /dev/fuse, as the machine has it.
  all.push_back({"locked memory", "ulimit -l 0",
                 "ulimit -l|locked|/dev/fuse|belongs to another user|determine username", [] {
                   limit_to(RLIMIT_MEMLOCK, 0);
                   if (geteuid() == 0) become_nobody();
                 }});
}

void add_closed_descriptors(std::vector<Limit>& all) {
  for (unsigned closed = 1; closed < 8; ++closed) {
    std::string which;
    for (int descriptor = 0; descriptor < 3; ++descriptor) {
      if ((closed >> descriptor & 1) != 0) which += fmt::format(" {}", descriptor);
    }
    all.push_back({"closed descriptors", "closed:" + which, "",
                   [closed] {
                     for (int descriptor = 0; descriptor < 3; ++descriptor) {
                       if ((closed >> descriptor & 1) != 0) close(descriptor);
                     }
                   },
                   (closed >> STDERR_FILENO & 1) != 0});
  }
}

// A /dev in which there are the devices that each program may use, and nothing else.
void hide_devices() {
  require(mount("hidden", "/dev", "tmpfs", 0, "mode=755") == 0);
  const auto device = [](const char* name, unsigned minor) {
    require(mknod(name, S_IFCHR | 0666, makedev(1, minor)) == 0);
  };
  device("/dev/null", 3);
  device("/dev/zero", 5);
  device("/dev/urandom", 9);
  // Gnuplot writes there.
  require(symlink("/proc/self/fd/1", "/dev/stdout") == 0);
}

void add_shared_memory(std::vector<Limit>& all) {
  if (!test::has_own_host()) return;
  const std::string why = "/dev/shm|/dev/fuse";
  all.push_back({"/dev/shm", "/dev/shm missing", why, [] {}, false, hide_devices,
                 [] { umount2("/dev", MNT_DETACH); }});
  const auto other = [&](const std::string& name, unsigned long flags, const char* options) {
    all.push_back(
        {"/dev/shm", "/dev/shm " + name, why, [] {}, false,
         [flags, options] { require(mount("other", "/dev/shm", "tmpfs", flags, options) == 0); },
         [] { umount2("/dev/shm", MNT_DETACH); }});
  };
  other("read-only", MS_RDONLY, "mode=1777");
  other("too small", 0, "mode=1777,size=64k");
}

std::vector<Limit> limits() {
  std::vector<Limit> all;
  for (const rlim_t files : {4, 5, 8, 12, 20}) {
    all.push_back({"descriptors", fmt::format("ulimit -n {}", files), "open files|ulimit -n",
                   [files] { limit_to(RLIMIT_NOFILE, files); }});
  }
  for (const rlim_t bytes : {0, 512, 8192, 100'000}) {
    all.push_back({"file size", fmt::format("files of {} bytes", bytes), "File too large|ulimit -f",
                   [bytes] { limit_to(RLIMIT_FSIZE, bytes); }});
  }
  add_memory_limits(all);
  add_closed_descriptors(all);
  add_shared_memory(all);
  if (geteuid() == 0) {
    for (const rlim_t processes : {1, 2, 4}) {
      all.push_back({"processes", fmt::format("ulimit -u {}", processes),
                     "ulimit -u|Resource temporarily unavailable|/dev/fuse|belongs to another "
                     "user|determine username",
                     [processes] {
                       limit_to(RLIMIT_NPROC, processes);
                       become_nobody();
                     }});
    }
  }
  return all;
}

std::string told(const Home::Attempt& attempt) {
  return fmt::format("exit code {}, signal {}:\n{}{}", attempt.ended.code, attempt.ended.signal,
                     attempt.ended.out.substr(0, 400), attempt.ended.errors);
}

class EachLimit : public testing::TestWithParam<CommandRow> {
 protected:
  void SetUp() override {
    if (geteuid() == 0 && !may_be_run_by_others()) {
      GTEST_SKIP() << PERDURA_PROGRAM << " is in a folder that other users may not enter";
    }
    usual_ = home_.attempt(GetParam(), {});
    ASSERT_EQ(test::fault_of(GetParam(), usual_, usual_.ended.code), "") << told(usual_);
  }

  void try_limit(const Limit& limit) {
    if (limit.of_host) limit.of_host();
    const Home::Attempt attempt =
        home_.attempt(GetParam(), {.words = {}, .in_process = limit.in_process});
    if (limit.undo) limit.undo();
    ASSERT_NE(attempt.ended.code, 125) << limit.name << told(attempt);
    if (limit.is_mute && attempt.ended.code == 1) return;
    EXPECT_EQ(test::fault_of(GetParam(), attempt, usual_.ended.code), "")
        << limit.name << ": " << told(attempt);
    if (attempt.ended.code == usual_.ended.code) return;
    const std::vector<std::string> lines = test::complaints(attempt.ended.errors);
    const auto name_it = std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return std::regex_search(line, std::regex(limit.named_by + kInResults));
    });
    const bool is_named = GetParam().is_of_several
                              ? name_it > 0
                              : name_it == static_cast<std::ptrdiff_t>(lines.size());
    EXPECT_TRUE(is_named) << limit.name << " is not named: " << told(attempt);
  }

  Home home_;
  Home::Attempt usual_;

 private:
  bool may_be_run_by_others() {
    return test::run({.words = {PERDURA_PROGRAM, "--version"}, .in_process = become_nobody}).code ==
           0;
  }
};

// The number of the command decides which limit of a kind it is, so that all are tried by some.
TEST_P(EachLimit, OfItsKindIsSaidInOneLineOrDoesNotMatter) {
  const auto& rows = test::command_rows();
  const auto number = static_cast<std::size_t>(
      std::find_if(rows.begin(), rows.end(),
                   [](const CommandRow& row) { return row.name == GetParam().name; }) -
      rows.begin());
  const std::vector<Limit> all = limits();
  std::set<std::string> kinds;
  for (const Limit& limit : all) kinds.insert(limit.kind);
  for (const std::string& kind : kinds) {
    std::vector<Limit> of_kind;
    std::copy_if(all.begin(), all.end(), std::back_inserter(of_kind),
                 [&](const Limit& limit) { return limit.kind == kind; });
    try_limit(of_kind[number % of_kind.size()]);
  }
}

// The words of the arguments that name a file or a folder, each in a folder that this user may not
// enter, and each without any rights.
TEST_P(EachLimit, WhatMayNotBeReadIsNoMissingFile) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, and another user";
  const std::string& arguments = GetParam().arguments;
  const auto expect_denied = [&](const std::string& name, const std::string& changed,
                                 bool is_input) {
    const Home::Attempt attempt =
        home_.attempt(GetParam(), changed, {.words = {}, .in_process = become_nobody});
    EXPECT_EQ(test::fault_of(GetParam(), attempt, -1), "") << changed << ": " << told(attempt);
    // The user has named a wrong file; 1 would mean that something is wrong with what is in it.
    if (is_input) {
      EXPECT_EQ(attempt.ended.code, 2) << changed << ": " << told(attempt);
    }
    for (const std::string& line : test::complaints(attempt.ended.errors)) {
      EXPECT_TRUE(std::regex_search(attempt.ended.errors,
                                    std::regex("[Pp]ermission denied|belongs to another user")))
          << name << ": " << line;
    }
  };
  static const std::regex kPath("(HOME|NEW)/([a-z.]+)");
  for (std::sregex_iterator found(arguments.begin(), arguments.end(), kPath), end; found != end;
       ++found) {
    std::string changed = arguments;
    changed.replace(static_cast<std::size_t>(found->position()), found->str().size(),
                    "HOME/closed/" + found->str(2));
    expect_denied("in a closed folder", changed, found->str(1) == "HOME");
    if (found->str(1) == "NEW") continue;
    const fs::path file = home_.at(found->str(2));
    fs::permissions(file, fs::perms::none);
    expect_denied("without rights", arguments, true);
    fs::permissions(file, fs::perms::all);
  }
}

TEST_P(EachLimit, ACurrentFolderThatMayNotBeReadDoesNotMatter) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, and another user";
  const Home::Attempt attempt = home_.attempt(
      GetParam(), {.words = {}, .folder = home_.at("closed"), .in_process = become_nobody});
  EXPECT_EQ(test::fault_of(GetParam(), attempt, usual_.ended.code), "") << told(attempt);
}

INSTANTIATE_TEST_SUITE_P(OfTheHost, EachLimit, testing::ValuesIn(test::command_rows()),
                         test::name_in_test);

TEST(Commands, EachHasARow) {
  std::set<std::string> tried;
  for (const CommandRow& row : test::command_rows()) tried.insert(row.name);
  EXPECT_EQ(tried, test::known_commands());
}

}  // namespace
}  // namespace perdura
