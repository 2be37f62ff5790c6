#include "systems/orion/store/local_rights.h"

#include <atomic>

namespace perdura::systems::orion {

void LocalRights::set(Bytes offset, std::uint64_t value) {
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(pages_.data() + offset)).store(value);
}

std::uint64_t LocalRights::get(Bytes offset) const {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(pages_.data() + offset)).load();
}

std::shared_ptr<void> LocalRights::own(std::uint32_t slot) const {
  return node_.own_region(pages_.name(), 1 + slot);
}

void LocalRights::open(std::uint64_t epoch) { set(kOpen, epoch); }

void LocalRights::close() {
  open(0);
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) set(offset_of(slot, SlotWord::right), 0);
}

void LocalRights::revoke(const SessionId& session) {
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    if (get(offset_of(slot, SlotWord::mount)) == session.mount &&
        get(offset_of(slot, SlotWord::port)) == session.port) {
      set(offset_of(slot, SlotWord::right), 0);
    }
  }
}

bool LocalRights::are_idle() {
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    if (get(offset_of(slot, SlotWord::right)) != 0) continue;
    if (get(offset_of(slot, SlotWord::in_use)) == 0) continue;
    const std::shared_ptr<void> of_dead = own(slot);
    if (of_dead == nullptr) return false;
    set(offset_of(slot, SlotWord::in_use), 0);
  }
  return true;
}

// --- a session's right

LocalRights::Right::Right(Node& node, pmem::Region* pages) {
  if (pages != nullptr) rights_ = std::make_unique<LocalRights>(node, *pages);
}

LocalRights::Right::~Right() {
  if (owned_) rights_->set(offset_of(slot_, SlotWord::right), 0);
}

bool LocalRights::Right::ask(const SessionId& session, std::uint64_t epoch) {
  if (rights_ == nullptr) return false;
  for (std::uint32_t slot = 0; slot < kSlots && !owned_; ++slot) {
    owned_ = rights_->own(slot);
    slot_ = slot;
  }
  if (!owned_) return false;
  // No word of the slot is another session's while it has a right.
  rights_->set(offset_of(slot_, SlotWord::right), 0);
  rights_->set(offset_of(slot_, SlotWord::in_use), 0);
  rights_->set(offset_of(slot_, SlotWord::mount), session.mount);
  rights_->set(offset_of(slot_, SlotWord::port), session.port);
  rights_->set(offset_of(slot_, SlotWord::right), epoch);
  const std::uint64_t since = rights_->get(kOpen);
  const bool may_have_it = since != 0 && epoch >= since;
  if (!may_have_it) rights_->set(offset_of(slot_, SlotWord::right), 0);
  return may_have_it;
}

bool LocalRights::Right::begin() {
  if (!owned_) return false;
  rights_->set(offset_of(slot_, SlotWord::in_use), 1);
  if (rights_->get(offset_of(slot_, SlotWord::right)) != 0) return true;
  end();
  return false;
}

void LocalRights::Right::end() { rights_->set(offset_of(slot_, SlotWord::in_use), 0); }

}  // namespace perdura::systems::orion
