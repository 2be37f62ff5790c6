/* A program that knows nothing of Mojim: one transaction of LMDB after the other, each with an
 * entry of its own number and the number of the last one. It says the number when the transaction
 * is committed.
 *
 *   lmdb_writer FILE FIRST LAST [map]      map: MDB_WRITEMAP
 */
#include <lmdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "%s: %s\n", what, mdb_strerror(result));
  exit(1);
}

int main(int count, char** arguments) {
  MDB_env* env;
  uint64_t number;
  uint64_t last;
  unsigned flags = MDB_NOSUBDIR;
  if (count < 4) return 2;
  if (count > 4 && strcmp(arguments[4], "map") == 0) flags |= MDB_WRITEMAP;
  check(mdb_env_create(&env), "create");
  check(mdb_env_set_mapsize(env, 4 << 20), "map size");
  check(mdb_env_open(env, arguments[1], flags, 0644), arguments[1]);
  last = strtoull(arguments[3], NULL, 10);
  for (number = strtoull(arguments[2], NULL, 10); number <= last; ++number) {
    MDB_txn* txn;
    MDB_dbi dbi;
    char text[900];
    char key[16];
    const int length = 1 + (int)(number * 37 % sizeof text);
    MDB_val name = {(size_t)snprintf(key, sizeof key, "%08lu", (unsigned long)(number % 500)), key};
    MDB_val value = {(size_t)length, text};
    MDB_val head = {4, "last"};
    MDB_val own = {sizeof number, &number};
    memset(text, 'a' + (int)(number % 26), sizeof text);
    check(mdb_txn_begin(env, NULL, 0, &txn), "begin");
    check(mdb_dbi_open(txn, NULL, 0, &dbi), "open");
    check(mdb_put(txn, dbi, &name, &value, 0), "put");
    check(mdb_put(txn, dbi, &head, &own, 0), "put");
    check(mdb_txn_commit(txn), "commit");
    dprintf(1, "%lu\n", (unsigned long)number);
  }
  mdb_env_close(env);
  return 0;
}
