#include "bench/lmdb/database.h"

#include <fmt/format.h>

#include <utility>

namespace perdura::bench::lmdb {

namespace {

void check(int code, const char* what) {
  if (code != 0) throw Error(what, code);
}

MDB_val value_of(Datum datum) {
  return {datum.size(), const_cast<std::byte*>(datum.data())};  // LMDB does not write to it
}
Datum datum_of(const MDB_val& value) {
  return {static_cast<const std::byte*>(value.mv_data), value.mv_size};
}

constexpr unsigned kMostReaders = 126;  // LMDB's default

}  // namespace

Error::Error(const std::string& what, int code)
    : std::runtime_error(code == MDB_MAP_FULL
                             ? fmt::format("{}: LMDB is out of space; raise map_size", what)
                             : fmt::format("{}: {}", what, mdb_strerror(code))) {}

Database::Database(const Options& options) {
  check(mdb_env_create(&env_), "mdb_env_create");
  try {
    check(mdb_env_set_mapsize(env_, options.size), "mdb_env_set_mapsize");
    check(mdb_env_set_maxreaders(env_, kMostReaders), "mdb_env_set_maxreaders");
    // A reader belongs to its Reader object, not to the thread that made it.
    unsigned flags = MDB_NOSUBDIR | MDB_NOTLS;
    if (!options.syncs) flags |= MDB_NOSYNC;
    if (options.write_map && !options.read_only) flags |= MDB_WRITEMAP;
    if (options.read_only) flags |= MDB_RDONLY | MDB_NOLOCK;
    check(mdb_env_open(env_, options.file.c_str(), flags, 0644), options.file.c_str());
    MDB_txn* transaction = nullptr;
    check(mdb_txn_begin(env_, nullptr, options.read_only ? MDB_RDONLY : 0, &transaction),
          "mdb_txn_begin");
    const int opened = mdb_dbi_open(transaction, nullptr, 0, &table_);
    if (opened != 0) mdb_txn_abort(transaction);
    check(opened, "mdb_dbi_open");
    check(mdb_txn_commit(transaction), "mdb_txn_commit");
  } catch (...) {
    mdb_env_close(env_);
    throw;
  }
}

Database::~Database() { mdb_env_close(env_); }

std::uint64_t Database::entries() const {
  MDB_stat stat{};
  check(mdb_env_stat(env_, &stat), "mdb_env_stat");
  return stat.ms_entries;
}

Database::WriteTransaction::WriteTransaction(Database& database) : database_(database) {
  check(mdb_txn_begin(database.env_, nullptr, 0, &transaction_), "mdb_txn_begin");
}

Database::WriteTransaction::~WriteTransaction() {
  if (transaction_ != nullptr) mdb_txn_abort(transaction_);
}

const Datum* Database::WriteTransaction::get(Datum key) {
  MDB_val name = value_of(key);
  MDB_val value{};
  const int code = mdb_get(transaction_, database_.table_, &name, &value);
  if (code == MDB_NOTFOUND) return nullptr;
  check(code, "mdb_get");
  found_ = datum_of(value);
  return &found_;
}

void Database::WriteTransaction::put(Datum key, Datum value) {
  MDB_val name = value_of(key);
  MDB_val contents = value_of(value);
  check(mdb_put(transaction_, database_.table_, &name, &contents, 0), "mdb_put");
}

bool Database::WriteTransaction::erase(Datum key) {
  MDB_val name = value_of(key);
  const int code = mdb_del(transaction_, database_.table_, &name, nullptr);
  if (code == MDB_NOTFOUND) return false;
  check(code, "mdb_del");
  return true;
}

void Database::WriteTransaction::commit() {
  check(mdb_txn_commit(std::exchange(transaction_, nullptr)), "mdb_txn_commit");
}

Database::ReadTransaction::ReadTransaction(Database& database) : database_(database) {
  check(mdb_txn_begin(database.env_, nullptr, MDB_RDONLY, &transaction_), "mdb_txn_begin");
  const int opened = mdb_cursor_open(transaction_, database.table_, &cursor_);
  if (opened != 0) mdb_txn_abort(transaction_);
  check(opened, "mdb_cursor_open");
  mdb_txn_reset(transaction_);
}

Database::ReadTransaction::~ReadTransaction() {
  mdb_cursor_close(cursor_);
  mdb_txn_abort(transaction_);
}

bool Database::ReadTransaction::get(Datum key, const std::function<void(Datum)>& use) {
  check(mdb_txn_renew(transaction_), "mdb_txn_renew");
  MDB_val name = value_of(key);
  MDB_val value{};
  const int code = mdb_get(transaction_, database_.table_, &name, &value);
  if (code == 0) use(datum_of(value));
  mdb_txn_reset(transaction_);
  if (code == MDB_NOTFOUND) return false;
  check(code, "mdb_get");
  return true;
}

std::uint64_t Database::ReadTransaction::scan(Datum from, std::uint64_t count,
                                              const std::function<void(Datum, Datum)>& use) {
  check(mdb_txn_renew(transaction_), "mdb_txn_renew");
  check(mdb_cursor_renew(transaction_, cursor_), "mdb_cursor_renew");
  MDB_val name = value_of(from);
  MDB_val value{};
  std::uint64_t found = 0;
  int code = count == 0 ? MDB_NOTFOUND : mdb_cursor_get(cursor_, &name, &value, MDB_SET_RANGE);
  while (code == 0) {
    use(datum_of(name), datum_of(value));
    if (++found == count) break;
    code = mdb_cursor_get(cursor_, &name, &value, MDB_NEXT);
  }
  mdb_txn_reset(transaction_);
  if (code != MDB_NOTFOUND) check(code, "mdb_cursor_get");
  return found;
}

}  // namespace perdura::bench::lmdb
