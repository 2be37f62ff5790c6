/* Appends each line of its input to a remote log, as append.cc does, in C. */
#include <perdura_c.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
  char line[4096];
  perdura_log_client* client = NULL;
  perdura_log_options options;
  perdura_status status;
  if (count != 2 || arguments[1][0] == '-') {
    fprintf(stderr,
            "usage: append_in_c JOB\n"
            "appends each line of its input to the log that `serve JOB ...` serves, and prints its "
            "number\n");
    return 2;
  }
  options = perdura_log_options_of(arguments[1]);
  status = perdura_log_client_open(&options, &client);
  while (status == PERDURA_OK && fgets(line, sizeof line, stdin) != NULL) {
    uint64_t number = 0;
    status = perdura_log_client_append(client, line, strcspn(line, "\n"), &number);
    if (status == PERDURA_OK) printf("%" PRIu64 "\n", number); /* now it is persistent */
  }
  if (status != PERDURA_OK) fprintf(stderr, "append_in_c: %s\n", perdura_last_error());
  perdura_log_client_close(client);
  return status == PERDURA_OK ? 0 : 1;
}
