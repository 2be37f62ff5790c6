// What a process has mapped of a file, page by page.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "platform/base/units.h"

namespace perdura::test {

// The bytes of a file that are in a process' page table: those to which its next access takes no
// page fault.
inline Bytes mapped_bytes(pid_t process, const std::string& path) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/smaps");
  bool here = false;
  Bytes sum = 0;
  for (std::string line; std::getline(maps, line);) {
    Bytes kib = 0;
    if (line.find('-') < line.find(' ')) {  // the first line of a mapping
      here = line.ends_with(" " + path);
    } else if (here && std::sscanf(line.c_str(), "Rss: %lu kB", &kib) == 1) {
      sum += kib * KiB;
    }
  }
  return sum;
}

}  // namespace perdura::test
