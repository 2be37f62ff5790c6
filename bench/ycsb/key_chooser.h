#pragma once

#include <cstdint>
#include <variant>

#include "bench/ycsb/workload_spec.h"
#include "bench/ycsb/zipfian.h"
#include "platform/base/random.h"

namespace perdura::ycsb {

// Assigns key numbers to clients. Clients share the loaded keys; the k-th record that client i of n
// creates gets key number first_new_key() + i + k * n, so that clients never collide and need not
// talk to each other.
struct KeyNumbering {
  std::uint64_t first_key;
  std::uint64_t loaded;
  std::uint64_t first_new_key;
  std::uint32_t client;
  std::uint32_t clients;

  std::uint64_t own_new_key(std::uint64_t k) const { return first_new_key + client + k * clients; }

  // The known keys in order of age: the loaded ones, then the client's own new ones.
  std::uint64_t known_key(std::uint64_t index) const {
    return index < loaded ? first_key + index : own_new_key(index - loaded);
  }
};

// Draws the key of a read, update, scan or read-modify-write. Which keys compete depends on the
// request distribution, as in YCSB:
//  - uniform, plain_zipfian, hotspot, sequential: the loaded keys only.
//  - zipfian: the loaded keys and twice the number of records that the run is expected to create;
//    a draw of a key that this client does not know to exist is repeated. So creation leaves the
//    popularity of the other keys alone. The expectation is limited to the number of loaded keys,
//    which keeps the repetitions to about one a draw; it is 0 if operationcount is 0.
//  - latest, exponential: the loaded keys and the client's own new ones that were acknowledged, the
//    newest being the most popular. In YCSB, whose clients share a process, it is the newest of all
//    clients; here each client knows its own new records only, which a run with several clients
//    remarks (bench/ycsb/workload_remarks.h).
class KeyChooser {
 public:
  // Precondition: spec.validate(); at least one key is loaded if next() is to be called.
  KeyChooser(const WorkloadSpec& spec, const KeyNumbering& numbering);

  // `own_new_keys`: the number of the client's own new records that are known to exist.
  std::uint64_t next(Random& random, std::uint64_t own_new_keys) {
    // YCSB's default, which most experiments use, without std::visit.
    if (auto* zipfian = std::get_if<ScrambledZipfian>(&distribution_)) {
      return draw(*zipfian, random, own_new_keys);
    }
    return next_of_others(random, own_new_keys);
  }

 private:
  struct Uniform {};
  struct Sequential {
    std::uint64_t position;
  };
  struct Hotspot {
    std::uint64_t hot_keys;
    double operation_fraction;
  };
  struct Exponential {
    double mean;  // age, in keys
  };
  using Distribution =
      std::variant<Uniform, ScrambledZipfian, Zipfian, Latest, Sequential, Hotspot, Exponential>;

  std::uint64_t next_of_others(Random& random, std::uint64_t own_new_keys);
  static Distribution distribution_of(const WorkloadSpec& spec, const KeyNumbering& numbering);

  std::uint64_t draw(Uniform&, Random&, std::uint64_t) const;
  std::uint64_t draw(ScrambledZipfian& zipfian, Random& random, std::uint64_t own_new_keys) const {
    for (;;) {
      const std::uint64_t item = zipfian.next(random);
      if (item < numbering_.loaded) [[likely]]
        return numbering_.first_key + item;
      const std::uint64_t new_key = item - numbering_.loaded;
      const bool is_own = new_key % numbering_.clients == numbering_.client;
      if (is_own && new_key / numbering_.clients < own_new_keys) {
        return numbering_.first_new_key + new_key;
      }
    }
  }
  std::uint64_t draw(Zipfian&, Random&, std::uint64_t) const;
  std::uint64_t draw(Latest&, Random&, std::uint64_t) const;
  std::uint64_t draw(Sequential&, Random&, std::uint64_t) const;
  std::uint64_t draw(Hotspot&, Random&, std::uint64_t) const;
  std::uint64_t draw(Exponential&, Random&, std::uint64_t) const;

  KeyNumbering numbering_;
  Distribution distribution_;
};

}  // namespace perdura::ycsb
