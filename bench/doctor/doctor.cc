#include "bench/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "bench/doctor/findings.h"
#include "platform/base/json.h"

namespace perdura::bench {

namespace {

// The `perdura advise` command with the responder's known properties as options. Unknown ones are
// left out, and the chooser then requires a method that is right either way.
std::string advise_command(const methods::Detection& found) {
  std::string command = "perdura advise";
  const auto add = [&](std::string_view option, std::string_view value) {
    command += fmt::format(" {} {}", option, value);
  };
  const auto add_feature = [&](std::string_view name, const methods::Detected<bool>& feature) {
    if (feature.value) command += fmt::format(" --{}{}", *feature.value ? "" : "no-", name);
  };
  if (found.domain.value) add("--domain", to_string(*found.domain.value));
  if (found.ddio.value) add("--ddio", *found.ddio.value ? "on" : "off");
  if (found.transport.value) {
    add("--transport", *found.transport.value == pmem::Transport::iwarp ? "iwarp" : "ib");
  }
  add_feature("flush", found.flush);
  add_feature("flush-persistence", found.flush_persistence);
  add_feature("atomic-write", found.atomic_write);
  return command;
}

// A responder's kind is its domain, DDIO and transport; where receive buffers are, the program
// chooses. Each unknown property leaves several kinds, for all of which a method must be right.
std::string kind_of(const methods::Detection& found, const std::optional<bool>& memory) {
  if (memory == false) {
    return "This host is no responder: Linux shows no persistent memory; that is as sure as Linux "
           "is.";
  }
  constexpr int kDomains = 3;
  const int kinds = (found.domain.value ? 1 : kDomains) * (found.ddio.value ? 1 : 2) *
                    (found.transport.value ? 1 : 2);
  const std::string kind = fmt::format(
      "persistence domain {}, DDIO {}, transport {}",
      found.domain.value ? to_string(*found.domain.value) : kUnknown,
      !found.ddio.value ? kUnknown : (*found.ddio.value ? "on" : "off"),
      !found.transport.value ? kUnknown
                             : (*found.transport.value == pmem::Transport::iwarp ? "iwarp" : "ib"));
  std::string text =
      kinds == 1 ? fmt::format(
                       "This host is a responder of this kind: {}; that is as sure as Linux "
                       "and the firmware are, which know nothing of batteries (wsp).",
                       kind)
                 : fmt::format(
                       "This host is a responder of any of {} kinds out of 12: {}; it is "
                       "not sure which.",
                       kinds, kind);
  if (!memory) text += " It is not known whether it has persistent memory.";
  return text;
}

}  // namespace

std::string count_of(const Tree& tree, std::size_t devices) {
  return devices == 0 && !methods::shows_sysfs(tree.root()) ? kUnknown : std::to_string(devices);
}

Diagnosis examine(const Host& host) {
  const Tree tree(host.root);
  const methods::Detection found = methods::detect(host.root, host.features_of);
  Diagnosis diagnosis;
  diagnosis.responder = describe(found);
  if (host.root != "/") diagnosis.responder.host = tree.line("proc/sys/kernel/hostname");
  for (auto& findings : {persistence_findings(host, tree, found), rdma_findings(host, tree, found),
                         host_findings(tree)}) {
    diagnosis.findings.insert(diagnosis.findings.end(), findings.begin(), findings.end());
  }
  diagnosis.advise = advise_command(found);
  diagnosis.kind = kind_of(found, has_persistent_memory(tree, found));
  return diagnosis;
}

std::string as_text(const Diagnosis& diagnosis) {
  std::size_t names = 0;
  std::size_t values = 0;
  // Longer names are rare, and must not widen the column for all.
  constexpr std::size_t kWidest = 24;
  for (const Finding& finding : diagnosis.findings) {
    names = std::max(names, finding.name.size());
    values = std::max(values, std::min(finding.value.size(), kWidest));
  }
  std::string text;
  std::string section;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.section != section) {
      text += fmt::format("{}{}\n", section.empty() ? "" : "\n", finding.section);
      section = finding.section;
    }
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", finding.name, names, finding.value, values,
                        finding.evidence);
    if (!finding.how.empty()) {
      text += fmt::format("  {:<{}}  {:<{}}  -> {}\n", "", names, "", values, finding.how);
    }
  }
  const auto unknown = std::count_if(diagnosis.findings.begin(), diagnosis.findings.end(),
                                     [](const Finding& finding) { return !finding.known(); });
  text += fmt::format(
      "\n{} of {} properties are not known; what follows \"->\" finds or mends them. To choose a "
      "method for this host as a responder:\n  {}\n\n{}\n",
      unknown, diagnosis.findings.size(), diagnosis.advise, diagnosis.kind);
  return text;
}

std::string as_json(const Diagnosis& diagnosis) {
  Json object = Json::parse(to_json(diagnosis.responder));
  object["findings"] = Json::array();
  for (const Finding& finding : diagnosis.findings) {
    Json& each = object["findings"].push_back({{"section", finding.section},
                                               {"name", finding.name},
                                               {"value", nullptr},
                                               {"evidence", finding.evidence}});
    if (finding.known()) each["value"] = finding.value;
    if (!finding.how.empty()) each["how"] = finding.how;
  }
  object["advise"] = diagnosis.advise;
  object["kind"] = diagnosis.kind;
  // Values come from files, which need not be UTF-8.
  return object.dump(2) + "\n";
}

}  // namespace perdura::bench
