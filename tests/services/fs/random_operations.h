// Random operations on a file system and on the specification, which must agree.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "services/fs/model/model_file_system.h"
#include "services/fs/tree.h"
#include "tests/services/fs/home.h"
#include "tests/services/fs/random_choices.h"
#include "tests/services/fs/same_results.h"

namespace perdura::fs::test {

inline FsConfig config_of(const FsSystem& system, bool is_small) {
  FsConfig config{.size = 4 * MiB, .threads = 2};
  // A way that the paper describes may be too weak for what the service promises.
  if (system.info.chooses_method) {
    config.data_method = methods::choose(methods::configurations(), *system.cluster->update, {});
  }
  if (!is_small) return config;
  config.size = 512 * KiB;
  for (const services::Setting& setting : system.small) {
    config.parameters[std::string(setting.name)] = setting.value.value();
  }
  return config;
}

// Sizes, names and numbers are few, so that operations meet.
class RandomOperations : RandomChoices {
 public:
  RandomOperations(Thread& thread, const FsSystem& system, FsConfig config, std::uint64_t seed)
      : RandomChoices(seed),
        thread_(&thread),
        own_home_(std::make_unique<Home>(system, std::move(config))),
        home_(*own_home_) {}
  // On a file system that may have servers, which have been started. It is mounted twice then, once
  // for each session.
  RandomOperations(Thread& thread, Home& home, std::uint64_t seed)
      : RandomChoices(seed), thread_(&thread), home_(home) {}

  Task<> begin() {
    co_await make();
    co_await mount();
  }
  Task<> make() {
    model_ = Model({.now = now(), .capacity = 1 * GiB});
    co_await home_.make(*thread_, now());
  }

  Task<> mount() {
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      if (i == 0 || home_.has_servers()) {
        co_await attach(*thread_, i);
      } else {
        sessions_[i] = files_[0]->attach(*thread_);
      }
    }
  }
  // Mounts it on another node for one of the sessions, which the calling thread has from then on.
  Task<> attach(Thread& thread, std::size_t which) {
    files_[which] = co_await home_.mount(thread);
    sessions_[which] = files_[which]->attach(thread);
  }
  Task<> unmount(std::size_t which) {
    sessions_[which].reset();
    if (files_[which] == nullptr) co_return;
    co_await files_[which]->unmount();
    Home::add(files_[which]->events(), events_);
    files_[which].reset();
  }

  // As when the process dies, or after an unmount.
  Task<> mount_again(bool unmounts) {
    if (unmounts) {
      for (auto& session : sessions_) session.reset();
      for (std::size_t i = 0; i < sessions_.size(); ++i) co_await unmount(i);
    }
    die();
    // The servers still have it open.
    if (!home_.has_servers()) {
      const std::vector<Damage> damage = co_await home_.system().inspect(*thread_, "home", false);
      for (const Damage& each : damage) ADD_FAILURE() << each.where << ": " << each.what;
    }
    co_await mount();
  }

  // The process dies; what it has in DRAM is gone. The operation under way may have taken effect.
  void die() {
    if (under_way_) {
      interrupted_ = Interrupted{model_, std::move(under_way_), std::move(creates_)};
      under_way_ = {};
    }
    for (auto& session : sessions_) session.reset();
    for (auto& files : files_) {
      if (files != nullptr) Home::add(files->events(), events_);
      files.reset();
    }
    model_.end_holds();
    held_.clear();
  }
  // Another process mounts it. What is there must be what was done, or, unless the operation under
  // way had returned, `before` it; and life goes on from there.
  Task<> start_again(Thread& thread, Model before, bool has_returned) {
    thread_ = &thread;
    co_await home_.wait();
    co_await mount();
    co_await audit();
    EXPECT_EQ(files_[0]->damage(), "");
    const std::optional<Interrupted> interrupted = std::exchange(interrupted_, std::nullopt);
    if (interrupted) {
      Model after = co_await after_interrupted(*interrupted);
      const std::string other = co_await difference_from(after);
      if (other.empty()) {
        model_ = std::move(after);
        co_return;
      }
    }
    const std::string other = co_await difference_from(model_);
    if (other.empty()) co_return;
    before.end_holds();
    EXPECT_FALSE(has_returned) << other;
    const std::string other_than_before = co_await difference_from(before);
    EXPECT_EQ(other_than_before, "") << "nor " << other;
    model_ = std::move(before);
  }

  Task<> unmount() {
    for (auto& session : sessions_) session.reset();
    for (std::size_t i = 0; i < sessions_.size(); ++i) co_await unmount(i);
  }

  Task<> check() {
    co_await audit();
    const Tree found = co_await read_tree(*sessions_[0], {.times = true, .holes = true});
    const Tree expected = tree_of(model_, {.times = true, .holes = true});
    EXPECT_EQ(difference(found, expected), "");
  }

  Task<> step() {
    const std::size_t which = next();
    co_await step_of(which);
  }
  // The session that does the next operation, by step_of().
  std::size_t next() {
    clock_ += 1 + random_() % 1'000'000'000;
    return random_() % 2;
  }
  Task<> step_of(std::size_t which) {
    Session& session = *sessions_[which];
    switch (random_() % 24) {
      case 0:
      case 1:
      case 2:
        co_await create(session);
        break;
      case 3:
        co_await create_unnamed(which);
        break;
      case 4:
        co_await link(session);
        break;
      case 5:
      case 6:
        co_await unlink(session);
        break;
      case 7:
        co_await remove_directory(session);
        break;
      case 8:
      case 9:
      case 10:
        co_await rename(session);
        break;
      case 11:
        co_await change(session);
        break;
      case 12:
        co_await set_extended(session);
        break;
      case 13:
        co_await remove_extended(session);
        break;
      case 14:
      case 15:
      case 16:
        co_await write(session);
        break;
      case 17:
        co_await append(session);
        break;
      case 18:
        co_await truncate(session);
        break;
      case 19:
        co_await allocate(session);
        break;
      case 20:
        co_await read(session);
        break;
      case 21:
        co_await seek(session);
        break;
      case 22:
        co_await hold_or_release(which);
        break;
      default:
        co_await look(session);
    }
  }

  const Model& model() const { return model_; }

  std::uint64_t refused() const { return refused_; }
  std::uint64_t done() const { return done_; }
  std::uint64_t succeeded() const { return succeeded_; }
  // Counts of the system's events at clients, until it was unmounted or died last. Events at servers
  // are not counted here.
  const std::vector<std::uint64_t>& events() const { return events_; }
  // The same since it was mounted last.
  Task<std::vector<std::uint64_t>> events_of_this_mount() {
    std::vector<std::uint64_t> counts;
    if (home_.has_servers()) counts = co_await home_.events();
    for (const auto& files : files_) {
      if (files != nullptr) Home::add(files->events(), counts);
    }
    co_return counts;
  }

 private:
  Task<> audit() {
    if (home_.has_servers()) {
      const std::string of_servers = co_await home_.audit();
      EXPECT_EQ(of_servers, "");
    }
    for (const auto& files : files_) {
      if (files == nullptr) continue;
      const std::string contradiction = co_await files->audit();
      EXPECT_EQ(contradiction, "");
    }
  }
  // An operation that a death has interrupted, the model before it, and the name that it was to make
  // in a directory, if any.
  struct Interrupted {
    Model before;
    std::function<void(Model&)> operation;
    std::optional<std::pair<InodeNumber, std::string>> creates;
  };
  // The model as it is if the operation has taken effect.
  Task<Model> after_interrupted(const Interrupted& interrupted) {
    Model after = interrupted.before;
    if (interrupted.creates) {
      const auto& [in, text] = *interrupted.creates;
      const auto made = co_await sessions_[0]->look_up(in, text);
      if (made && !after.exists(made->inode)) {
        after.choose_next_inode(made->inode);
        known_.push_back(made->inode);
      }
    }
    interrupted.operation(after);
    after.end_holds();
    co_return after;
  }
  // Says how the files differ from the model; empty if they do not. Times of access are not
  // compared.
  Task<std::string> difference_from(const Model& model) {
    const TreeOptions options{.times = true, .holes = true};
    const Tree found = co_await read_tree(*sessions_[0], options);
    std::string text = difference(found, tree_of(model, options));
    for (std::size_t i = 0; text.empty() && i < known_.size(); ++i) {
      if (!model.exists(known_[i])) continue;
      const auto is = co_await sessions_[0]->attributes(known_[i]);
      if (!is || is->accessed != model.attributes(known_[i])->accessed) {
        text = "accessed at another time: " + std::to_string(static_cast<std::uint64_t>(known_[i]));
      }
    }
    co_return text;
  }
  Timestamp now() const {
    return {static_cast<std::int64_t>(clock_ / 1'000'000'000),
            static_cast<std::uint32_t>(clock_ % 1'000'000'000)};
  }
  WriteOptions options() { return {now(), any(3) == 0}; }

  // Whether the system had room, so that the model is to do the same. What it refuses for want of
  // space is nothing that the model knows.
  template <class T>
  bool had_room(const Result<T>& result) {
    under_way_ = {};
    creates_.reset();
    ++done_;
    if (result) ++succeeded_;
    if (result || result.error() != std::errc::no_space_on_device) return true;
    ++refused_;
    return false;
  }
  Task<> create(Session& session) {
    const InodeNumber in = directory();
    const std::string text = name();
    const NewInode made = new_inode();
    creates_.emplace(in, text);
    under_way_ = [=, at = now()](Model& model) { model.create(in, text, made, at); };
    const auto found = co_await session.create(in, text, made, now());
    if (!had_room(found)) co_return;
    if (found) {
      EXPECT_FALSE(model_.exists(found->inode)) << "the number is in use";
      if (model_.exists(found->inode)) co_return;
      model_.choose_next_inode(found->inode);
      known_.push_back(found->inode);
    }
    compare(found, model_.create(in, text, made, now()), "create");
  }
  Task<> create_unnamed(std::size_t which) {
    const NewInode made = new_inode();
    const auto found = co_await sessions_[which]->create_unnamed(made, now());
    if (!had_room(found)) co_return;
    if (found) {
      model_.choose_next_inode(found->inode);
      known_.push_back(found->inode);
      held_.emplace_back(found->inode, which);
    }
    compare(found, model_.create_unnamed(made, now()), "create_unnamed");
  }
  Task<> link(Session& session) {
    const InodeNumber linked = file();
    const InodeNumber in = directory();
    const std::string text = name();
    under_way_ = [=, at = now()](Model& model) { model.link(linked, in, text, at); };
    const auto found = co_await session.link(linked, in, text, now());
    if (had_room(found)) compare(found, model_.link(linked, in, text, now()), "link");
  }
  Task<> unlink(Session& session) {
    const InodeNumber in = directory();
    const std::string text = name();
    under_way_ = [=, at = now()](Model& model) { model.unlink(in, text, at); };
    const auto found = co_await session.unlink(in, text, now());
    if (had_room(found)) expect_same(found, model_.unlink(in, text, now()), "unlink");
  }
  Task<> remove_directory(Session& session) {
    const InodeNumber in = directory();
    const std::string text = name();
    under_way_ = [=, at = now()](Model& model) { model.remove_directory(in, text, at); };
    const auto found = co_await session.remove_directory(in, text, now());
    if (had_room(found)) expect_same(found, model_.remove_directory(in, text, now()), "rmdir");
  }
  Task<> rename(Session& session) {
    const InodeNumber from = directory();
    const InodeNumber to = any(2) == 0 ? from : directory();
    const std::string text = name();
    const std::string new_text = name();
    const auto mode = static_cast<RenameMode>(any(4) == 0 ? 1 : any(2) * 2);
    under_way_ = [=, at = now()](Model& model) {
      model.rename(from, text, to, new_text, mode, at);
    };
    const auto found = co_await session.rename(from, text, to, new_text, mode, now());
    if (had_room(found)) {
      expect_same(found, model_.rename(from, text, to, new_text, mode, now()), "rename");
    }
  }
  Task<> change(Session& session) {
    const InodeNumber changed = inode();
    AttributeChange change;
    if (any(2) == 0) change.permissions = any(07777);
    if (any(3) == 0) change.uid = any(5);
    if (any(3) == 0) change.gid = any(5);
    if (any(3) == 0) change.accessed = now();
    if (any(3) == 0) change.modified = Timestamp{-5, 7};
    if (any(4) != 0) change.changed = now();
    const std::vector<std::byte> value = bytes(5000);
    if (any(4) == 0) {
      change.extended = AttributeChange::Extended{.name = "user.b"};
      if (any(3) != 0) change.extended->value = value;
    }
    under_way_ = [changed, change, value](Model& model) {
      AttributeChange own = change;
      if (own.extended && own.extended->value) own.extended->value = value;
      model.change(changed, own);
    };
    const auto found = co_await session.change(changed, change);
    if (had_room(found)) compare(found, model_.change(changed, change), "change");
  }
  Task<> set_extended(Session& session) {
    const InodeNumber changed = inode();
    const std::string text = extended_name();
    const std::vector<std::byte> value = bytes(any(10) == 0 ? 66000 : 5000);
    const auto mode = static_cast<AttributeMode>(any(4));
    under_way_ = [=, at = now()](Model& model) {
      model.set_extended(changed, text, value, mode, at);
    };
    const auto found = co_await session.set_extended(changed, text, value, mode, now());
    if (had_room(found)) {
      expect_same(found, model_.set_extended(changed, text, value, mode, now()), "set_extended");
    }
  }
  Task<> remove_extended(Session& session) {
    const InodeNumber changed = inode();
    const std::string text = extended_name();
    under_way_ = [=, at = now()](Model& model) { model.remove_extended(changed, text, at); };
    const auto found = co_await session.remove_extended(changed, text, now());
    if (had_room(found)) {
      expect_same(found, model_.remove_extended(changed, text, now()), "remove_extended");
    }
  }
  Task<> write(Session& session) {
    const InodeNumber written = file();
    const Bytes offset = any(100) == 0 ? kLargestFile - any(5) * 100 : place();
    const std::vector<std::byte> data = bytes(5 * kBlock);
    const WriteOptions how = options();
    under_way_ = [=](Model& model) { model.write(written, offset, data, how); };
    const auto found = co_await session.write(written, offset, data, how);
    if (had_room(found)) expect_same(found, model_.write(written, offset, data, how), "write");
  }
  Task<> append(Session& session) {
    const InodeNumber written = file();
    const std::vector<std::byte> data = bytes(2 * kBlock);
    const WriteOptions how = options();
    under_way_ = [=](Model& model) { model.append(written, data, how); };
    const auto found = co_await session.append(written, data, how);
    if (!had_room(found)) co_return;
    const auto expected = model_.append(written, data, how);
    expect_same(found, expected, "append");
    if (found && expected) {
      EXPECT_EQ(*found, *expected);
    }
  }
  Task<> truncate(Session& session) {
    const InodeNumber cut = file();
    const Bytes size = any(20) == 0 ? kLargestFile - any(3) : place();
    const WriteOptions how = options();
    under_way_ = [=](Model& model) { model.truncate(cut, size, how); };
    const auto found = co_await session.truncate(cut, size, how);
    if (had_room(found)) expect_same(found, model_.truncate(cut, size, how), "truncate");
  }
  Task<> allocate(Session& session) {
    const InodeNumber changed = file();
    const auto mode = static_cast<AllocationMode>(any(5));
    const Bytes offset = place();
    const Bytes length = any(10) == 0 && mode == AllocationMode::punch ? kLargestFile - offset
                         : any(2) == 0                                 ? place()
                                                                       : any(300);
    const WriteOptions how = options();
    under_way_ = [=](Model& model) { model.allocate(changed, mode, offset, length, how); };
    const auto found = co_await session.allocate(changed, mode, offset, length, how);
    if (had_room(found)) {
      expect_same(found, model_.allocate(changed, mode, offset, length, how), "allocate");
    }
  }
  Task<> read(Session& session) {
    const InodeNumber which = file();
    const Bytes offset = place();
    std::vector<std::byte> into(any(20000), std::byte{0xEE});
    std::vector<std::byte> expected_into = into;
    const auto found = co_await session.read(which, offset, into);
    const auto expected = model_.read(which, offset, expected_into);
    expect_same(found, expected, "read");
    if (found && expected) {
      EXPECT_EQ(*found, *expected);
    }
    EXPECT_TRUE(into == expected_into) << "read other data";
  }
  Task<> seek(Session& session) {
    const InodeNumber which = file();
    const Bytes offset = place();
    const auto what = any(2) == 0 ? Session::Seek::data : Session::Seek::hole;
    const auto found = co_await session.seek(which, offset, what);
    const auto expected = model_.seek(which, offset, what);
    expect_same(found, expected, "seek");
    if (found && expected) {
      EXPECT_EQ(*found, *expected);
    }
  }
  Task<> hold_or_release(std::size_t which) {
    const auto releases = [&](const auto& held) {
      return !home_.has_servers() || held.second == which;  // each mount releases what it holds
    };
    if (!held_.empty() && any(2) == 0) {
      std::size_t place = any(held_.size());
      for (std::size_t tries = 0; !releases(held_[place]); ++tries) {
        if (tries == held_.size()) co_return;
        place = (place + 1) % held_.size();
      }
      const InodeNumber released = held_[place].first;
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(place));
      co_await sessions_[which]->release(released, 1);
      model_.release(released);
      co_return;
    }
    const InodeNumber held = inode();
    const auto found = co_await sessions_[which]->hold(held);
    expect_same(found, model_.hold(held), "hold");
    if (found) held_.emplace_back(held, which);
  }
  Task<> look(Session& session) {
    const InodeNumber in = directory();
    const std::string text = name();
    const auto found = co_await session.look_up(in, text);
    compare(found, model_.look_up(in, text), "look_up");
    const InodeNumber which = inode();
    const auto attributes = co_await session.attributes(which);
    compare(attributes, model_.attributes(which), "attributes");
    const auto parent = co_await session.parent(in);
    const auto expected_parent = model_.parent(in);
    expect_same(parent, expected_parent, "parent");
    if (parent && expected_parent) {
      EXPECT_EQ(*parent, *expected_parent);
    }
    const auto target = co_await session.read_link(which);
    const auto expected_target = model_.read_link(which);
    expect_same(target, expected_target, "read_link");
    if (target && expected_target) {
      EXPECT_EQ(*target, *expected_target);
    }
  }

  Thread* thread_;
  std::unique_ptr<Home> own_home_;
  Home& home_;
  std::array<std::shared_ptr<FileSystem>, 2> files_;  // one, or one for each session
  std::array<std::unique_ptr<Session>, 2> sessions_;
  std::uint64_t clock_ = 1'000'000'000'000;
  std::vector<std::pair<InodeNumber, std::size_t>> held_;  // and the session that holds it
  // Does to the model the same as the operation under way, which may create a name in a directory.
  std::function<void(Model&)> under_way_;
  std::optional<std::pair<InodeNumber, std::string>> creates_;
  std::optional<Interrupted> interrupted_;
  std::uint64_t refused_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t succeeded_ = 0;
  std::vector<std::uint64_t> events_;
};

}  // namespace perdura::fs::test
