/*
 * Pools of keys and values on a shard (MCAS, Tables 1 to 3), for C: the calls of
 * perdura::mcas::Client and Pool, which perdura_objects.h documents, with the names of the tables.
 * Each call returns the status with which the operation has ended; if it is not PERDURA_OBJECTS_OK,
 * perdura_last_error() (perdura_c.h) has the message. An object that a call creates must be freed
 * by the call that is named with it; freeing NULL does nothing.
 *
 *   perdura_client_options options = perdura_client_options_of("accounts", 0);
 *   perdura_client* client;
 *   perdura_pool* pool;
 *   if (perdura_client_open(&options, &client) != PERDURA_OBJECTS_OK) ...
 *   perdura_create_pool(client, "balances", 64 << 20, 0, &pool);
 *   perdura_put(pool, "alice", 5, "100", 3, 0);
 */
#ifndef PERDURA_OBJECTS_C_H
#define PERDURA_OBJECTS_C_H

#include <stddef.h>
#include <stdint.h>

#include "perdura_c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum perdura_objects_status {
  PERDURA_OBJECTS_OK = 0,
  PERDURA_OBJECTS_NOT_FOUND,
  PERDURA_OBJECTS_EXISTS,
  PERDURA_OBJECTS_OUT_OF_SPACE,
  PERDURA_OBJECTS_TOO_LARGE,
  PERDURA_OBJECTS_INVALID, /* also for impossible arguments, such as NULL */
  PERDURA_OBJECTS_NO_PERMISSION,
  PERDURA_OBJECTS_BUSY,
  PERDURA_OBJECTS_LOCKED,
  PERDURA_OBJECTS_UNSUPPORTED,
  PERDURA_OBJECTS_FAILED, /* also anything else */
  PERDURA_OBJECTS_DISCONNECTED,
  PERDURA_OBJECTS_UNREACHABLE,
  PERDURA_OBJECTS_TIMED_OUT
} perdura_objects_status;

/* Flags, to be combined by |. For pools: */
enum {
  PERDURA_POOL_CREATE_ONLY = 1,
  PERDURA_POOL_CREATE_ON_DEMAND = 2,
  PERDURA_POOL_READ_ONLY = 4
};
/* For puts: */
enum { PERDURA_PUT_NO_OVERWRITE = 1 };
/* For calls of active data objects: */
enum {
  PERDURA_INVOKE_CREATE_ON_DEMAND = 1,
  PERDURA_INVOKE_CREATE_ONLY = 2,
  PERDURA_INVOKE_READ_ONLY = 4,
  PERDURA_INVOKE_DETACHED = 8,
  PERDURA_INVOKE_ZERO_NEW_VALUE = 16,
  PERDURA_INVOKE_NO_OVERWRITE = 32
};

/* ---- a client ---- */

typedef struct perdura_client_options {
  const char* job;
  uint32_t node;
  unsigned queue_depth;
  int64_t connect_timeout_ms; /* INT64_MAX: no limit */
  int64_t call_timeout_ms;
  const char* address; /* "HOST:PORT" of a shard on the platform `verbs`; NULL: on this host */
  const char* device;  /* for `verbs`, as shown by ibv_devices; NULL: one is chosen */
  int device_port;     /* from 1; 0: one is chosen */
  int gid_index;       /* as shown by show_gids; -1: one is chosen */
} perdura_client_options;
/* The default options for this shard; the strings must stay valid while the options are used. */
perdura_client_options perdura_client_options_of(const char* job, uint32_t node);

typedef struct perdura_client perdura_client;
typedef struct perdura_pool perdura_pool;

perdura_objects_status perdura_client_open(const perdura_client_options* options,
                                           perdura_client** client);
void perdura_client_close(perdura_client* client);

/* ---- pools ---- */

/* *pool must be freed by perdura_close_pool(), which also closes it. */
perdura_objects_status perdura_create_pool(perdura_client* client, const char* name, uint64_t size,
                                           unsigned flags, perdura_pool** pool);
perdura_objects_status perdura_open_pool(perdura_client* client, const char* name, uint64_t size,
                                         unsigned flags, perdura_pool** pool);
perdura_objects_status perdura_close_pool(perdura_pool* pool);
perdura_objects_status perdura_delete_pool(perdura_client* client, const char* name);
perdura_objects_status perdura_configure_pool(perdura_pool* pool, const char* command);

typedef struct perdura_pool_attributes {
  uint64_t items;
  uint64_t capacity; /* bytes */
  uint64_t free;     /* bytes */
  int has_index;
} perdura_pool_attributes;
perdura_objects_status perdura_get_attributes(perdura_pool* pool,
                                              perdura_pool_attributes* attributes);
perdura_objects_status perdura_get_key_attributes(perdura_pool* pool, const void* key,
                                                  size_t key_length, uint64_t* value_length);

typedef struct perdura_statistics {
  uint64_t requests;
  uint64_t puts;
  uint64_t gets;
  uint64_t erases;
  uint64_t direct_transfers;
  uint64_t invocations;
  uint64_t failed_requests;
  uint64_t sessions;
  uint64_t pools;
} perdura_statistics;
perdura_objects_status perdura_get_statistics(perdura_client* client,
                                              perdura_statistics* statistics);

enum {
  PERDURA_MATCH_EXACT = 0,
  PERDURA_MATCH_PREFIX = 1,
  PERDURA_MATCH_REGULAR_EXPRESSION = 2,
  PERDURA_MATCH_NEXT = 3
};
/* *key must be freed by perdura_free_memory(). The search begins at *position, which then becomes
 * the position of the key found. */
perdura_objects_status perdura_find(perdura_pool* pool, const void* expression,
                                    size_t expression_length, int match, uint64_t* position,
                                    void** key, size_t* key_length);

/* ---- keys and values ---- */

perdura_objects_status perdura_put(perdura_pool* pool, const void* key, size_t key_length,
                                   const void* value, size_t value_length, unsigned flags);
/* *value must be freed by perdura_free_memory(); a zero follows it. */
perdura_objects_status perdura_get(perdura_pool* pool, const void* key, size_t key_length,
                                   void** value, size_t* value_length);
perdura_objects_status perdura_erase(perdura_pool* pool, const void* key, size_t key_length);
void perdura_free_memory(void* memory);

/* ---- direct transfers ---- */

/* Memory that the library allocates, all zeros, since shards reach only memory that is a file of
 * the job. Must be freed by perdura_unregister_direct_memory(), which may be called during
 * operations that use the memory: it takes effect when they have ended. */
typedef struct perdura_direct_memory perdura_direct_memory;
perdura_objects_status perdura_register_direct_memory(perdura_client* client, size_t size,
                                                      perdura_direct_memory** memory);
void* perdura_direct_memory_address(perdura_direct_memory* memory);
void perdura_unregister_direct_memory(perdura_direct_memory* memory);

/* Each transfers a part of the memory: `length` bytes from `at` on. *value_length may be NULL. */
perdura_objects_status perdura_put_direct(perdura_pool* pool, const void* key, size_t key_length,
                                          perdura_direct_memory* memory, size_t at, size_t length,
                                          unsigned flags);
perdura_objects_status perdura_get_direct(perdura_pool* pool, const void* key, size_t key_length,
                                          perdura_direct_memory* memory, size_t at, size_t length,
                                          uint64_t* value_length);
perdura_objects_status perdura_put_direct_offset(perdura_pool* pool, const void* key,
                                                 size_t key_length, uint64_t offset,
                                                 perdura_direct_memory* memory, size_t at,
                                                 size_t length);
perdura_objects_status perdura_get_direct_offset(perdura_pool* pool, const void* key,
                                                 size_t key_length, uint64_t offset,
                                                 perdura_direct_memory* memory, size_t at,
                                                 size_t length);

/* ---- active data objects ---- */

/* The answers: one per response of the shard's plugins. Must be freed by perdura_answers_free(). */
typedef struct perdura_answers perdura_answers;
size_t perdura_answers_count(const perdura_answers* answers);
/* Returns NULL for an index beyond the count. */
const void* perdura_answer(const perdura_answers* answers, size_t index, size_t* length);
void perdura_answers_free(perdura_answers* answers);

perdura_objects_status perdura_invoke_ado(perdura_pool* pool, const void* key, size_t key_length,
                                          const void* request, size_t request_length,
                                          uint64_t value_length, unsigned flags,
                                          perdura_answers** answers);
perdura_objects_status perdura_invoke_put_ado(perdura_pool* pool, const void* key,
                                              size_t key_length, const void* request,
                                              size_t request_length, const void* value,
                                              size_t value_length, uint64_t root_length,
                                              unsigned flags, perdura_answers** answers);

/* ---- asynchronous forms ---- */

/* An operation under way. It is freed by the call that takes its result, which waits for it, or by
 * perdura_async_drop(), after which the operation continues. Direct memory must be left alone until
 * the operation has completed; all other arguments have been copied. */
typedef struct perdura_async perdura_async;

/* Returns 1 if the operation has completed, so that taking its result does not wait, else 0. */
int perdura_check_async_completion(perdura_async* async);
/* Take the result: of any operation; of async_get; of async_get_direct; of calls of active data
 * objects. After PERDURA_OBJECTS_TIMED_OUT the result has not been taken, and *async is unchanged;
 * otherwise *async becomes NULL. */
perdura_objects_status perdura_async_take(perdura_async** async);
perdura_objects_status perdura_async_take_value(perdura_async** async, void** value,
                                                size_t* value_length);
perdura_objects_status perdura_async_take_length(perdura_async** async, uint64_t* value_length);
perdura_objects_status perdura_async_take_answers(perdura_async** async, perdura_answers** answers);
void perdura_async_drop(perdura_async* async);

perdura_objects_status perdura_async_put(perdura_pool* pool, const void* key, size_t key_length,
                                         const void* value, size_t value_length, unsigned flags,
                                         perdura_async** async);
perdura_objects_status perdura_async_get(perdura_pool* pool, const void* key, size_t key_length,
                                         perdura_async** async);
perdura_objects_status perdura_async_erase(perdura_pool* pool, const void* key, size_t key_length,
                                           perdura_async** async);
perdura_objects_status perdura_async_put_direct(perdura_pool* pool, const void* key,
                                                size_t key_length, perdura_direct_memory* memory,
                                                size_t at, size_t length, unsigned flags,
                                                perdura_async** async);
perdura_objects_status perdura_async_get_direct(perdura_pool* pool, const void* key,
                                                size_t key_length, perdura_direct_memory* memory,
                                                size_t at, size_t length, perdura_async** async);
perdura_objects_status perdura_async_put_direct_offset(perdura_pool* pool, const void* key,
                                                       size_t key_length, uint64_t offset,
                                                       perdura_direct_memory* memory, size_t at,
                                                       size_t length, perdura_async** async);
perdura_objects_status perdura_async_get_direct_offset(perdura_pool* pool, const void* key,
                                                       size_t key_length, uint64_t offset,
                                                       perdura_direct_memory* memory, size_t at,
                                                       size_t length, perdura_async** async);
perdura_objects_status perdura_async_invoke_ado(perdura_pool* pool, const void* key,
                                                size_t key_length, const void* request,
                                                size_t request_length, uint64_t value_length,
                                                unsigned flags, perdura_async** async);
perdura_objects_status perdura_async_invoke_put_ado(perdura_pool* pool, const void* key,
                                                    size_t key_length, const void* request,
                                                    size_t request_length, const void* value,
                                                    size_t value_length, uint64_t root_length,
                                                    unsigned flags, perdura_async** async);

#ifdef __cplusplus
}
#endif

#endif
