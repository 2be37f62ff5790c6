// Programs on the server's own node, which use its volume directly, beside its clients (section
// 5.3.1). They belong to the server's process, since nova's state in DRAM does.
//
// An operation of such a program takes effect on the volume as it does without a server. If it has
// changed the layout of files that clients READ, the server's device has to learn of that before
// the operation returns, and only the server's thread can tell it. So a local session has a
// connection to the server, too, and asks it by a request after each operation that has left
// something to be told. It also asks if something of somebody else is still to be told: it may have
// seen its effect.
//
// Files are held by requests, so that the server gives up what a program has held when its last
// connection is gone. They get no filekeys.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "services/fs/fs.h"
#include "systems/novad/client.h"
#include "systems/novad/server.h"

namespace perdura::systems::novad {

// The open servers of this process. A node has at most one of a name.
void note_server(const Node& node, const std::string& name, std::weak_ptr<Server> server);
// Returns null if there is none.
std::shared_ptr<Server> server_of(const Node& node, const std::string& name);

class LocalFileSystem final : public FileSystem {
 public:
  LocalFileSystem(std::string name, const Parameters& parameters, std::shared_ptr<Server> server)
      : FileSystem(std::move(name), parameters, Purpose::local), server_(std::move(server)) {}

  std::unique_ptr<fs::Session> attach(Thread& thread) override;

 private:
  std::shared_ptr<Server> server_;
};

}  // namespace perdura::systems::novad
