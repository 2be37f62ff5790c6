#include <cstdlib>
#include <cstring>
#include <new>

#include "library/c_errors.h"
#include "library/perdura.h"
#include "library/perdura_c.h"

// The opaque types of the C header wrap the types of the C++ library.
struct perdura_choices {
  std::vector<perdura::Choice> all;
};
struct perdura_log_client {
  perdura::LogClient log;
};
struct perdura_log_server {
  perdura::LogServer log;
};

namespace {

using perdura::Action;

// Actions, agents, domains and transports have the same numbers in both headers, so values are cast
// between them.
static_assert(static_cast<int>(Action::write) == PERDURA_WRITE);
static_assert(static_cast<int>(Action::receive) == PERDURA_RECEIVE);
static_assert(static_cast<int>(Action::send_ack) == PERDURA_SEND_ACK);
static_assert(static_cast<int>(Action::read_link) == PERDURA_READ_LINK);
static_assert(static_cast<int>(perdura::Agent::responder) == PERDURA_RESPONDER);
static_assert(static_cast<int>(perdura::Agent::responder_of_reader) == PERDURA_RESPONDER_OF_READER);
static_assert(static_cast<int>(perdura::Publish::by_write) == PERDURA_PUBLISH_BY_WRITE);
static_assert(static_cast<int>(perdura::Domain::wsp) == PERDURA_WSP);
static_assert(static_cast<int>(perdura::Transport::iwarp) == PERDURA_IWARP);

using perdura::library::guarded;
using perdura::library::needed;

std::optional<bool> truth(int value, const char* what) {
  if (value == PERDURA_UNKNOWN) return std::nullopt;
  if (value != 0 && value != 1) {
    throw std::invalid_argument(std::string(what) + " is none of 0, 1 and PERDURA_UNKNOWN");
  }
  return value == 1;
}

template <class Value>
std::optional<Value> one_of_three(int value, const char* what) {
  if (value == PERDURA_UNKNOWN) return std::nullopt;
  if (value < 0 || value > 2) {
    throw std::invalid_argument(std::string(what) + " is none that perdura_c.h names");
  }
  return static_cast<Value>(value);
}

perdura::Configuration read(const perdura_configuration& given) {
  return {.domain = one_of_three<perdura::Domain>(given.domain, "domain"),
          .ddio = truth(given.ddio, "ddio"),
          .receive_buffers_in_pm = truth(given.receive_buffers_in_pm, "receive_buffers_in_pm"),
          .transport = one_of_three<perdura::Transport>(given.transport, "transport"),
          .flush = truth(given.flush, "flush"),
          .flush_persistence = truth(given.flush_persistence, "flush_persistence"),
          .atomic_write = truth(given.atomic_write, "atomic_write"),
          .atomics = truth(given.atomics, "atomics")};
}

perdura::Update read(const perdura_update& given) {
  return {
      .ordered = given.ordered != 0,
      .size = given.size,
      .second_size = given.second_size,
      .responder_cpu = given.responder_cpu != 0,
      .replay = given.replay != 0,
      .publish =
          one_of_three<perdura::Publish>(given.publish, "publish").value_or(perdura::Publish::no)};
}

perdura::LogOptions read(const perdura_log_options& given) {
  perdura::LogOptions options;
  options.job = &needed(given.job, "the job");
  options.directory = given.directory == nullptr ? "" : given.directory;
  options.emulated = given.emulated != 0;
  options.configuration = read(given.configuration);
  options.ordered = given.ordered != 0;
  options.largest_record = given.largest_record;
  options.records = given.records;
  options.connect_timeout = std::chrono::milliseconds(given.connect_timeout_ms);
  options.append_timeout = std::chrono::milliseconds(given.append_timeout_ms);
  options.stop_timeout = std::chrono::milliseconds(given.stop_timeout_ms);
  return options;
}

}  // namespace

const char* perdura_last_error(void) { return perdura::library::last_error().c_str(); }
const char* perdura_version(void) { return PERDURA_VERSION; }

perdura_status perdura_choose(const perdura_configuration* configuration,
                              const perdura_update* update, perdura_choices** choices) {
  return guarded([&] {
    auto chosen = perdura::choose(read(needed(configuration, "the configuration")),
                                  read(needed(update, "the update")));
    needed(choices, "where to put the choices") = new perdura_choices{std::move(chosen)};
  });
}

perdura_status perdura_choose_for(const char* responder_json, const perdura_update* update,
                                  int flush, int flush_persistence, int atomic_write,
                                  perdura_choices** choices) {
  return guarded([&] {
    const auto responder =
        perdura::responder_from_json(&needed(responder_json, "the responder's description"));
    auto chosen = perdura::choose(responder, read(needed(update, "the update")),
                                  {.flush = flush != 0,
                                   .flush_persistence = flush_persistence != 0,
                                   .atomic_write = atomic_write != 0});
    needed(choices, "where to put the choices") = new perdura_choices{std::move(chosen)};
  });
}

perdura_status perdura_this_responder(char** json) {
  return guarded([&] {
    const std::string text = perdura::to_json(perdura::this_responder());
    char*& result = needed(json, "where to put the description");
    result = ::strdup(text.c_str());
    if (result == nullptr) throw std::bad_alloc();
  });
}

size_t perdura_choices_count(const perdura_choices* choices) {
  return choices == nullptr ? 0 : choices->all.size();
}

const char* perdura_choice_method(const perdura_choices* choices, size_t choice) {
  if (choice >= perdura_choices_count(choices)) return nullptr;
  return choices->all[choice].method.c_str();
}

size_t perdura_choice_steps(const perdura_choices* choices, size_t choice) {
  return choice >= perdura_choices_count(choices) ? 0 : choices->all[choice].steps.size();
}

perdura_status perdura_choice_step(const perdura_choices* choices, size_t choice, size_t step,
                                   perdura_step* into) {
  return guarded([&] {
    if (step >= perdura_choice_steps(choices, choice)) {
      throw std::invalid_argument("there is no such step");
    }
    const perdura::Step& found = choices->all[choice].steps[step];
    needed(into, "where to put the step") = {.agent = static_cast<int>(found.of),
                                             .action = static_cast<perdura_action>(found.action),
                                             .first = found.first ? 1 : 0,
                                             .second = found.second ? 1 : 0,
                                             .fenced = found.fenced ? 1 : 0,
                                             .text = found.text.c_str(),
                                             .reason = found.reason.c_str(),
                                             .unmarks = found.unmarks ? 1 : 0};
  });
}

const char* perdura_choice_readers(const perdura_choices* choices, size_t choice) {
  if (choice >= perdura_choices_count(choices)) return nullptr;
  return choices->all[choice].readers.c_str();
}

int perdura_choice_marks(const perdura_choices* choices, size_t choice) {
  return choice < perdura_choices_count(choices) && choices->all[choice].marks ? 1 : 0;
}

void perdura_choices_free(perdura_choices* choices) { delete choices; }
void perdura_string_free(char* string) { std::free(string); }

perdura_log_options perdura_log_options_of(const char* job) {
  const perdura::LogOptions defaults;
  return {.job = job,
          .directory = nullptr,
          .emulated = defaults.emulated ? 1 : 0,
          .configuration = PERDURA_CONFIGURATION_UNKNOWN,
          .ordered = defaults.ordered ? 1 : 0,
          .largest_record = defaults.largest_record,
          .records = defaults.records,
          .connect_timeout_ms = defaults.connect_timeout.count(),
          .append_timeout_ms = defaults.append_timeout.count(),
          .stop_timeout_ms = defaults.stop_timeout.count()};
}

perdura_status perdura_log_client_open(const perdura_log_options* options,
                                       perdura_log_client** client) {
  return guarded([&] {
    perdura_log_client*& result = needed(client, "where to put the client");
    result = new perdura_log_client{perdura::LogClient(read(needed(options, "the options")))};
  });
}

perdura_status perdura_log_client_append(perdura_log_client* client, const void* record,
                                         size_t length, uint64_t* number) {
  return guarded([&] {
    if (record == nullptr && length != 0) throw std::invalid_argument("the record is NULL");
    const std::uint64_t given =
        needed(client, "the client").log.append({static_cast<const char*>(record), length});
    if (number != nullptr) *number = given;
  });
}

uint64_t perdura_log_client_tail(const perdura_log_client* client) {
  return client == nullptr ? 0 : client->log.tail();
}
const char* perdura_log_client_method(const perdura_log_client* client) {
  return client == nullptr ? nullptr : client->log.method().c_str();
}
void perdura_log_client_close(perdura_log_client* client) { delete client; }

perdura_status perdura_log_server_open(const perdura_log_options* options, perdura_apply apply,
                                       void* context, perdura_log_server** server) {
  return guarded([&] {
    if (apply == nullptr) throw std::invalid_argument("the function that applies records is NULL");
    perdura_log_server*& result = needed(server, "where to put the server");
    const auto call = [apply, context](std::uint64_t number, std::string_view record) {
      if (apply(context, number, record.data(), record.size()) != 0) {
        throw std::runtime_error("record " + std::to_string(number) + " was not applied");
      }
    };
    result = new perdura_log_server{perdura::LogServer(read(needed(options, "the options")), call)};
  });
}

perdura_status perdura_log_server_run(perdura_log_server* server) {
  return guarded([&] { needed(server, "the server").log.run(); });
}
void perdura_log_server_stop(perdura_log_server* server) {
  if (server != nullptr) server->log.stop();
}
void perdura_log_server_close(perdura_log_server* server) { delete server; }
