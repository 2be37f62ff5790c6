// persist() on a queue pair of a fake device: a context whose post_send and poll_cq are this
// test's. The fake does what a responder's device does, in order, and completes operations late,
// one a poll.
#include "perdura_verbs.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace perdura::library_test {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kLocalKey = 11;
constexpr std::uint32_t kRemoteKey = 22;

struct Device {
  ibv_context context{};
  ibv_cq completions{};
  ibv_qp queue_pair{};

  std::vector<std::byte> remote = std::vector<std::byte>(4096);
  std::string posted{};             // the opcodes, in words
  std::vector<std::string> sent{};  // the messages
  std::deque<ibv_wc> under_way{};   // the oldest first
  int acknowledgments = 0;          // that the responder sends for each message
  int acknowledged = 0;
  int polls = 0;
  bool silent = false;  // completes nothing
  ibv_wc_status status = IBV_WC_SUCCESS;
  int post_error = 0;
  bool signal_all = false;

  Device() {
    context.ops.post_send = [](ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr**) {
      return static_cast<Device*>(qp->qp_context)->post(*wr);
    };
    context.ops.poll_cq = [](ibv_cq* cq, int, ibv_wc* wc) {
      return static_cast<Device*>(cq->cq_context)->poll(wc);
    };
    completions.context = &context;
    completions.cq_context = this;
    queue_pair.context = &context;
    queue_pair.qp_context = this;
    queue_pair.send_cq = &completions;
    queue_pair.qp_type = IBV_QPT_RC;
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int post(const ibv_send_wr& wr) {
    if (post_error != 0) return post_error;
    EXPECT_EQ(wr.num_sge, 1);
    EXPECT_EQ(wr.sg_list->lkey, kLocalKey);
    auto* const local = reinterpret_cast<std::byte*>(wr.sg_list->addr);
    const std::uint32_t length = wr.sg_list->length;
    const std::string name = wr.opcode == IBV_WR_RDMA_WRITE            ? "write"
                             : wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? "write-imm"
                             : wr.opcode == IBV_WR_SEND                ? "send"
                                                                       : "read";
    posted += (posted.empty() ? "" : "; ") +
              std::string((wr.send_flags & IBV_SEND_FENCE) != 0 ? "fenced " : "") + name;
    if (wr.opcode == IBV_WR_SEND) {
      sent.emplace_back(reinterpret_cast<const char*>(local), length);
    } else {
      EXPECT_EQ(wr.wr.rdma.rkey, kRemoteKey);
      std::byte* const there = &remote.at(wr.wr.rdma.remote_addr);
      if (name == "read") {
        std::memcpy(local, there, length);
      } else {
        std::memcpy(there, local, length);
      }
    }
    if (name == "write-imm") sent.push_back("imm " + std::to_string(ntohl(wr.imm_data)));
    if (name == "write-imm" || name == "send") ++acknowledgments;
    if (signal_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0) {
      ibv_wc wc{};
      wc.wr_id = wr.wr_id;
      wc.status = status;
      under_way.push_back(wc);
    }
    return 0;
  }
  int poll(ibv_wc* wc) {
    if (++polls % 3 != 0 || silent || under_way.empty()) return 0;
    *wc = under_way.front();
    under_way.pop_front();
    return 1;
  }
  std::uint64_t word_at(std::size_t place) const {
    std::uint64_t word = 0;
    std::memcpy(&word, &remote[place], sizeof word);
    return word;
  }
};

// What the program has: two words to be written, two messages, and 8 bytes to land in.
struct Memory {
  std::uint64_t a = 0xAAAA;
  std::uint64_t b = 0xBBBB;
  char name_a = 'a';
  char name_b = 'b';
  std::uint64_t landing = 0;
};

class LibraryPersist : public testing::Test {
 protected:
  LibraryPersist() {
    region_.addr = &memory_;
    region_.length = sizeof memory_;
    region_.lkey = kLocalKey;
    options_.second = {
        .local = &memory_.b, .length = 8, .address = 256, .rkey = kRemoteKey, .immediate = 256};
    options_.names_first = {.local = &memory_.name_a, .length = 1};
    options_.names_second = {.local = &memory_.name_b, .length = 1};
    options_.landing = &memory_.landing;
    options_.acknowledged = [this] {
      if (device_.acknowledgments == 0) return false;
      --device_.acknowledgments;
      ++device_.acknowledged;
      return true;
    };
  }
  RemoteRange range() const {
    return {.local = &memory_.a, .length = 8, .address = 128, .rkey = kRemoteKey, .immediate = 128};
  }
  void follow(const Choice& method) {
    persist(&device_.queue_pair, &region_, range(), method, options_);
  }
  static Choice method(const Configuration& configuration, const std::string& name,
                       bool ordered = false) {
    const Responder responder{.host = {}, .device = {}, .configuration = configuration};
    for (Choice& choice : choose(responder, {.ordered = ordered}, persist_features())) {
      if (choice.method == name) return choice;
    }
    ADD_FAILURE() << name << " is not among the choices";
    return {};
  }
  Memory memory_;
  ibv_mr region_{};
  Device device_;
  PersistOptions options_;
};

constexpr Configuration kNoDdio{.domain = Domain::dmp,
                                .ddio = false,
                                .receive_buffers_in_pm = false,
                                .transport = Transport::infiniband};

TEST_F(LibraryPersist, WritesAndReadsBack) {
  follow(method(kNoDdio, "write-flush"));
  EXPECT_EQ(device_.posted, "write; read");
  EXPECT_EQ(device_.word_at(128), 0xAAAAU);
  EXPECT_EQ(memory_.landing, 0xAAAAU) << "the READ is of what was written";
  EXPECT_TRUE(device_.under_way.empty()) << "nothing is left behind";
}

TEST_F(LibraryPersist, WaitsBetweenTwoOrderedUpdates) {
  follow(method(kNoDdio, "ordered-write-wait", true));
  EXPECT_EQ(device_.posted, "write; read; write; read");
  EXPECT_EQ(device_.word_at(256), 0xBBBBU);
  EXPECT_EQ(memory_.landing, 0xBBBBU);
}

TEST_F(LibraryPersist, FollowsEachMethodThatIsRightSomewhere) {
  std::size_t followed = 0;
  for (const bool ordered : {false, true}) {
    for (const Domain domain : {Domain::dmp, Domain::mhp, Domain::wsp}) {
      for (const bool ddio : {false, true}) {
        for (const bool in_pm : {false, true}) {
          const Responder responder{.configuration = {.domain = domain,
                                                      .ddio = ddio,
                                                      .receive_buffers_in_pm = in_pm,
                                                      .transport = Transport::infiniband}};
          for (const Choice& choice : choose(responder, {.ordered = ordered}, persist_features())) {
            SCOPED_TRACE(choice.method);
            ++followed;
            device_.posted.clear();
            device_.sent.clear();
            device_.acknowledged = 0;
            device_.acknowledgments = 0;
            std::fill(device_.remote.begin(), device_.remote.end(), std::byte{0});
            follow(choice);
            const auto count = [&](Action action) {
              return std::count_if(choice.steps.begin(), choice.steps.end(), [&](const Step& s) {
                return s.of == Agent::requester && s.action == action;
              });
            };
            EXPECT_EQ(device_.acknowledged, count(Action::receive_ack));
            const auto operations = static_cast<std::size_t>(
                count(Action::write) + count(Action::write_immediate) + count(Action::send) +
                count(Action::send_names) + count(Action::read));
            EXPECT_EQ(std::count(device_.posted.begin(), device_.posted.end(), ';') + 1,
                      static_cast<std::ptrdiff_t>(operations));
            std::string sent;
            for (const std::string& message : device_.sent) sent += message;
            const bool a_is_there = device_.word_at(128) == 0xAAAA ||
                                    sent.find(std::string("\xAA\xAA")) != std::string::npos;
            const bool b_is_there = device_.word_at(256) == 0xBBBB ||
                                    sent.find(std::string("\xBB\xBB")) != std::string::npos;
            EXPECT_TRUE(a_is_there);
            EXPECT_EQ(b_is_there, ordered);
          }
        }
      }
    }
  }
  EXPECT_GT(followed, 50U);
}

TEST_F(LibraryPersist, NamesWhatItHasWritten) {
  Configuration ddio = kNoDdio;
  ddio.ddio = true;
  follow(method(ddio, "ordered-write-message", true));
  EXPECT_EQ(device_.sent, (std::vector<std::string>{"a", "b"}));
  device_.sent.clear();
  follow(method(ddio, "ordered-write-imm-message", true));
  EXPECT_EQ(device_.sent, (std::vector<std::string>{"imm 128", "imm 256"}));
}

TEST_F(LibraryPersist, TakesNoCompletionButItsOwn) {
  const Choice flush = method(kNoDdio, "write-flush");
  device_.under_way.push_back({});
  device_.under_way.back().wr_id = 7;
  EXPECT_THROW(follow(flush), std::runtime_error);
  device_.under_way.push_front({});
  device_.under_way.front().wr_id = 7;
  std::vector<std::uint64_t> others;
  options_.other = [&](const ibv_wc& wc) { others.push_back(wc.wr_id); };
  follow(flush);
  EXPECT_EQ(others, std::vector<std::uint64_t>{7});
}

// Also on a queue pair all of whose requests are signaled, and after a call that gave up.
TEST_F(LibraryPersist, IsNotMisledByCompletionsOfEarlierCalls) {
  const Choice flush = method(kNoDdio, "write-flush");
  device_.silent = true;
  options_.timeout = milliseconds(0);
  EXPECT_THROW(follow(flush), TimedOut);
  device_.silent = false;
  device_.signal_all = true;
  options_.timeout = std::chrono::seconds(60);
  follow(flush);
  EXPECT_TRUE(device_.under_way.empty());
}

TEST_F(LibraryPersist, SaysWhatFailed) {
  const Choice flush = method(kNoDdio, "write-flush");
  device_.post_error = ENOMEM;
  EXPECT_THROW(follow(flush), std::runtime_error);
  device_.post_error = 0;
  device_.status = IBV_WC_REM_ACCESS_ERR;
  try {
    follow(flush);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("remote access error"), std::string::npos)
        << error.what();
  }
}

TEST_F(LibraryPersist, GivesUpInDoubtWhenTheTimeIsOver) {
  device_.silent = true;
  options_.timeout = milliseconds(5);
  try {
    follow(method(kNoDdio, "write-flush"));
    FAIL();
  } catch (const TimedOut& error) {
    EXPECT_TRUE(error.in_doubt());
  }
}

TEST_F(LibraryPersist, PostsNothingIfSomethingIsMissing) {
  Configuration ddio = kNoDdio;
  ddio.ddio = true;
  const Choice flush = method(kNoDdio, "write-flush");
  const Choice wait = method(kNoDdio, "ordered-write-wait", true);
  const Choice message = method(ddio, "write-message");
  const auto expect_refusal = [&](const Choice& choice, const auto& change) {
    const PersistOptions before = options_;
    change();
    EXPECT_THROW(follow(choice), std::invalid_argument);
    options_ = before;
    device_.queue_pair.qp_type = IBV_QPT_RC;
    region_.length = sizeof memory_;
  };
  expect_refusal(flush, [&] { options_.landing = nullptr; });
  expect_refusal(flush, [&] { device_.queue_pair.qp_type = IBV_QPT_UC; });
  expect_refusal(flush, [&] { region_.length = 4; });
  expect_refusal(flush, [&] { options_.timeout = milliseconds(-1); });
  expect_refusal(wait, [&] { options_.second.reset(); });
  expect_refusal(wait, [&] { options_.second->local = &memory_ + 1; });
  expect_refusal(message, [&] { options_.names_first.reset(); });
  expect_refusal(message, [&] { options_.acknowledged = nullptr; });
  expect_refusal({}, [] {});
  // A device with FLUSH can, but not by these calls.
  const Responder able{.configuration = {.domain = Domain::dmp,
                                         .ddio = false,
                                         .receive_buffers_in_pm = false,
                                         .transport = Transport::infiniband,
                                         .flush = true}};
  expect_refusal(choose(able, {}, {.flush = true}).front(), [] {});
  EXPECT_EQ(device_.posted, "");
}

}  // namespace
}  // namespace perdura::library_test
