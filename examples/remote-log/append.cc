// Appends each line of its input to a remote log.
#include <perdura.h>

#include <iostream>
#include <string>

int main(int count, char** arguments) {
  if (count != 2 || arguments[1][0] == '-') {
    std::cerr << "usage: append JOB\n"
                 "appends each line of its input to the log that `serve JOB ...` serves, and "
                 "prints its number\n";
    return 2;
  }
  try {
    perdura::LogClient log({.job = arguments[1]});
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << log.append(line) << std::endl;  // its number; now it is persistent
    }
  } catch (const std::exception& error) {
    std::cerr << "append: " << error.what() << '\n';
    return 1;
  }
}
