#include "services/fs/trace/trace_writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "platform/base/error.h"
#include "platform/runtime/work.h"

namespace perdura::fs {
namespace {

constexpr std::size_t kUsualBlock = 64 * KiB;

// Small numbers of either sign become small numbers without one.
std::uint64_t zigzag(std::int64_t number) {
  return static_cast<std::uint64_t>(number) << 1 ^ static_cast<std::uint64_t>(number >> 63);
}

}  // namespace

TraceWriter::TraceWriter(const std::string& path)
    : path_(path), file_(std::fopen(path.c_str(), "wbe")) {
  if (!file_) throw UsageError(fmt::format("{}: {}", path, std::strerror(errno)));
  write(detail::kTraceMagic.data(), detail::kTraceMagic.size());
}

std::uint32_t TraceWriter::add_file(std::string_view name, Bytes size) {
  if (next_.size() >= kMostTracedFiles || name.size() > kLongestTracedName ||
      size > kLargestTraced) {
    throw PlatformError(fmt::format("{}: too many files, or a name or a size is too long", path_));
  }
  put(static_cast<std::uint64_t>(TraceKind::file));
  put(size);
  put(name.size());
  const auto* const begin = reinterpret_cast<const std::byte*>(name.data());
  block_.insert(block_.end(), begin, begin + name.size());
  next_.push_back(0);
  end_record();
  return static_cast<std::uint32_t>(next_.size() - 1);
}

void TraceWriter::add(const TraceRecord& record) {
  if (record.kind == TraceKind::file || record.file >= next_.size() ||
      record.offset > kLargestTraced || record.length > kLargestTraced - record.offset) {
    throw PlatformError(fmt::format("{}: a trace cannot hold such a record", path_));
  }
  put(static_cast<std::uint64_t>(record.kind));
  put(record.file);
  if (is_access(record.kind)) {
    Bytes& next = next_[record.file];
    put(zigzag(static_cast<std::int64_t>(record.offset - next)));
    put(record.length);
    next = record.offset + record.length;
  } else if (record.kind == TraceKind::truncate) {
    put(record.offset);
  }
  end_record();
}

void TraceWriter::finish() {
  if (!block_.empty()) write_block();
  for (int shift = 0; shift < 64; shift += 8) {
    block_.push_back(static_cast<std::byte>(records_ >> shift));
  }
  const std::uint32_t sum = crc32(0, block_);
  const std::uint32_t none = 0;
  write(&none, sizeof none);
  write(&sum, sizeof sum);
  write(block_.data(), block_.size());
  if (std::fclose(file_.release()) != 0) {
    throw PlatformError(fmt::format("{}: {}", path_, std::strerror(errno)));
  }
}

void TraceWriter::put(std::uint64_t number) {
  constexpr std::uint64_t kSeven = 0x7F;
  for (; number > kSeven; number >>= 7) {
    block_.push_back(static_cast<std::byte>((number & kSeven) | (kSeven + 1)));
  }
  block_.push_back(static_cast<std::byte>(number));
}

void TraceWriter::end_record() {
  ++records_;
  if (block_.size() >= kUsualBlock) write_block();
}

// Both numbers of the head have their lowest byte first, as this processor stores them.
void TraceWriter::write_block() {
  const auto length = static_cast<std::uint32_t>(block_.size());
  const std::uint32_t sum = crc32(0, block_);
  write(&length, sizeof length);
  write(&sum, sizeof sum);
  write(block_.data(), block_.size());
  block_.clear();
}

void TraceWriter::write(const void* data, std::size_t size) {
  if (std::fwrite(data, 1, size, file_.get()) != size) {
    throw PlatformError(fmt::format("{}: {}", path_, std::strerror(errno)));
  }
}

}  // namespace perdura::fs
