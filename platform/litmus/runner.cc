#include "platform/litmus/runner.h"

#include <fmt/format.h>

#include <atomic>
#include <deque>
#include <set>
#include <tuple>

#include "platform/base/error.h"
#include "platform/base/random.h"

namespace perdura::litmus {

namespace {

constexpr std::uint32_t kReceives = 8;  // messages that a node may receive
constexpr Bytes kFirstWord = 2 * kCacheLine;
constexpr Bytes kScratch = 0;          // offset of a node's word for READs that only push
constexpr Bytes kFenced = kCacheLine;  // offset of a node's word for locked instructions that
                                       // only drain the store buffer

using QueuePairKey = std::tuple<fabric::NodeId, bool>;  // the peer, and true for the second queue
                                                        // pair to it

bool is_operation(StepKind kind) {
  switch (kind) {
    case StepKind::write:
    case StepKind::write_immediate:
    case StepKind::send:
    case StepKind::read:
    case StepKind::flush:
    case StepKind::remote_cas:
    case StepKind::remote_add:
    case StepKind::atomic_write:
      return true;
    default:
      return false;
  }
}

fabric::Opcode opcode_of(StepKind kind) {
  switch (kind) {
    case StepKind::write:
      return fabric::Opcode::write;
    case StepKind::write_immediate:
      return fabric::Opcode::write_with_immediate;
    case StepKind::send:
      return fabric::Opcode::send;
    case StepKind::flush:
      return fabric::Opcode::flush;
    case StepKind::remote_cas:
      return fabric::Opcode::compare_and_swap;
    case StepKind::remote_add:
      return fabric::Opcode::fetch_and_add;
    case StepKind::atomic_write:
      return fabric::Opcode::atomic_write;
    default:
      return fabric::Opcode::read;
  }
}

void check(fabric::Status status) {
  if (status == fabric::Status::success) return;
  throw PlatformError(
      fmt::format("an operation of a litmus test failed: {}", fabric::to_string(status)));
}

}  // namespace

// The state that the threads of a run share; all are of one process.
struct Run::Shared {
  struct Agent {
    std::uint32_t number = 0;
    fabric::NodeId node = 0;
    const std::vector<Step>* steps = nullptr;
    std::set<QueuePairKey> peers{};
    bool receives = false;  // the first agent of its node, to which others connect
    std::uint32_t accepts = 0;
    std::uint32_t at = 0;  // its position: the number of points that it has passed
    fabric::MemoryRegion memory{};
    fabric::MemoryRegion buffers{};
  };
  // The additional state of a running thread.
  struct Live {
    explicit Live(Thread& on) : thread(on) {}
    Thread& thread;
    std::unique_ptr<fabric::ReceiveQueue> receive_queue{};
    fabric::CompletionQueue completions{};
    std::map<QueuePairKey, std::unique_ptr<fabric::QueuePair>> queue_pairs{};
    std::vector<std::unique_ptr<fabric::QueuePair>> accepted{};
    std::deque<fabric::RdmaOperation> operations{};
    std::vector<std::uint32_t> results{};  // registers of the operations
    std::size_t awaited = 0;
  };
  struct NodeMemory {
    std::unique_ptr<pmem::Region> region;
    std::unique_ptr<pmem::Region> buffers;
    const Agent* home = nullptr;
  };

  Shared(const Litmus& test, Platform& on, const RunOptions& with)
      : litmus(test), platform(on), options(with), registers(test.registers.size()) {}

  Bytes offset_of(Word word) const { return offsets[word.location] + word.line * kCacheLine; }
  std::uint32_t length_of(Word word) const {
    const std::uint32_t lines = litmus.locations[word.location].lines;
    return lines == 1 ? std::uint32_t{kWord} : lines * std::uint32_t{kCacheLine};
  }
  pmem::Region& region_of(const Agent& agent) { return *nodes[agent.node].region; }

  void lay_out();
  Task<> run(Agent& agent, Thread& thread);
  Task<> connect(Agent& agent, Live& live);
  static Task<> accept(Agent* agent, Live* live);
  Task<> meet(Agent& agent);
  Task<> repeat(Agent& agent, Live& live);
  Task<> execute(Agent& agent, Live& live, Random& random);
  Task<> wait(Live& live);
  Task<> receive(Agent& agent, Live& live, const Step& step);
  Task<> push(Agent& agent, Live& live);
  void post(Agent& agent, Live& live, const Step& step);
  void fence(Agent& agent, Bytes word) {
    std::uint64_t expected = 0;
    region_of(agent).compare_exchange(word, expected, 0);
  }
  void reset(const Agent& agent);
  void collect();

  const Litmus& litmus;
  Platform& platform;
  RunOptions options;
  std::vector<Bytes> offsets;  // where the locations begin in their nodes' regions
  std::vector<NodeMemory> nodes;
  std::deque<Agent> agents;
  std::unique_ptr<Platform::Barrier> barrier;
  std::atomic<std::uint32_t> ready{0};
  std::vector<std::uint64_t> registers;
  Results results;
};

// Makes the programs' threads, and one for each node that has none.
void Run::Shared::lay_out() {
  nodes.resize(litmus.nodes);
  std::vector<Bytes> used(litmus.nodes, kFirstWord);
  for (const Location& location : litmus.locations) {
    offsets.push_back(used[location.node]);
    used[location.node] += location.lines * kCacheLine;
  }
  static const std::vector<Step> kNothing;
  const auto add = [this](fabric::NodeId node, const std::vector<Step>& steps) {
    Agent& agent = agents.emplace_back();
    agent.number = static_cast<std::uint32_t>(agents.size() - 1);
    agent.node = node;
    agent.steps = &steps;
    agent.receives = nodes[node].home == nullptr;
    if (agent.receives) nodes[node].home = &agent;
    for (const Step& step : steps) {
      if (is_operation(step.kind)) agent.peers.insert({step.peer, step.second_queue_pair});
    }
  };
  for (const Program& program : litmus.programs) add(program.node, program.steps);
  for (fabric::NodeId node = 0; node < litmus.nodes; ++node) {
    if (nodes[node].home == nullptr) add(node, kNothing);
    Node& machine = *platform.local_node(node);
    nodes[node].region =
        machine.create_region(fmt::format("litmus {}", node), used[node], pmem::Medium::dram);
    nodes[node].buffers = machine.create_region(fmt::format("litmus messages {}", node),
                                                kReceives * kCacheLine, pmem::Medium::dram);
  }
  for (const Agent& agent : agents) {
    for (const auto& [peer, second] : agent.peers) {
      ++agents[nodes[peer].home->number].accepts;
    }
  }
  barrier = platform.create_barrier(static_cast<std::uint32_t>(agents.size()));
}

Task<> Run::Shared::accept(Agent* agent, Live* live) {
  for (std::uint32_t i = 0; i < agent->accepts; ++i) {
    std::unique_ptr<fabric::ConnectionRequest> request =
        co_await live->thread.endpoint.next_connection();
    fabric::QueuePairOptions with;
    with.receive_queue = live->receive_queue.get();
    with.completions = &live->completions;
    live->accepted.push_back(request->accept(with, {}));
  }
}

Task<> Run::Shared::connect(Agent& agent, Live& live) {
  fabric::Endpoint& endpoint = live.thread.endpoint;
  agent.memory = endpoint.register_memory(region_of(agent), fabric::Access::remote_all);
  if (agent.receives) {
    agent.buffers =
        endpoint.register_memory(*nodes[agent.node].buffers, fabric::Access::remote_all);
    live.receive_queue = endpoint.create_receive_queue(kReceives);
  }
  co_await barrier->arrive_and_wait();
  if (agent.accepts > 0) live.thread.executor.spawn(accept(&agent, &live));
  for (const auto& [peer, second] : agent.peers) {
    const fabric::Address to{peer, static_cast<fabric::Port>(1 + nodes[peer].home->number)};
    fabric::QueuePairOptions with;
    std::vector<std::byte> nothing;
    fabric::Connection connection = co_await endpoint.connect(to, with, std::move(nothing));
    check(connection.status);
    live.queue_pairs[{peer, second}] = std::move(connection.queue_pair);
  }
  while (live.accepted.size() < agent.accepts) co_await sleep_for(Microseconds(1));
}

void Run::Shared::reset(const Agent& agent) {
  if (!agent.receives) return;
  for (std::uint32_t i = 0; i < litmus.locations.size(); ++i) {
    const Location& location = litmus.locations[i];
    if (location.node != agent.node) continue;
    for (std::uint32_t line = 0; line < location.lines; ++line) {
      nodes[agent.node].region->store(offset_of({i, line}), location.initially);
    }
  }
}

Task<> Run::Shared::run(Agent& agent, Thread& thread) {
  Live live(thread);
  co_await connect(agent, live);
  co_await repeat(agent, live);
  // The connections end together, so that no thread is notified of an end while it works.
  co_await meet(agent);
}

Task<> Run::Shared::meet(Agent& agent) {
  ++agent.at;
  co_await barrier->arrive_and_wait();
  ++agent.at;
}

Task<> Run::Shared::repeat(Agent& agent, Live& live) {
  Random random(options.seed, agent.number);
  std::uint32_t to_receive = 0;
  for (const Step& step : *agent.steps) to_receive += step.kind == StepKind::receive ? 1 : 0;
  for (std::uint64_t i = 0; i < options.times; ++i) {
    reset(agent);
    fence(agent, kFenced);
    for (std::uint32_t n = 0; n < to_receive; ++n) {
      const fabric::LocalBuffer buffer = agent.buffers.local(n * kCacheLine, kCacheLine);
      live.receive_queue->post(buffer, n);
    }
    if (options.before_start && ++ready == agents.size()) options.before_start();
    co_await meet(agent);
    // The last thread to arrive has not suspended.
    if (options.suspend_between_steps) co_await yield();
    co_await execute(agent, live, random);
    co_await meet(agent);
    co_await push(agent, live);
    co_await meet(agent);
    if (agent.number == 0) collect();
    co_await meet(agent);
  }
}

Task<> Run::Shared::execute(Agent& agent, Live& live, Random& random) {
  pmem::Region& region = region_of(agent);
  for (const Step& step : *agent.steps) {
    ++agent.at;
    if (options.longest_pause > Picoseconds(0) && random.uniform_below(2) == 1) {
      const auto longest = static_cast<std::uint64_t>(options.longest_pause.count());
      co_await sleep_for(Picoseconds(random.uniform_below(longest)));
    }
    switch (step.kind) {
      case StepKind::store:
        region.store(offset_of(step.local), step.value);
        break;
      case StepKind::load:
        registers[step.result] = region.load(offset_of(step.local));
        break;
      case StepKind::cas: {
        std::uint64_t expected = step.expected;
        region.compare_exchange(offset_of(step.local), expected, step.value);
        registers[step.result] = expected;
        break;
      }
      case StepKind::fence:
        fence(agent, kFenced);
        break;
      case StepKind::wait:
        co_await wait(live);
        break;
      case StepKind::receive:
        co_await receive(agent, live, step);
        break;
      default:
        post(agent, live, step);
        break;
    }
    ++agent.at;
    if (options.suspend_between_steps) co_await yield();
  }
  co_await wait(live);
  live.operations.clear();
  live.results.clear();
  live.awaited = 0;
}

void Run::Shared::post(Agent& agent, Live& live, const Step& step) {
  const Agent& home = *nodes[step.peer].home;
  fabric::WorkRequest request;
  request.opcode = opcode_of(step.kind);
  request.flags = step.flags;
  request.operand = step.value;
  request.expected = step.expected;
  request.immediate = 1;
  if (step.kind != StepKind::send) request.remote = home.memory.remote(offset_of(step.remote));
  if (step.kind == StepKind::write || step.kind == StepKind::write_immediate ||
      step.kind == StepKind::send || step.kind == StepKind::read) {
    request.local = agent.memory.local(offset_of(step.local), length_of(step.local));
  } else if (step.kind == StepKind::flush) {
    request.flush_length = length_of(step.remote);
  }
  fabric::QueuePair& queue_pair = *live.queue_pairs.at({step.peer, step.second_queue_pair});
  live.operations.emplace_back(queue_pair, request).post();
  live.results.push_back(step.result);
}

Task<> Run::Shared::wait(Live& live) {
  for (; live.awaited < live.operations.size(); ++live.awaited) {
    fabric::RdmaOperation& operation = live.operations[live.awaited];
    const fabric::Completion completion = co_await operation;
    check(completion.status);
    const std::uint32_t result = live.results[live.awaited];
    if (result != kNoRegister) registers[result] = completion.old_value;
  }
}

Task<> Run::Shared::receive(Agent& agent, Live& live, const Step& step) {
  const fabric::ReceiveCompletion received = co_await live.completions.next();
  check(received.status);
  if (step.result == kNoRegister) co_return;
  registers[step.result] = received.immediate
                               ? *received.immediate
                               : nodes[agent.node].buffers->load(received.buffer_id * kCacheLine);
}

// Makes sure that everything the thread did reaches memory: a READ pushes the WRITEs of its queue
// pair.
Task<> Run::Shared::push(Agent& agent, Live& live) {
  ++agent.at;
  fence(agent, kFenced);
  for (const auto& [key, queue_pair] : live.queue_pairs) {
    const Agent& home = *nodes[std::get<0>(key)].home;
    const fabric::LocalBuffer scratch = agent.memory.local(kScratch, kWord);
    fabric::RdmaOperation read = queue_pair->read(scratch, home.memory.remote(kScratch));
    const fabric::Completion completion = co_await read;
    check(completion.status);
    ++agent.at;
  }
}

void Run::Shared::collect() {
  Result result = registers;
  for (std::uint32_t i = 0; i < litmus.locations.size(); ++i) {
    const Location& location = litmus.locations[i];
    for (std::uint32_t line = 0; line < location.lines; ++line) {
      result.push_back(nodes[location.node].region->load(offset_of({i, line})));
    }
  }
  ++results[result];
}

Run::Run(const Litmus& litmus, Platform& platform, const RunOptions& options)
    : shared_(std::make_unique<Shared>(litmus, platform, options)), platform_(platform) {
  shared_->lay_out();
  for (Shared::Agent& agent : shared_->agents) {
    platform.start(
        agent.node, static_cast<fabric::Port>(1 + agent.number), options.mode,
        [shared = shared_.get(), &agent](Thread& thread) { return shared->run(agent, thread); });
  }
}

Run::~Run() = default;

Results Run::finish() {
  platform_.run();
  return shared_->results;
}

void Run::append_state(std::string& state) const {
  const auto append = [&state](std::uint64_t value) {
    state.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  for (const Shared::Agent& agent : shared_->agents) append(agent.at);
  for (const std::uint64_t value : shared_->registers) append(value);
  for (const Shared::NodeMemory& node : shared_->nodes) {
    for (const auto* region : {node.region.get(), node.buffers.get()}) {
      state.append(reinterpret_cast<const char*>(const_cast<pmem::Region*>(region)->data()),
                   region->size());
    }
  }
}

}  // namespace perdura::litmus
