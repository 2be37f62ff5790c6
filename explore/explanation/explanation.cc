#include "explore/explanation/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace perdura::explore {

namespace {

using services::CrashCall;
using Tone = Diagram::Tone;

std::string microseconds(Time at) {
  return fmt::format("{:.3f} us", to_microseconds(at.time_since_epoch()));
}

std::string place_text(const Recording::Range& range) {
  return fmt::format("{:#x}, {} B", range.offset, range.length);
}

class Explainer {
 public:
  Explainer(const Recording& recording, const ExplainedRun& run, const ResolveCallSites& resolve)
      : recording_(recording),
        run_(run),
        resolve_(resolve),
        value_(find_lost_value(recording, run)),
        reliance_(find_reliance(recording, run, value_)),
        end_(value_.failure != nullptr ? *value_.failure : Time::max()),
        answered_(value_.told.empty() ? end_ : std::max(end_, value_.told.back()->end)) {}

  Diagram explain() {
    diagram_.title = run_.title;
    choose_lines();
    choose_calls();
    add_calls();
    add_messages();
    add_changes();
    add_flushes();
    add_failures();
    lay_out();
    conclude();
    return std::move(diagram_);
  }

 private:
  // A row to be, and where it belongs.
  enum class Column : std::uint8_t { client, cpu, device, memory, everybody };
  struct Event {
    Time at{};
    std::optional<Time> shown{};  // absent: the row has no time of its own
    Column place{};
    NodeId node = 0;
    Tone tone = Tone::plain;
    std::string text;
    std::size_t number = 0;  // links know it by this number
    int order = 0;           // rank among the events of the same time
  };
  struct Link {
    std::size_t from = 0;
    std::size_t to = 0;
    bool lasts = false;  // a span, not an arrow
    Tone tone = Tone::plain;
  };

  Column place_of(NodeId node) const { return node < run_.servers ? Column::cpu : Column::client; }

  std::size_t add(Time at, Column place, NodeId node, std::string text, Tone tone = Tone::plain) {
    events_.push_back({at, at, place, node, tone, std::move(text), events_.size(), 0});
    return events_.size() - 1;
  }
  void connect(std::size_t from, std::size_t to) { links_.push_back({from, to}); }
  void last(std::size_t from, std::size_t to, Tone tone) {
    links_.push_back({from, to, true, tone});
  }

  // --- what matters ------------------------------------------------------------------------------

  // Chooses the lines that hold the value, and the first of the others.
  void choose_lines() {
    lost_ = lost_lines(recording_, value_);
    if (lost_.size() <= kMostLost) return;
    for (std::size_t i = kMostLost; i < lost_.size(); ++i) others_ += lost_[i].changes.size();
    lost_.resize(kMostLost);
  }

  // The calls of the object from the one that wrote the value to the failure, the last ones if
  // there are many, and the one that found what is wrong. The messages of those that wrote or told
  // the value are shown, too.
  void choose_calls() {
    const Time first = value_.written != nullptr ? value_.written->start : Time();
    for (const CrashCall& call : run_.calls) {
      const bool of_object = !run_.object || call.object == *run_.object;
      if (of_object && call.start <= end_ && call.end >= first) calls_.push_back(&call);
    }
    std::stable_sort(calls_.begin(), calls_.end(), [](const CrashCall* a, const CrashCall* b) {
      return std::tie(a->start, a->client) < std::tie(b->start, b->client);
    });
    if (calls_.size() > kMostCalls) calls_.erase(calls_.begin(), calls_.end() - kMostCalls);
    const auto add_to = [](std::vector<const CrashCall*>& calls, const CrashCall* call) {
      if (call == nullptr || std::find(calls.begin(), calls.end(), call) != calls.end()) return;
      calls.push_back(call);
    };
    add_to(detailed_, value_.written);
    if (!value_.told.empty()) {
      add_to(detailed_, value_.told.front());
      add_to(detailed_, value_.told.back());
    }
    if (detailed_.empty()) detailed_ = calls_;
    for (const CrashCall* call : detailed_) add_to(calls_, call);
    add_to(calls_, value_.found);
  }

  bool is_detailed(const Recording::Message& message) const {
    return std::any_of(detailed_.begin(), detailed_.end(), [&](const CrashCall* call) {
      const NodeId node = run_.node_of(call->client);
      return (message.what.from.node == node || message.what.to.node == node) &&
             message.what.at >= call->start && message.what.at <= std::min(call->end, end_);
    });
  }

  bool is_of_interest(const Recording::Range& range) const {
    return std::any_of(lost_.begin(), lost_.end(),
                       [&](const LostLines& lines) { return lines.range.overlaps(range); });
  }

  bool is_lost(std::size_t change) const {
    return std::any_of(lost_.begin(), lost_.end(), [&](const LostLines& lines) {
      return std::find(lines.changes.begin(), lines.changes.end(), change) != lines.changes.end();
    });
  }

  // --- events ------------------------------------------------------------------------------------

  void add_calls() {
    for (const CrashCall* call : calls_) {
      const NodeId node = run_.node_of(call->client);
      const std::size_t begin = add(call->start, Column::client, node, call->what, Tone::call);
      events_[begin].order = kBegins;
      if (!call->answered()) {
        unanswered_.push_back(begin);
        continue;
      }
      const std::size_t told =
          add(call->end, Column::client, node, fmt::format("-> {}", call->told), Tone::call);
      events_[told].order = kTold;
      last(begin, told, Tone::call);
    }
  }

  void add_messages() {
    std::size_t number = 0;
    const auto& messages = recording_.messages();
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (!is_detailed(messages[i])) continue;
      numbers_[i] = ++number;
      add_message(messages[i], number, i);
    }
  }

  void add_message(const Recording::Message& message, std::size_t number, std::size_t index) {
    const NodeId from = message.what.from.node;
    const NodeId to = message.what.to.node;
    const auto happened = [&](const std::optional<Time>& at) { return at && *at <= end_; };
    // Messages that were on their way to a client when the servers failed still arrive.
    const auto reaches_client = [&](const std::optional<Time>& at) {
      return at && *at <= answered_;
    };
    const bool to_client = to >= run_.servers;
    const bool arrives = to_client ? reaches_client(message.arrived) : happened(message.arrived);
    const std::size_t posted =
        add(message.what.at, place_of(from), from,
            fmt::format("#{} {}, {} B{}", number, to_string(message.what.opcode),
                        message.what.bytes, arrives ? "" : " (does not arrive)"));
    if (!arrives) return;
    if (to_client) {
      const Time at = reaches_client(message.received) ? *message.received : *message.arrived;
      connect(posted, add(at, Column::client, to, fmt::format("#{} is there", number)));
      return;
    }
    const bool looks = happened(message.executed);
    const std::size_t device =
        looks ? add(*message.executed, Column::device, to, what_it_does(message, number))
              : add(*message.arrived, Column::device, to, fmt::format("#{} arrives", number));
    connect(posted, device);
    arrivals_[index] = device;
    if (happened(message.received)) {
      connect(device, add(*message.received, Column::cpu, to, fmt::format("takes #{}", number)));
    }
    const bool is_sent = message.what.opcode == fabric::Opcode::send ||
                         message.what.opcode == fabric::Opcode::write_with_immediate;
    if (reaches_client(message.completed) && from >= run_.servers && !is_sent) {
      connect(device,
              add(*message.completed, Column::client, from,
                  fmt::format("#{} {}", number, message.succeeded ? "completes" : "fails")));
    }
  }

  static std::string what_it_does(const Recording::Message& message, std::size_t number) {
    if (message.range.length == 0) return fmt::format("#{} is executed", number);
    const std::string_view verb = message.what.opcode == fabric::Opcode::read    ? "reads"
                                  : message.what.opcode == fabric::Opcode::flush ? "flushes"
                                                                                 : "changes";
    return fmt::format("#{} {} {}", number, verb, place_text(message.range));
  }

  // Changes of lines of which something is lost, and what shown messages place: neighboring lines
  // together.
  void add_changes() {
    struct Shown {
      Recording::Range range;
      Time at{};
      bool lost = false;
      std::size_t first = 0;
    };
    std::vector<Shown> shown;
    const auto& changes = recording_.changes();
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const Recording::LineChange& change = changes[i];
      const bool of_message = change.message && numbers_.contains(*change.message);
      const bool wanted = of_message || (is_of_interest(change.range) && change.at >= first_call());
      if (!wanted || !change.happened || change.at > end_) continue;
      const bool lost = is_lost(i);
      const auto adjoins = [&](const Shown& one) {
        const Recording::LineChange& other = changes[one.first];
        return one.lost == lost && other.message == change.message &&
               other.writer == change.writer && one.range.is_before(change.range) &&
               change.at - one.at < Microseconds(1);
      };
      const auto group = std::find_if(shown.rbegin(), shown.rend(), adjoins);
      if (group == shown.rend()) {
        shown.push_back({change.range, change.at, lost, i});
      } else {
        group->range.length += change.range.length;
        group->at = std::max(group->at, change.at);
      }
    }
    for (const Shown& one : shown) {
      const Recording::LineChange& change = changes[one.first];
      const NodeId machine = change.range.machine;
      if (machine >= run_.servers) continue;
      std::string what = place_text(one.range);
      if (change.writer != nullptr) {
        what += " stored";
      } else if (change.message && numbers_.contains(*change.message)) {
        what += fmt::format(" placed by #{}", numbers_.at(*change.message));
      } else {
        what += " placed";
      }
      const std::size_t row = add(one.at, Column::memory, machine, std::move(what),
                                  one.lost ? Tone::lost : Tone::plain);
      if (one.lost) at_risk_.push_back(row);
      if (!change.message) continue;
      const auto arrival = arrivals_.find(*change.message);
      if (arrival != arrivals_.end()) connect(arrival->second, row);
    }
  }

  // Adds the flushes of lines that lost something, and each thread's next fence after them.
  void add_flushes() {
    std::set<std::pair<Recording::Model::Writer, Time>> shown;
    for (const Recording::Flush& flush : recording_.flushes()) {
      if (!is_of_interest(flush.range) || flush.at < first_call() || flush.at > end_) continue;
      add(flush.at, Column::cpu, flush.range.machine,
          fmt::format("flushes {}", place_text(flush.range)));
      const auto fence = std::find_if(
          recording_.fences().begin(), recording_.fences().end(), [&](const Recording::Fence& one) {
            return one.writer == flush.writer && one.at >= flush.at && one.at <= end_;
          });
      if (fence != recording_.fences().end() && shown.insert({fence->writer, fence->at}).second) {
        add(fence->at, Column::cpu, fence->machine, "fence");
      }
    }
  }

  Time first_call() const { return calls_.empty() ? Time() : calls_.front()->start; }

  void add_failures() {
    const Time until = value_.found != nullptr ? value_.found->end : Time::max();
    for (const auto& [at, what] : run_.events) {
      if (at < first_call() || at > until) continue;
      const bool fails = value_.failure != nullptr && at == *value_.failure;
      const std::size_t row =
          add(at, Column::everybody, 0, what, fails ? Tone::failure : Tone::plain);
      events_[row].order = kFails;
      if (fails) failure_row_ = row;
    }
    if (value_.failure == nullptr) return;
    if (!failure_row_) {
      failure_row_ = add(*value_.failure, Column::everybody, 0, "the servers fail", Tone::failure);
      events_[*failure_row_].order = kFails;
    }
    for (const std::size_t row : at_risk_) last(row, *failure_row_, Tone::lost);
    for (const std::size_t row : unanswered_) last(row, *failure_row_, Tone::call);
    for (const LostLines& lines : lost_) {
      const std::size_t row = add(end_, Column::everybody, 0,
                                  fmt::format("lost: {}, {} [{}]", place_text(lines.range),
                                              to_string(lines.where), to_string(lines.rule)),
                                  Tone::lost);
      events_[row].shown.reset();
      events_[row].order = kIsLost;
    }
    for (const Recording::NodeEvent& start : recording_.starts()) {
      if (start.node >= run_.servers || start.at < end_ || start.at > until) continue;
      events_[add(start.at, Column::cpu, start.node, "starts again, recovers")].order = kStarts;
    }
  }

  // --- rows --------------------------------------------------------------------------------------

  std::string name_of(Column place, NodeId node) const {
    if (place == Column::client) return fmt::format("client {}", node - run_.servers);
    const std::string_view part = place == Column::cpu      ? "CPU"
                                  : place == Column::device ? "device"
                                                            : "memory";
    return run_.servers > 1 ? fmt::format("server {} {}", node, part)
                            : fmt::format("server {}", part);
  }

  // Events that are left out if there are too many: the earliest of those that say least.
  void shorten() {
    left_out_ = events_.size() > kMostRows ? events_.size() - kMostRows + 1 : 0;
    std::size_t too_many = left_out_;
    for (const bool plain_only : {true, false}) {
      std::erase_if(events_, [&](const Event& event) {
        const bool leave = too_many > 0 && event.tone != Tone::failure &&
                           (!plain_only || event.tone == Tone::plain);
        if (leave) --too_many;
        return leave;
      });
    }
  }

  void lay_out() {
    std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::tie(a.at, a.order) < std::tie(b.at, b.order);
    });
    shorten();
    std::set<std::tuple<bool, NodeId, Column>> used;  // clients first
    for (const Event& event : events_) {
      if (event.place == Column::everybody) continue;
      used.insert({event.node < run_.servers, event.node, event.place});
    }
    std::map<std::pair<NodeId, Column>, std::size_t> columns;
    for (const auto& [server, node, place] : used) {
      columns[{node, place}] = diagram_.columns.size();
      diagram_.columns.push_back(name_of(place, node));
    }
    if (left_out_ > 0) {
      diagram_.rows.push_back({{},
                               Diagram::kAllColumns,
                               Tone::plain,
                               fmt::format("... {} events are left out", left_out_)});
    }
    std::map<std::size_t, std::size_t> row_of;  // by the number of the event
    for (const Event& event : events_) {
      row_of[event.number] = diagram_.rows.size();
      const bool everybody = event.place == Column::everybody;
      diagram_.rows.push_back(
          {event.shown, everybody ? Diagram::kAllColumns : columns.at({event.node, event.place}),
           event.tone, event.text});
    }
    for (const Link& link : links_) {
      const auto from = row_of.find(link.from);
      const auto to = row_of.find(link.to);
      if (from == row_of.end() || to == row_of.end()) continue;
      if (link.lasts) {
        diagram_.spans.push_back({from->second, to->second, link.tone});
      } else {
        diagram_.arrows.push_back({from->second, to->second, link.tone});
      }
    }
  }

  // --- words -------------------------------------------------------------------------------------

  static std::string told_text(const CrashCall& call) {
    return fmt::format("client {} at {} (\"{}\" -> {})", call.client, microseconds(call.end),
                       call.what, call.told);
  }

  std::string message_text(std::size_t index) const {
    const auto number = numbers_.find(index);
    const Recording::Posted& what = recording_.messages()[index].what;
    const std::string text = fmt::format("{} of {}", to_string(what.opcode),
                                         name_of(place_of(what.from.node), what.from.node));
    return number == numbers_.end() ? "a " + text : fmt::format("#{} ({})", number->second, text);
  }

  const CallStack& stack_of(const Recording::LineChange& change) const {
    return change.message ? recording_.messages()[*change.message].posted_by : change.stored_by;
  }

  void conclude() {
    std::vector<CallStack> stacks;
    for (const LostLines& lines : lost_) {
      stacks.push_back(stack_of(recording_.changes()[lines.changes.front()]));
    }
    if (reliance_) stacks.push_back(recording_.messages()[reliance_->message].posted_by);
    const std::vector<CallSite> sites = resolve_(stacks);
    auto& words = diagram_.conclusions;
    if (!run_.clock.empty()) words.push_back("Times: " + run_.clock);
    if (!run_.conclusion.empty()) words.push_back("Wrong: " + run_.conclusion);
    if (!value_.told.empty()) {
      words.push_back("Told: " + told_text(*value_.told.front()) + ".");
      if (value_.told.size() > 1) {
        words.push_back("Last seen: " + told_text(*value_.told.back()) + ".");
      }
    }
    if (value_.found != nullptr) words.push_back("Found: " + told_text(*value_.found) + ".");
    std::set<pmem::Rule> rules;
    for (std::size_t i = 0; i < lost_.size(); ++i) {
      words.push_back(lost_text(lost_[i], sites[i]));
      rules.insert(lost_[i].rule);
    }
    if (value_.others + others_ > 0) {
      const std::size_t count = value_.others + others_;
      words.push_back(fmt::format("Lost besides, of no importance here: {} change{} of lines.",
                                  count, count == 1 ? "" : "s"));
    }
    for (const pmem::Rule rule : rules) {
      words.push_back(fmt::format("Rule {}: {}.", to_string(rule), meaning(rule)));
    }
    if (reliance_) words.push_back(reliance_text(*reliance_, sites.back()));
  }

  std::string lost_text(const LostLines& lines, const CallSite& site) const {
    const Recording::LineChange& change = recording_.changes()[lines.changes.front()];
    std::string by = change.message             ? message_text(*change.message)
                     : change.writer != nullptr ? "the CPU"
                                                : "the device";
    if (!site.text().empty()) by += (change.message ? ", posted by " : ", in ") + site.text();
    return fmt::format("Lost: {} of {}{}, {}; written at {} by {}.", place_text(lines.range),
                       recording_.regions().at(lines.range.region),
                       lines.holds ? ", which hold the value" : "", to_string(lines.where),
                       microseconds(lines.written), by);
  }

  std::string reliance_text(const Reliance& reliance, const CallSite& site) const {
    const std::string message = message_text(reliance.message);
    const std::string code = site.text().empty() ? "code of an unknown line" : site.text();
    const std::string when = microseconds(reliance.at);
    const std::string line =
        fmt::format("{:#x}", recording_.changes()[reliance.change].range.offset);
    switch (reliance.kind) {
      case Reliance::Kind::looked:
        return fmt::format("First relied on by {}: {} looked at {} at {}, when it was not durable.",
                           code, message, line, when);
      case Reliance::Kind::answered:
        return fmt::format("First relied on by {}: {} was sent at {}, when {} was not durable.",
                           code, message, when, line);
      case Reliance::Kind::completed:
        return fmt::format(
            "First relied on after {}: the completion of {} was taken for durability at {}, when "
            "{} was not durable.",
            code, message, when, line);
    }
    return "";
  }

  // The order of events that have the same time.
  enum Order : std::uint8_t { kTold = 1, kBegins, kFails, kIsLost, kStarts };
  static constexpr std::size_t kMostCalls = 16;
  static constexpr std::size_t kMostLost = 12;

  const Recording& recording_;
  const ExplainedRun& run_;
  const ResolveCallSites& resolve_;
  const LostValue value_;
  const std::optional<Reliance> reliance_;
  const Time end_;       // the end of what led to the loss
  const Time answered_;  // when the last of those who were told had its answer
  std::vector<LostLines> lost_;
  std::size_t others_ = 0;  // lost changes that are not listed
  std::vector<const CrashCall*> calls_;
  std::vector<const CrashCall*> detailed_;
  std::map<std::size_t, std::size_t> numbers_;   // numbers of the messages that are shown
  std::map<std::size_t, std::size_t> arrivals_;  // events at the device, by message
  std::vector<Event> events_;
  std::vector<Link> links_;
  std::vector<std::size_t> at_risk_;     // events that store what is lost
  std::vector<std::size_t> unanswered_;  // beginnings of calls
  std::optional<std::size_t> failure_row_;
  std::size_t left_out_ = 0;
  Diagram diagram_;
};

}  // namespace

Diagram explain(const Recording& recording, const ExplainedRun& run,
                const ResolveCallSites& resolve) {
  return Explainer(recording, run, resolve).explain();
}

}  // namespace perdura::explore
