// Members of jobs on the platform `verbs`. In a build without libibverbs these throw UsageError.
#pragma once

#include "library/mcas/member.h"

namespace perdura::mcas {

std::unique_ptr<Member> join_verbs(const std::string& job, const Network& network,
                                   std::chrono::milliseconds limit);
std::unique_ptr<Member> join_verbs(const Config& config, const ShardConfig& shard);

}  // namespace perdura::mcas
