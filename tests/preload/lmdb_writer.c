/* A program that knows nothing of Mojim: one transaction of LMDB after the other, each with an
 * entry of its own number and the number of the last one. It says the number when the transaction
 * is committed.
 *
 *   lmdb_writer FILE FIRST LAST [map]      map: MDB_WRITEMAP
 *   lmdb_writer FILE FIRST LAST keep       uses no page again that a transaction has been in
 *   lmdb_writer FILE                       checks what is there, and says the number of the last one
 *
 * For machines whose power fails (tests/vm/power_failures), where RECORD is memory that outlives them:
 *
 *   lmdb_writer --recovering RECORD        notes that this life recovers
 *   lmdb_writer FILE --record RECORD       checks, also that nothing is lost that was acknowledged in
 *                                          earlier lives, and goes on until the power fails
 *   lmdb_writer FILE --last RECORD         only checks
 */
#include <fcntl.h>
#include <lmdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kKeys = 500, kLongest = 900 };
enum { kSize = 4 << 20, kKeptSize = 64 << 20 };
enum { kRecovering = 1, kWorking = 2 };

struct record {
  volatile uint64_t phase;
  volatile uint64_t operations;   /* of this life */
  volatile uint64_t acknowledged; /* number of a transaction, of all lives */
};

static void check(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "%s: %s\n", what, mdb_strerror(result));
  exit(1);
}

static void fail(const char* what, uint64_t number) {
  fprintf(stderr, "transaction %lu: %s\n", (unsigned long)number, what);
  exit(1);
}

static struct record* map_record(const char* path) {
  const int file = open(path, O_RDWR);
  void* memory = MAP_FAILED;
  if (file >= 0) memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    perror(path);
    exit(1);
  }
  return memory;
}

/* The entry that a transaction leaves. */
struct entry {
  char key[16];
  char text[kLongest];
  MDB_val name;
  MDB_val value;
};

static void make_entry(struct entry* entry, uint64_t number) {
  entry->name.mv_data = entry->key;
  entry->name.mv_size =
      (size_t)snprintf(entry->key, sizeof entry->key, "%08lu", (unsigned long)(number % kKeys));
  memset(entry->text, 'a' + (int)(number % 26), sizeof entry->text);
  entry->value.mv_data = entry->text;
  entry->value.mv_size = 1 + (size_t)(number * 37 % kLongest);
}

/* The number of the last transaction; 0 if there is none. */
static uint64_t check_all(MDB_env* env) {
  MDB_txn* txn;
  MDB_dbi dbi;
  MDB_val head = {4, "last"};
  MDB_val found;
  MDB_stat stat;
  uint64_t last;
  uint64_t number;
  struct entry entry;
  check(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), "begin");
  check(mdb_dbi_open(txn, NULL, 0, &dbi), "open");
  check(mdb_stat(txn, dbi, &stat), "stat");
  if (mdb_get(txn, dbi, &head, &found) == MDB_NOTFOUND) {
    if (stat.ms_entries != 0) fail("there are entries and no last one", 0);
    mdb_txn_abort(txn);
    return 0;
  }
  if (found.mv_size != sizeof last) fail("the last one has no number", 0);
  memcpy(&last, found.mv_data, sizeof last);
  if (stat.ms_entries != 1 + (last < kKeys ? last : kKeys)) fail("the number of entries", last);
  for (number = last > kKeys ? last - kKeys + 1 : 1; number <= last; ++number) {
    make_entry(&entry, number);
    if (mdb_get(txn, dbi, &entry.name, &found) != 0) fail("is missing", number);
    if (found.mv_size != entry.value.mv_size ||
        memcmp(found.mv_data, entry.text, found.mv_size) != 0) {
      fail("has another value", number);
    }
  }
  mdb_txn_abort(txn);
  return last;
}

static void commit(MDB_env* env, uint64_t number) {
  MDB_txn* txn;
  MDB_dbi dbi;
  MDB_val head = {4, "last"};
  MDB_val own = {sizeof number, &number};
  struct entry entry;
  make_entry(&entry, number);
  check(mdb_txn_begin(env, NULL, 0, &txn), "begin");
  check(mdb_dbi_open(txn, NULL, 0, &dbi), "open");
  check(mdb_put(txn, dbi, &entry.name, &entry.value, 0), "put");
  check(mdb_put(txn, dbi, &head, &own, 0), "put");
  check(mdb_txn_commit(txn), "commit");
}

/* Without a size: the one that the file has been written with. */
static MDB_env* open_file(const char* file, unsigned flags, size_t size) {
  MDB_env* env;
  check(mdb_env_create(&env), "create");
  if (size > 0) check(mdb_env_set_mapsize(env, size), "map size");
  check(mdb_env_open(env, file, MDB_NOSUBDIR | flags, 0644), file);
  return env;
}

static int use_record(const char* file, const char* how, struct record* record) {
  MDB_env* env = open_file(file, 0, kSize);
  uint64_t number = check_all(env);
  printf("%lu transactions, of which %lu were acknowledged\n", (unsigned long)number,
         (unsigned long)record->acknowledged);
  if (number < record->acknowledged) fail("was acknowledged, and is lost", record->acknowledged);
  if (number > record->acknowledged + 1) fail("was never made", number);
  fflush(stdout);
  if (strcmp(how, "--last") == 0) return 0;
  record->phase = kWorking;
  for (;;) {
    commit(env, ++number);
    record->acknowledged = number;
    ++record->operations;
  }
}

int main(int count, char** arguments) {
  const char* how;
  MDB_env* env;
  uint64_t number;
  uint64_t last;
  if (count == 2) {
    env = open_file(arguments[1], MDB_RDONLY | MDB_NOLOCK, 0);
    printf("%lu\n", (unsigned long)check_all(env));
    return 0;
  }
  if (count == 3 && strcmp(arguments[1], "--recovering") == 0) {
    map_record(arguments[2])->phase = kRecovering;
    return 0;
  }
  if (count < 4) return 2;
  if (arguments[2][0] == '-') return use_record(arguments[1], arguments[2], map_record(arguments[3]));
  how = count > 4 ? arguments[4] : "";
  if (strcmp(how, "keep") == 0) {
    MDB_txn* reader; /* of what there is now, and never ends */
    env = open_file(arguments[1], MDB_NOTLS, kKeptSize);
    check(mdb_txn_begin(env, NULL, MDB_RDONLY, &reader), "begin");
  } else {
    env = open_file(arguments[1], strcmp(how, "map") == 0 ? MDB_WRITEMAP : 0, kSize);
  }
  last = strtoull(arguments[3], NULL, 10);
  for (number = strtoull(arguments[2], NULL, 10); number <= last; ++number) {
    commit(env, number);
    dprintf(1, "%lu\n", (unsigned long)number);
  }
  mdb_env_close(env);
  return 0;
}
