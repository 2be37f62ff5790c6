// Workloads on the data of a file, as jobs of fio: read, write, rw, randread, randwrite, randrw,
// and append and fsync. Each lane has a file of its own, which it keeps open, or all have one.
#include <fmt/format.h>

#include "bench/fs/file_workload.h"
#include "platform/base/random.h"

namespace perdura::bench {
namespace {

struct Job {
  bool random = false;
  bool append = false;
  std::uint64_t read_percent = 0;
  std::uint64_t fsync_every = 0;  // 0: never
  bool shared = false;            // all lanes use the file of the first one
  Bytes file_size = 0;
  Bytes io_size = 0;
};

Job job_of(const harness::PointSettings& settings) {
  const std::string name = settings.text("workload");
  const auto number = [&](const char* parameter) {
    return settings.number_if_given(parameter).value_or(0);
  };
  Job job;
  job.append = name == "append";
  job.random = name.starts_with("rand") || name == "fsync";
  job.shared = number("shared_file") > 0;
  job.fsync_every = name == "fsync" ? 1 : number("fsync_every");
  job.file_size = number("file_size");
  job.io_size = number(job.append ? "append_size" : "io_size");
  if (name.ends_with("read")) job.read_percent = 100;
  if (name.ends_with("rw")) job.read_percent = number("read_percent");
  return job;
}

class JobLane final : public FileLane {
 public:
  JobLane(const Job& job, std::uint64_t seed, std::uint32_t lane)
      : job_(job), random_(seed, lane + 1) {}

  std::optional<FileOperation> next() override {
    FileOperation operation{.file = OpenFile::kept, .length = job_.io_size};
    if (job_.fsync_every > 0 && writes_ == job_.fsync_every) {
      writes_ = 0;
      operation.action = FileAction::fsync;
      return operation;
    }
    const bool reads = job_.read_percent > 0 && random_.uniform_below(100) < job_.read_percent;
    if (!reads) ++writes_;
    operation.action = job_.append ? FileAction::append
                       : reads     ? FileAction::read
                                   : FileAction::write;
    if (!job_.append) operation.offset = next_block() * job_.io_size;
    return operation;
  }

 private:
  std::uint64_t next_block() {
    const std::uint64_t blocks = job_.file_size / job_.io_size;
    if (job_.random) return random_.uniform_below(blocks);
    if (block_ == blocks) block_ = 0;
    return block_++;
  }

  Job job_;
  Random random_;
  std::uint64_t block_ = 0;
  std::uint64_t writes_ = 0;  // number since the last fsync
};

class DataWorkload final : public FileWorkload {
 public:
  explicit DataWorkload(const harness::Point& point)
      : job_(job_of(point.settings)), seed_(point.seed) {}

  std::vector<std::string> directories() const override { return {}; }
  std::vector<NewFile> files(std::uint32_t lane) const override {
    if (job_.shared && lane > 0) return {};
    return {{kept_files(lane).front(), job_.file_size}};
  }
  std::vector<std::string> kept_files(std::uint32_t lane) const override {
    return {fmt::format("{:04}", job_.shared ? 0 : lane)};
  }
  std::unique_ptr<FileLane> lane(std::uint32_t lane) override {
    return std::make_unique<JobLane>(job_, seed_, lane);
  }

 private:
  Job job_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<FileWorkload> create_data_workload(const harness::Point& point) {
  return std::make_unique<DataWorkload>(point);
}

}  // namespace perdura::bench
