#include "systems/remote_log/log_server.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"

namespace perdura::systems::remote_log {

namespace {

constexpr std::uint64_t kLogMagic = 0x474F4C45544F4D52;         // "RMOTELOG"
constexpr std::uint64_t kOrderedLogMagic = 0x4C494154544F4D52;  // "RMOTTAIL"
std::uint64_t magic_of(const LogOptions& options) {
  return options.has_tail() ? kOrderedLogMagic : kLogMagic;
}
// The number of records applied before messages are handled again.
constexpr std::uint64_t kBatch = 16;

constexpr Bytes kSlotsWord = 8;
constexpr Bytes kLargestRecordWord = 16;

}  // namespace

LogServer::LogServer(Thread& thread, const std::string& name, const LogOptions& options,
                     Apply apply)
    : options_(options),
      apply_(std::move(apply)),
      region_(thread.node.open_region(name)),
      record_(options.slot_size()) {
  if (region_ == nullptr) {
    region_ = thread.node.create_region(name, options.region_size(), pmem::Medium::pm);
  } else {
    // A process that died leaves visible data that may not be durable (docs/restart.md).
    region_->persist(0, region_->size());
  }
  if (region_->load(0) == 0 && region_->size() == options.region_size()) make();
  check_shape(name);
  head_ = region_->load(kHeadOffset);
  region_->store(kPublishedHeadOffset, head_);
  responder_ = std::make_shared<methods::Responder>(thread, *region_, options.setup());
  // A record may be applied before the client can rely on it. A failure may then lose its tail but
  // not its effect, so the tail must not be less than the head. Nor may it keep the mark of a
  // client that is gone.
  if (options.has_tail()) {
    const std::uint64_t word = region_->load(kTailOffset);
    const std::uint64_t tail = std::max(options.tail_in(word), head_);
    if (tail != word) {
      region_->store(kTailOffset, tail);
      region_->persist(kTailOffset, kWord);
    }
  }
}

void LogServer::make() {
  region_->store(kSlotsWord, options_.slots);
  region_->store(kLargestRecordWord, options_.largest_record);
  region_->persist(kSlotsWord, 2 * kWord);
  region_->store(0, magic_of(options_));
  region_->persist(0, kWord);
}

void LogServer::check_shape(const std::string& name) const {
  const auto text = [](std::uint64_t magic, std::uint64_t slots, std::uint64_t largest) {
    return fmt::format("{} records of {} bytes with {}", slots, largest,
                       magic == kLogMagic ? "checksums" : "a tail pointer");
  };
  const std::uint64_t magic = region_->load(0);
  const std::uint64_t slots = region_->load(kSlotsWord);
  const std::uint64_t largest = region_->load(kLargestRecordWord);
  if (magic == magic_of(options_) && slots == options_.slots &&
      largest == options_.largest_record && region_->size() == options_.region_size()) {
    return;
  }
  const bool is_log = magic == kLogMagic || magic == kOrderedLogMagic;
  const std::string problem =
      fmt::format("region '{}' is {}, not one of {}; remove it, or ask for what it is", name,
                  is_log ? "a log of " + text(magic, slots, largest) : std::string("no log"),
                  text(magic_of(options_), options_.slots, options_.largest_record));
  if (!is_log) throw methods::OptionsDiffer(problem);
  throw LogDiffers(problem, {.slots = slots,
                             .largest_record = static_cast<std::uint32_t>(largest),
                             .has_tail = magic == kOrderedLogMagic});
}

Task<> LogServer::collect(Picoseconds interval) {
  for (;;) {
    if (apply_some(kBatch) == kBatch) {
      co_await yield();
    } else {
      co_await sleep_for(interval);
    }
  }
}

void LogServer::begin_end() {
  ending_ = true;
  responder_->begin_end();
}

// Applies every visible record, even if the client cannot rely on it yet. After a power failure the
// head still counts such a record as applied, whatever is left in its slot. So the server need not
// make the tail durable first, as readers of a published link must.
std::uint64_t LogServer::apply_some(std::uint64_t most) {
  const bool checked = !options_.has_tail();
  const std::uint64_t tail = checked ? head_ + most : options_.tail_in(region_->load(kTailOffset));
  std::uint64_t applied = 0;
  while (applied < most && head_ < tail && !ending_) {
    region_->read(options_.slot_offset(head_ + 1), record_);
    const auto length = length_of(record_, head_ + 1, checked);
    if (!length) {
      if (checked) break;
      throw PlatformError(
          fmt::format("the log's tail is {}, but record {} is not there", tail, head_ + 1));
    }
    apply_(++head_, std::span(record_).subspan(sizeof(RecordHeader), *length));
    ++applied;
  }
  if (applied > 0) {
    region_->store(kHeadOffset, head_);
    region_->persist(kHeadOffset, kWord);
    region_->store(kPublishedHeadOffset, head_);
  }
  return applied;
}

}  // namespace perdura::systems::remote_log
