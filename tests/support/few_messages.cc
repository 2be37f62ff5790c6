// Linked into every test program: of each test only the first failures are printed. A mistake that
// a test meets at every moment of a history, or with every key, would else print megabytes that say
// the same.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

namespace perdura::test {
namespace {

constexpr int kMostFailures = 5;

// Passes everything on to GoogleTest's own printer but the failures behind the first ones.
class FewMessages final : public testing::TestEventListener {
 public:
  explicit FewMessages(testing::TestEventListener* printer) : printer_(printer) {}

  void OnTestProgramStart(const testing::UnitTest& all) override {
    printer_->OnTestProgramStart(all);
  }
  void OnTestIterationStart(const testing::UnitTest& all, int iteration) override {
    printer_->OnTestIterationStart(all, iteration);
  }
  void OnEnvironmentsSetUpStart(const testing::UnitTest& all) override {
    printer_->OnEnvironmentsSetUpStart(all);
  }
  void OnEnvironmentsSetUpEnd(const testing::UnitTest& all) override {
    printer_->OnEnvironmentsSetUpEnd(all);
  }
  void OnTestSuiteStart(const testing::TestSuite& suite) override {
    printer_->OnTestSuiteStart(suite);
  }
  void OnTestStart(const testing::TestInfo& test) override {
    failures_ = 0;
    printer_->OnTestStart(test);
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed() && ++failures_ > kMostFailures) return;
    printer_->OnTestPartResult(result);
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (failures_ > kMostFailures) {
      std::printf("and %d more failures of this test\n", failures_ - kMostFailures);
    }
    printer_->OnTestEnd(test);
  }
  void OnTestSuiteEnd(const testing::TestSuite& suite) override { printer_->OnTestSuiteEnd(suite); }
  void OnEnvironmentsTearDownStart(const testing::UnitTest& all) override {
    printer_->OnEnvironmentsTearDownStart(all);
  }
  void OnEnvironmentsTearDownEnd(const testing::UnitTest& all) override {
    printer_->OnEnvironmentsTearDownEnd(all);
  }
  void OnTestIterationEnd(const testing::UnitTest& all, int iteration) override {
    printer_->OnTestIterationEnd(all, iteration);
  }
  void OnTestProgramEnd(const testing::UnitTest& all) override { printer_->OnTestProgramEnd(all); }

 private:
  std::unique_ptr<testing::TestEventListener> printer_;
  int failures_ = 0;  // of the test that runs
};

// GoogleTest owns the listener.
struct Installation {
  Installation() {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    listeners.Append(new FewMessages(listeners.Release(listeners.default_result_printer())));
  }
};
const Installation installation;

}  // namespace
}  // namespace perdura::test
