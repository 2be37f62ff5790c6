// What a host is to whoever makes remote updates persistent on it: each property with the evidence,
// and of what is not known, how to find it out. docs/doctor.md lists them.
//
//   const Diagnosis diagnosis = examine({});
//   puts(as_text(diagnosis).c_str());
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "persistence/rdma_device.h"
#include "persistence/responder_descriptor.h"

namespace perdura::bench {

struct Finding {
  std::string section;   // "persistence", "placement", "RDMA", "memory", "host"
  std::string name;      // "persistence domain"
  std::string value;     // "unknown" if it is
  std::string evidence;  // where the value comes from, or why there is none
  std::string how;       // of what is not known or should be otherwise: what to do; else empty

  bool known() const { return value != "unknown"; }
};

struct Diagnosis {
  persistence::ResponderDescriptor responder;
  std::vector<Finding> findings;
  std::string advise;  // the command that chooses a method for this host
};

// Where to look. Everything is read below `root`, so that a copy of another machine's /sys, /proc
// and /dev can be examined.
struct Host {
  std::filesystem::path root = "/";
  persistence::FeaturesOf features_of = persistence::query_rdma_device;
  // What `ndctl list -R` prints; nothing if there is no such program, or it fails.
  std::function<std::optional<std::string>()> ndctl_regions = [] { return std::nullopt; };
};

Diagnosis examine(const Host& host);

std::string as_text(const Diagnosis& diagnosis);
// The descriptor's object (persistence/responder_descriptor.h) with "findings" and
// "advise".
std::string as_json(const Diagnosis& diagnosis);

}  // namespace perdura::bench
