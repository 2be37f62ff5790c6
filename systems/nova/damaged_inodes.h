// The part of a repair that makes damaged inodes anew, of what can be read of them (salvage.h).
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "systems/nova/repair.h"
#include "systems/nova/salvage.h"
#include "systems/nova/volume.h"

namespace perdura::systems::nova {

class DamagedInodes {
 public:
  // The blocks and numbers of all whole inodes must be marked in `volume`, and the journals redone.
  DamagedInodes(const Findings& found, Volume& volume, Context& context);

  // Makes them anew and says in `losses` what they have lost. Returns false if there are none.
  bool make_anew(std::vector<fs::Damage>& losses);

 private:
  std::map<std::uint64_t, std::uint32_t> find() const;
  InodeRecord record_of(std::uint64_t number) const;
  void share_out_blocks(std::vector<fs::Damage>& losses);
  void say_loss(const Inode& inode, std::uint64_t blocks, std::vector<fs::Damage>& losses) const;
  void own(const Inode& inode);
  void mark_as_existing();
  void remove_names_of(std::uint64_t number);
  bool is_lost_and_found(std::uint64_t directory) const;
  bool is_past(const Inode& directory, const Name& name) const;
  void leave_out_past_names(Inode& directory);
  void keep(std::uint64_t number);
  void end(std::uint64_t number);
  void store(std::uint64_t number, Bytes word, std::uint64_t value);

  pmem::Region& region_;
  const Geometry& geometry_;
  const Findings& found_;
  Volume& volume_;
  Context& context_;
  std::map<std::uint64_t, InodeRecord> records_;  // their new records
  std::map<std::uint64_t, Salvaged> salvaged_;    // by number
  std::set<std::uint64_t> directories_;           // numbers of those that are directories
  std::vector<std::uint32_t> names_in_whole_;     // by inode: its names in whole directories
};

// Removes a name from a whole directory, whose times do not change. Returns false if there is no
// space for that.
bool remove_name(Volume& volume, Context& context, std::uint64_t directory, std::uint64_t cookie);

}  // namespace perdura::systems::nova
