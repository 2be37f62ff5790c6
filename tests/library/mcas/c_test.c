/* c_test JOB [ADDRESS]: the calls for C of a client of shard 0, which is served meanwhile. */
#include <perdura_objects_c.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, perdura_last_error());       \
      return 1;                                                                               \
    }                                                                                         \
  } while (0)
#define IS_OK(call) CHECK((call) == PERDURA_OBJECTS_OK)

enum { kSize = 1 << 20 };

static int keys_and_values(perdura_pool* pool) {
  void* value = NULL;
  size_t length = 0;
  uint64_t value_length = 0;
  perdura_pool_attributes attributes;
  IS_OK(perdura_put(pool, "k", 1, "value", 5, 0));
  CHECK(perdura_put(pool, "k", 1, "v", 1, PERDURA_PUT_NO_OVERWRITE) == PERDURA_OBJECTS_EXISTS);
  CHECK(strcmp(perdura_last_error(), "exists") == 0);
  IS_OK(perdura_get(pool, "k", 1, &value, &length));
  CHECK(length == 5 && strcmp(value, "value") == 0);
  perdura_free_memory(value);
  IS_OK(perdura_get_key_attributes(pool, "k", 1, &value_length));
  CHECK(value_length == 5);
  IS_OK(perdura_get_attributes(pool, &attributes));
  CHECK(attributes.items == 1 && attributes.has_index == 0 && attributes.free > 0);
  CHECK(perdura_put(pool, "k", 1, "v", (size_t)-1, 0) == PERDURA_OBJECTS_INVALID);
  CHECK(strcmp(perdura_last_error(),
               "the value has 18446744073709551615 bytes, more than memory can have; was its length "
               "negative?") == 0);
  IS_OK(perdura_put(pool, "empty", 5, NULL, 0, 0));
  IS_OK(perdura_erase(pool, "k", 1));
  CHECK(perdura_get(pool, "k", 1, &value, &length) == PERDURA_OBJECTS_NOT_FOUND);
  IS_OK(perdura_erase(pool, "empty", 5));
  return 0;
}

static int index_of_keys(perdura_pool* pool) {
  void* key = NULL;
  size_t length = 0;
  uint64_t position = 0;
  IS_OK(perdura_configure_pool(pool, "AddIndex::VolatileTree"));
  IS_OK(perdura_put(pool, "a1", 2, "", 0, 0));
  IS_OK(perdura_put(pool, "b1", 2, "", 0, 0));
  IS_OK(perdura_find(pool, "b", 1, PERDURA_MATCH_PREFIX, &position, &key, &length));
  CHECK(position == 1 && length == 2 && strcmp(key, "b1") == 0);
  perdura_free_memory(key);
  ++position;
  CHECK(perdura_find(pool, "b", 1, PERDURA_MATCH_PREFIX, &position, &key, &length) ==
        PERDURA_OBJECTS_NOT_FOUND);
  CHECK(perdura_find(pool, "b", 1, 4, &position, &key, &length) == PERDURA_OBJECTS_INVALID);
  return 0;
}

static int direct_transfers(perdura_client* client, perdura_pool* pool) {
  perdura_direct_memory* memory = NULL;
  uint64_t length = 0;
  IS_OK(perdura_register_direct_memory(client, kSize, &memory));
  char* const bytes = perdura_direct_memory_address(memory);
  memset(bytes, 'x', kSize);
  IS_OK(perdura_put_direct(pool, "large", 5, memory, 0, kSize, 0));
  memcpy(bytes, "part", 4);
  IS_OK(perdura_put_direct_offset(pool, "large", 5, 100, memory, 0, 4));
  memset(bytes, 0, kSize);
  IS_OK(perdura_get_direct(pool, "large", 5, memory, 0, kSize, &length));
  CHECK(length == kSize && bytes[99] == 'x' && memcmp(bytes + 100, "partx", 5) == 0);
  IS_OK(perdura_get_direct_offset(pool, "large", 5, 101, memory, 0, 3));
  CHECK(memcmp(bytes, "art", 3) == 0);
  CHECK(perdura_get_direct(pool, "large", 5, memory, 0, kSize - 1, NULL) ==
        PERDURA_OBJECTS_TOO_LARGE);

  perdura_async* async = NULL;
  IS_OK(perdura_async_put_direct(pool, "other", 5, memory, 0, 3, 0, &async));
  IS_OK(perdura_async_take(&async));
  IS_OK(perdura_async_put_direct_offset(pool, "other", 5, 1, memory, 0, 1, &async));
  IS_OK(perdura_async_take(&async));
  IS_OK(perdura_async_get_direct_offset(pool, "other", 5, 0, memory, 8, 2, &async));
  IS_OK(perdura_async_take(&async));
  CHECK(memcmp(bytes + 8, "aa", 2) == 0);
  IS_OK(perdura_async_get_direct(pool, "other", 5, memory, 16, 3, &async));
  IS_OK(perdura_async_take_length(&async, &length));
  CHECK(length == 3 && memcmp(bytes + 16, "aat", 3) == 0);
  perdura_unregister_direct_memory(memory);
  return 0;
}

static int asynchronous(perdura_pool* pool) {
  perdura_async* puts[100];
  perdura_async* get = NULL;
  char key[20];
  void* value = NULL;
  size_t length = 0;
  for (int i = 0; i < 100; ++i) {
    sprintf(key, "key %d", i);
    IS_OK(perdura_async_put(pool, key, strlen(key), key, strlen(key), 0, &puts[i]));
  }
  for (int i = 0; i < 100; ++i) IS_OK(perdura_async_take(&puts[i]));
  CHECK(puts[0] == NULL);
  CHECK(perdura_async_take(&puts[0]) == PERDURA_OBJECTS_INVALID);
  IS_OK(perdura_async_get(pool, "key 42", 6, &get));
  while (!perdura_check_async_completion(get)) {
  }
  CHECK(perdura_async_take(&get) == PERDURA_OBJECTS_INVALID); /* it has a value */
  IS_OK(perdura_async_take_value(&get, &value, &length));
  CHECK(length == 6 && strcmp(value, "key 42") == 0);
  perdura_free_memory(value);
  IS_OK(perdura_async_erase(pool, "key 42", 6, &get));
  IS_OK(perdura_async_take(&get));
  IS_OK(perdura_async_get(pool, "key 42", 6, &get));
  CHECK(perdura_async_take_value(&get, &value, &length) == PERDURA_OBJECTS_NOT_FOUND);
  IS_OK(perdura_async_get(pool, "key 41", 6, &get));
  perdura_async_drop(get);
  return 0;
}

/* The shard has no active data objects, or answers. */
static int invocations(perdura_pool* pool) {
  perdura_answers* answers = NULL;
  perdura_async* async = NULL;
  perdura_objects_status status = perdura_invoke_ado(
      pool, "ado", 3, "request", 7, 8, PERDURA_INVOKE_CREATE_ON_DEMAND, &answers);
  CHECK(status == PERDURA_OBJECTS_UNSUPPORTED || status == PERDURA_OBJECTS_OK);
  perdura_answers_free(answers);
  answers = NULL;
  status = perdura_invoke_put_ado(pool, "ado", 3, "request", 7, "v", 1, 0, 0, &answers);
  CHECK(status == PERDURA_OBJECTS_UNSUPPORTED || status == PERDURA_OBJECTS_OK);
  CHECK(perdura_answer(answers, perdura_answers_count(answers), NULL) == NULL);
  perdura_answers_free(answers);
  answers = NULL;
  IS_OK(perdura_async_invoke_ado(pool, "ado", 3, "request", 7, 8, 0, &async));
  status = perdura_async_take_answers(&async, &answers);
  CHECK(status == PERDURA_OBJECTS_UNSUPPORTED || status == PERDURA_OBJECTS_OK);
  perdura_answers_free(answers);
  answers = NULL;
  IS_OK(perdura_async_invoke_put_ado(pool, "ado", 3, "r", 1, "v", 1, 0, 0, &async));
  status = perdura_async_take_answers(&async, &answers);
  CHECK(status == PERDURA_OBJECTS_UNSUPPORTED || status == PERDURA_OBJECTS_OK);
  perdura_answers_free(answers);
  CHECK(perdura_invoke_ado(pool, "ado", 3, "request", 7, 8, 64, &answers) ==
        PERDURA_OBJECTS_INVALID);
  return 0;
}

static int mistakes(const char* job) {
  perdura_client_options options = perdura_client_options_of(job, 0);
  perdura_client* client = NULL;
  perdura_pool* pool = NULL;
  CHECK(perdura_client_open(NULL, &client) == PERDURA_OBJECTS_INVALID);
  CHECK(perdura_client_open(&options, NULL) == PERDURA_OBJECTS_INVALID);
  options.job = "with blanks";
  CHECK(perdura_client_open(&options, &client) == PERDURA_OBJECTS_INVALID);
  CHECK(strstr(perdura_last_error(), "a job is a name") != NULL);
  options.job = job;
  options.node = 255;
  options.connect_timeout_ms = 0;
  CHECK(perdura_client_open(&options, &client) == PERDURA_OBJECTS_UNREACHABLE);
  CHECK(perdura_put(pool, "k", 1, "v", 1, 0) == PERDURA_OBJECTS_INVALID);
  IS_OK(perdura_close_pool(NULL));
  perdura_client_close(NULL);
  perdura_unregister_direct_memory(NULL);
  CHECK(perdura_direct_memory_address(NULL) == NULL);
  CHECK(perdura_check_async_completion(NULL) == 1);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  perdura_client_options options = perdura_client_options_of(argv[1], 0);
  perdura_client* client = NULL;
  perdura_pool* pool = NULL;
  perdura_statistics statistics;
  options.address = "no port";
  CHECK(perdura_client_open(&options, &client) == PERDURA_OBJECTS_INVALID);
  options.address = argv[2];
  IS_OK(perdura_client_open(&options, &client));
  CHECK(perdura_open_pool(client, "c", 0, 0, &pool) == PERDURA_OBJECTS_NOT_FOUND);
  CHECK(perdura_create_pool(client, "c", 1 << 20, 8, &pool) == PERDURA_OBJECTS_INVALID);
  CHECK(pool == NULL);
  IS_OK(perdura_create_pool(client, "c", 16 << 20, PERDURA_POOL_CREATE_ONLY, &pool));
  IS_OK(perdura_close_pool(pool));
  IS_OK(perdura_open_pool(client, "c", 0, 0, &pool));
  if (keys_and_values(pool) != 0 || index_of_keys(pool) != 0 ||
      direct_transfers(client, pool) != 0 || asynchronous(pool) != 0 || invocations(pool) != 0 ||
      mistakes(argv[1]) != 0) {
    return 1;
  }
  IS_OK(perdura_get_statistics(client, &statistics));
  CHECK(statistics.pools >= 1 && statistics.sessions == 1 && statistics.puts > 100);
  CHECK(perdura_delete_pool(client, "c") == PERDURA_OBJECTS_BUSY);
  IS_OK(perdura_close_pool(pool));
  IS_OK(perdura_delete_pool(client, "c"));
  perdura_client_close(client);
  puts("done");
  return 0;
}
