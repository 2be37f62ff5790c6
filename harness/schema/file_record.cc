#include "harness/schema/file_record.h"

#include <fmt/format.h>
#include <isa-l/crc.h>

#include <fstream>
#include <vector>

#include "harness/schema/advice.h"
#include "harness/text/whole_file.h"
#include "platform/base/json.h"
#include "platform/base/path_kind.h"

namespace perdura::schema {
namespace {

namespace fs = std::filesystem;

/// Computes a record in pieces, since a file may be too large to be read into memory.
class Recorder {
 public:
  void add(std::string_view piece) {
    if (piece.empty()) return;
    bytes_ += piece.size();
    crc_ =
        crc32_gzip_refl(crc_, reinterpret_cast<const unsigned char*>(piece.data()), piece.size());
    for (const char character : piece) {
      if (character == '"') quoted_ = !quoted_;
      if (character == '\n' && !quoted_) ++lines_;
    }
    last_ = piece.back();
  }

  FileRecord record() const {
    const std::uint64_t lines = lines_ + (bytes_ > 0 && last_ != '\n' ? 1 : 0);
    return {lines == 0 ? 0 : lines - 1, bytes_, fmt::format("{:08x}", crc_)};
  }

 private:
  std::uint64_t bytes_ = 0;
  std::uint64_t lines_ = 0;
  std::uint32_t crc_ = 0;
  bool quoted_ = false;
  char last_ = '\n';
};

using Records = std::map<std::string, FileRecord>;

/// Describes a record of a file with a negative size, which cannot be valid; "" if there is none.
std::string negative_size(const Json& manifest, const char* key) {
  const Json* const files = manifest.find(key);
  if (files == nullptr || !files->is_object()) return "";
  for (const auto& [name, entry] : files->items()) {
    for (const char* size : {"rows", "bytes"}) {
      if (!entry.is_object() || !entry.contains(size)) continue;
      const Json& number = entry[size];
      if (!number.is_number() || number.get<double>() >= 0) continue;
      return fmt::format("{} of {} is {}", size, name, number.dump());
    }
  }
  return "";
}

Records records_in(const Json& manifest, const char* key) {
  Records records;
  const Json* const files = manifest.find(key);
  if (files == nullptr || !files->is_object()) return records;
  for (const auto& [name, entry] : files->items()) {
    try {
      records[name] = {entry.at("rows").get<std::uint64_t>(),
                       entry.at("bytes").get<std::uint64_t>(),
                       entry.at("crc32").get<std::string>()};
    } catch (const JsonError&) {  // a record of another version is ignored
    }
  }
  return records;
}

std::string advice_on_changed(const fs::path& file) {
  return fmt::format(
      "restore it, or {}; if it was changed on purpose, remove its entry from "
      "\"files\" in manifest.json, and it is read unchecked",
      advice_on_damaged(file));
}

Expected<std::string> check_against(const fs::path& folder, const std::string& manifest_text,
                                    std::string_view advice) {
  const auto manifest = Json::parse_or_null(manifest_text);
  for (const char* key : {"files", "files_before"}) {
    const std::string wrong = negative_size(manifest, key);
    if (wrong.empty()) continue;
    return fail(fmt::format("{}: is damaged: {} in \"{}\"; restore it",
                            (folder / "manifest.json").string(), wrong, key));
  }
  const Records written = records_in(manifest, "files");
  const Records before = records_in(manifest, "files_before");
  for (const auto& [name, record] : written) {
    const fs::path file = folder / name;
    const auto former = before.find(name);
    if (former != before.end() && record_of_file(file) == former->second) continue;
    const auto sound = check_file(file, record, "manifest.json",
                                  advice.empty() ? advice_on_changed(file) : std::string(advice));
    if (!sound) return tl::unexpected(sound.error());
  }
  std::vector<std::string> unchecked;
  for (const char* name : {"points.csv", "probes.csv", "timeline.csv"}) {
    if (!written.contains(name) && is_there(folder / name)) unchecked.emplace_back(name);
  }
  if (unchecked.empty()) return "";
  const bool one = unchecked.size() == 1;
  return fmt::format("{}: {} {} read unchecked, since manifest.json has no record of {}",
                     folder.string(), fmt::join(unchecked, " and "), one ? "is" : "are",
                     one ? "it" : "them");
}

}  // namespace

std::string FileRecord::words() const {
  return fmt::format("{} row{}, {} bytes, CRC-32 {}", rows, rows == 1 ? "" : "s", bytes, crc32);
}

FileRecord record_of(std::string_view csv_text) {
  Recorder recorder;
  recorder.add(csv_text);
  return recorder.record();
}

std::optional<FileRecord> record_of_file(const fs::path& file) {
  if (kind_of(file) != PathKind::file) return std::nullopt;
  std::ifstream input(file, std::ios::binary);
  if (!input) return std::nullopt;
  Recorder recorder;
  std::vector<char> piece(std::size_t{1} << 20);
  while (input.read(piece.data(), static_cast<std::streamsize>(piece.size())), input.gcount() > 0) {
    recorder.add({piece.data(), static_cast<std::size_t>(input.gcount())});
  }
  if (input.bad()) return std::nullopt;
  return recorder.record();
}

Expected<void> check_file(const fs::path& file, const FileRecord& written, std::string_view place,
                          std::string_view advice) {
  const auto found = record_of_file(file);
  if (!found) {
    return fail(fmt::format("{}: {}, and {} says it has {}; {}", file.string(), not_a_file(file),
                            place, written.words(), advice));
  }
  if (*found == written) return {};
  return fail(fmt::format("{}: is not what was written: it has {}, and {} says {}; {}",
                          file.string(), found->words(), place, written.words(), advice));
}

std::map<std::string, FileRecord> sound_files(const fs::path& folder) {
  const auto manifest = Json::parse_or_null(harness::read_if_there(folder / "manifest.json"));
  Records sound;
  for (const char* key : {"files", "files_before"}) {
    for (const auto& [name, record] : records_in(manifest, key)) {
      if (record_of_file(folder / name) == record) sound.emplace(name, record);
    }
  }
  return sound;
}

Expected<std::string> check_against_manifest(const fs::path& folder, std::string_view advice) {
  std::string manifest = harness::read_if_there(folder / "manifest.json");
  for (;;) {
    auto checked = check_against(folder, manifest, advice);
    if (checked) return checked;
    // While a sweep is running, its files are replaced up to once a second. If the manifest has
    // changed in the meantime, the files are checked against the new one.
    std::string now = harness::read_if_there(folder / "manifest.json");
    if (now == manifest) return checked;
    manifest = std::move(now);
  }
}

}  // namespace perdura::schema
