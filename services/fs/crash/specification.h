// The sequential specification of a file system, for judging histories of several sessions and the
// state that a failure has left (services/linearizability.h, services/judge.h): the model
// (services/fs/model), and the mapping between the inode numbers of the system and the model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/fs/crash/operation.h"
#include "services/fs/model/model.h"
#include "services/linearizability.h"

namespace perdura::fs {

// A possible state of a file system. States that no operation can tell apart are equal.
class ModelState {
 public:
  using Inodes = std::map<InodeId, InodeNumber>;  // from the system to the model
  // How often each mount holds an inode of the model; only mounts that have a number. What a mount
  // has held when it ended lingers until the servers release it (kLingering).
  using Holds = std::map<std::pair<std::uint32_t, InodeNumber>, std::uint64_t>;

  ModelState() : ModelState(Model(), {{kRoot, kRootInode}}) {}
  ModelState(Model model, Inodes inodes, Holds holds = {}, std::uint32_t failures = 0);

  const Model& model() const { return value_->model; }
  const Inodes& inodes() const { return value_->inodes; }
  const Holds& holds() const { return value_->holds; }
  // That there have been, if the specification counts them.
  std::uint32_t failures() const { return value_->failures; }

  bool operator==(const ModelState& other) const;
  // An arbitrary order.
  std::strong_ordering operator<=>(const ModelState& other) const;

 private:
  struct Value {
    Model model;
    Inodes inodes;
    Holds holds;
    std::uint32_t failures = 0;
    std::size_t hash = 0;
  };
  std::shared_ptr<const Value> value_;
};

class Specification {
 public:
  using State = ModelState;
  using Operation = fs::Operation;
  // A configuration takes tens of microseconds. A correct history needs some hundreds.
  static constexpr std::size_t kMostConfigurations = 1 << 14;

  Specification() = default;
  explicit Specification(State begin) : begin_(std::move(begin)) {}
  // True if operations may fail for lack of space, which the model does not account for.
  void set_may_be_full(bool may) { may_be_full_ = may; }
  // By failure, in the order of time: true if it ends no holds, such as that of a store alone.
  // Others do.
  void set_keeps_holds(std::vector<bool> keeps) { keeps_holds_ = std::move(keeps); }

  State initial() const { return begin_; }
  std::vector<State> after(const State& state, const Operation& operation, bool answered) const;
  std::vector<State> after_failure(const State& state) const;

  bool changes(const Operation& operation) const { return fs::changes(operation); }
  std::string text(const services::Call<Operation>& call) const;

 private:
  State begin_;
  bool may_be_full_ = false;
  std::vector<bool> keeps_holds_;
};

}  // namespace perdura::fs
