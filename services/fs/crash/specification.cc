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

// The holds of mounts that have ended, which the servers have yet to release.
constexpr std::uint32_t kLingering = ~std::uint32_t{0};
// An entry of a mount for this number says that it has ended.
constexpr InodeNumber kEnd{0};

// Notes what an operation that has succeeded holds or releases, if its mount has a number. `inode`
// is one of the model.
void note_holds(const Operation& operation, InodeNumber inode, ModelState::Holds& holds) {
  if (operation.mount == 0) return;
  const bool has_ended = holds.contains({operation.mount, kEnd});
  const std::pair place(has_ended ? kLingering : operation.mount, inode);
  switch (operation.kind) {
    case Operation::Kind::hold:
    case Operation::Kind::create_unnamed:
      ++holds[place];
      break;
    case Operation::Kind::release:
      if (const auto held = holds.find(place); held != holds.end() && --held->second == 0) {
        holds.erase(held);
      }
      break;
    default:
      break;
  }
}

ModelState without_holds(const ModelState& state) {
  Model model = state.model();
  model.end_holds();
  return ModelState(std::move(model), state.inodes(), {}, state.failures());
}

// The holds of a mount that has ended linger.
ModelState unmounted(const ModelState& state, std::uint32_t mount) {
  ModelState::Holds holds{{{mount, kEnd}, 1}};
  for (const auto& [place, count] : state.holds()) {
    holds[{place.first == mount && place.second != kEnd ? kLingering : place.first,
           place.second}] += count;
  }
  holds[{mount, kEnd}] = 1;
  return ModelState(state.model(), state.inodes(), std::move(holds), state.failures());
}

// The possible states after a hold of an inode that does not exist any more.
std::vector<ModelState> after_refused_hold(const ModelState& state, InodeNumber inode) {
  ModelState::Holds holds = state.holds();
  Model model = state.model();
  for (const auto& [place, count] : state.holds()) {
    if (place.second != inode) continue;
    if (place.first != kLingering) return {};
    model.release(inode, count);
    holds.erase(place);
  }
  if (model.exists(inode)) return {};
  return {ModelState(std::move(model), state.inodes(), std::move(holds), state.failures())};
}

}  // namespace

ModelState::ModelState(Model model, Inodes inodes, Holds holds, std::uint32_t failures) {
  const std::size_t hash = model.hash();
  value_ = std::make_shared<const Value>(
      Value{std::move(model), std::move(inodes), std::move(holds), failures, hash});
}

bool ModelState::operator==(const ModelState& other) const {
  if (value_ == other.value_) return true;
  return value_->hash == other.value_->hash && value_->inodes == other.value_->inodes &&
         value_->holds == other.value_->holds && value_->failures == other.value_->failures &&
         value_->model == other.value_->model;
}

std::strong_ordering ModelState::operator<=>(const ModelState& other) const {
  if (*this == other) return std::strong_ordering::equal;
  if (value_->hash != other.value_->hash) return value_->hash <=> other.value_->hash;
  if (value_->inodes != other.value_->inodes) return value_->inodes <=> other.value_->inodes;
  if (value_->holds != other.value_->holds) return value_->holds <=> other.value_->holds;
  if (value_->failures != other.value_->failures) {
    return value_->failures <=> other.value_->failures;
  }
  return value_ <=> other.value_;
}

std::vector<ModelState> Specification::after(const State& state, const Operation& operation,
                                             bool answered) const {
  const Answer& told = operation.answer;
  const bool is_full = told.error == std::errc::no_space_on_device;
  if (answered && is_full && may_be_full_ && may_need_space(operation)) return {state};
  if (operation.kind == Operation::Kind::remount || operation.kind == Operation::Kind::unmount) {
    if (operation.mount == 0) return {without_holds(state)};
    return {unmounted(state, operation.mount)};
  }
  const auto inode = in_model(state, operation.inode);
  const auto directory = in_model(state, operation.directory);
  if (answered && operation.kind == Operation::Kind::hold &&
      told.error == std::errc::no_such_file_or_directory) {
    return inode ? after_refused_hold(state, inode->number) : std::vector{state};
  }
  // Other operations on inodes that are gone are not allowed.
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
  ModelState::Holds holds = state.holds();
  if (answer.error == std::errc()) {
    const bool is_new = operation.kind == Operation::Kind::create_unnamed;
    note_holds(operation, is_new ? answer.inodes.front().number : inode->number, holds);
  }
  return {ModelState(files.model(), std::move(inodes), std::move(holds), state.failures())};
}

std::vector<ModelState> Specification::after_failure(const State& state) const {
  if (keeps_holds_.empty()) return {without_holds(state)};
  const ModelState left = keeps_holds_.at(state.failures()) ? state : without_holds(state);
  return {ModelState(left.model(), left.inodes(), left.holds(), state.failures() + 1)};
}

std::string Specification::text(const services::Call<Operation>& call) const {
  if (!call.answered) return text_of(call.operation) + ", no answer";
  return text_of(call.operation, call.operation.answer);
}

}  // namespace perdura::fs
