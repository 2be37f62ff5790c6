#include "platform/pmem/model/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace perdura::pmem {

namespace {

constexpr PersistenceState::RegionId kVariables = 0;
constexpr PersistenceState::RegionId kBuffers = 1;
constexpr Bytes kBufferSize = 8 * kCacheLine;
constexpr std::uint32_t kWordsOfALine = kCacheLine / kWord;
constexpr std::uint8_t kWhole = 0xC5;  // a message's checksum, which is written with it

bool is_message(StepKind kind) {
  return kind == StepKind::send || kind == StepKind::send_names ||
         kind == StepKind::write_immediate;
}

}  // namespace

struct ProgramExplorer::Run {
  explicit Run(const ProgramSetup& setup) : state(setup.model, setup.rules) {}
  PersistenceState state;
  std::vector<PersistenceState::ConnectionId> connections;       // by requester
  std::vector<std::optional<PersistenceState::Operation>> last;  // by requester
  std::vector<std::vector<Message>> messages;                    // by requester
  std::vector<std::vector<std::uint32_t>> received;              // by responder, by requester
  std::vector<const Step*> current;                              // by responder: the last message
  std::vector<char> writers;                                     // by responder
};

ProgramExplorer::ProgramExplorer(const Program& program, ProgramSetup setup)
    : program_(program), setup_(std::move(setup)) {
  if (setup_.layout.empty()) setup_.layout.resize(program_.variables.size());
  Bytes next = 0;
  for (const VariableLayout& layout : setup_.layout) {
    const Bytes line = layout.same_line ? next / kCacheLine * kCacheLine
                                        : (next + kCacheLine - 1) / kCacheLine * kCacheLine;
    const Bytes offset = layout.same_line ? next : line + layout.first_word * kWord;
    offsets_.push_back(offset);
    next = offset + layout.words * kWord;
  }
  std::size_t messages = 0;
  for (const Agent& agent : program_.agents) messages += agent.steps.size();
  initial_.resize(std::max<Bytes>(next + kCacheLine, messages * kBufferSize) / kCacheLine *
                  kCacheLine);
  memory_.resize(initial_.size());
  buffers_.resize(initial_.size());
  find_needs();
}

void ProgramExplorer::find_needs() {
  const auto nth = [this](const auto& matches, std::uint32_t n) {
    for (std::uint32_t a = 0; a < program_.agents.size(); ++a) {
      const Agent& agent = program_.agents[a];
      for (std::uint32_t s = 0; s < agent.steps.size(); ++s) {
        if (matches(agent, agent.steps[s]) && n-- == 0) return Need{a, s + 1};
      }
    }
    return Need{0, std::numeric_limits<std::uint32_t>::max()};
  };
  for (const Agent& agent : program_.agents) {
    auto& needs = needs_.emplace_back(agent.steps.size());
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
              return &other != &agent && written.kind != StepKind::await &&
                     std::count(written.changes.begin(), written.changes.end(), step.changes[0]) >
                         0;
            },
            0);
      }
    }
  }
}

bool ProgramExplorer::possible(const std::vector<std::uint32_t>& done) const {
  for (std::size_t a = 0; a < done.size(); ++a) {
    for (std::size_t s = 0; s < done[a]; ++s) {
      const auto& need = needs_[a][s];
      if (need && done[need->agent] < need->steps) return false;
    }
  }
  return true;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> ProgramExplorer::in_order(
    const std::vector<std::uint32_t>& done) const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
  std::vector<std::uint32_t> at(done.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t a = 0; a < done.size(); ++a) {
      for (; at[a] < done[a]; ++at[a], moved = true) {
        const auto& need = needs_[a][at[a]];
        if (need && at[need->agent] < need->steps) break;
        order.emplace_back(a, at[a]);
      }
    }
  }
  return order;
}

std::span<const std::byte> ProgramExplorer::bytes_of(Step::Change change) const {
  static thread_local std::vector<std::byte> bytes;
  bytes.assign(setup_.layout[change.variable].words * kWord, std::byte{change.value});
  return bytes;
}

void ProgramExplorer::apply(Run& run, std::uint32_t agent, const Step& step) const {
  PersistenceState& state = run.state;
  const std::uint32_t number = program_.agents[agent].number;
  const auto place_of = [this](Step::Change change) {
    return PersistenceState::Place{kVariables, offsets_[change.variable]};
  };
  const auto size_of = [this](Step::Change change) {
    return Bytes{setup_.layout[change.variable].words} * kWord;
  };
  const auto post = [&](RemoteKind kind) {
    const auto operation = state.post(run.connections[number], kind, {step.fenced, step.relaxed});
    run.last[number] = operation;
    return operation;
  };
  const void* writer = program_.agents[agent].responder ? &run.writers[number] : nullptr;
  switch (step.kind) {
    case StepKind::write:
    case StepKind::write_immediate: {
      const auto operation = post(RemoteKind::posted);
      for (const auto change : step.changes)
        state.place(operation, place_of(change), bytes_of(change));
      if (step.kind == StepKind::write_immediate) {
        run.messages[number].push_back({operation, &step, 0});
      }
      break;
    }
    case StepKind::send: {
      const auto operation = post(RemoteKind::posted);
      const Bytes buffer = (&step - program_.agents[agent].steps.data()) * kBufferSize;
      // A line holds the checksum, so the message is whole only if all its lines are.
      std::vector<std::byte> bytes{std::byte{kWhole}};
      bytes.resize(kWord, std::byte{kWhole});
      for (const auto change : step.changes) {
        const auto value = bytes_of(change);
        bytes.insert(bytes.end(), value.begin(), value.end());
      }
      state.place(operation, {kBuffers, buffer}, bytes);
      run.messages[number].push_back({operation, &step, buffer});
      break;
    }
    case StepKind::send_names:
      run.messages[number].push_back({post(RemoteKind::posted), &step, 0});
      break;
    case StepKind::atomic_write:
    case StepKind::atomic: {
      const auto operation = post(RemoteKind::atomic);
      for (const auto change : step.changes)
        state.place(operation, place_of(change), bytes_of(change));
      break;
    }
    case StepKind::read:
    case StepKind::flush_visibility:
      post(RemoteKind::read);
      break;
    case StepKind::flush_persistence: {
      const auto operation = post(RemoteKind::flush_persistence);
      for (const auto change : step.changes) {
        state.cover(operation, place_of(change), size_of(change));
      }
      break;
    }
    case StepKind::completion:
      if (run.last[number]) state.completed(*run.last[number]);
      break;
    case StepKind::receive_ack:
    case StepKind::send_ack:
      break;
    case StepKind::receive: {
      const Message& message = run.messages[step.peer][run.received[number][step.peer]++];
      state.received(message.operation);
      run.current[number] = message.step;
      break;
    }
    case StepKind::copy:
      for (auto change : step.changes) {
        // Without a message that carries it there is nothing but what the buffer held before.
        change.value = 0;
        if (run.current[number] != nullptr) {
          for (const auto carried : run.current[number]->changes) {
            if (carried.variable == change.variable) change.value = carried.value;
          }
        }
        state.store(writer, place_of(change), bytes_of(change));
      }
      break;
    case StepKind::flush:
      for (const auto change : step.changes) state.flush(writer, place_of(change), size_of(change));
      state.fence(writer);
      break;
    case StepKind::store:
      state.store(writer, place_of(step.changes[0]), bytes_of(step.changes[0]));
      break;
    case StepKind::stream:
      state.stream(writer, place_of(step.changes[0]), bytes_of(step.changes[0]));
      break;
    case StepKind::clwb:
    case StepKind::clflush:
      state.flush(writer, place_of(step.changes[0]), size_of(step.changes[0]),
                  step.kind == StepKind::clwb ? Flush::clwb : Flush::clflush);
      break;
    case StepKind::fence:
      state.fence(writer);
      break;
    case StepKind::await:
      state.seen(place_of(step.changes[0]), size_of(step.changes[0]));
      break;
  }
}

void ProgramExplorer::recover(const Run& run, const std::vector<PersistenceState::Survivor>& image,
                              std::vector<int>& values) {
  std::fill(memory_.begin(), memory_.end(), std::byte{});
  std::fill(buffers_.begin(), buffers_.end(), std::byte{});
  for (const auto& survivor : image) {
    auto& memory = survivor.place.region == kVariables ? memory_ : buffers_;
    std::copy(survivor.bytes.begin(), survivor.bytes.end(),
              memory.begin() + static_cast<std::ptrdiff_t>(survivor.place.offset));
  }
  const auto value_at = [](const std::byte* at, Bytes length) {
    for (Bytes i = 1; i < length; ++i) {
      if (at[i] != at[0]) return kTorn;
    }
    return static_cast<int>(at[0]);
  };
  values.resize(program_.variables.size());
  for (std::size_t v = 0; v < values.size(); ++v) {
    values[v] = value_at(&memory_[offsets_[v]], setup_.layout[v].words * kWord);
  }
  for (const auto& sent : run.messages) {
    for (const Message& message : sent) {
      if (message.step->kind != StepKind::send) continue;
      bool whole = value_at(&buffers_[message.buffer], kWord) == kWhole;
      Bytes at = message.buffer + kWord;
      for (const auto change : message.step->changes) {
        const Bytes length = setup_.layout[change.variable].words * kWord;
        whole = whole && value_at(&buffers_[at], length) == change.value;
        at += length;
      }
      if (!whole) continue;
      for (const auto change : message.step->changes) values[change.variable] = change.value;
    }
  }
}

namespace {

void prepare(auto& run, const Program& program, const ProgramSetup& setup,
             const std::vector<std::byte>& initial) {
  run.state.attach(kVariables, Medium::pm, initial.data());
  run.state.attach(kBuffers, setup.receive_buffers, initial.data());
  std::uint32_t requesters = 1;
  std::uint32_t responders = 1;
  for (const Agent& agent : program.agents) {
    auto& most = agent.responder ? responders : requesters;
    most = std::max(most, agent.number + 1);
    for (const Step& step : agent.steps) requesters = std::max(requesters, step.peer + 1);
  }
  for (std::uint32_t i = 0; i < requesters; ++i) {
    const bool other = i < setup.other_ddio.size() && setup.other_ddio[i];
    run.connections.push_back(run.state.connect(setup.model.ddio != other));
  }
  run.last.resize(requesters);
  run.messages.resize(requesters);
  run.received.assign(responders, std::vector<std::uint32_t>(requesters));
  run.current.resize(responders);
  run.writers.resize(responders);
}

}  // namespace

bool ProgramExplorer::try_instant(Instant& instant,
                                  const std::function<bool(const Instant&)>& judge,
                                  Sampling sampling, Explored& explored) {
  Run run(setup_);
  prepare(run, program_, setup_, initial_);
  for (const auto& [agent, step] : in_order(instant.done)) {
    apply(run, agent, program_.agents[agent].steps[step]);
  }
  instant.requesters_ended = true;
  for (std::size_t a = 0; a < instant.done.size(); ++a) {
    const Agent& agent = program_.agents[a];
    if (!agent.responder && instant.done[a] < agent.steps.size()) instant.requesters_ended = false;
  }
  const std::uint64_t number = explored.instants++;
  const auto show = [&](Choices& choices) {
    ++explored.images;
    recover(run, run.state.image(choices), instant.values);
    return judge(instant);
  };
  if (sampling.images == 0) {
    for (Enumerator all; all.next();) {
      if (!show(all)) return false;
    }
    return true;
  }
  LeastChoices least;
  MostChoices most;
  // A moment has choices of its own, whatever is tried before it.
  RandomChoices random(sampling.seed << 32 ^ number);
  if (!show(least) || !show(most)) return false;
  for (std::uint64_t i = 0; i < sampling.images; ++i) {
    if (!show(random)) return false;
  }
  return true;
}

Explored ProgramExplorer::explore(const std::function<bool(const Instant&)>& judge,
                                  Sampling sampling) {
  Explored explored;
  const std::size_t agents = program_.agents.size();
  // How far each can come at all.
  std::vector<std::uint32_t> furthest(agents);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t a = 0; a < agents; ++a) {
      while (furthest[a] < program_.agents[a].steps.size()) {
        const auto& need = needs_[a][furthest[a]];
        if (need && furthest[need->agent] < need->steps) break;
        ++furthest[a];
        moved = true;
      }
    }
  }
  for (std::uint32_t a = 0; a < agents && !explored.stuck; ++a) {
    if (furthest[a] < program_.agents[a].steps.size()) explored.stuck = {a, furthest[a]};
  }
  Instant instant;
  instant.done.assign(agents, 0);
  for (;;) {
    if (possible(instant.done) && !try_instant(instant, judge, sampling, explored)) {
      explored.cut_short = true;
      return explored;
    }
    std::size_t a = 0;
    while (a < agents && instant.done[a] == furthest[a]) instant.done[a++] = 0;
    if (a == agents) return explored;
    ++instant.done[a];
  }
}

bool ProgramExplorer::is_carried(const Run& run, std::size_t variable) {
  for (const auto& sent : run.messages) {
    for (const Message& message : sent) {
      if (message.step->kind != StepKind::send) continue;
      for (const auto change : message.step->changes) {
        if (change.variable == variable) return true;
      }
    }
  }
  return false;
}

std::string ProgramExplorer::describe(const Instant& instant) {
  std::string text;
  Run run(setup_);
  prepare(run, program_, setup_, initial_);
  for (const auto& [agent, step] : in_order(instant.done)) {
    const Agent& who = program_.agents[agent];
    apply(run, agent, who.steps[step]);
    text += fmt::format("  {:<12} {}\n", to_string(program_, who),
                        to_string(program_, who.steps[step]));
  }
  text += instant.requesters_ended ? "  -- the requester has finished; the power fails --\n"
                                   : "  -- the power fails --\n";
  for (std::size_t v = 0; v < instant.values.size(); ++v) {
    const Bytes length = setup_.layout[v].words * kWord;
    std::string_view where = to_string(run.state.whereabouts({kVariables, offsets_[v]}, length));
    if (where.empty() && instant.values[v] == 0 && is_carried(run, v)) {
      where = setup_.receive_buffers == Medium::dram
                  ? "   (its message is in a receive buffer in DRAM)"
                  : "   (its message is not whole in the receive buffer)";
    }
    text += fmt::format(
        "  recovery     {} = {}{}\n", program_.variables[v],
        instant.values[v] == kTorn ? std::string("torn") : std::to_string(instant.values[v]),
        where);
  }
  return text;
}

}  // namespace perdura::pmem
