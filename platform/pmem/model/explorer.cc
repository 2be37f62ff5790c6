#include "platform/pmem/model/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace perdura::pmem {

namespace {

constexpr PersistenceState::RegionId kVariables = 0;
constexpr PersistenceState::RegionId kBuffers = 1;
// Stands for the checksum of a message, which is written with it.
constexpr std::uint8_t kWhole = 0xC5;

}  // namespace

struct ProgramExplorer::Run {
  explicit Run(const ProgramSetup& setup) : state(setup.model, setup.rules) {}
  PersistenceState state;
  // The comments name the indices.
  std::vector<PersistenceState::ConnectionId> connections;           // [requester]
  std::vector<std::optional<PersistenceState::Operation>> last;      // [requester]
  std::vector<std::vector<PersistenceState::Operation>> operations;  // [agent][step]
  std::vector<std::vector<Message>> messages;                        // [requester]
  std::vector<std::vector<std::uint32_t>> received;                  // [responder][requester]
  std::vector<const Step*> current;  // [responder]: the last message that it received
  std::vector<char> writers;         // [responder]
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
  for (const Agent& agent : program_.agents) {
    first_buffers_.push_back(messages * kBufferSize);
    messages += agent.steps.size();
  }
  initial_.resize(std::max<Bytes>(next + kCacheLine, messages * kBufferSize) / kCacheLine *
                  kCacheLine);
  memory_.resize(initial_.size());
  buffers_.resize(initial_.size());
  std::vector<Schedule::Lines> lines(offsets_.size());
  for (std::size_t v = 0; v < offsets_.size(); ++v) {
    const Bytes end = offsets_[v] + setup_.layout[v].words * kWord;
    for (Bytes line = offsets_[v] / kCacheLine; line * kCacheLine < end; ++line) {
      lines[v] |= Schedule::Lines{1} << line % 64;
    }
  }
  schedule_.emplace(program_, lines, setup_.rules);
}

std::span<const std::byte> ProgramExplorer::bytes_of(Step::VariableChange change) const {
  static thread_local std::vector<std::byte> bytes;
  bytes.assign(setup_.layout[change.variable].words * kWord, std::byte{change.value});
  return bytes;
}

// Applies the changes of an operation or a store to the persistence state.
void ProgramExplorer::place(Run& run, Event event) const {
  PersistenceState& state = run.state;
  const Agent& agent = program_.agents[event.agent];
  const Step& step = agent.steps[event.step];
  const auto operation = run.operations[event.agent][event.step];
  if (step.kind == StepKind::send) {
    // A message is valid only if all of its lines are, so its checksum may be in any of them.
    std::vector<std::byte> bytes(kWord, std::byte{kWhole});
    for (const auto change : step.changes) {
      const auto value = bytes_of(change);
      bytes.insert(bytes.end(), value.begin(), value.end());
    }
    state.place(operation, {kBuffers, buffer_of(event)}, bytes);
    return;
  }
  if (!agent.responder) {
    // Adjacent variables form one range and are written by one message, which orders nothing within
    // a range.
    for (auto change = step.changes.begin(); change != step.changes.end();) {
      const Bytes begin = offsets_[change->variable];
      std::vector<std::byte> bytes;
      do {
        const auto value = bytes_of(*change);
        bytes.insert(bytes.end(), value.begin(), value.end());
        ++change;
      } while (change != step.changes.end() && offsets_[change->variable] == begin + bytes.size());
      state.place(operation, {kVariables, begin}, bytes);
    }
    return;
  }
  for (auto change : step.changes) {
    const PersistenceState::RegionAddress where{kVariables, offsets_[change.variable]};
    const void* writer = &run.writers[agent.number];
    if (step.kind == StepKind::stream) {
      state.stream(writer, where, bytes_of(change));
      continue;
    }
    if (step.kind == StepKind::copy) {
      // If no message carries the value, the copy yields what the buffer held before.
      change.value = 0;
      if (run.current[agent.number] != nullptr) {
        for (const auto carried : run.current[agent.number]->changes) {
          if (carried.variable == change.variable) change.value = carried.value;
        }
      }
    }
    state.store(writer, where, bytes_of(change));
  }
}

void ProgramExplorer::apply(Run& run, Event event) const {
  if (event.effect) {
    place(run, event);
    return;
  }
  PersistenceState& state = run.state;
  const Agent& agent = program_.agents[event.agent];
  const Step& step = agent.steps[event.step];
  const std::uint32_t number = agent.number;
  const auto place_of = [this](Step::VariableChange change) {
    return PersistenceState::RegionAddress{kVariables, offsets_[change.variable]};
  };
  const auto size_of = [this](Step::VariableChange change) {
    return Bytes{setup_.layout[change.variable].words} * kWord;
  };
  const auto post = [&](RemoteKind kind) {
    const auto operation = state.post(run.connections[number], kind, {step.fenced, step.relaxed});
    run.last[number] = operation;
    return run.operations[event.agent][event.step] = operation;
  };
  const auto place_now = [&] {
    if (!schedule_->has_effect(event.agent, event.step)) place(run, event);
  };
  const void* writer = agent.responder ? &run.writers[number] : nullptr;
  switch (step.kind) {
    case StepKind::write:
      post(RemoteKind::posted);
      place_now();
      break;
    case StepKind::write_immediate:
    case StepKind::send:
      run.messages[number].push_back({post(RemoteKind::posted), &step, buffer_of(event)});
      place_now();
      break;
    case StepKind::send_names:
      run.messages[number].push_back({post(RemoteKind::posted), &step, 0});
      break;
    case StepKind::atomic_write:
    case StepKind::compare_and_swap:
    case StepKind::atomic:
      post(RemoteKind::atomic);
      place_now();
      break;
    case StepKind::read:
      post(RemoteKind::read);
      break;
    case StepKind::flush_visibility:
      post(RemoteKind::flush);
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
    case StepKind::store:
    case StepKind::stream:
      place_now();
      break;
    case StepKind::flush:
      for (const auto change : step.changes) state.flush(writer, place_of(change), size_of(change));
      state.fence(writer);
      break;
    case StepKind::clwb:
    case StepKind::clflush:
      state.flush(writer, place_of(step.changes[0]), size_of(step.changes[0]),
                  step.kind == StepKind::clwb ? Flush::clwb : Flush::clflush);
      break;
    case StepKind::fence:
      state.fence(writer);
      break;
    case StepKind::await: {
      // Stores of the CPU are visible anyway; only effects of remote operations can be learned from
      // being seen.
      const Event by = *schedule_->awaited(event.agent, event.step);
      if (program_.agents[by.agent].responder) break;
      state.seen(run.operations[by.agent][by.step], place_of(step.changes[0]),
                 size_of(step.changes[0]));
      break;
    }
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
  for (const Agent& agent : program.agents) run.operations.emplace_back(agent.steps.size());
  run.messages.resize(requesters);
  run.received.assign(responders, std::vector<std::uint32_t>(requesters));
  run.current.resize(responders);
  run.writers.resize(responders);
}

}  // namespace

bool ProgramExplorer::try_instant(Instant& instant,
                                  const std::function<bool(const Instant&)>& judge,
                                  const Sampling& sampling, Explored& explored) {
  Run run(setup_);
  prepare(run, program_, setup_, initial_);
  for (const Event event : instant.events) apply(run, event);
  instant.requesters_ended = true;
  for (std::size_t a = 0; a < instant.done.size(); ++a) {
    const Agent& agent = program_.agents[a];
    if (!agent.responder && instant.done[a] < agent.steps.size()) instant.requesters_ended = false;
  }
  const std::uint64_t number = explored.instants++;
  const auto show = [&](Choices& choices) {
    if (sampling.most_images > 0 && explored.images == sampling.most_images) {
      explored.too_many = true;
      return false;
    }
    constexpr std::uint64_t kImagesBetween = 256;
    if (sampling.progress && explored.images % kImagesBetween == 0) {
      const auto share = [](std::uint64_t done, std::uint64_t all) {
        return all == 0 ? 0.0 : static_cast<double>(done) / static_cast<double>(all);
      };
      sampling.progress(
          std::max(share(number, all_instants_), share(explored.images, sampling.most_images)));
    }
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
  // The seed depends on the number of the crash point, so that its choices are the same whatever
  // was tried before it.
  RandomChoices random(sampling.seed << 32 ^ number);
  if (!show(least) || !show(most)) return false;
  for (std::uint64_t i = 0; i < sampling.images; ++i) {
    if (!show(random)) return false;
  }
  return true;
}

Explored ProgramExplorer::explore(const std::function<bool(const Instant&)>& judge,
                                  const Sampling& sampling) {
  Explored explored;
  all_instants_ = 0;
  if (sampling.progress) {
    schedule_->each([&](const std::vector<Event>&) {
      ++all_instants_;
      return true;
    });
  }
  if (const auto stuck = schedule_->stuck()) explored.stuck = {stuck->agent, stuck->step};
  Instant instant;
  explored.cut_short = !schedule_->each([&](const std::vector<Event>& events) {
    instant.events = events;
    instant.done.assign(program_.agents.size(), 0);
    for (const Event event : events) {
      if (!event.effect) ++instant.done[event.agent];
    }
    return try_instant(instant, judge, sampling, explored);
  });
  return explored;
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
  for (const Event event : instant.events) {
    const Agent& who = program_.agents[event.agent];
    apply(run, event);
    text += fmt::format("  {:<12} {}{}\n", to_string(program_, who),
                        to_string(program_, who.steps[event.step]),
                        event.effect ? "   (takes effect)" : "");
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
