#include "tests/mount/model_system.h"

#include "services/fs/model/model_file_system.h"

namespace perdura::test {

namespace {

Task<> make(Thread&, std::string, fs::FsConfig) { co_return; }

Task<std::shared_ptr<fs::FileSystem>> mount(Thread&, std::string, fs::FsConfig config) {
  co_return std::make_shared<fs::ModelFileSystem>(fs::Model({.now = config.now}));
}

}  // namespace

const fs::FsSystem& model_system() {
  static const fs::FsSystem system = [] {
    fs::FsSystem made{};
    made.info.name = "model";
    made.check = [](const fs::FsConfig&) {};
    made.make = make;
    made.mount = mount;
    return made;
  }();
  return system;
}

}  // namespace perdura::test
