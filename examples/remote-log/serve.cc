// Serves a remote log and prints each record, its number first: serve JOB DIRECTORY
#include <perdura.h>

#include <iostream>

int main(int, char** arguments) {
  perdura::LogServer server({.job = arguments[1], .directory = arguments[2]},
                            [](std::uint64_t number, std::string_view record) {
                              std::cout << number << ' ' << record << std::endl;
                            });
  server.run();
}
