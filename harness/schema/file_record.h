// What a file held when it was written, kept in another file (manifest.json, tables.toml): so that
// a reader can tell rows that were lost or changed since, even if what is left is a sound CSV file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "harness/schema/error.h"

namespace perdura::report {

struct FileRecord {
  std::uint64_t rows = 0;   ///< of a CSV file, without its header
  std::uint64_t bytes = 0;  ///< its size
  std::string crc32;        ///< that of zlib and gzip, 8 hexadecimal digits; not against malice

  bool operator==(const FileRecord&) const = default;
  /// "12 rows, 3456 bytes, CRC-32 9ae0daaf"
  std::string words() const;
};

FileRecord record_of(std::string_view csv_text);
/// Nothing if the file cannot be read.
std::optional<FileRecord> record_of_file(const std::filesystem::path& file);

/// Error, in one line: `file` is not as it was `written`, which `place` says; and `advice`.
Expected<void> check_file(const std::filesystem::path& file, const FileRecord& written,
                          std::string_view place, std::string_view advice);

/// Those files of a result folder whose contents match its manifest.json, with their records.
std::map<std::string, FileRecord> sound_files(const std::filesystem::path& folder);

/// Checks the files of a result folder against its manifest.json, all that it has a record of. The
/// answer is a note, in one line, if rows are there of which it has none, as the manifests of
/// earlier versions have none; else it is empty. While a sweep runs, a file may be as it was before
/// it was last written, or as it is afterwards.
/// Error: a file is not what the manifest says, or is missing; with what to do, unless `advice`
/// says it.
Expected<std::string> check_against_manifest(const std::filesystem::path& folder,
                                             std::string_view advice = "");

}  // namespace perdura::report
