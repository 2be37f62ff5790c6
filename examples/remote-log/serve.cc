// Serves a remote log and prints each record, preceded by its number, until SIGTERM or SIGINT.
#include <perdura.h>

#include <csignal>
#include <iostream>
#include <string_view>

namespace {
perdura::LogServer* serving = nullptr;
}

int main(int count, char** arguments) {
  const bool emulated = count == 4 && std::string_view(arguments[3]) == "--emulated";
  if ((count != 3 && !emulated) || arguments[1][0] == '-') {
    std::cerr << "usage: serve JOB DIRECTORY [--emulated]\n"
                 "serves a log in the persistent memory of DIRECTORY, a DAX file system or device, "
                 "and prints each\n"
                 "record; with --emulated any directory will do, and what is in it does not "
                 "survive a power failure\n";
    return 2;
  }
  try {
    perdura::LogServer server(
        {.job = arguments[1], .directory = arguments[2], .emulated = emulated},
        [](std::uint64_t number, std::string_view record) {
          std::cout << number << ' ' << record << std::endl;
        });
    // Without this a signal would end the process, and the log's shared memory would stay in
    // /dev/shm until somebody serves the log again.
    serving = &server;
    for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, [](int) { serving->stop(); });
    server.run();
    for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, SIG_IGN);
  } catch (const std::exception& error) {
    std::cerr << "serve: " << error.what() << '\n';
    return 1;
  }
}
