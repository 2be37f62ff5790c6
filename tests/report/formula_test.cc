#include "report/formula.h"

#include <gtest/gtest.h>

namespace perdura::report {
namespace {

// Erda, Table 1: N is the size of one key-value pair.
TEST(Formula, EvaluatesTheFormulasOfTable1) {
  const FormulaSizes sizes{16, 1024};
  EXPECT_EQ(*evaluate("key + 10 + N", sizes), 16 + 10 + 1040);
  EXPECT_EQ(*evaluate("key + 12 + 2 * N", sizes), 16 + 12 + 2 * 1040);
  EXPECT_EQ(*evaluate("9 + N", sizes), 9 + 1040);
  EXPECT_EQ(*evaluate("key + 9", sizes), 25);
}

TEST(Formula, RejectsWhatItDoesNotKnow) {
  for (const char* text : {"", "key +", "N - 1", "size", "2 N"}) {
    EXPECT_FALSE(evaluate(text, {16, 16})) << text;
  }
}

}  // namespace
}  // namespace perdura::report
