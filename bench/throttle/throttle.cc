// throttle: a directory that behaves like slow storage.
//
//     throttle --latency-us 2000 --bandwidth 200000000 BACKING MOUNTPOINT
//
// Everything is passed through to BACKING (put it on tmpfs so that the real storage does not add
// its own noise); every read and write request costs what meter.h says. Operations on names are
// free: HDF5 makes few of them, and the same ones with and without Tidelane.
//
// Requests seen can be read from MOUNTPOINT/.throttle/stats (JSON); writing to that file sets the
// counters to zero. It runs in the foreground and unmounts on SIGTERM, SIGINT and when the process
// that started it dies.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "common/options.h"
#include "throttle/operations.h"

namespace tidelane::throttle {
namespace {

int serve(fuse_session* session, const std::string& mountpoint) {
  if (fuse_set_signal_handlers(session) != 0) return 1;
  if (fuse_session_mount(session, mountpoint.c_str()) != 0) {
    fuse_remove_signal_handlers(session);
    return 1;
  }
  fuse_loop_config config{.clone_fd = 0, .max_idle_threads = 16};
  const int result = fuse_session_loop_mt(session, &config);
  fuse_session_unmount(session);
  fuse_remove_signal_handlers(session);
  // libfuse reports the signal that ended the loop; being told to stop is not a failure.
  return result < 0 ? 1 : 0;
}

int run(Mount& mount, const std::string& mountpoint) {
  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
  const std::string options = "fsname=throttle,subtype=throttle,default_permissions,max_read=" +
                              std::to_string(kMaxRequest);
  fuse_opt_add_arg(&args, "throttle");
  fuse_opt_add_arg(&args, "-o");
  fuse_opt_add_arg(&args, options.c_str());
  const fuse_lowlevel_ops ops = operations();
  fuse_session* session = fuse_session_new(&args, &ops, sizeof ops, &mount);
  fuse_opt_free_args(&args);
  if (session == nullptr) return 1;
  const int result = serve(session, mountpoint);
  fuse_session_destroy(session);
  return result;
}

}  // namespace
}  // namespace tidelane::throttle

int main(int argc, char** argv) {
  using namespace tidelane::throttle;
  tidelane::measure::CommandLine line("A directory that behaves like slow storage.");
  double latency_us = 2000;
  double bandwidth = 200e6;
  std::string backing;
  std::string mountpoint;
  line.option("--latency-us", latency_us, "what every read or write request costs")
      .not_negative()
      .shows_default();
  line.option("--bandwidth", bandwidth, "bytes per second shared by all requests; 0: no cap")
      .not_negative()
      .shows_default();
  line.option("backing", backing, "directory that holds the files").required().existing_directory();
  line.option("mountpoint", mountpoint, "where to show them").required().existing_directory();
  if (const auto status = line.parse(argc, argv)) return *status;

  // A mount must not outlive what started it, and waits must end when they should: the default
  // timer slack of 50 us would be added to every request.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::prctl(PR_SET_TIMERSLACK, 1);
  // Real storage does not compete with the application for its processors. Needs privilege; without
  // it a busy machine shows in the results.
  ::setpriority(PRIO_PROCESS, 0, -10);
  ::umask(0);
  Mount mount{.meter = Meter({.latency_ns = static_cast<uint64_t>(latency_us * 1e3),
                              .bytes_per_second = static_cast<uint64_t>(bandwidth)}),
              .inodes = {}};
  mount.root = ::open(backing.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (mount.root < 0) {
    std::perror(backing.c_str());
    return 1;
  }
  return run(mount, mountpoint);
}
