// Every status and event has words, and the statuses are those that systems know.
#include "platform/fabric/verbs/meaning.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace perdura::fabric::verbs {
namespace {

constexpr Opcode kOpcodes[] = {Opcode::read,
                               Opcode::write,
                               Opcode::write_with_immediate,
                               Opcode::send,
                               Opcode::compare_and_swap,
                               Opcode::fetch_and_add,
                               Opcode::flush,
                               Opcode::atomic_write};

TEST(Meaning, OnlySuccessIsSuccessAndEverythingHasWords) {
  for (int status = IBV_WC_SUCCESS; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
    for (const Opcode opcode : kOpcodes) {
      const auto meaning = meaning_of(static_cast<ibv_wc_status>(status), opcode);
      EXPECT_EQ(meaning.status == Status::success, status == IBV_WC_SUCCESS) << status;
      EXPECT_GT(meaning.words.size(), 6U) << status;
    }
  }
}

TEST(Meaning, TheErrorsThatPeersCauseAreTheFabrics) {
  for (const Opcode opcode : kOpcodes) {
    EXPECT_EQ(meaning_of(IBV_WC_REM_ACCESS_ERR, opcode).status, Status::remote_access_error);
    EXPECT_EQ(meaning_of(IBV_WC_RETRY_EXC_ERR, opcode).status, Status::retry_exceeded);
    EXPECT_EQ(meaning_of(IBV_WC_RNR_RETRY_EXC_ERR, opcode).status, Status::receiver_not_ready);
    EXPECT_EQ(meaning_of(IBV_WC_WR_FLUSH_ERR, opcode).status, Status::flushed);
    const bool message = opcode == Opcode::send || opcode == Opcode::write_with_immediate;
    EXPECT_EQ(meaning_of(IBV_WC_REM_INV_REQ_ERR, opcode).status,
              message ? Status::message_too_long : Status::remote_access_error);
  }
}

TEST(Meaning, EveryEventHasWordsAndTheEndOfADeviceIsFatal) {
  for (int event = IBV_EVENT_CQ_ERR; event <= IBV_EVENT_WQ_FATAL; ++event) {
    const auto meaning = meaning_of(static_cast<ibv_event_type>(event));
    EXPECT_GT(meaning.words.size(), 6U) << event;
    EXPECT_FALSE(meaning.expected && meaning.fatal) << event;
  }
  EXPECT_TRUE(meaning_of(IBV_EVENT_DEVICE_FATAL).fatal);
  EXPECT_TRUE(meaning_of(IBV_EVENT_CQ_ERR).fatal);
  EXPECT_FALSE(meaning_of(IBV_EVENT_PORT_ERR).fatal);
  EXPECT_TRUE(meaning_of(IBV_EVENT_QP_LAST_WQE_REACHED).expected);
}

TEST(Meaning, ARefusedRegistrationSaysWhyAndWhatToDo) {
  const auto problem = [](int error, bool persistence) {
    return registration_problem(error, {"log", "/pmem/node-0/log", 4096, persistence}, "rxe0");
  };
  for (const int error : {ENOMEM, EOPNOTSUPP, EINVAL, EFAULT, EPERM, EIO}) {
    const std::string text = problem(error, false);
    EXPECT_TRUE(text.starts_with("rxe0 cannot register 4096 bytes of region log: ")) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  EXPECT_NE(problem(ENOMEM, false).find("memlock"), std::string::npos);
  EXPECT_NE(problem(EOPNOTSUPP, false).find("/pmem/node-0/log is on a DAX file system"),
            std::string::npos);
  EXPECT_NE(problem(EOPNOTSUPP, false).find("ndctl create-namespace -m devdax"), std::string::npos);
  EXPECT_NE(problem(EINVAL, true).find("FLUSH for persistence needs persistent memory"),
            std::string::npos);
  EXPECT_EQ(problem(EINVAL, false).find("FLUSH"), std::string::npos);
  for (const int error : {ENOMEM, EOPNOTSUPP, EINVAL, EPERM, EIO}) {
    EXPECT_NE(problem(error, true).find("platform shm"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace perdura::fabric::verbs
