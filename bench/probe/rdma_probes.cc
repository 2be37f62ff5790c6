#include "bench/probe/rdma_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "harness/measure/at_work.h"
#include "platform/base/error.h"
#include "platform/base/random.h"
#include "platform/runtime/sync.h"

namespace perdura::bench {
namespace {

using fabric::Opcode;
using Values = std::vector<double>;

constexpr fabric::Port kPassivePort = 1;
constexpr fabric::Port kFirstActivePort = 16;
constexpr Picoseconds kPatience = std::chrono::minutes(2);  // until a passive node answers

double nanoseconds(Picoseconds time) { return static_cast<double>(time.count()) * 1e-3; }

// --- passive nodes -------------------------------------------------------------------------------

// The location of a passive node's memory, with which it answers a connection request. At `keys`
// there is a key for each registered part.
struct Directory {
  fabric::RemoteAddress keys;
};
static_assert(sizeof(Directory) <= fabric::kMaxPrivateData);

struct Passive {
  std::unique_ptr<pmem::Region> memory;
  std::unique_ptr<pmem::Region> keys;
  std::unique_ptr<pmem::Region> buffers;
  std::unique_ptr<fabric::ReceiveQueue> receives;
  fabric::MemoryRegion registered_buffers;
  fabric::CompletionQueue completions;
  std::vector<std::unique_ptr<fabric::QueuePair>> peers;
  std::uint32_t buffer = 0;

  void post(std::uint64_t id) { receives->post(registered_buffers.local(id * buffer, buffer), id); }
};

Task<> take_messages(Passive* passive, RdmaLoad load) {
  for (;;) {
    const auto message = co_await passive->completions.next();
    if (message.status != fabric::Status::success) continue;
    passive->post(message.buffer_id);
    if (!load.answered) continue;
    const fabric::Completion sent = co_await message.queue_pair->send(
        passive->registered_buffers.local(0, load.size), {.inlined = load.inlined});
    if (!sent) co_return;
  }
}

Task<> serve(Thread& thread, RdmaLoad load) {
  Passive passive;
  passive.memory = create(thread.node, "target", load.room());
  passive.keys = thread.node.create_region("keys", load.regions * kWord, pmem::Medium::dram);
  const Bytes part = load.region_size / load.regions;
  for (std::uint32_t i = 0; i < load.regions; ++i) {
    const auto registered = thread.endpoint.register_memory(*passive.memory, part * i, part,
                                                            fabric::Access::remote_all);
    passive.keys->store(i * kWord, registered.key.value);
  }
  passive.buffer = std::max(load.size, 64U);
  const auto count = static_cast<std::uint32_t>(
      std::clamp<Bytes>(64 * MiB / passive.buffer, 4 * load.depth, 1024));
  passive.buffers =
      thread.node.create_region("buffers", Bytes{count} * passive.buffer, pmem::Medium::dram);
  passive.registered_buffers =
      thread.endpoint.register_memory(*passive.buffers, fabric::Access::remote_all);
  passive.receives = thread.endpoint.create_receive_queue(count);
  for (std::uint32_t id = 0; id < count; ++id) passive.post(id);
  const Directory here{
      thread.endpoint.register_memory(*passive.keys, fabric::Access::remote_read).remote(0)};
  thread.executor.spawn(take_messages(&passive, load));
  for (;;) {
    const auto request = co_await thread.endpoint.next_connection();
    passive.peers.push_back(request->accept(
        {.receive_queue = passive.receives.get(), .completions = &passive.completions},
        std::as_bytes(std::span(&here, 1))));
  }
}

// --- active threads ------------------------------------------------------------------------------

bool has(const fabric::Capabilities& device, Opcode opcode) {
  if (opcode == Opcode::flush) return device.flush;
  return opcode != Opcode::atomic_write || device.atomic_write;
}

struct Active {
  RdmaLoad load;
  std::uint32_t operations = 0;  // number in one repetition
  std::unique_ptr<pmem::Region> memory;
  fabric::MemoryRegion local;
  std::unique_ptr<fabric::ReceiveQueue> answers;
  fabric::CompletionQueue answered;
  std::vector<std::unique_ptr<fabric::QueuePair>> queue_pairs;
  std::vector<fabric::RemoteKey> keys;
  fabric::Capabilities device;
  Random random{1};
  std::uint32_t left = 0;     // operations not yet begun
  std::uint32_t working = 0;  // tasks that have not ended
  Picoseconds posting{};
  WaitList done;

  fabric::WorkRequest request(std::uint32_t task) {
    fabric::WorkRequest request{.opcode = load.opcode};
    const Bytes part = load.region_size / load.regions;
    const Bytes unit = std::max<Bytes>(load.size, kWord);
    request.remote = {keys[random.uniform_below(keys.size())],
                      random.uniform_below(part / unit) * unit};
    const bool word = load.opcode == Opcode::compare_and_swap ||
                      load.opcode == Opcode::fetch_and_add || load.opcode == Opcode::atomic_write;
    if (word) {
      request.operand = 1;
    } else if (load.opcode == Opcode::flush) {
      request.flush_length = load.size;
      request.placement = device.flush_persistence ? fabric::Placement::persistence
                                                   : fabric::Placement::global_visibility;
    } else {
      request.local = local.local(Bytes{task} * load.size, load.size);
    }
    request.flags.inlined = load.inlined;
    return request;
  }
};

[[noreturn]] void refuse(Opcode opcode, fabric::Status status) {
  throw PlatformError(fmt::format("probe of {}: it ended as '{}'; see whether the peer runs",
                                  to_string(opcode), to_string(status)));
}

Task<> take_answer(Active* active) {
  const auto answer = co_await active->answered.next();
  if (answer.status != fabric::Status::success) refuse(active->load.opcode, answer.status);
  active->answers->post(answer.buffer, answer.buffer_id);
}

// Issues this task's share of the operations, one after the other.
Task<> issue(Thread& thread, Active* active, std::uint32_t task) {
  fabric::QueuePair& queue_pair = *active->queue_pairs[task % active->queue_pairs.size()];
  while (active->left > 0) {
    --active->left;
    fabric::RdmaOperation operation(queue_pair, active->request(task));
    if (active->load.metric == RdmaMetric::post) {
      const Time begin = thread.executor.now();
      operation.post();
      active->posting += thread.executor.now() - begin;
    }
    const fabric::Completion completion = co_await operation;
    if (!completion) refuse(active->load.opcode, completion.status);
    if (active->load.answered) co_await take_answer(active);
  }
  if (--active->working == 0) active->done.wake_all();
}

Task<> connect(Thread& thread, Active* active, NodeId to) {
  const RdmaLoad& load = active->load;
  // The buffer first receives the keys and then has room for a message of every task.
  // It is followed by one for the answer to each.
  const Bytes messages = std::max<Bytes>(Bytes{load.size} * load.depth, load.regions * kWord);
  const Bytes room = messages + (load.answered ? Bytes{load.size} * load.depth : 0);
  active->memory =
      thread.node.create_region("source", round_up(room, kCacheLine), pmem::Medium::dram);
  active->local = thread.endpoint.register_memory(*active->memory, fabric::Access::remote_all);
  active->device = thread.endpoint.capabilities();
  if (load.answered) {
    active->answers = thread.endpoint.create_receive_queue(load.depth);
    for (std::uint32_t i = 0; i < load.depth; ++i) {
      active->answers->post(active->local.local(messages + Bytes{load.size} * i, load.size), i);
    }
  }
  Directory there{};
  for (std::uint32_t i = 0; i < load.queue_pairs; ++i) {
    // The peer registers its memory first, page by page.
    fabric::QueuePairOptions options{.send_depth = std::max(load.depth, 1U),
                                     .connection_timeout = kPatience};
    if (load.answered) {
      options.receive_queue = active->answers.get();
      options.completions = &active->answered;
    }
    auto connection = co_await thread.endpoint.connect({to, kPassivePort}, options, {});
    if (connection.status != fabric::Status::success) refuse(load.opcode, connection.status);
    std::memcpy(&there, connection.private_data.data(), sizeof there);
    active->queue_pairs.push_back(std::move(connection.queue_pair));
  }
  const auto bytes = static_cast<std::uint32_t>(load.regions * kWord);
  const auto keys = active->local.local(0, bytes);
  const auto read = co_await active->queue_pairs.front()->read(keys, there.keys);
  if (!read) refuse(Opcode::read, read.status);
  for (std::uint32_t i = 0; i < load.regions; ++i) {
    active->keys.push_back({static_cast<std::uint32_t>(active->memory->load(i * kWord))});
  }
}

// The number of operations of a repetition; it is smaller for large messages.
std::uint32_t operations_for(const RdmaLoad& load, const Effort& effort) {
  const std::uint64_t by_bytes = std::max<Bytes>(effort.message_bytes / std::max(load.size, 1U), 1);
  const auto fewest = std::uint64_t{4} * load.depth;
  return static_cast<std::uint32_t>(
      std::max(std::min<std::uint64_t>(effort.operations, by_bytes), fewest));
}

// The amount that is summed over the threads in a repetition: for latencies the average time of an
// operation in nanoseconds, otherwise operations or bytes.
double amount_of(const RdmaLoad& load, const Active& active, Picoseconds spent) {
  const double operations = active.operations;
  switch (load.metric) {
    case RdmaMetric::latency:
      return nanoseconds(spent) * load.depth / operations;
    case RdmaMetric::post:
      return nanoseconds(active.posting) / operations;
    case RdmaMetric::rate:
      return operations;
    case RdmaMetric::bandwidth:
      return operations * load.size;
  }
  return 0;
}

// The result of all threads in a repetition, in the unit of the metric.
double value_of(const RdmaLoad& load, const Share& together) {
  switch (load.metric) {
    case RdmaMetric::latency:
    case RdmaMetric::post:
      return together.amount / (load.threads * load.active);
    case RdmaMetric::rate:
      return together.per_nanosecond() * 1e3;
    case RdmaMetric::bandwidth:
      return together.per_nanosecond();
  }
  return 0;
}

// `shares` gets the results of this thread, by repetition. It stays empty if the device does not
// support the operation.
Task<> drive(Thread& thread, RdmaLoad load, NodeId to, Effort effort, Platform::Barrier* barrier,
             std::vector<Share>* shares) {
  Active active;
  active.load = load;
  active.operations = operations_for(load, effort);
  co_await connect(thread, &active, to);
  if (!has(active.device, load.opcode) || (load.inlined && load.size > active.device.max_inline)) {
    co_await barrier->arrive_and_wait();
    co_return;
  }
  // There is one repetition more than are recorded, since the first warms up.
  for (std::uint32_t i = 0; i <= effort.repetitions; ++i) {
    co_await barrier->arrive_and_wait();
    active.left = active.operations;
    active.working = load.depth;
    active.posting = {};
    const Time begin = thread.executor.now();
    for (std::uint32_t task = 0; task < load.depth; ++task) {
      thread.executor.spawn(issue(thread, &active, task));
    }
    while (active.working > 0) co_await wait(active.done);
    const Time end = thread.executor.now();
    if (i > 0) (*shares)[i - 1] = {begin, end, amount_of(load, active, end - begin)};
  }
}

}  // namespace

Values rdma(Platform& platform, RdmaLoad load, const Effort& effort, const Gather& gather) {
  const std::uint32_t threads = load.threads * load.active;
  std::vector<std::vector<Share>> shares(threads, std::vector<Share>(effort.repetitions));
  const auto barrier = platform.create_barrier(threads);
  for (NodeId node = 0; node < load.passive; ++node) {
    if (platform.local_node(node) == nullptr) continue;
    platform.start_service(node, kPassivePort, CompletionMode::polling,
                           [load](Thread& thread) { return serve(thread, load); });
  }
  for (std::uint32_t i = 0; i < threads; ++i) {
    const NodeId node = load.passive + i % load.active;
    if (platform.local_node(node) == nullptr) continue;
    const NodeId to = i % load.passive;
    platform.start(node, static_cast<fabric::Port>(kFirstActivePort + i), CompletionMode::polling,
                   [&, i, to](Thread& thread) {
                     return drive(thread, load, to, effort, barrier.get(), &shares[i]);
                   });
  }
  platform.run();
  std::vector<Share> here(effort.repetitions);
  for (const std::vector<Share>& of_thread : shares) {
    for (std::uint32_t i = 0; i < effort.repetitions; ++i) here[i].add(of_thread[i]);
  }
  const std::uint64_t clock = platform.modelled() ? 0 : measure::clock_of_this_host();
  Values values;
  for (const Share& together : gather_shares(here, clock, gather)) {
    if (together.amount > 0) values.push_back(value_of(load, together));
  }
  return values;
}

namespace {

Task<> time_registration(Thread& thread, Room room, Effort effort, Values* values) {
  const auto region = create(thread.node, "registered", room);
  const std::uint32_t rounds =
      static_cast<std::uint32_t>(std::clamp<Bytes>(effort.operations * KiB / room.size, 1, 1000));
  for (std::uint32_t i = 0; i < effort.repetitions; ++i) {
    const Time begin = thread.executor.now();
    for (std::uint32_t n = 0; n < rounds; ++n) {
      thread.endpoint.deregister_memory(
          thread.endpoint.register_memory(*region, fabric::Access::remote_all));
    }
    values->push_back(nanoseconds(thread.executor.now() - begin) / rounds);
    co_await yield();
  }
}

Task<> ask(Thread& thread, fabric::Capabilities* answer) {
  *answer = thread.endpoint.capabilities();
  co_return;
}

}  // namespace

Values registration(Platform& platform, Room room, const Effort& effort) {
  Values values;
  if (platform.local_node(0) != nullptr) {
    platform.start(0, kPassivePort, CompletionMode::polling, [&](Thread& thread) {
      return time_registration(thread, room, effort, &values);
    });
  }
  platform.run();
  return values;
}

fabric::Capabilities capabilities(Platform& platform) {
  fabric::Capabilities found;
  if (platform.local_node(0) != nullptr) {
    platform.start(0, kPassivePort, CompletionMode::polling,
                   [&](Thread& thread) { return ask(thread, &found); });
  }
  platform.run();
  return found;
}

// --- the set -------------------------------------------------------------------------------------

namespace {

class SetOfRdma {
 public:
  // Active nodes at most, of probes over their number.
  static constexpr NodeId kNodes = 8;
  // Largest regions, of probes over their size.
  static constexpr Bytes kLargestOnHosts = 256 * MiB;
  static constexpr Bytes kLargestOnModels = 16 * GiB;  // as in Figure 2.7

  explicit SetOfRdma(const Effort& effort) : effort_(effort) {}

  void over_size() {
    for (const Opcode opcode : {Opcode::read, Opcode::write, Opcode::send}) {
      for (std::uint32_t size = 8; size <= MiB; size *= effort_.quick ? 16 : 2) {
        add("rdma-latency", {.opcode = opcode, .size = size});
        add("rdma-bandwidth",
            {.opcode = opcode, .metric = RdmaMetric::bandwidth, .size = size, .depth = 16});
      }
    }
    add("rdma-latency-inline", {.opcode = Opcode::write, .inlined = true});
    for (const Opcode opcode :
         {Opcode::compare_and_swap, Opcode::fetch_and_add, Opcode::flush, Opcode::atomic_write}) {
      add("rdma-latency", {.opcode = opcode});
    }
    for (std::uint32_t size = 8; size <= 128; size *= 4) {
      add("rdma-round-trip",
          {.opcode = Opcode::send, .inlined = true, .answered = true, .size = size});
    }
    add("rdma-post", {.metric = RdmaMetric::post, .inlined = true});
  }

  void over_depth_and_queue_pairs() {
    for (const Opcode opcode : {Opcode::read, Opcode::write, Opcode::send, Opcode::fetch_and_add}) {
      for (std::uint32_t n = 1; n <= 64; n *= effort_.quick ? 8 : 2) {
        add("rdma-rate-over-depth", {.opcode = opcode, .metric = RdmaMetric::rate, .depth = n});
      }
    }
    for (std::uint32_t n = 1; n <= 64; n *= effort_.quick ? 8 : 2) {
      add("rdma-rate-over-queue-pairs",
          {.metric = RdmaMetric::rate, .depth = 64, .queue_pairs = n});
    }
  }

  void over_regions() {
    for (std::uint32_t n = 1; n <= 1024; n *= effort_.quick ? 32 : 4) {
      add("rdma-rate-over-regions", {.metric = RdmaMetric::rate, .depth = 16, .regions = n});
    }
    over_region_size(pmem::Pages::any, kLargestOnHosts);
  }

  // A host must have all of the memory; a model has as much of it as is written to.
  void over_region_size(std::span<const pmem::Pages> pages, bool modelled) {
    for (const pmem::Pages chosen : pages) {
      over_region_size(chosen, modelled ? kLargestOnModels : kLargestOnHosts);
    }
  }

  void over_region_size(pmem::Pages pages, Bytes largest) {
    for (Bytes size = 4 * MiB; size <= largest; size *= effort_.quick ? 8 : 2) {
      add("rdma-rate-over-region-size",
          {.metric = RdmaMetric::rate, .depth = 16, .region_size = size, .pages = pages});
    }
  }

  void over_threads() {
    const std::uint32_t most = std::min(effort_.cores, 32U);
    for (const Opcode opcode : {Opcode::write, Opcode::fetch_and_add}) {
      for (std::uint32_t n = 1; n < 2 * most; n *= effort_.quick ? 4 : 2) {
        add("rdma-rate-over-threads", {.opcode = opcode,
                                       .metric = RdmaMetric::rate,
                                       .inlined = opcode == Opcode::write,
                                       .depth = 16,
                                       .threads = std::min(n, most)});
      }
    }
    // Several active nodes and one passive node, then one active node and several passive ones,
    // with the same total number of threads.
    constexpr NodeId kSeveral = 3;
    if (most >= kNodes) {
      for (NodeId n = 1; n <= kNodes; n += effort_.quick ? kNodes - 1 : 1) {
        for (const std::uint32_t depth : {4U, 16U}) {
          add("rdma-rate-over-nodes",
              {.opcode = Opcode::read, .metric = RdmaMetric::rate, .depth = depth, .active = n});
        }
      }
    }
    add("rdma-inbound",
        {.metric = RdmaMetric::rate, .inlined = true, .depth = 16, .active = kSeveral});
    add("rdma-outbound", {.metric = RdmaMetric::rate,
                          .inlined = true,
                          .depth = 16,
                          .threads = kSeveral,
                          .passive = kSeveral});
  }

  void registrations(pmem::Pages pages) {
    for (Bytes size = 4 * KiB; size <= 64 * MiB; size *= effort_.quick ? 16 : 4) {
      const Room room{size, pages};
      Setting setting{.probe = "rdma-registration", .operation = "register"};
      place(setting, room);
      setting.unit = "ns";
      const Effort effort = effort_;
      probes_.push_back({.setting = std::move(setting),
                         .nodes = 2,
                         .room = room,
                         .measure = [=](Platform& platform, const Gather&) {
                           return registration(platform, room, effort);
                         }});
    }
  }

  std::vector<Probe> take() { return std::move(probes_); }

 private:
  static const char* unit(RdmaMetric metric) {
    if (metric == RdmaMetric::rate) return "Mop/s";
    return metric == RdmaMetric::bandwidth ? "GB/s" : "ns";
  }
  static void place(Setting& setting, Room room) {
    setting.medium = room.medium() == pmem::Medium::pm ? "pm" : "dram";
    if (room.pages != pmem::Pages::any) setting.pages = to_string(room.pages);
    setting.region_size = room.size;
  }
  void add(const char* probe, RdmaLoad load) {
    Setting setting{.probe = probe,
                    .operation = std::string(to_string(load.opcode)),
                    .size = load.size,
                    .threads = load.threads * load.active,
                    .queue_depth = load.depth,
                    .queue_pairs = load.queue_pairs,
                    .regions = load.regions,
                    .unit = unit(load.metric)};
    place(setting, load.room());
    const Effort effort = effort_;
    probes_.push_back({.setting = std::move(setting),
                       .nodes = load.nodes(),
                       .room = load.room(),
                       .measure = [=](Platform& platform, const Gather& gather) {
                         return rdma(platform, load, effort, gather);
                       }});
  }

  Effort effort_;
  std::vector<Probe> probes_;
};

ProbeSet finish(SetOfRdma& probes, bool modelled, std::span<const pmem::Pages> pages) {
  ProbeSet set;
  if (modelled && pages.empty()) {
    set.unanswered.push_back(
        {"rdma-registration", "without [translation] the model registers memory in no time"});
    set.unanswered.push_back(
        {"RDMA over page size", "without [translation] the model has no page sizes"});
  } else {
    probes.registrations(pmem::Pages::any);
    for (const pmem::Pages chosen : pages) probes.registrations(chosen);
  }
  set.probes = probes.take();
  return set;
}

}  // namespace

ProbeSet rdma_probes(const Effort& effort, bool modelled, std::span<const pmem::Pages> pages) {
  SetOfRdma probes(effort);
  probes.over_size();
  probes.over_depth_and_queue_pairs();
  probes.over_regions();
  probes.over_region_size(pages, modelled);
  probes.over_threads();
  return finish(probes, modelled, pages);
}

ProbeSet translation_probes(const Effort& effort, bool modelled,
                            std::span<const pmem::Pages> pages) {
  SetOfRdma probes(effort);
  probes.over_region_size(pages, modelled);
  return finish(probes, modelled, pages);
}

}  // namespace perdura::bench
