// A summary of a file's contents when it was written, kept in another file (manifest.json,
// tables.toml), so that a reader can detect rows that were lost or changed later, even if the rest
// is a well-formed CSV file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "harness/schema/error.h"

namespace perdura::schema {

struct FileRecord {
  std::uint64_t rows = 0;   ///< of a CSV file, without its header
  std::uint64_t bytes = 0;  ///< its size
  /// As in zlib and gzip, 8 hexadecimal digits; no protection against malice.
  std::string crc32;

  bool operator==(const FileRecord&) const = default;
  /// "12 rows, 3456 bytes, CRC-32 9ae0daaf"
  std::string words() const;
};

FileRecord record_of(std::string_view csv_text);
/// Returns nullopt if the file cannot be read.
std::optional<FileRecord> record_of_file(const std::filesystem::path& file);

/// The error, in one line, says that `file` is not as it was `written` according to `place`,
/// followed by `advice`.
Expected<void> check_file(const std::filesystem::path& file, const FileRecord& written,
                          std::string_view place, std::string_view advice);

/// The files of a result folder that match a record in its manifest.json, with these records.
std::map<std::string, FileRecord> sound_files(const std::filesystem::path& folder);

/// Checks the files of a result folder against the records in its manifest.json. Returns a note, in
/// one line, if there are rows without a record, as in folders of earlier versions; otherwise "".
/// While a sweep runs, a file may match either its previous or its current record. Error: a file is
/// missing or does not match; the message says what to do, as `advice` if that is not empty.
Expected<std::string> check_against_manifest(const std::filesystem::path& folder,
                                             std::string_view advice = "");

}  // namespace perdura::schema
