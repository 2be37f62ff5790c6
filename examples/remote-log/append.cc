// Appends each line of its input to a remote log: append JOB DIRECTORY
#include <perdura.h>

#include <iostream>

int main(int, char** arguments) {
  perdura::LogClient log({.job = arguments[1], .directory = arguments[2]});
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << log.append(line) << std::endl;  // its number; now it is persistent
  }
}
