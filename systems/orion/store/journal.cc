#include "systems/orion/store/journal.h"

#include <fmt/format.h>

#include <algorithm>

#include "platform/base/error.h"
#include "systems/orion/protocol/layout.h"

namespace perdura::systems::orion {

namespace {

constexpr std::uint64_t kIsEpoch = std::uint64_t{1} << 63;
constexpr std::uint64_t kIsWhole = std::uint64_t{1} << 62;
constexpr std::uint64_t kEpochMask = (std::uint64_t{1} << 56) - 1;
constexpr int kPositionBits = 40;

// A record that was stored in part only does not verify.
std::uint64_t check_of(std::uint64_t word, std::uint64_t position) {
  std::uint64_t mixed = (word ^ position * 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9;
  mixed ^= mixed >> 32;
  return mixed << kPositionBits | position;
}

std::optional<std::uint64_t> position_of(const JournalRecord& record) {
  const std::uint64_t position = record.check & ((std::uint64_t{1} << kPositionBits) - 1);
  if (record.check != check_of(record.word, position)) return std::nullopt;
  return position;
}

}  // namespace

void Journal::make(Node& node, const std::string& name, std::uint64_t records) {
  node.create_region(immediates_region(name), records * sizeof(JournalRecord), pmem::Medium::pm);
}

Journal::Journal(Node& node, const std::string& name, std::uint64_t records)
    : region_(node.open_region(immediates_region(name))), records_(records) {
  if (region_ == nullptr || region_->size() != records * sizeof(JournalRecord)) {
    throw UsageError(fmt::format("the journal of '{}' on node {} has not {} records; give it those",
                                 name, node.id(), records));
  }
  for (std::uint64_t i = 0; i < records_; ++i) {
    const auto position =
        position_of(region_->read_object<JournalRecord>(i * sizeof(JournalRecord)));
    if (position && *position % records_ == i) next_ = std::max(next_, *position + 1);
  }
}

// Position 0 is not used, so that memory of zeros has no record.
void Journal::add(std::uint64_t word) {
  next_ = std::max<std::uint64_t>(next_, 1);
  const Bytes at = next_ % records_ * sizeof(JournalRecord);
  region_->write_object(at, JournalRecord{word, check_of(word, next_)});
  region_->flush(at, sizeof(JournalRecord));
  ++next_;
}

void Journal::add_page(std::uint32_t page) { add(page); }

void Journal::add_epoch(std::uint64_t epoch, bool is_whole) {
  add(kIsEpoch | (is_whole ? kIsWhole : 0) | epoch);
  region_->drain();
}

std::optional<std::vector<std::uint32_t>> pages_since(std::span<const JournalRecord> journal,
                                                      std::uint64_t epoch) {
  std::uint64_t last = 0;
  std::vector<std::uint64_t> positions(journal.size());
  for (std::size_t i = 0; i < journal.size(); ++i) {
    positions[i] = position_of(journal[i]).value_or(0);
    if (positions[i] % journal.size() != i) positions[i] = 0;
    last = std::max(last, positions[i]);
  }
  std::vector<std::uint32_t> pages;
  std::size_t of_later_epochs = 0;  // how many of the pages follow the beginning of one
  const auto result = [&] {
    pages.resize(of_later_epochs);
    std::sort(pages.begin(), pages.end());
    pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
    return pages;
  };
  for (std::uint64_t position = last; position > 0; --position) {
    const std::size_t index = position % journal.size();
    if (positions[index] != position) return std::nullopt;
    const std::uint64_t word = journal[index].word;
    if ((word & kIsEpoch) == 0) {
      pages.push_back(static_cast<std::uint32_t>(word));
      continue;
    }
    if ((word & kEpochMask) <= epoch) return result();
    if ((word & kIsWhole) == 0) return std::nullopt;
    of_later_epochs = pages.size();
  }
  // All that there has ever been.
  return result();
}

}  // namespace perdura::systems::orion
