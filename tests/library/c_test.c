/* The calls for C, from C: a choice, a log with its two sides, and what goes wrong. Ends with the
 * number of the line at which something was not as it should be. c_test JOB DIRECTORY */
#include <perdura_c.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                                           \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "line %d: not %s (%s)\n", __LINE__, #condition, perdura_last_error()); \
      return __LINE__ % 255 + 1;                                                    \
    }                                                                               \
  } while (0)

struct kept {
  perdura_log_server* server;
  uint64_t last;
  int wrong;
  perdura_status ended;
};

static int apply(void* context, uint64_t number, const void* record, size_t length) {
  struct kept* kept = context;
  if (length != 5 || memcmp(record, "hello", 5) != 0 || number != kept->last + 1) kept->wrong = 1;
  kept->last = number;
  if (number == 3) perdura_log_server_stop(kept->server);
  return number > 3;
}

static void* serve(void* context) {
  struct kept* kept = context;
  kept->ended = perdura_log_server_run(kept->server);
  return NULL;
}

static int choosing(void) {
  perdura_configuration configuration = PERDURA_CONFIGURATION_UNKNOWN;
  perdura_update update = PERDURA_UPDATE_DEFAULT;
  perdura_choices* choices = NULL;
  perdura_step step;
  char* json = NULL;
  configuration.domain = PERDURA_WSP;
  configuration.transport = PERDURA_ROCE;
  EXPECT(perdura_choose(&configuration, &update, &choices) == PERDURA_OK);
  EXPECT(perdura_choices_count(choices) > 0);
  EXPECT(strcmp(perdura_choice_method(choices, 0), "write") == 0);
  EXPECT(perdura_choice_steps(choices, 0) == 2);
  EXPECT(perdura_choice_step(choices, 0, 0, &step) == PERDURA_OK);
  EXPECT(step.agent == PERDURA_REQUESTER && step.action == PERDURA_WRITE && step.first &&
         !step.second && strcmp(step.text, "write a") == 0);
  EXPECT(perdura_choice_step(choices, 0, 1, &step) == PERDURA_OK);
  EXPECT(step.action == PERDURA_COMPLETION);
  EXPECT(perdura_choice_step(choices, 0, 2, &step) == PERDURA_INVALID);
  EXPECT(perdura_choice_method(choices, 1000) == NULL);
  perdura_choices_free(choices);

  configuration.domain = PERDURA_DMP;
  configuration.ddio = 1;
  update.responder_cpu = 0;
  EXPECT(perdura_choose(&configuration, &update, &choices) == PERDURA_REFUSED);
  EXPECT(strstr(perdura_last_error(), "DMP with DDIO") != NULL);
  configuration.domain = 3;
  EXPECT(perdura_choose(&configuration, &update, &choices) == PERDURA_INVALID);
  EXPECT(perdura_choose(NULL, &update, &choices) == PERDURA_INVALID);

  update.responder_cpu = 1;
  EXPECT(perdura_this_responder(&json) == PERDURA_OK);
  EXPECT(perdura_choose_for(json, &update, 0, 0, 0, &choices) == PERDURA_OK);
  perdura_choices_free(choices);
  perdura_string_free(json);
  EXPECT(perdura_choose_for("{}", &update, 0, 0, 0, &choices) == PERDURA_INVALID);
  return 0;
}

int main(int count, char** arguments) {
  struct kept kept = {NULL, 0, 0, PERDURA_FAILED};
  perdura_log_client* client = NULL;
  pthread_t thread;
  uint64_t number = 0;
  int i;
  perdura_log_options options;
  if (count != 3) return 2;
  EXPECT(strcmp(perdura_version(), PERDURA_VERSION) == 0);
  i = choosing();
  if (i != 0) return i;

  options = perdura_log_options_of(arguments[1]);
  options.directory = arguments[2];
  EXPECT(perdura_log_server_open(&options, apply, &kept, &kept.server) == PERDURA_INVALID);
  options.emulated = 1;
  options.stop_timeout_ms = 60000;
  EXPECT(perdura_log_server_open(&options, NULL, &kept, &kept.server) == PERDURA_INVALID);
  EXPECT(perdura_log_server_open(&options, apply, &kept, &kept.server) == PERDURA_OK);
  EXPECT(pthread_create(&thread, NULL, serve, &kept) == 0);
  EXPECT(perdura_log_client_open(&options, &client) == PERDURA_OK);
  EXPECT(perdura_log_client_method(client)[0] != '\0');
  for (i = 1; i <= 3; ++i) {
    EXPECT(perdura_log_client_append(client, "hello", 5, &number) == PERDURA_OK);
    EXPECT(number == (uint64_t)i && perdura_log_client_tail(client) == number);
  }
  EXPECT(pthread_join(thread, NULL) == 0);
  EXPECT(kept.ended == PERDURA_OK && kept.last == 3 && !kept.wrong);
  perdura_log_server_close(kept.server);
  perdura_log_client_close(client);

  options.connect_timeout_ms = 10;
  EXPECT(perdura_log_client_open(&options, &client) == PERDURA_TIMED_OUT);
  options.records = 0;
  EXPECT(perdura_log_client_open(&options, &client) == PERDURA_INVALID);
  EXPECT(perdura_log_client_open(NULL, &client) == PERDURA_INVALID);
  perdura_log_client_close(NULL);
  puts("as it should be");
  return 0;
}
