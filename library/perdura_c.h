/*
 * Perdura for C: the calls of perdura.h, which says what they do, what may throw and which threads
 * may call them. A call that throws there returns a status here, and perdura_last_error() says what
 * the exception said. What a call makes is given back by the function named beside it; giving back
 * NULL does nothing.
 */
#ifndef PERDURA_C_H
#define PERDURA_C_H

#include <stddef.h>
#include <stdint.h>

#include "perdura_version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum perdura_status {
  PERDURA_OK = 0,
  PERDURA_REFUSED,   /* nothing can be made safe */
  PERDURA_INVALID,   /* arguments that cannot be */
  PERDURA_TIMED_OUT, /* and the record, if it was of one, is not in the log and never will be */
  PERDURA_IN_DOUBT,  /* timed out while a record was under way: it may be in the log, once */
  PERDURA_OPTIONS_DIFFER, /* of client and server, or of now and when the log was made */
  PERDURA_FAILED          /* anything else */
} perdura_status;

/* Of the last call of this thread that did not return PERDURA_OK; until its next call. */
const char* perdura_last_error(void);
/* Of the library that is linked; PERDURA_VERSION is that of the header. */
const char* perdura_version(void);

/* A truth that may not be known. */
#define PERDURA_UNKNOWN (-1)
enum { PERDURA_DMP = 0, PERDURA_MHP = 1, PERDURA_WSP = 2 };
enum { PERDURA_INFINIBAND = 0, PERDURA_ROCE = 1, PERDURA_IWARP = 2 };

typedef struct perdura_configuration {
  int domain; /* PERDURA_DMP, ... or PERDURA_UNKNOWN */
  int ddio;   /* 0, 1 or PERDURA_UNKNOWN; so are those below */
  int receive_buffers_in_pm;
  int transport; /* PERDURA_INFINIBAND, ... or PERDURA_UNKNOWN */
  int flush;
  int flush_persistence;
  int atomic_write;
} perdura_configuration;
#define PERDURA_CONFIGURATION_UNKNOWN \
  { -1, -1, -1, -1, -1, -1, -1 }

typedef struct perdura_update {
  int ordered;
  size_t size;        /* bytes */
  size_t second_size; /* bytes */
  int responder_cpu;
  int replay;
} perdura_update;
#define PERDURA_UPDATE_DEFAULT \
  { 0, 64, 8, 1, 1 }

/* ---- choosing ---- */

typedef struct perdura_choices perdura_choices;

enum { PERDURA_REQUESTER = 0, PERDURA_RESPONDER = 1 };
typedef enum perdura_action {
  PERDURA_WRITE = 0,
  PERDURA_WRITE_IMMEDIATE,
  PERDURA_SEND,
  PERDURA_SEND_NAMES,
  PERDURA_ATOMIC_WRITE,
  PERDURA_READ,
  PERDURA_FLUSH_VISIBILITY,
  PERDURA_FLUSH_PERSISTENCE,
  PERDURA_COMPLETION,
  PERDURA_RECEIVE_ACK,
  PERDURA_RECEIVE,
  PERDURA_COPY,
  PERDURA_FLUSH,
  PERDURA_SEND_ACK
} perdura_action;

typedef struct perdura_step {
  int agent; /* PERDURA_REQUESTER or PERDURA_RESPONDER */
  perdura_action action;
  int first;  /* it is about the update, or the first of two */
  int second; /* it is about the second */
  int fenced;
  const char* text; /* as long as the choices are there; so is the reason */
  const char* reason;
} perdura_step;

/* Of this machine; *choices is given back by perdura_choices_free(). */
perdura_status perdura_choose(const perdura_configuration* configuration,
                              const perdura_update* update, perdura_choices** choices);
/* Of a responder that described itself as JSON (perdura doctor --json, perdura_this_responder());
 * the features are the requester's device's, 0 or 1. */
perdura_status perdura_choose_for(const char* responder_json, const perdura_update* update,
                                  int flush, int flush_persistence, int atomic_write,
                                  perdura_choices** choices);
/* *json is given back by perdura_string_free(). */
perdura_status perdura_this_responder(char** json);

size_t perdura_choices_count(const perdura_choices* choices); /* the best is number 0 */
/* NULL, 0 and PERDURA_INVALID beyond the count. */
const char* perdura_choice_method(const perdura_choices* choices, size_t choice);
size_t perdura_choice_steps(const perdura_choices* choices, size_t choice);
perdura_status perdura_choice_step(const perdura_choices* choices, size_t choice, size_t step,
                                   perdura_step* into);
void perdura_choices_free(perdura_choices* choices);
void perdura_string_free(char* string);

/* ---- a log ---- */

typedef struct perdura_log_options {
  const char* job;
  const char* directory; /* NULL or "": memory that goes away with the job */
  int emulated;
  perdura_configuration configuration;
  int ordered;
  size_t largest_record; /* bytes */
  uint64_t records;
  int64_t connect_timeout_ms; /* INT64_MAX: for ever */
  int64_t append_timeout_ms;
  int64_t stop_timeout_ms;
} perdura_log_options;
/* The defaults, for this job; it must stay until the options have been used. */
perdura_log_options perdura_log_options_of(const char* job);

typedef struct perdura_log_client perdura_log_client;
perdura_status perdura_log_client_open(const perdura_log_options* options,
                                       perdura_log_client** client);
/* *number may be NULL. */
perdura_status perdura_log_client_append(perdura_log_client* client, const void* record,
                                         size_t length, uint64_t* number);
uint64_t perdura_log_client_tail(const perdura_log_client* client);
const char* perdura_log_client_method(const perdura_log_client* client);
void perdura_log_client_close(perdura_log_client* client);

typedef struct perdura_log_server perdura_log_server;
/* Anything but 0 ends perdura_log_server_run() with PERDURA_FAILED; the record is given again. */
typedef int (*perdura_apply)(void* context, uint64_t number, const void* record, size_t length);
perdura_status perdura_log_server_open(const perdura_log_options* options, perdura_apply apply,
                                       void* context, perdura_log_server** server);
perdura_status perdura_log_server_run(perdura_log_server* server);
void perdura_log_server_stop(perdura_log_server* server);
void perdura_log_server_close(perdura_log_server* server);

#ifdef __cplusplus
}
#endif

#endif
