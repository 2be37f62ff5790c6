#include "harness/run/launcher.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "platform/base/error.h"

namespace perdura::harness {
namespace {

using Environment = std::map<std::string, std::string>;

std::optional<Launch> find(const Environment& environment, Discovery by = Discovery::by_pmi_too) {
  return find_launch(
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      by);
}

const Environment kMpirun{{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "9"}};
const Environment kPmix{{"PMIX_RANK", "3"}};
const Environment kPmi{{"PMI_RANK", "4"}, {"PMI_SIZE", "7"}};
const Environment kBatch{{"SLURM_JOB_ID", "17"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "9"}};
const Environment kStep{{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "5"}};

// Everything that may be set together: mpirun within an allocation, srun with PMIx, and so on.
TEST(Launcher, IsFoundInEveryCombinationOfEnvironments) {
  for (unsigned set = 0; set < 32; ++set) {
    Environment environment;
    const auto with = [&](unsigned bit, const Environment& more) {
      const bool there = (set >> bit & 1U) != 0;
      if (there) environment.insert(more.begin(), more.end());
      return there;
    };
    const bool batch = with(4, kBatch);
    const bool mpirun = with(0, kMpirun);
    const bool pmix = with(1, kPmix);
    const bool pmi = with(2, kPmi);
    const bool step = with(3, kStep);
    SCOPED_TRACE(testing::Message() << "mpirun " << mpirun << " pmix " << pmix << " pmi " << pmi
                                    << " step " << step << " batch " << batch);
    if (!mpirun && !pmix && !pmi) {
      if (step) {
        EXPECT_THROW(find(environment), UsageError);
      } else {
        EXPECT_FALSE(find(environment)) << "a job's script starts one process alone";
      }
      continue;
    }
    const auto launch = find(environment);
    ASSERT_TRUE(launch);
    EXPECT_EQ(launch->rank, mpirun ? 2 : pmix ? 3 : 4);
    EXPECT_EQ(launch->ranks, mpirun ? 9 : pmix ? (step ? 5 : 0) : 7);
    // An MPI that is told by PMIx alone cannot find what srun --mpi=pmi2 starts.
    if (!mpirun && !pmix && step) {
      EXPECT_THROW(find(environment, Discovery::by_pmix), UsageError);
    } else {
      EXPECT_EQ(find(environment, Discovery::by_pmix)->rank, launch->rank);
    }
  }
}

TEST(Launcher, ASingleTaskOfSrunIsAProcessAlone) {
  EXPECT_FALSE(find({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
}

TEST(Launcher, TheProcessesOfAnotherMpiAreRefused) {
  for (int started = 0; started < 4; ++started) {
    for (int seen = 1; seen < 4; ++seen) {
      const Launch launch{started, 0, "mpirun"};
      if (started == 0 || started == seen) {
        EXPECT_NO_THROW(check_size(launch, seen));
      } else {
        EXPECT_THROW(check_size(launch, seen), UsageError);
      }
    }
  }
}

}  // namespace
}  // namespace perdura::harness
