#include "tests/mount/writer.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <stdexcept>

#include "tests/services/fs/posix/difference.h"

namespace perdura::fs::test {
namespace {

using Kind = Operation::Kind;

constexpr std::uint64_t kBetweenLooks = 20;  // at the paths that there are
// From so many names on they become fewer, or the tree would grow without bounds.
constexpr std::size_t kMostNames = 200;

constexpr std::size_t kPage = 4096;

bool removes(const Operation& operation) {
  return operation.kind == Kind::unlink || operation.kind == Kind::rmdir;
}

}  // namespace

// --- WriterCalls

WriterCalls::WriterCalls(std::uint32_t seed)
    : seed_(seed),
      options_(options_of_kernel()),
      may_be_drawn_{.allocation = true,
                    .zero_range = true,
                    .others_remove_lists = true,
                    .owner_of_nothing = false,
                    .largest = 1LL << 30,
                    .never_with_sticky = never_with_sticky()} {}

void WriterCalls::begin_life(std::uint64_t number) {
  if (process_) process_->exit();
  process_.emplace(*session_, options_);
  std::seed_seq seeds{seed_, static_cast<std::uint32_t>(number)};
  random_.seed(seeds);
  drawn_calls_ = 0;
}

Operation WriterCalls::draw() {
  if (drawn_calls_++ % kBetweenLooks == 0) {
    known_.paths.clear();
    for (const auto& [path, seen] : process_->picture()) known_.paths.push_back(path);
  }
  if (process_->is_lost()) return {.kind = Kind::chdir, .path = "/"};
  known_.slots = process_->open_slots();
  Operation drawn;
  do {
    drawn = test::draw(random_, may_be_drawn_, known_);
  } while (known_.paths.size() >= kMostNames && !removes(drawn));
  return drawn;
}

std::vector<Operation> WriterCalls::parts_of(const Operation& call) {
  if (call.data.empty() || (call.kind != Kind::write && call.kind != Kind::pwrite)) return {call};
  auto at = static_cast<std::uint64_t>(call.offset);
  if (call.kind == Kind::write) {
    at = process_->apply({.kind = Kind::lseek, .slot = call.slot, .flags = SEEK_CUR}).value;
  }
  if (appends_[call.slot]) at = process_->apply({.kind = Kind::fstat, .slot = call.slot}).value;
  std::vector<Operation> parts;
  for (std::size_t begin = 0; begin < call.data.size();) {
    Operation& part = parts.emplace_back(call);
    part.data = call.data.substr(begin, kPage - (at + begin) % kPage);
    part.offset += static_cast<std::int64_t>(begin);
    begin += part.data.size();
  }
  return parts;
}

Outcome WriterCalls::make(const Operation& call) {
  const Outcome outcome = process_->apply(call);
  if (outcome.error != 0) return outcome;
  if (call.kind == Kind::open) appends_[call.slot] = (call.flags & O_APPEND) != 0;
  if (call.kind == Kind::dup) appends_[(call.slot + 1) % kSlots] = appends_[call.slot];
  return outcome;
}

// --- Writer

Writer::Writer(const std::string& directory, WriterRecord& record, std::uint32_t seed)
    : record_(record), calls_(seed), kernel_(directory) {}

std::string Writer::difference() {
  const Picture expected = calls_.model().picture();
  std::string text = compare_pictures(kernel_.picture(), expected);
  if (text.empty()) text = compare_data(kernel_, calls_.model(), expected);
  if (text.empty()) text = compare_attributes(kernel_, calls_.model(), expected);
  return text;
}

std::string Writer::check() {
  const std::uint64_t lives = record_.lives;
  if (lives == 0) calls_.begin_life(0);
  for (std::uint64_t number = 0; number < lives; ++number) {
    WriterRecord::Life& life = record_.life.at(number);
    calls_.begin_life(number);
    for (std::uint64_t call = 0; call < life.returned; ++call) calls_.make(calls_.draw());
    if (life.begun == life.returned) continue;
    const Operation last = calls_.draw();
    const std::vector<Operation> parts = calls_.parts_of(last);
    for (std::size_t part = 0; part + 1 < life.found; ++part) calls_.make(parts.at(part));
    if (life.found > 0) continue;
    if (number + 1 != lives) throw std::logic_error("a life went on without a check");
    const std::string without = difference();
    std::string text = without;
    std::size_t made = 0;
    for (; !text.empty() && made < parts.size(); ++made) {
      calls_.make(parts[made]);
      text = difference();
    }
    if (!text.empty()) {
      return fmt::format("life {}, {} calls returned: {}; with the next call ({}): {}", number,
                         life.returned.load(), without, text_of(last), text);
    }
    life.found = 1 + made;
    return "";
  }
  const std::string text = difference();
  return text.empty() ? "" : fmt::format("{} lives, all calls returned: {}", lives, text);
}

std::uint64_t Writer::calls() const {
  std::uint64_t sum = 0;
  for (std::uint64_t number = 0; number < record_.lives; ++number) {
    sum += record_.life.at(number).returned;
  }
  return sum;
}

// Asks for what the kernel never remembers.
bool Writer::is_gone() {
  const Outcome outcome =
      kernel_.apply({.kind = Kind::getxattr, .path = "/", .other = "user.none"});
  return outcome.error == ENOTCONN || outcome.error == ECONNABORTED;
}

std::string Writer::write(const std::function<void()>& returned) {
  const std::uint64_t number = record_.lives;
  if (number == WriterRecord::kLives) {
    throw std::runtime_error(fmt::format("a record has room for {} lives", number));
  }
  WriterRecord::Life& life = record_.life.at(number);
  calls_.begin_life(number);
  record_.lives = number + 1;
  for (std::uint64_t call = 1;; ++call) {
    const Operation operation = calls_.draw();
    const Outcome expected = calls_.make(operation);
    life.begun = call;
    // The kernel would wait for the other end of a pipe.
    if (operation.kind != Kind::open || expected.error != EOPNOTSUPP) {
      const Outcome outcome = kernel_.apply(operation);
      // Which one of several errors a call has may differ from kernel to kernel.
      if (outcome != expected && (outcome.error == 0 || expected.error == 0)) {
        if (is_gone()) return "";
        return fmt::format("call {} of life {}, {}: {} instead of {}", call, number,
                           text_of(operation), text_of(outcome), text_of(expected));
      }
    }
    life.returned = call;
    returned();
  }
}

}  // namespace perdura::fs::test
