// Reads a trace (trace.h), block by block. Damage is wrong usage: UsageError, in one line with the
// byte of the file and the record.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/fs/trace/trace.h"

namespace perdura::fs {

class TraceReader {
 public:
  // Throws UsageError if `path` is no trace, or cannot be read.
  explicit TraceReader(const std::string& path);

  // The next record, or nullopt after the last one. A record `file` has added to files().
  std::optional<TraceRecord> next();
  const std::vector<TracedFile>& files() const { return files_; }
  // How many records next() has returned.
  std::uint64_t records() const { return records_; }

 private:
  [[noreturn]] void refuse(std::uint64_t at, std::string_view why) const;
  void read(void* into, std::size_t size, std::string_view what);
  void read_block();
  void read_end(std::uint32_t sum);
  std::uint64_t number();
  TraceRecord parse();
  TraceRecord parse_file();

  std::string path_;
  std::ifstream file_;
  std::vector<char> block_;
  std::size_t used_ = 0;        // bytes of the block that were read
  std::uint64_t block_at_ = 0;  // where it begins in the file
  std::uint64_t at_ = 0;        // how much of the file was read
  std::uint64_t records_ = 0;
  bool ended_ = false;
  std::vector<TracedFile> files_;
  std::vector<Bytes> next_;  // where the last access to each file ended
};

}  // namespace perdura::fs
