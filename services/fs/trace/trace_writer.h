// Writes a trace (trace.h). Only finish() makes it whole: a reader refuses the file of a program that
// was killed before.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/fs/trace/trace.h"

namespace perdura::fs {

class TraceWriter {
 public:
  // Replaces what `path` names. Throws UsageError if it cannot be created.
  explicit TraceWriter(const std::string& path);

  // Adds a file and returns its number. Throws PlatformError, as add() and finish() do, if the file
  // cannot be written, or if the format cannot hold what is to be added.
  std::uint32_t add_file(std::string_view name, Bytes size);
  void add(const TraceRecord& record);
  // Nothing may be added afterwards.
  void finish();

  std::uint64_t records() const { return records_; }
  std::uint64_t files() const { return next_.size(); }

 private:
  void put(std::uint64_t number);
  void end_record();
  void write_block();
  void write(const void* data, std::size_t size);

  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::vector<std::byte> block_;
  std::vector<Bytes> next_;  // where the last access to each file ended
  std::uint64_t records_ = 0;
};

}  // namespace perdura::fs
