#include "platform/sim/sim_child.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "platform/base/error.h"

namespace perdura::sim {

namespace {

// A region of which only some parts are mapped.
class PartialModel final : public pmem::RegionModel {
 public:
  PartialModel(std::shared_ptr<pmem::RegionModel> whole, std::vector<MemoryPart> parts)
      : whole_(std::move(whole)), parts_(std::move(parts)) {}

  std::uint64_t load(Bytes offset) override {
    check(offset, kWord);
    return whole_->load(offset);
  }
  std::uint64_t load_from_memory(Bytes offset) override {
    check(offset, kWord);
    return whole_->load_from_memory(offset);
  }
  void scan(Bytes offset, Bytes length) override {
    check(offset, length);
    whole_->scan(offset, length);
  }
  void read(Bytes offset, std::span<std::byte> into) override {
    check(offset, into.size());
    whole_->read(offset, into);
  }
  void store(Bytes offset, std::uint64_t value, const pmem::WordLayout& layout) override {
    check(offset, kWord);
    whole_->store(offset, value, layout);
  }
  bool compare_exchange(Bytes offset, std::uint64_t& expected, std::uint64_t desired) override {
    check(offset, kWord);
    return whole_->compare_exchange(offset, expected, desired);
  }
  void write(Bytes offset, std::span<const std::byte> from, bool streaming) override {
    check(offset, from.size());
    whole_->write(offset, from, streaming);
  }
  void flush(Bytes offset, Bytes length) override {
    check(offset, length);
    whole_->flush(offset, length);
  }
  void drain() override { whole_->drain(); }

 private:
  // Adjoining parts count as one.
  void check(Bytes offset, Bytes length) const {
    const Bytes end = offset + length;
    for (const MemoryPart& part : parts_) {
      if (offset >= part.offset && offset < part.end()) offset = std::min(end, part.end());
    }
    if (offset < end) throw std::out_of_range("a process has accessed what it was not given");
  }

  std::shared_ptr<pmem::RegionModel> whole_;
  std::vector<MemoryPart> parts_;
};

class Context final : public ChildContext,
                      public PeerProcess,
                      public std::enable_shared_from_this<Context> {
 public:
  Context(std::shared_ptr<ChildLife> life, std::vector<std::string> arguments, pmem::Region& memory)
      : life_(std::move(life)), arguments_(std::move(arguments)), memory_(memory) {}

  const std::vector<std::string>& arguments() const override { return arguments_; }
  pmem::Region& memory() override { return memory_; }
  std::shared_ptr<PeerProcess> parent() override { return shared_from_this(); }
  void ready() override {
    life_->ready = true;
    life_->changed.wake_all();
  }

 private:
  Bytes longest_message() const override { return life_->to_parent->shape().message_size; }
  bool try_send(std::span<const std::byte> message) override {
    return life_->to_parent->try_push(message);
  }
  Task<> send(std::span<const std::byte> message) override {
    return life_->to_parent->push(message);
  }
  Task<std::optional<Bytes>> receive(std::span<std::byte> into) override {
    return life_->to_child->pop(into);
  }

  std::shared_ptr<ChildLife> life_;
  std::vector<std::string> arguments_;
  pmem::Region& memory_;
};

class SimChild final : public ChildProcess {
 public:
  SimChild(std::shared_ptr<ChildLife> life, std::function<void()> kill)
      : life_(std::move(life)), kill_(std::move(kill)) {}
  ~SimChild() override { kill_(); }

  std::string end() override {
    kill_();
    return life_->problem.empty() ? "it has ended" : life_->problem;
  }
  Bytes longest_message() const override { return life_->to_child->shape().message_size; }
  bool try_send(std::span<const std::byte> message) override {
    return life_->to_child->try_push(message);
  }
  Task<> send(std::span<const std::byte> message) override {
    return life_->to_child->push(message);
  }
  Task<std::optional<Bytes>> receive(std::span<std::byte> into) override {
    return life_->to_parent->pop(into);
  }

 private:
  std::shared_ptr<ChildLife> life_;
  std::function<void()> kill_;
};

}  // namespace

void ChildLife::end() {
  if (std::exchange(gone, true)) return;
  to_child->close();
  to_parent->close();
  changed.wake_all();
}

Task<> run_sim_child(Node& node, std::shared_ptr<ChildLife> life, ChildProgram program,
                     ChildOrder order) {
  try {
    const std::unique_ptr<pmem::Region> whole = node.open_region(order.memory);
    pmem::Region memory(whole->name(), whole->medium(), whole->data(), whole->size(),
                        std::make_shared<PartialModel>(whole->shared_model(), order.parts),
                        nullptr);
    const auto context = std::make_shared<Context>(life, std::move(order.arguments), memory);
    co_await program.body(*context);
  } catch (const std::exception& error) {
    life->problem = error.what();
  }
  life->end();
}

std::unique_ptr<ChildProcess> sim_child(std::shared_ptr<ChildLife> life,
                                        std::function<void()> kill) {
  return std::make_unique<SimChild>(std::move(life), std::move(kill));
}

}  // namespace perdura::sim
