#include "library/mcas/verbs_member.h"
#include "platform/base/error.h"

namespace perdura::mcas {

namespace {

[[noreturn]] void refuse() {
  throw UsageError(
      "shards on verbs: this perdura was built without libibverbs; install libibverbs-dev and "
      "build it again, or use shards without addresses, on one host");
}

}  // namespace

std::unique_ptr<Member> join_verbs(const std::string&, const Network&, std::chrono::milliseconds) {
  refuse();
}
std::unique_ptr<Member> join_verbs(const Config&, const ShardConfig&) { refuse(); }

}  // namespace perdura::mcas
