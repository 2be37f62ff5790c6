#include "platform/pmem/model/schedule.h"

#include <algorithm>

namespace perdura::pmem {

namespace {

bool is_message(StepKind kind) {
  return kind == StepKind::send || kind == StepKind::send_names ||
         kind == StepKind::write_immediate;
}

std::optional<RemoteKind> remote_kind(StepKind kind) {
  switch (kind) {
    case StepKind::write:
    case StepKind::write_immediate:
    case StepKind::send:
    case StepKind::send_names:
      return RemoteKind::posted;
    case StepKind::atomic_write:
    case StepKind::compare_and_swap:
    case StepKind::atomic:
      return RemoteKind::atomic;
    case StepKind::read:
      return RemoteKind::read;
    case StepKind::flush_visibility:
      return RemoteKind::flush;
    case StepKind::flush_persistence:
      return RemoteKind::flush_persistence;
    default:
      return std::nullopt;
  }
}

// True if the step changes variables through the connection.
bool is_remote_write(StepKind kind) {
  return kind == StepKind::write || kind == StepKind::write_immediate ||
         kind == StepKind::atomic_write || kind == StepKind::compare_and_swap ||
         kind == StepKind::atomic;
}

bool is_local_write(StepKind kind) {
  return kind == StepKind::store || kind == StepKind::stream || kind == StepKind::copy;
}

bool is_write_back(StepKind kind) {
  return kind == StepKind::flush || kind == StepKind::clwb || kind == StepKind::clflush;
}

}  // namespace

Schedule::Schedule(const Program& program, const std::vector<Lines>& lines_of_variables,
                   Rules rules)
    : program_(program), lines_(lines_of_variables), scratch_({}, rules) {
  find_needs();
  find_delayed();
  add_nodes();
  order_effects();
  for (Node& node : nodes_) {
    if (!node.event.effect) order_step(node);
  }
  find_dependent();
}

Schedule::Lines Schedule::lines_of(const Step& step) const {
  Lines lines = 0;
  for (const auto change : step.changes) lines |= lines_[change.variable];
  return lines;
}

void Schedule::find_needs() {
  const auto nth = [this](const auto& matches, std::uint32_t n) -> std::optional<Event> {
    for (std::uint32_t a = 0; a < program_.agents.size(); ++a) {
      const Agent& agent = program_.agents[a];
      for (std::uint32_t s = 0; s < agent.steps.size(); ++s) {
        if (matches(agent, agent.steps[s]) && n-- == 0) return Event{a, s};
      }
    }
    return std::nullopt;
  };
  for (const Agent& agent : program_.agents) {
    auto& needs = needs_.emplace_back(agent.steps.size());
    auto& never = never_.emplace_back(agent.steps.size());
    for (std::size_t s = 0; s < agent.steps.size(); ++s) {
      const Step& step = agent.steps[s];
      const auto before = static_cast<std::uint32_t>(std::count_if(
          agent.steps.begin(), agent.steps.begin() + static_cast<std::ptrdiff_t>(s),
          [&](const Step& other) { return other.kind == step.kind && other.peer == step.peer; }));
      if (step.kind == StepKind::receive) {
        needs[s] = nth(
            [&](const Agent& other, const Step& sent) {
              return !other.responder && other.number == step.peer && is_message(sent.kind);
            },
            before);
      } else if (step.kind == StepKind::receive_ack) {
        needs[s] = nth(
            [&](const Agent& other, const Step& sent) {
              return other.responder && sent.kind == StepKind::send_ack &&
                     sent.peer == agent.number;
            },
            before);
      } else if (step.kind == StepKind::await) {
        needs[s] = nth(
            [&](const Agent& other, const Step& written) {
              return &other != &agent &&
                     (is_remote_write(written.kind) || is_local_write(written.kind)) &&
                     std::count(written.changes.begin(), written.changes.end(), step.changes[0]) >
                         0;
            },
            0);
      } else {
        continue;
      }
      never[s] = !needs[s].has_value();
    }
  }
}

// Finds the steps whose effects may come later than the steps themselves and are events of their
// own. If one operation of a connection is such a step, all of them are, since they keep their
// order.
void Schedule::find_delayed() {
  for (std::uint32_t a = 0; a < program_.agents.size(); ++a) {
    const Agent& agent = program_.agents[a];
    effects_.emplace_back(agent.steps.size(), kNone);
    auto& issued = issued_.emplace_back();
    if (agent.responder) continue;
    const auto connection = scratch_.connect();
    for (std::uint32_t s = 0; s < agent.steps.size(); ++s) {
      const Step& step = agent.steps[s];
      const auto kind = remote_kind(step.kind);
      if (kind) {
        issued.push_back({a, s, scratch_.post(connection, *kind, {step.fenced, step.relaxed})});
      }
    }
  }
  const auto changed_by_others = [this](std::uint32_t a, Lines lines) {
    for (std::uint32_t other = 0; other < program_.agents.size(); ++other) {
      if (other == a) continue;
      for (const Step& step : program_.agents[other].steps) {
        if ((is_remote_write(step.kind) || is_local_write(step.kind)) &&
            (lines_of(step) & lines) != 0) {
          return true;
        }
      }
    }
    return false;
  };
  for (std::uint32_t a = 0; a < program_.agents.size(); ++a) {
    const Agent& agent = program_.agents[a];
    bool delayed = false;
    for (std::size_t i = 0; i < issued_[a].size(); ++i) {
      const Step& step = agent.steps[issued_[a][i].step];
      if (!is_remote_write(step.kind)) continue;
      delayed = delayed || changed_by_others(a, lines_of(step));
      for (std::size_t j = i + 1; j < issued_[a].size(); ++j) {
        const Step& later = agent.steps[issued_[a][j].step];
        delayed = delayed ||
                  (is_remote_write(later.kind) && (lines_of(later) & lines_of(step)) != 0 &&
                   !scratch_.takes_effect_before(issued_[a][i].operation, issued_[a][j].operation));
      }
    }
    for (std::uint32_t s = 0; s < agent.steps.size(); ++s) {
      const Step& step = agent.steps[s];
      const bool remote = is_remote_write(step.kind) || step.kind == StepKind::send;
      if ((remote && delayed) ||
          (step.kind == StepKind::stream && changed_by_others(a, lines_of(step)))) {
        effects_[a][s] = 0;  // add_nodes() replaces it by the number of the node
      }
    }
  }
}

void Schedule::add_nodes() {
  for (std::uint32_t a = 0; a < program_.agents.size(); ++a) {
    auto& steps = steps_.emplace_back();
    for (std::uint32_t s = 0; s < program_.agents[a].steps.size(); ++s) {
      const Step& step = program_.agents[a].steps[s];
      const bool writes = is_local_write(step.kind) || is_remote_write(step.kind);
      steps.push_back(static_cast<std::uint32_t>(nodes_.size()));
      Node node;
      node.event = {a, s, false};
      node.never = never_[a][s] != 0;
      if (is_write_back(step.kind) || step.kind == StepKind::flush_persistence) {
        node.writes_back = lines_of(step);
      }
      if (effects_[a][s] == kNone) {
        if (writes) node.writes = lines_of(step);
        nodes_.push_back(std::move(node));
        continue;
      }
      nodes_.push_back(std::move(node));
      effects_[a][s] = static_cast<std::uint32_t>(nodes_.size());
      Node effect;
      effect.event = {a, s, true};
      effect.after.push_back(steps.back());
      if (writes) effect.writes = lines_of(step);
      nodes_.push_back(std::move(effect));
    }
  }
}

void Schedule::order_effects() {
  for (const auto& issued : issued_) {
    for (std::size_t j = 0; j < issued.size(); ++j) {
      const std::uint32_t effect = effects_[issued[j].agent][issued[j].step];
      if (effect == kNone) continue;
      after_effects(nodes_[effect], issued[j].operation, [&](const Issued& earlier) {
        return scratch_.takes_effect_before(earlier.operation, issued[j].operation);
      });
    }
  }
}

// Makes the node come after those effects of the operation's connection for which `is_before`
// holds.
void Schedule::after_effects(Node& node, PersistenceState::Operation last,
                             const std::function<bool(const Issued&)>& is_before) {
  for (const auto& issued : issued_) {
    for (const Issued& earlier : issued) {
      if (earlier.operation.connection != last.connection || earlier.operation.index > last.index ||
          !is_before(earlier)) {
        continue;
      }
      const std::uint32_t effect = effects_[earlier.agent][earlier.step];
      if (effect != kNone) node.after.push_back(effect);
    }
  }
}

// Determines the events that a step waits for, and the effects that it implies.
void Schedule::order_step(Node& node) {
  const auto [a, s, effect] = node.event;
  const Agent& agent = program_.agents[a];
  const Step& step = agent.steps[s];
  if (s > 0) node.after.push_back(steps_[a][s - 1]);
  const auto& need = needs_[a][s];
  if (need) node.after.push_back(steps_[need->agent][need->step]);

  const auto issued_at = [this](Event event) -> const Issued* {
    const auto& issued = issued_[event.agent];
    const auto found = std::find_if(issued.begin(), issued.end(),
                                    [&](const Issued& one) { return one.step == event.step; });
    return found == issued.end() ? nullptr : &*found;
  };
  const auto make_visible_up_to = [&](const Issued& last) {
    for (const Issued& one : issued_[last.agent]) {
      if (one.operation.index > last.operation.index) break;
      if (is_remote_write(step_of({one.agent, one.step}).kind)) {
        node.makes_visible |= lines_of(step_of({one.agent, one.step}));
      }
    }
  };

  if (step.kind == StepKind::completion) {
    const Issued* last = nullptr;
    for (const Issued& one : issued_[a]) {
      if (one.step >= s) break;
      last = &one;
      // Completions come in order, so this completion implies that every earlier operation is
      // complete.
      const Step& told = agent.steps[one.step];
      if (remote_kind(told.kind) == RemoteKind::posted) continue;
      const bool covers = told.kind == StepKind::flush_persistence;
      if (covers) node.writes_back |= lines_of(told);
      after_effects(node, one.operation, [&](const Issued& earlier) {
        const Step& changed = step_of({earlier.agent, earlier.step});
        return !covers || (lines_of(changed) & ~lines_of(told)) == 0;
      });
    }
    if (last != nullptr) make_visible_up_to(*last);
  } else if (step.kind == StepKind::receive && need) {
    const Issued& message = *issued_at(*need);
    make_visible_up_to(message);
    after_effects(node, message.operation, [&](const Issued& earlier) {
      return remote_kind(step_of({earlier.agent, earlier.step}).kind) == RemoteKind::posted ||
             scratch_.takes_effect_before(earlier.operation, message.operation);
    });
  } else if (step.kind == StepKind::await && need) {
    const std::uint32_t seen = effects_[need->agent][need->step];
    if (seen != kNone) node.after.push_back(seen);
    if (const Issued* writer = issued_at(*need)) make_visible_up_to(*writer);
  } else if (agent.responder) {
    // A thread sees its own stores in order, and a fence waits for the non-temporal ones.
    const bool fences = step.kind == StepKind::fence || step.kind == StepKind::flush;
    for (std::uint32_t earlier = 0; earlier < s; ++earlier) {
      if (effects_[a][earlier] == kNone) continue;
      if (fences || (lines_of(agent.steps[earlier]) & lines_of(step)) != 0) {
        node.after.push_back(effects_[a][earlier]);
      }
    }
  }
}

void Schedule::find_dependent() {
  dependent_.assign(nodes_.size(), std::vector<char>(nodes_.size()));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      const Node& one = nodes_[i];
      const Node& other = nodes_[j];
      const auto follows = [](const Node& node, std::size_t earlier) {
        return std::find(node.after.begin(), node.after.end(), earlier) != node.after.end();
      };
      const Lines touched = other.writes | other.writes_back;
      const bool meet = (one.writes & touched) != 0 ||
                        (one.writes_back & (touched | other.makes_visible)) != 0 ||
                        (one.makes_visible & other.writes_back) != 0;
      const bool same_agent =
          !one.event.effect && !other.event.effect && one.event.agent == other.event.agent;
      dependent_[i][j] = meet || same_agent || follows(one, j) || follows(other, i);
    }
  }
}

bool Schedule::possible(std::uint32_t node, const std::vector<char>& happened) const {
  const Node& next = nodes_[node];
  return happened[node] == 0 && !next.never &&
         std::all_of(next.after.begin(), next.after.end(),
                     [&](std::uint32_t earlier) { return happened[earlier] != 0; });
}

bool Schedule::is_smallest(const std::vector<std::uint32_t>& order, std::uint32_t next) const {
  for (auto earlier = order.rbegin(); earlier != order.rend(); ++earlier) {
    if (dependent_[*earlier][next] != 0) return true;
    if (*earlier > next) return false;
  }
  return true;
}

bool Schedule::each(const std::function<bool(const std::vector<Event>&)>& visit) const {
  std::vector<char> happened(nodes_.size());
  std::vector<std::uint32_t> order;
  std::vector<Event> events;
  const auto go_on = [&](const auto& self) -> bool {
    if (!visit(events)) return false;
    for (std::uint32_t next = 0; next < nodes_.size(); ++next) {
      if (!possible(next, happened) || !is_smallest(order, next)) continue;
      happened[next] = 1;
      order.push_back(next);
      events.push_back(nodes_[next].event);
      if (!self(self)) return false;
      happened[next] = 0;
      order.pop_back();
      events.pop_back();
    }
    return true;
  };
  return go_on(go_on);
}

std::optional<Event> Schedule::stuck() const {
  std::vector<char> happened(nodes_.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t next = 0; next < nodes_.size(); ++next) {
      if (!possible(next, happened)) continue;
      happened[next] = 1;
      moved = true;
    }
  }
  for (const Node& node : nodes_) {
    if (happened[steps_[node.event.agent][node.event.step]] == 0) return node.event;
  }
  return std::nullopt;
}

}  // namespace perdura::pmem
