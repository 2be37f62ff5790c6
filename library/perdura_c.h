/*
 * Perdura for C: the calls of perdura.h, which documents what they do, what they throw and which
 * threads may call them. Where the C++ call throws, the C call returns a status, and
 * perdura_last_error() returns the exception's message. An object that a call creates must be freed
 * by the function named with that call, or by the matching close function; freeing NULL does
 * nothing.
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
  PERDURA_REFUSED,   /* no method is safe */
  PERDURA_INVALID,   /* impossible arguments */
  PERDURA_TIMED_OUT, /* an append's record is not in the log and never will be */
  PERDURA_IN_DOUBT,  /* timed out in the middle of an append: the record may be in the log, once */
  PERDURA_OPTIONS_DIFFER, /* client and server, or server and existing log, differ in options */
  PERDURA_FAILED          /* anything else */
} perdura_status;

/* The message of this thread's last call that did not return PERDURA_OK; valid until the thread's
 * next call. */
const char* perdura_last_error(void);
/* The version of the linked library; PERDURA_VERSION is the version of the header. */
const char* perdura_version(void);

/* The value of a property that is not known. */
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
  int atomics;
} perdura_configuration;
#define PERDURA_CONFIGURATION_UNKNOWN \
  { -1, -1, -1, -1, -1, -1, -1, -1 }

/* How the second update sets a link to the first one, which others read. */
enum { PERDURA_PUBLISH_NO = 0, PERDURA_PUBLISH_BY_CAS = 1, PERDURA_PUBLISH_BY_WRITE = 2 };

typedef struct perdura_update {
  int ordered;
  size_t size;        /* bytes */
  size_t second_size; /* bytes */
  int responder_cpu;
  int replay;
  int publish; /* PERDURA_PUBLISH_NO, ... */
} perdura_update;
#define PERDURA_UPDATE_DEFAULT \
  { 0, 64, 8, 1, 1, PERDURA_PUBLISH_NO }

/* ---- choosing ---- */

typedef struct perdura_choices perdura_choices;

enum {
  PERDURA_REQUESTER = 0,
  PERDURA_RESPONDER = 1,
  PERDURA_READER = 2,
  PERDURA_RESPONDER_OF_READER = 3
};
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
  PERDURA_SEND_ACK,
  PERDURA_COMPARE_AND_SWAP,
  PERDURA_READ_LINK
} perdura_action;

typedef struct perdura_step {
  int agent; /* PERDURA_REQUESTER, ... */
  perdura_action action;
  int first;  /* concerns the only or first update */
  int second; /* concerns the second update */
  int fenced;
  const char* text; /* text and reason are valid until the choices are freed */
  const char* reason;
  int unmarks; /* sets the link without the mark that it bore */
} perdura_step;

/* Chooses for this machine; *choices must be freed by perdura_choices_free(). */
perdura_status perdura_choose(const perdura_configuration* configuration,
                              const perdura_update* update, perdura_choices** choices);
/* Chooses for a responder that described itself as JSON (perdura doctor --json,
 * perdura_this_responder()); the features are those of the requester's device, 0 or 1. *choices
 * must be freed by perdura_choices_free(). */
perdura_status perdura_choose_for(const char* responder_json, const perdura_update* update,
                                  int flush, int flush_persistence, int atomic_write,
                                  perdura_choices** choices);
/* *json must be freed by perdura_string_free(). */
perdura_status perdura_this_responder(char** json);

size_t perdura_choices_count(const perdura_choices* choices); /* the best is number 0 */
/* For an index beyond the count, these return NULL, 0 and PERDURA_INVALID. */
const char* perdura_choice_method(const perdura_choices* choices, size_t choice);
size_t perdura_choice_steps(const perdura_choices* choices, size_t choice);
perdura_status perdura_choice_step(const perdura_choices* choices, size_t choice, size_t step,
                                   perdura_step* into);
/* For updates that publish: what readers must do before they rely on a link; else "". Valid until
 * the choices are freed. */
const char* perdura_choice_readers(const perdura_choices* choices, size_t choice);
int perdura_choice_marks(const perdura_choices* choices, size_t choice);
void perdura_choices_free(perdura_choices* choices);
void perdura_string_free(char* string);

/* ---- a log ---- */

typedef struct perdura_log_options {
  const char* job;
  const char* directory; /* NULL or "": memory that is freed when the job ends */
  int emulated;
  perdura_configuration configuration;
  int ordered;
  size_t largest_record; /* bytes */
  uint64_t records;
  int64_t connect_timeout_ms; /* INT64_MAX: no limit */
  int64_t append_timeout_ms;
  int64_t stop_timeout_ms;
} perdura_log_options;
/* The default options for this job; the string must stay valid while the options are used. */
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
/* A result other than 0 ends perdura_log_server_run() with PERDURA_FAILED; the record will be
 * passed again later. */
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
