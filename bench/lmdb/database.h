// A database of LMDB in a file of its own, as an application that knows nothing of replication uses
// it. Each change is a transaction, which is durable when it has returned if the database syncs.
//
// Errors of LMDB are exceptions with its own words; a full file and a sync that failed are among
// them. An operation that has thrown has changed nothing.
#pragma once

#include <lmdb.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>

#include "platform/base/units.h"

namespace perdura::bench::lmdb {

class Error final : public std::runtime_error {
 public:
  Error(const std::string& what, int code);
};

using Entry = std::span<const std::byte>;

class Database {
 public:
  struct Options {
    std::string file;
    Bytes size = 0;         // of the file, at the most
    bool syncs = true;      // else MDB_NOSYNC
    bool write_map = true;  // MDB_WRITEMAP: pages are stored to where they are mapped
    bool read_only = false;
  };
  explicit Database(const Options& options);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  std::uint64_t entries() const;

  // Changes in one transaction, of one thread at a time; another one waits.
  class Change {
   public:
    explicit Change(Database& database);
    ~Change();  // gives it up unless commit() was called
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    // The memory of what is returned is valid until the next change. Empty: there is none.
    const Entry* get(Entry key);
    void put(Entry key, Entry value);
    bool erase(Entry key);  // false: there was none
    void commit();

   private:
    Database& database_;
    MDB_txn* transaction_ = nullptr;
    Entry found_;
  };

  // Reads of one thread, each of the state that was committed last.
  class Reader {
   public:
    explicit Reader(Database& database);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    // Calls `use` with the value; false if there is none.
    bool get(Entry key, const std::function<void(Entry)>& use);
    // Calls `use` with up to `count` entries in the order of their keys, from the first one that is
    // not less than `from`. Returns how many there were.
    std::uint64_t scan(Entry from, std::uint64_t count,
                       const std::function<void(Entry key, Entry value)>& use);

   private:
    Database& database_;
    MDB_txn* transaction_ = nullptr;
    MDB_cursor* cursor_ = nullptr;
  };

 private:
  MDB_env* env_ = nullptr;
  MDB_dbi table_ = 0;
};

}  // namespace perdura::bench::lmdb
