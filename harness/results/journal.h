// The journal of an incomplete sweep: a file of records, each on disk before append() returns. A
// process may be killed, or the power fail, at any time: at most the record that was being appended
// is lost.
//
// A record is a header of 32 bytes (a mark, the size of its content, a hash of the content, a hash
// of these three) and its content; numbers are in the byte order of the machine.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace perdura::harness {

// cut_back: truncate to the last whole record before the damage, and keep the damaged file beside
// it.
enum class IfDamaged { refuse, cut_back };

class Journal {
 public:
  // Creates a journal whose first record is `first`; the file is created atomically. Throws
  // PlatformError if it cannot be written.
  static Journal create(const std::filesystem::path& file, std::string_view first);
  // Opens a journal to continue it. An incomplete last record is cut off. Throws UsageError if
  // another process has it open, if it is damaged elsewhere and must not be cut back, or if its
  // first record is damaged.
  static Journal open(const std::filesystem::path& file, IfDamaged if_damaged = IfDamaged::refuse);

  ~Journal();
  Journal(Journal&& other) noexcept;
  Journal& operator=(Journal&& other) noexcept;

  // The records found when the journal was opened, including the first one; records appended since
  // are not among them.
  const std::vector<std::string>& records() const { return records_; }
  // One line that says what was lost when a damaged journal was cut back, and where the damaged
  // file is kept; empty otherwise.
  const std::string& cut_back() const { return cut_back_; }
  // Throws PlatformError if it cannot be written.
  void append(std::string_view content);

 private:
  Journal(std::filesystem::path file, int descriptor)
      : file_(std::move(file)), descriptor_(descriptor) {}

  std::filesystem::path file_;
  int descriptor_;  // locked, so that only one process has it open
  std::vector<std::string> records_;
  std::string cut_back_;
};

}  // namespace perdura::harness
