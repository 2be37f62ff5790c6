#include "tests/harness/limits/commands.h"
#include "tests/harness/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mount.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace perdura::test {

namespace fs = std::filesystem;

namespace {

const std::string kTiny = R"(name = "tiny"
platform = "shm"
[workload]
records = 50
operations = 200
warmup = 20
clients = 2
[matrix]
workload = ["workloadc"]
system = ["erda"]
value_size = [16, 64]
[systems.erda]
region_bytes = 1_048_576
segment_bytes = 65_536
[[figure]]
id = "a"
title = "Latency"
plot = "latency-over-value-size"
x = "value_size"
y = "latency_mean_us"
where = { operation = "all" }
)";

const std::string kHistory = R"({:process 0, :type :invoke, :f :write, :value 1}
{:process 0, :type :ok, :f :write, :value 1}
)";

const std::string kAccesses = "file 8192 a\nread 0 0 4096\nwrite 0 8192 4096\n";

std::string shards(const std::string& directory) {
  return fmt::format(
      "job = \"limits\"\n[defaults]\ndirectory = \"{}\"\nemulated = true\nmemory = 16_777_216\n"
      "[shards.left]\nnode = 0\n",
      directory);
}

std::string servers(const std::string& directory) {
  return fmt::format(
      "name = \"home\"\nsize = 1_048_576\n"
      "[servers.mds]\nrole = \"metadata\"\naddress = \"127.0.0.1:24710\"\ndirectory = \"{}/mds\"\n"
      "[servers.left]\nrole = \"store\"\naddress = \"127.0.0.1:24711\"\ndirectory = \"{}/left\"\n",
      directory, directory);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream input(line);
  std::vector<std::string> words;
  for (std::string word; input >> word;) words.push_back(word);
  return words;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

void open_to_all(const fs::path& folder) {
  constexpr auto kAll = fs::perms::all;
  fs::permissions(folder, kAll);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_symlink()) fs::permissions(entry.path(), kAll);
  }
}

void write_file(const std::string& file, const std::string& text) {
  std::ofstream output(file);
  output << text;
  if (!output.flush()) throw std::runtime_error("cannot write " + file);
}

// Lines of progress, which are for a terminal, went into the file.
bool has_progress(const fs::path& file) {
  std::ifstream input(file);
  for (std::string line; std::getline(input, line);) {
    if (line.starts_with("[1/") || line.starts_with("persistent memory: ")) return true;
  }
  return false;
}

std::string help_of(const std::string& command) {
  std::vector<std::string> words = words_of(command);
  words.insert(words.begin(), PERDURA_PROGRAM);
  words.emplace_back("--help");
  return run({.words = words}).out;
}

}  // namespace

const std::vector<CommandRow>& command_rows() {
  static const std::vector<CommandRow> kRows = {
      {"list", "list"},
      {"plan", "plan HOME/tiny.toml"},
      {"run", "run HOME/tiny.toml --out NEW/out", "out/manifest.json"},
      {"probe",
       "probe --platform sim --profile erda-connectx3 --set memory --quick --quiet --out NEW/out",
       "out/probes.csv"},
      {"report", "report HOME/results --out NEW/out", "out/index.html"},
      {"claims", "claims HOME/results"},
      {"compare", "compare HOME/results HOME/results"},
      {"doctor", "doctor"},
      {"advise", "advise --domain dmp --ddio on --receive-buffers dram --transport roce"},
      {"crash", "crash erda --points 0-1"},
      {"guarantees", "guarantees erda --built-in --out NEW/out", "out/tables.md"},
      {"history", "history HOME/history.edn"},
      {"soak", "soak erda --runs 1 --out NEW/out"},
      {"litmus", "litmus --platform shm --runs 1 reads"},
      {"mcas serve", "mcas serve HOME/shards.toml", "", Ending::by_signal},
      {"mcas check", "mcas check HOME/shards.toml"},
      {"mojim run",
       "mojim run --mode m-sync --size 64KiB --primary NEW/file --mirror NEW/copy -- "
       "/bin/dd if=/dev/zero of=NEW/file bs=4096 count=1 conv=notrunc,fsync status=none",
       "copy", Ending::by_itself, true},
      {"mojim read", "mojim read HOME/copy -- /bin/true"},
      {"mojim recover",
       "mojim recover --mode m-sync --size 64KiB --primary HOME/file --mirror HOME/copy"},
      {"fs mkfs", "fs mkfs nova NEW/pool --size 1MiB", "pool"},
      {"fs check", "fs check HOME/pool"},
      {"fs dump", "fs dump HOME/pool"},
      {"fs mount", "fs mount nova HOME/pool HOME/directory --threads 3", "", Ending::by_umount},
      {"fs serve", "fs serve orion HOME/servers.toml mds", "", Ending::by_signal},
      {"trace show", "trace show HOME/trace"},
      {"trace pack", "trace pack HOME/accesses.txt NEW/trace", "trace"},
      {"trace replay", "trace replay HOME/trace"},
      {"completion", "completion bash"},
  };
  return kRows;
}

std::string name_in_test(const testing::TestParamInfo<CommandRow>& row) {
  return replaced(row.param.name, " ", "_");
}

void PrintTo(const CommandRow& row, std::ostream* output) { *output << row.name; }

std::set<std::string> known_commands() {
  std::set<std::string> names;
  for (const std::string& name : listed_commands(help_of(""))) {
    const auto inner = listed_commands(help_of(name));
    if (inner.empty()) names.insert(name);
    for (const std::string& command : inner) names.insert(name + " " + command);
  }
  return names;
}

Home::Home() : folder_("/tmp", "limits") {
  has_own_host();
  write_file(at("tiny.toml"), kTiny);
  write_file(at("history.edn"), kHistory);
  write_file(at("accesses.txt"), kAccesses);
  for (const char* folder : {"directory", "memory", "closed"}) fs::create_directory(at(folder));
  write_file(at("shards.toml"), shards(at("memory")));
  write_file(at("servers.toml"), servers(at("servers")));
  open_to_all(folder_.path());
  fs::permissions(at("closed"), fs::perms::owner_all);
}

void Home::make_input(const std::string& arguments) {
  struct Made {
    std::string mentioned;  // by arguments that need it
    std::string name;
    std::string command;
  };
  static const std::vector<Made> kMade = {
      {"results", "results", "run HOME/tiny.toml --out HOME/results"},
      {"pool", "pool", "fs mkfs nova HOME/pool --size 1MiB"},
      {"trace", "trace", "trace pack HOME/accesses.txt HOME/trace"},
      {"servers.toml", "servers", "fs mkfs orion HOME/servers.toml"},
      {"copy", "copy",
       "mojim run --mode m-sync --size 64KiB --primary HOME/file --mirror HOME/copy -- "
       "/bin/dd if=/dev/zero of=HOME/file bs=4096 count=1 conv=notrunc,fsync status=none"}};
  for (const auto& [mentioned, name, command] : kMade) {
    if (arguments.find("HOME/" + mentioned) == std::string::npos || fs::exists(at(name))) continue;
    std::vector<std::string> words = words_of(written_out(command, ""));
    words.insert(words.begin(), PERDURA_PROGRAM);
    const Ended made = run({.words = words});
    if (made.code != 0) throw std::runtime_error(command + ": " + made.text());
    open_input();
  }
}

void Home::open_input() const {
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    if (entry.path() == at("closed")) continue;
    if (entry.is_directory()) open_to_all(entry.path());
    if (entry.is_regular_file()) fs::permissions(entry.path(), fs::perms::all);
  }
}

std::string Home::written_out(const std::string& arguments, const fs::path& fresh) const {
  return replaced(replaced(arguments, "HOME", folder_.path().string()), "NEW", fresh.string());
}

Home::Attempt Home::attempt(const CommandRow& row, const Start& how) {
  return attempt(row, row.arguments, how);
}

Home::Attempt Home::attempt(const CommandRow& row, const std::string& arguments, const Start& how) {
  make_input(arguments);
  Attempt made{at(fmt::format("new-{}", ++attempts_)), {}};
  fs::create_directory(made.fresh);
  fs::permissions(made.fresh, fs::perms::all);
  Start start = how;
  start.words = words_of(written_out(arguments, made.fresh));
  start.words.insert(start.words.begin(), PERDURA_PROGRAM);
  if (row.ending == Ending::by_signal) {
    start.serves = [](pid_t process, const std::string& out) {
      return out.find(" serves\n") != std::string::npos ||
             (out.empty() && handles_termination(process));
    };
  }
  if (row.ending == Ending::by_umount) {
    start.afterwards = [this](Ended& ended) {
      if (ended.code != 0) return;
      const Ended listed = run({.words = {"/bin/ls", at("directory")}, .beside_others = true});
      if (listed.code != 0) ended.left.push_back("it does not serve: " + listed.text());
      if (umount2(at("directory").c_str(), 0) != 0) ended.left.emplace_back("it is not mounted");
    };
  }
  made.ended = run(start);
  open_input();
  return made;
}

std::vector<std::string> complaints(const std::string& errors) {
  std::vector<std::string> found;
  std::istringstream input(errors);
  for (std::string line; std::getline(input, line);) {
    // One process of several that a command starts says what is wrong, and the command that it
    // ended.
    const bool is_of_another = line.ends_with("; see above");
    if (line.starts_with("perdura") && line.find(": note: ") == std::string::npos &&
        !is_of_another) {
      found.push_back(line);
    }
  }
  return found;
}

std::string fault_of(const CommandRow& row, const Home::Attempt& attempt, int usual_code) {
  const Ended& ended = attempt.ended;
  if (ended.signal != 0) return fmt::format("ended by signal {}", ended.signal);
  if (ended.code < 0 || ended.code > 2) return fmt::format("exit code {}", ended.code);
  if (!ended.left.empty()) return fmt::format("left: {}", fmt::join(ended.left, ", "));
  for (const auto& entry : fs::recursive_directory_iterator(attempt.fresh)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".tmp") || name.find(".new-") != std::string::npos) {
      return fmt::format("left half made: {}", entry.path().string());
    }
    if (entry.is_regular_file() && has_progress(entry.path())) {
      return fmt::format("progress was written into {}", entry.path().string());
    }
  }
  const auto said = complaints(ended.errors);
  const bool works = ended.code == usual_code && said.size() <= 1;
  if (!works && (said.empty() || (said.size() > 1 && !row.is_of_several))) {
    return fmt::format("exit code {} and {} complaints", ended.code, said.size());
  }
  if (ended.code == 0 && !row.makes.empty() && !fs::exists(attempt.fresh / row.makes)) {
    return fmt::format("exit code 0, and there is no {}", row.makes);
  }
  return "";
}

}  // namespace perdura::test
