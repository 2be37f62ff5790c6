// A database of LMDB in a file of its own, used by an application that knows nothing of
// replication. Each change is a transaction, which is durable when it returns if the database
// syncs.
//
// Errors of LMDB are exceptions with its messages, including a full file and a failed sync. An
// operation that throws changes nothing.
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

using Datum = std::span<const std::byte>;

class Database {
 public:
  struct Options {
    std::string file;
    Bytes size = 0;         // limit of the file's size
    bool syncs = true;      // if false, MDB_NOSYNC
    bool write_map = true;  // MDB_WRITEMAP: pages are changed in the mapped file
    bool read_only = false;
  };
  explicit Database(const Options& options);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  std::uint64_t entries() const;

  // Several changes in one transaction. Only one thread can have one at a time; others wait.
  class WriteTransaction {
   public:
    explicit WriteTransaction(Database& database);
    ~WriteTransaction();  // aborts it unless commit() was called
    WriteTransaction(const WriteTransaction&) = delete;
    WriteTransaction& operator=(const WriteTransaction&) = delete;
    // Returns null if there is no such key. The memory is valid until the next change.
    const Datum* get(Datum key);
    void put(Datum key, Datum value);
    bool erase(Datum key);  // false: there was no such key
    void commit();

   private:
    Database& database_;
    MDB_txn* transaction_ = nullptr;
    Datum found_;
  };

  // A thread's reads, each of the state that was committed last.
  class ReadTransaction {
   public:
    explicit ReadTransaction(Database& database);
    ~ReadTransaction();
    ReadTransaction(const ReadTransaction&) = delete;
    ReadTransaction& operator=(const ReadTransaction&) = delete;
    // Calls `use` with the value; returns false if there is no such key.
    bool get(Datum key, const std::function<void(Datum)>& use);
    // Calls `use` with up to `count` entries in the order of their keys, starting at the first key
    // that is not less than `from`. Returns the number of entries.
    std::uint64_t scan(Datum from, std::uint64_t count,
                       const std::function<void(Datum key, Datum value)>& use);

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
