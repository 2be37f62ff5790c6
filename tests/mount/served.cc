// Serves a file system for tests, in a process of its own.
//
//   served SYSTEM PLACE DIRECTORY OPTIONS TRACE
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>

#include "mount/mount.h"
#include "systems/registry/registry.h"
#include "tests/mount/model_system.h"

int main(int, char** words) {
  using namespace perdura;
  const std::string name = words[1];
  try {
    const fs::FsSystem& system =
        name == "model" ? test::model_system() : systems::find_fs_system(name);
    mount::serve(system, mount::MountSource(words[2]),
                 {.directory = words[3], .options = words[4], .trace = words[5], .ready = [] {
                    static_cast<void>(write(STDOUT_FILENO, "+", 1) == 1);
                  }});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
