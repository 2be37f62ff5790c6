#include "services/fs/crash/specification.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "services/fs/model/model_file_system.h"

namespace perdura::fs {

namespace {

// Translates an inode of the system to the model's; nothing if it is gone.
std::optional<InodeId> in_model(const ModelState& state, InodeId inode) {
  const auto known = state.inodes().find(inode);
  if (known == state.inodes().end()) return std::nullopt;
  const Result<Attributes> found = state.model().attributes(known->second);
  if (!found) return std::nullopt;
  return id_of(*found);
}

// Notes that an inode of the system is this one of the model. Returns false if either is already
// paired with another one.
bool unite(ModelState::Inodes& inodes, InodeId system, InodeNumber model) {
  const auto known = inodes.find(system);
  if (known != inodes.end()) return known->second == model;
  const auto is_model = [&](const auto& one) { return one.second == model; };
  if (std::any_of(inodes.begin(), inodes.end(), is_model)) return false;
  inodes.emplace(system, model);
  return true;
}

bool creates(const Operation& operation) {
  return operation.kind == Operation::Kind::create ||
         operation.kind == Operation::Kind::create_unnamed;
}

// Number of the inode that an operation creates. Each operation has its own, so that creates lead
// to the same state in any order, and no number is reused.
InodeNumber number_in_model(const Operation& operation) {
  return InodeNumber{static_cast<std::uint64_t>(kRootInode) + 1 + operation.content};
}

}  // namespace

ModelState::ModelState(Model model, Inodes inodes) {
  const std::size_t hash = model.hash();
  value_ = std::make_shared<const Value>(Value{std::move(model), std::move(inodes), hash});
}

bool ModelState::operator==(const ModelState& other) const {
  if (value_ == other.value_) return true;
  return value_->hash == other.value_->hash && value_->inodes == other.value_->inodes &&
         value_->model == other.value_->model;
}

std::strong_ordering ModelState::operator<=>(const ModelState& other) const {
  if (*this == other) return std::strong_ordering::equal;
  if (value_->hash != other.value_->hash) return value_->hash <=> other.value_->hash;
  if (value_->inodes != other.value_->inodes) return value_->inodes <=> other.value_->inodes;
  return value_ <=> other.value_;
}

std::vector<ModelState> Specification::after(const State& state, const Operation& operation,
                                             bool answered) const {
  const Answer& told = operation.answer;
  const bool is_full = told.error == std::errc::no_space_on_device;
  if (answered && is_full && may_be_full_ && may_need_space(operation)) return {state};
  if (operation.kind == Operation::Kind::remount) return after_failure(state);  // holds end
  const auto inode = in_model(state, operation.inode);
  const auto directory = in_model(state, operation.directory);
  // Operations on inodes that are gone are not allowed.
  if (!inode || !directory) return answered ? std::vector<State>{} : std::vector{state};
  Operation of_model = operation;
  of_model.inode = *inode;
  of_model.directory = *directory;
  Model model = state.model();
  if (creates(operation)) model.choose_next_inode(number_in_model(operation));
  ModelFileSystem files(std::move(model));
  const auto session = files.attach();
  const Answer answer = run_at_once(perform(*session, of_model));
  ModelState::Inodes inodes = state.inodes();
  if (answered) {
    const bool same = told.error == answer.error && told.text == answer.text &&
                      told.inodes.size() == answer.inodes.size();
    if (!same) return {};
    for (std::size_t i = 0; i < answer.inodes.size(); ++i) {
      if (!unite(inodes, told.inodes[i], answer.inodes[i].number)) return {};
    }
  }
  if (!changes(operation) && inodes.size() == state.inodes().size()) return {state};
  return {ModelState(files.model(), std::move(inodes))};
}

std::vector<ModelState> Specification::after_failure(const State& state) const {
  Model model = state.model();
  model.end_holds();
  return {ModelState(std::move(model), state.inodes())};
}

std::string Specification::text(const services::Call<Operation>& call) const {
  if (!call.answered) return text_of(call.operation) + ", no answer";
  return text_of(call.operation, call.operation.answer);
}

}  // namespace perdura::fs
