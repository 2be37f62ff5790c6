// "Correct, Fast Remote Persistence", Tables 2 and 3: every cell, at every moment and for every
// image.
#include <gtest/gtest.h>

#include <iostream>

#include "methods/matrices.h"

namespace perdura::methods {
namespace {

using pmem::Medium;
using pmem::PersistenceDomain;
using pmem::Transport;

struct Cell {
  Configuration configuration;
  Update update;
  Carrier carrier;
  const Method& method() const { return method_of_paper(configuration, update, carrier); }
};

std::vector<Cell> cells() {
  std::vector<Cell> result;
  for (const Configuration& configuration : matrix_configurations()) {
    for (const Update update : kUpdatesOfPaper) {
      for (const Carrier carrier : kCarriers) result.push_back({configuration, update, carrier});
    }
  }
  return result;
}

std::string name_of(const Cell& cell) {
  return to_string(cell.configuration) + ", " + cell.method().name;
}

TEST(Cells, AreAllThere) {
  EXPECT_EQ(configurations().size() * kUpdatesOfPaper.size() * kCarriers.size(), 72U);
  EXPECT_EQ(cells().size(), 72U + 24U);  // and on iWARP those under WSP
  for (const Cell& cell : cells()) {
    EXPECT_EQ(cell.method().update, cell.update) << name_of(cell);
    EXPECT_EQ(cell.method().carrier, cell.carrier) << name_of(cell);
  }
}

TEST(Cells, AreRight) {
  std::uint64_t instants = 0;
  std::uint64_t images = 0;
  for (const Cell& cell : cells()) {
    const Proof proof = prove(cell.method(), cell.configuration);
    EXPECT_EQ(proof.correctness, Correctness::right)
        << name_of(cell) << ": " << proof.broken << "\n"
        << proof.trace;
    instants += proof.instants;
    images += proof.images;
  }
  std::cout << cells().size() << " cells, " << instants << " moments, " << images << " images\n";
}

// No cell has a step too many.
TEST(Cells, NeedEveryStep) {
  for (const Cell& cell : cells()) {
    for (const StepProof& proof : prove_steps(cell.method(), cell.configuration)) {
      const auto& agent = cell.method().program.agents[proof.agent];
      EXPECT_NE(proof.without.correctness, Correctness::right)
          << name_of(cell) << " without \""
          << to_string(cell.method().program, agent.steps[proof.step]) << "\"";
    }
  }
}

// Section 3.4: READ emulates FLUSH.
TEST(Methods, AreTheSameWithReadForFlush) {
  for (const Method& method : methods()) {
    const Method emulated = with_read_for_flush(method);
    for (const Configuration& configuration : matrix_configurations()) {
      EXPECT_EQ(prove(method, configuration).breaches, prove(emulated, configuration).breaches)
          << method.name << " on " << to_string(configuration);
    }
  }
}

// The paper's emulation measures the method with FLUSH. It is wrong itself where an ATOMIC WRITE
// relies on what the FLUSH before it has pushed, since it may overtake the READ that stands for it.
TEST(Methods, AreTheSameWithThePapersEmulationButForAnAtomicWrite) {
  for (const Method& method : methods()) {
    const Method emulated = with_read_timed_as_flush(method);
    for (const Configuration& configuration : matrix_configurations()) {
      std::set<Breach> expected = prove(method, configuration).breaches;
      if (method.name == "ordered-write-atomic" && expected.empty() &&
          configuration.model.domain == PersistenceDomain::dmp) {
        expected = {Breach::out_of_order};
      }
      EXPECT_EQ(expected, prove(emulated, configuration).breaches)
          << method.name << " on " << to_string(configuration);
    }
  }
}

// Section 3.4: message passing is universal.
TEST(Methods, WithMessagesAreRightEverywhere) {
  for (const char* name :
       {"write-message", "write-imm-message", "send-copy-flush", "ordered-write-message",
        "ordered-write-imm-message", "ordered-send-copy-flush"}) {
    for (const Configuration& configuration : matrix_configurations()) {
      EXPECT_EQ(prove(find_method(name), configuration).correctness, Correctness::right)
          << name << " on " << to_string(configuration);
    }
  }
}

// Section 3.2: under DMP with DDIO nothing one-sided is reliable.
TEST(Methods, WithoutTheRespondersCpuAreWrongUnderDmpWithDdio) {
  for (const Medium buffers : {Medium::dram, Medium::pm}) {
    const Configuration configuration{{PersistenceDomain::dmp, true, Transport::infiniband},
                                      buffers};
    for (const Method& method : methods()) {
      if (!method.responder().empty() || method.uses(pmem::StepKind::flush_persistence)) continue;
      EXPECT_EQ(prove(method, configuration).correctness, Correctness::wrong) << method.name;
    }
  }
}

// Section 3.2: the methods for WSP on iWARP mimic those for MHP, and the others lose data there.
TEST(Methods, WithoutFlushAreWrongOnIwarp) {
  for (const char* name :
       {"write", "write-imm", "send", "ordered-write", "ordered-write-imm", "ordered-send"}) {
    const Configuration wsp{{PersistenceDomain::wsp, true, Transport::infiniband}, Medium::pm};
    Configuration iwarp = wsp;
    iwarp.model.transport = Transport::iwarp;
    EXPECT_EQ(prove(find_method(name), wsp).correctness, Correctness::right) << name;
    EXPECT_EQ(prove(find_method(name), iwarp).correctness, Correctness::wrong) << name;
  }
}

// Section 3.3: a second update of more than 8 bytes.
TEST(Methods, OfLongSecondUpdates) {
  ProofOptions options;
  options.words_of_b = 4;
  const Configuration dmp{{PersistenceDomain::dmp, false, Transport::infiniband}, Medium::dram};
  for (const char* name : {"ordered-write-wait", "ordered-write-fence"}) {
    EXPECT_EQ(prove(find_method(name), dmp, options).correctness, Correctness::right) << name;
  }
}

// A sample of images finds what all images find, given enough of them, and the same each time.
TEST(Proofs, CanBeSampled) {
  const Configuration dmp{{PersistenceDomain::dmp, true, Transport::infiniband}, Medium::dram};
  ProofOptions options;
  options.sampling = {.images = 50, .seed = 7};
  for (const Method& method : methods()) {
    const Proof sampled = prove(method, dmp, options);
    EXPECT_EQ(sampled.breaches, prove(method, dmp).breaches) << method.name;
    EXPECT_EQ(sampled.trace, prove(method, dmp, options).trace) << method.name;
  }
}

}  // namespace
}  // namespace perdura::methods
