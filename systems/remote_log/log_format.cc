#include "systems/remote_log/log_format.h"

#include <cstddef>
#include <cstring>

#include "platform/runtime/work.h"

namespace perdura::systems::remote_log {

namespace {

std::uint32_t checksum(std::span<const std::byte> record) {
  return crc32(0, record.subspan(offsetof(RecordHeader, length)));
}

}  // namespace

methods::PersisterSetup LogOptions::setup() const {
  const auto with_read =
      timed_as_flush ? methods::with_read_timed_as_flush : methods::with_read_for_flush;
  return {.method = read_for_flush ? with_read(method) : method,
          .largest_a = static_cast<std::uint32_t>(sizeof(RecordHeader)) + largest_record,
          .largest_b = kWord,
          .receive_buffers = receive_buffers,
          .receive_medium = receive_medium};
}

LogOptions LogOptions::on(const fabric::Capabilities& device) const {
  LogOptions options = *this;
  options.read_for_flush = read_for_flush || !device.flush;
  return options;
}

std::string LogOptions::method_name() const {
  return methods::name_in_results(method, read_for_flush);
}

std::size_t write_header(std::span<std::byte> record, std::uint64_t number, std::size_t payload,
                         bool checked) {
  const std::size_t size = sizeof(RecordHeader) + payload;
  RecordHeader header{.length = static_cast<std::uint32_t>(payload), .number = number};
  std::memcpy(record.data(), &header, sizeof header);
  if (checked) {
    header.crc = checksum(record.first(size));
    std::memcpy(record.data(), &header, sizeof header);
  }
  return size;
}

std::optional<std::uint32_t> length_of(std::span<const std::byte> record, std::uint64_t number,
                                       bool checked) {
  RecordHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  if (header.number != number || header.length > record.size() - sizeof header) return std::nullopt;
  if (checked && header.crc != checksum(record.first(sizeof header + header.length))) {
    return std::nullopt;
  }
  return header.length;
}

}  // namespace perdura::systems::remote_log
