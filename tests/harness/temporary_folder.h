// A folder for one test, empty at first and gone afterwards; two runs of the same test at the same
// time have different ones. What a test leaves that is killed is removed by the next one.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace perdura::test {

class TemporaryFolder : public TemporaryDirectory {
 public:
  TemporaryFolder()
      : TemporaryDirectory(testing::TempDir(),
                           testing::UnitTest::GetInstance()->current_test_info()->name()) {}
};

}  // namespace perdura::test
