// Keeps balances on the shards of a configuration file, which `perdura mcas serve` serves.
#include <perdura_objects.h>

#include <iostream>
#include <string>

int main(int count, char** arguments) {
  const std::string command = count > 2 ? arguments[2] : "";
  if (!(command == "set" && count == 5) && !(command == "get" && count == 4)) {
    std::cerr << "usage: balances FILE set NAME AMOUNT\n"
                 "       balances FILE get NAME\n";
    return 2;
  }
  const std::string name = arguments[3];
  try {
    const auto shards = perdura::mcas::ShardList::read(arguments[1]);
    perdura::mcas::Cluster cluster(
        {.job = shards.job, .shards = shards.shards, .device = shards.device});
    auto pool = cluster.pool("balances", 16 << 20);
    if (command == "set") {
      pool.put(name, arguments[4]).value();  // persistent when it returns
    } else {
      std::cout << pool.get(name).value() << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << "balances: " << error.what() << '\n';
    return 1;
  }
}
