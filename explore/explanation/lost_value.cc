#include "explore/explanation/lost_value.h"

#include <algorithm>
#include <bit>
#include <set>

namespace perdura::explore {

namespace {

using services::CrashCall;

bool has(const CrashCall& call, std::uint64_t version) {
  return std::any_of(call.values.begin(), call.values.end(),
                     [&](const CrashCall::Value& value) { return value.version == version; });
}

// A call that says something about the state of its object: what it wrote, or what it read.
bool tells(const CrashCall& call) {
  return call.answered() && (call.changes || !call.values.empty() || call.told == "not found");
}

class Search {
 public:
  Search(const Recording& recording, const ExplainedRun& run) : recording_(recording), run_(run) {
    for (const CrashCall& call : run.calls) {
      if (!run.object || call.object == *run.object) calls_.push_back(&call);
    }
    std::stable_sort(calls_.begin(), calls_.end(),
                     [](const CrashCall* a, const CrashCall* b) { return a->end < b->end; });
  }

  LostValue find() {
    for (const Time& failure : run_.failures) {
      if (undoes(failure)) break;
    }
    if (value_.failure == nullptr && !run_.failures.empty()) {
      value_.failure = &run_.failures.back();
      value_.found = first_found(*value_.failure);
    }
    find_changes();
    return std::move(value_);
  }

 private:
  // The first call after the failure that tells what is there.
  const CrashCall* first_found(Time failure) const {
    const CrashCall* first = nullptr;
    for (const CrashCall* call : calls_) {
      if (call->changes || !call->answered() || call->start <= failure) continue;
      if (first == nullptr || call->start < first->start) first = call;
    }
    return first;
  }

  const CrashCall* writer_of(std::uint64_t version) const {
    const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const CrashCall* call) {
      return call->changes && has(*call, version);
    });
    return found == calls_.end() ? nullptr : *found;
  }

  // True if the value found was written during or after the call that told the other one.
  bool may_replace(const CrashCall& found, const CrashCall& told) const {
    return std::any_of(found.values.begin(), found.values.end(), [&](const auto& value) {
      const CrashCall* const writer = writer_of(value.version);
      return writer != nullptr && writer->end > told.start;
    });
  }

  // A call that began before the failure may get its answer, which had been sent, after it.
  bool undoes(const Time& failure) {
    const CrashCall* const found = first_found(failure);
    if (found == nullptr) return false;
    const CrashCall* told = nullptr;
    for (const CrashCall* call : calls_) {
      if (tells(*call) && call->start <= failure) told = call;
    }
    if (told == nullptr || may_replace(*found, *told)) return false;
    const CrashCall::Value* lost = nullptr;
    for (const CrashCall::Value& value : told->values) {
      if (!has(*found, value.version)) lost = &value;
    }
    const bool comes_back = told->values.empty() && !found->values.empty();
    if (lost == nullptr && !comes_back) return false;
    value_.failure = &failure;
    value_.found = found;
    if (lost == nullptr) {
      value_.told.push_back(told);
      if (told->changes) value_.written = told;
      return true;
    }
    value_.written = writer_of(lost->version);
    for (const CrashCall* call : calls_) {
      if (tells(*call) && call->start <= failure && has(*call, lost->version)) {
        value_.told.push_back(call);
      }
    }
    add_windows(lost->bytes, windows_);
    for (const CrashCall& call : run_.calls) {
      for (const CrashCall::Value& value : call.values) {
        if (&call != value_.written && !has(*told, value.version)) {
          add_windows(value.bytes, windows_of_others_);
        }
      }
    }
    return true;
  }

  // Parts of the value by which it is recognized in a line.
  using Windows = std::set<std::vector<std::byte>>;
  static void add_windows(const std::vector<std::byte>& bytes, Windows& windows) {
    for (std::size_t at = 0; at + kWindow <= bytes.size(); ++at) {
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      const std::vector<std::byte> window(begin, begin + kWindow);
      if (is_telling(window)) windows.insert(window);
    }
  }
  static bool is_telling(const std::vector<std::byte>& window) {
    return std::set<std::byte>(window.begin(), window.end()).size() >= kWindow / 2;
  }
  static bool holds(const Recording::LineChange& change, const Windows& windows) {
    for (std::size_t at = 0; at + kWindow <= change.bytes.size(); ++at) {
      const auto begin = change.bytes.begin() + static_cast<std::ptrdiff_t>(at);
      if (windows.contains({begin, begin + kWindow})) return true;
    }
    return false;
  }

  void find_changes() {
    if (value_.failure == nullptr) return;
    for (const Recording::PowerFailure& failure : recording_.power_failures()) {
      if (failure.at != *value_.failure) continue;
      for (const Recording::Lost& lost : failure.lost) {
        const Recording::LineChange& change = recording_.changes()[lost.change];
        const bool of_value = holds(change, windows_);
        const bool is_earlier = value_.written != nullptr && change.at < value_.written->start;
        if (!of_value && (is_earlier || holds(change, windows_of_others_))) {
          ++value_.others;
          continue;
        }
        value_.lost.push_back(lost);
        value_.holds.push_back(of_value);
      }
    }
  }

  static constexpr std::size_t kWindow = 8;

  const Recording& recording_;
  const ExplainedRun& run_;
  std::vector<const CrashCall*> calls_;  // the object's calls, by their ends
  LostValue value_;
  Windows windows_;  // windows of the value
  Windows windows_of_others_;
};

// How a call relied on one change of the memory of a server.
class RelianceOfCall {
 public:
  RelianceOfCall(const Recording& recording, const ExplainedRun& run, const CrashCall& call)
      : recording_(recording), run_(run), call_(call), client_(run.node_of(call.client)) {}

  std::optional<Reliance> on(std::size_t change) const {
    std::optional<Reliance> first;
    std::optional<Reliance> last_completion;
    for (std::size_t i = 0; i < recording_.messages().size(); ++i) {
      const auto reliance = by(i, change);
      if (!reliance) continue;
      if (reliance->kind == Kind::completed) {
        if (!last_completion || reliance->at > last_completion->at) last_completion = reliance;
      } else if (!first || reliance->at < first->at) {
        first = reliance;
      }
    }
    // Without an answer of the server the client concluded from its own operations.
    return first ? first : last_completion;
  }

 private:
  using Kind = Reliance::Kind;

  std::optional<Reliance> by(std::size_t number, std::size_t changed) const {
    const Recording::Message& message = recording_.messages()[number];
    const Recording::LineChange& change = recording_.changes()[changed];
    if (message.what.at < call_.start || message.what.at > call_.end) return std::nullopt;
    const bool own = message.what.from.node == client_;
    if (!own && message.what.to.node == client_ && message.what.from.node < run_.servers &&
        change.at <= message.what.at) {
      return Reliance{Kind::answered, number, changed, message.what.at, &call_};
    }
    if (!own) return std::nullopt;
    const bool saw =
        message.executed && message.range.overlaps(change.range) && change.at <= *message.executed;
    if (!call_.changes && saw) {
      return Reliance{Kind::looked, number, changed, *message.executed, &call_};
    }
    if (call_.changes && message.succeeded && *message.completed <= call_.end) {
      return Reliance{Kind::completed, number, changed, *message.completed, &call_};
    }
    return std::nullopt;
  }

  const Recording& recording_;
  const ExplainedRun& run_;
  const CrashCall& call_;
  NodeId client_;
};

}  // namespace

std::string conclusion_of(const std::string& trace) {
  constexpr std::string_view kLead = "=> ";
  const std::size_t end = trace.find_last_not_of('\n') + 1;
  const std::size_t lead = trace.rfind(kLead, end);
  const std::size_t begin = lead == std::string::npos ? 0 : lead + kLead.size();
  return trace.substr(begin, end - begin);
}

LostValue find_lost_value(const Recording& recording, const ExplainedRun& run) {
  return Search(recording, run).find();
}

std::vector<LostLines> lost_lines(const Recording& recording, const LostValue& value) {
  std::vector<LostLines> all;
  for (std::size_t i = 0; i < value.lost.size(); ++i) {
    const Recording::Lost& lost = value.lost[i];
    const Recording::LineChange& change = recording.changes()[lost.change];
    const auto adjoins = [&](const LostLines& lines) {
      const Recording::LineChange& other = recording.changes()[lines.changes.back()];
      return lines.where == lost.where && lines.rule == lost.rule &&
             other.message == change.message && other.writer == change.writer &&
             lines.range.is_before(change.range);
    };
    auto group = std::find_if(all.begin(), all.end(), adjoins);
    if (group == all.end()) {
      group =
          all.insert(all.end(), {.range = change.range, .where = lost.where, .rule = lost.rule});
    } else {
      group->range.length += change.range.length;
    }
    group->bytes += static_cast<Bytes>(std::popcount(lost.mask));
    group->written = std::max(group->written, change.at);
    group->changes.push_back(lost.change);
    group->holds = group->holds || value.holds[i];
  }
  std::stable_partition(all.begin(), all.end(), [](const LostLines& one) { return one.holds; });
  return all;
}

std::optional<Reliance> find_reliance(const Recording& recording, const ExplainedRun& run,
                                      const LostValue& value) {
  const bool known = std::find(value.holds.begin(), value.holds.end(), true) != value.holds.end();
  for (const CrashCall* call : value.told) {
    const RelianceOfCall of_call(recording, run, *call);
    std::optional<Reliance> first;
    for (std::size_t i = 0; i < value.lost.size(); ++i) {
      // A line beside the value may have been lost without harm.
      if (known && !value.holds[i]) continue;
      const auto reliance = of_call.on(value.lost[i].change);
      if (reliance && (!first || reliance->at < first->at)) first = reliance;
    }
    if (first) return first;
  }
  return std::nullopt;
}

}  // namespace perdura::explore
