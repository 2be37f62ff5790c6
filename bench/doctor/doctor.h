// Diagnoses a host as a responder of remote updates that must become persistent: each property
// comes with its evidence, and each unknown one with the way to find it out. docs/doctor.md lists
// the properties.
//
//   const Diagnosis diagnosis = examine({});
//   puts(as_text(diagnosis).c_str());
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "methods/rdma_device.h"
#include "methods/responder_descriptor.h"

namespace perdura::bench {

struct Finding {
  std::string section;   // "persistence", "placement", "RDMA", "memory", "host"
  std::string name;      // "persistence domain"
  std::string value;     // "unknown" if it could not be determined
  std::string evidence;  // where the value comes from, or why there is none
  std::string how;       // what to do if the value is unknown or should be different; else empty

  bool known() const { return value != "unknown"; }
};

struct Diagnosis {
  methods::ResponderDescriptor responder;
  std::vector<Finding> findings;
  std::string advise;  // the command that chooses a method for this host
  std::string kind;    // a sentence: the kind of responder, and how certain that is
};

// The host to examine. Everything is read below `root`, so that a copy of another machine's /sys,
// /proc and /dev can be examined.
struct Host {
  std::filesystem::path root = "/";
  methods::FeaturesOf features_of = methods::query_rdma_device;
  // Returns the output of `ndctl list -R`, or nullopt if there is no such program, or it fails.
  std::function<std::optional<std::string>()> ndctl_regions = [] { return std::nullopt; };
};

Diagnosis examine(const Host& host);

std::string as_text(const Diagnosis& diagnosis);
// The descriptor's object (methods/responder_descriptor.h) with "findings" and
// "advise".
std::string as_json(const Diagnosis& diagnosis);

}  // namespace perdura::bench
