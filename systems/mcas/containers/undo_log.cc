#include "systems/mcas/containers/undo_log.h"

#include <cstring>
#include <span>

#include "platform/runtime/work.h"

namespace perdura::systems::mcas::containers {

namespace {

// The number is hashed as one of the bytes. As the hash's seed it would only be XORed with the
// first word, the offset: an old entry of transaction 6 for offset 4 would then be valid for
// transaction 5 and offset 7.
template <class SavedRange>
std::uint64_t check_of(SavedRange entry, std::span<std::byte> bytes, std::uint64_t number) {
  entry.check = number;
  std::memcpy(bytes.data(), &entry, sizeof entry);
  return hash64(bytes);
}

}  // namespace

// Overwrites all of the log, since entries of an earlier log in the same memory could have the
// number of a new transaction.
void UndoLog::format(const Piece& piece, ByteRange log, Bytes number) {
  const std::vector<std::byte> zeros(log.length);
  piece.write(log.offset, zeros);
  piece.flush(log);
  piece.store(number, 1);
  piece.persist({number, kWord});
}

bool UndoLog::save(ByteRange range) {
  const Bytes size = size_of(range.length);
  if (size > log_.length - used_) return false;
  scratch_.assign(size, std::byte{});
  const std::span<std::byte> bytes(scratch_);
  piece_.read(range.offset, bytes.subspan(sizeof(SavedRange), range.length));
  SavedRange entry{range.offset, range.length, 0};
  entry.check = check_of(entry, bytes, number_);
  std::memcpy(bytes.data(), &entry, sizeof entry);
  piece_.write(log_.offset + used_, bytes);
  piece_.persist({log_.offset + used_, size});
  used_ += size;
  return true;
}

void UndoLog::clear() {
  piece_.store_durably(number_at_, ++number_);
  used_ = 0;
}

UndoLog::SavedRange UndoLog::entry_at(Bytes offset) {
  const Bytes left = log_.length - offset;
  if (left < sizeof(SavedRange)) return {};
  const auto entry = piece_.read_object<SavedRange>(log_.offset + offset);
  if (entry.length == 0 || entry.length > left - sizeof(SavedRange)) return {};
  if (size_of(entry.length) > left) return {};
  scratch_.resize(size_of(entry.length));
  piece_.read(log_.offset + offset, scratch_);
  return check_of(entry, scratch_, number_) == entry.check ? entry : SavedRange{};
}

// Writes back the latest copies first: if a range was saved twice, its first copy has the contents
// from before the transaction.
bool UndoLog::undo() {
  std::vector<Bytes> entries;
  Bytes end = 0;
  for (SavedRange entry = entry_at(end); entry.length > 0; entry = entry_at(end)) {
    entries.push_back(end);
    end += size_of(entry.length);
  }
  if (entries.empty()) return false;
  for (auto at = entries.rbegin(); at != entries.rend(); ++at) {
    const SavedRange entry = entry_at(*at);
    piece_.write(entry.offset, std::span(scratch_).subspan(sizeof(SavedRange), entry.length));
    piece_.flush({entry.offset, entry.length});
  }
  piece_.drain();
  clear();
  return true;
}

}  // namespace perdura::systems::mcas::containers
