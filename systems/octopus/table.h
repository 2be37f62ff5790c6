// The hash table of full paths in persistent memory (section 3.1 of the paper): a word for each bucket,
// and a record for each file or directory, linked into the chain of its bucket. A record has a fixed
// place for data, its extent, and one for the entries of a directory. So a full table is a full file
// system, and the other way round.
//
//   superblock | bucket words | records: header, path, words of entries | extents
//
// A path is in the table if its record is linked, by one word, so every operation on names takes effect
// by one store. The entries of a directory are words that name the records of its children; they follow
// from the records and are brought in line with them by recovery. The root has the empty path and is
// record 0, in no chain.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/pmem/region.h"
#include "systems/octopus/parameters.h"

namespace perdura::systems::octopus {

using RecordNumber = std::uint32_t;
inline constexpr RecordNumber kRootRecord = 0;

struct TableGeometry {
  explicit TableGeometry(const Parameters& parameters);

  Bytes extent_bytes;
  std::uint32_t directory_entries;
  Bytes record_bytes;
  std::uint64_t records = 0;  // and as many buckets
  Bytes first_record = 0;
  Bytes first_extent = 0;

  Bytes bucket(std::uint64_t hash) const { return kCacheLine + hash % records * kWord; }
  Bytes record(RecordNumber number) const { return first_record + number * record_bytes; }
  Bytes path(RecordNumber number) const;
  Bytes entry(RecordNumber directory, std::uint32_t position) const;
  Bytes extent(RecordNumber number) const { return first_extent + number * extent_bytes; }
};

// True for names with '/' between them, and for the empty path, which is the root. A name is not empty,
// and neither "." nor "..".
bool is_sound(std::string_view path);

enum class RecordKind : std::uint32_t { none, file, directory };

// The first line of a record. All but the first four words stay while it is linked.
struct RecordHeader {
  std::uint64_t next = 0;  // the next record of the chain plus 1; 0: none
  std::uint64_t hash = 0;
  std::uint64_t size = 0;
  std::uint64_t modified = 0;  // nanoseconds
  RecordKind kind{};
  std::uint32_t path_length = 0;
  RecordNumber parent = 0;
  std::uint32_t position = 0;  // the position of its word in the parent
  std::uint64_t unused[2] = {};

  bool is_directory() const { return kind == RecordKind::directory; }
};
static_assert(sizeof(RecordHeader) == kCacheLine);

// A path that is in the table.
struct LinkedRecord {
  RecordNumber number = 0;
  RecordHeader header{};
  Bytes link = 0;  // the word that names it; 0 for the root
};

// All of it belongs to the server's thread.
class Table {
 public:
  template <class T>
  using Result = fs::Result<T>;

  // Makes the region of an empty file system. Throws UsageError if the name exists.
  static void make(Node& node, const std::string& name, const Parameters& parameters,
                   std::uint64_t now);
  // Opens it, after recovery. Throws UsageError if there is none, if it is another one, or if it is
  // damaged.
  Table(Node& node, const std::string& name, const Parameters& parameters);

  pmem::Region& region() { return *region_; }
  const TableGeometry& geometry() const { return geometry_; }

  // Paths must be sound.
  std::optional<LinkedRecord> find(std::string_view path) const;
  Result<void> create(std::string_view path, RecordKind kind, std::uint64_t now);
  // Removes a path of this kind.
  Result<void> remove(std::string_view path, RecordKind kind, std::uint64_t now);
  Result<LinkedRecord> file(std::string_view path) const;

  // Extends a file with zeros, if it is shorter.
  void extend(const LinkedRecord& file, Bytes size, std::uint64_t now);
  void set_times(const LinkedRecord& record, std::uint64_t now);

  // Somebody uses the extent of a record by its address, to write the range if it is not empty. The
  // record is not reused before end_use().
  void begin_use(RecordNumber number, Bytes offset, Bytes written);
  void end_use(RecordNumber number);
  // Forces what may have been written. The caller's own writes must have ended.
  void sync(const LinkedRecord& file);

  // The name of the child at this position of a directory; nullopt if there is none.
  struct DirectoryName {
    std::string name;
    bool is_directory = false;
  };
  std::optional<DirectoryName> child(RecordNumber directory, std::uint32_t position) const;

  // A contradiction, as a phrase; empty if there is none.
  std::string audit() const;

 private:
  // The state of a record that is not stored.
  struct RecordState {
    bool is_linked = false;
    std::uint32_t users = 0;
    std::uint32_t children = 0;
    std::uint32_t perhaps_free = 0;  // the positions before it are in use
    // The range that may have been written since it was forced.
    Bytes dirty_from = 0;
    Bytes dirty_to = 0;
  };

  void recover();
  void recover_chain(std::uint64_t bucket);
  void recover_entries();
  RecordHeader header(RecordNumber number) const {
    return region_->read_object<RecordHeader>(geometry_.record(number));
  }
  std::string path_of(RecordNumber number, const RecordHeader& header) const;
  bool has_path(RecordNumber number, std::string_view path) const;
  std::uint32_t free_position(RecordNumber directory);
  void free(RecordNumber number);
  void store_word(Bytes offset, std::uint64_t value);

  TableGeometry geometry_;
  std::unique_ptr<pmem::Region> region_;
  std::vector<RecordState> states_;  // by record
  std::vector<RecordNumber> free_;   // the last one is used next
};

}  // namespace perdura::systems::octopus
