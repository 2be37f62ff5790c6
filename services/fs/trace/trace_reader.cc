#include "services/fs/trace/trace_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "platform/base/error.h"
#include "platform/base/path_kind.h"
#include "platform/runtime/work.h"

namespace perdura::fs {
namespace {

std::uint32_t sum_of(const std::vector<char>& bytes) {
  return crc32(0, std::as_bytes(std::span(bytes)));
}

std::int64_t unzigzag(std::uint64_t number) {
  return static_cast<std::int64_t>(number >> 1) ^ -static_cast<std::int64_t>(number & 1);
}

}  // namespace

TraceReader::TraceReader(const std::string& path) : path_(path) {
  if (kind_of(path) != PathKind::file) {
    throw UsageError(fmt::format("{}: {}", path, not_a_file(path)));
  }
  file_.open(path, std::ios::binary);
  if (!file_) throw UsageError(fmt::format("{}: {}", path, not_a_file(path)));
  std::array<char, detail::kTraceMagic.size()> magic{};
  file_.read(magic.data(), magic.size());
  if (magic != detail::kTraceMagic) {
    throw UsageError(fmt::format(
        "{}: is no trace; perdura fs mount --trace and perdura trace pack make them", path));
  }
  at_ = magic.size();
}

std::optional<TraceRecord> TraceReader::next() {
  if (used_ == block_.size() && !ended_) read_block();
  if (ended_) return std::nullopt;
  const TraceRecord record = parse();
  ++records_;
  return record;
}

void TraceReader::refuse(std::uint64_t at, std::string_view why) const {
  throw UsageError(
      fmt::format("{}: is damaged at byte {}, record {}: {}", path_, at, records_, why));
}

void TraceReader::read(void* into, std::size_t size, std::string_view what) {
  file_.read(static_cast<char*>(into), static_cast<std::streamsize>(size));
  if (static_cast<std::size_t>(file_.gcount()) != size) {
    refuse(at_ + static_cast<std::uint64_t>(file_.gcount()),
           fmt::format("it ends within {}; was the program that wrote it killed?", what));
  }
  at_ += size;
}

void TraceReader::read_block() {
  std::uint32_t length = 0;
  std::uint32_t sum = 0;
  const std::uint64_t begin = at_;
  read(&length, sizeof length, "a block's head");
  read(&sum, sizeof sum, "a block's head");
  if (length == 0) {
    read_end(sum);
    return;
  }
  if (length > detail::kLargestTraceBlock) refuse(begin, "no block is that long");
  block_at_ = at_;
  used_ = 0;
  block_.resize(length);
  read(block_.data(), length, "a block");
  if (sum_of(block_) != sum) {
    refuse(begin, fmt::format("the check sum of a block of {} bytes is wrong", length));
  }
}

void TraceReader::read_end(std::uint32_t sum) {
  const std::uint64_t begin = at_;
  block_.resize(sizeof records_);
  read(block_.data(), block_.size(), "its end");
  std::uint64_t count = 0;
  std::memcpy(&count, block_.data(), sizeof count);
  if (sum_of(block_) != sum || count != records_) refuse(begin, "its end counts other records");
  if (file_.peek() != std::ifstream::traits_type::eof()) refuse(at_, "bytes follow its end");
  block_.clear();
  used_ = 0;
  ended_ = true;
}

std::uint64_t TraceReader::number() {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (used_ == block_.size()) refuse(block_at_ + used_, "a block ends within a record");
    const auto byte = static_cast<std::uint8_t>(block_[used_]);
    const std::uint64_t part = byte & 0x7F;
    if (shift > 63 || (shift == 63 && part > 1)) {
      refuse(block_at_ + used_, "a number has more than 64 bits");
    }
    ++used_;
    value |= part << shift;
    if (byte == part) return value;
  }
}

TraceRecord TraceReader::parse() {
  const std::uint64_t begin = block_at_ + used_;
  const std::uint64_t kind = number();
  if (kind == 0 || kind >= kTraceWords.size()) {
    refuse(begin, fmt::format("there are no records of kind {}", kind));
  }
  if (TraceKind(kind) == TraceKind::file) return parse_file();
  const std::uint64_t file = number();
  if (file >= files_.size()) refuse(begin, fmt::format("file {} has not occurred", file));
  TraceRecord record{TraceKind(kind), static_cast<std::uint32_t>(file)};
  if (is_access(record.kind)) {
    const auto distance = static_cast<std::uint64_t>(unzigzag(number()));
    record.offset = next_[file] + distance;
    record.length = number();
  } else if (record.kind == TraceKind::truncate) {
    record.offset = number();
  }
  if (record.offset > kLargestTraced || record.length > kLargestTraced - record.offset) {
    refuse(begin, "no file is that large");
  }
  if (is_access(record.kind)) next_[file] = record.offset + record.length;
  return record;
}

TraceRecord TraceReader::parse_file() {
  const std::uint64_t begin = block_at_ + used_;
  const Bytes size = number();
  const std::uint64_t length = number();
  if (size > kLargestTraced) refuse(begin, "no file is that large");
  if (length > kLongestTracedName) refuse(begin, "no name is that long");
  if (length > block_.size() - used_) refuse(begin, "a block ends within a name");
  if (files_.size() >= kMostTracedFiles) refuse(begin, "there are too many files");
  files_.push_back({std::string(block_.data() + used_, length), size});
  next_.push_back(0);
  used_ += length;
  return {TraceKind::file, static_cast<std::uint32_t>(files_.size() - 1), size};
}

}  // namespace perdura::fs
