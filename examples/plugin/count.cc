// Has the plugin of a shard add one to a counter, and prints the sum.
#include <perdura_objects.h>

#include <iostream>

int main(int count, char** arguments) {
  if (count != 3 || arguments[1][0] == '-') {
    std::cerr
        << "usage: count JOB COUNTER\n"
           "adds one to a counter of shard 0 of the job, which has the plugin libcounter.so\n";
    return 2;
  }
  try {
    perdura::mcas::Client client({.job = arguments[1], .node = 0});
    auto pool = client.open_pool("counters", {.create_on_demand = true}, 1 << 20).value();
    auto sum =
        pool.invoke(arguments[2], "add", 8, {.create_on_demand = true, .zero_new_value = true});
    std::cout << sum.value().at(0) << '\n';
  } catch (const std::exception& error) {
    std::cerr << "count: " << error.what() << '\n';
    return 1;
  }
}
