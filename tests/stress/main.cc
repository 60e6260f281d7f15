// stress: random operations through the configured connector, with native HDF5 as the oracle.
//
//   stress --seed 7 --ops 20000 --threads 2 --dir /tmp/x --min-deferred 1000000
//
// Exit status: 0 no difference; 10 a difference (seed, operation and history on stderr); 11 too few
// bytes were deferred, or no summary: the plugin was not there; 2 wrong usage; 1 anything else.
#include <getopt.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "stress/runner.h"
#include "support/summary.h"

#ifndef STRESS_TOOLS_DIR
#define STRESS_TOOLS_DIR "/usr/bin"
#endif

namespace tidelane::stress {
namespace {

struct Arguments {
  RunOptions run;
  unsigned threads = 1;
  int64_t min_deferred = 1 << 20;
  int64_t min_chunks = 0;
  int64_t min_filtered = 0;
  std::string tools = STRESS_TOOLS_DIR;
  bool keep = false;
  bool tally = false;
};

std::vector<std::pair<uint64_t, uint64_t>> parse_ranges(const char* text) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  while (*text != '\0') {
    char* end = nullptr;
    const uint64_t from = std::strtoull(text, &end, 10);
    const uint64_t to = *end == '-' ? std::strtoull(end + 1, &end, 10) : from;
    ranges.emplace_back(from, to);
    if (*end != ',') break;
    text = end + 1;
  }
  return ranges;
}

int usage(const char* program) {
  std::fprintf(stderr,
               "usage: %s [--seed N] [--ops N] [--threads N] [--dir D] [--tools D]\n"
               "  --min-deferred B   fail unless the plugin reports that many bytes deferred; -1: "
               "nothing need be\n"
               "  --min-chunks N     fail unless it decoded that many filtered chunks for reads\n"
               "  --min-filtered N   fail unless it filtered that many chunks that were written\n"
               "  --native           native on both sides, no summary expected (checks the test)\n"
               "  --fault N          damage the first read from operation N on (checks the test)\n"
               "  --drop A-B,C-D     leave operations out (to make a failing sequence shorter)\n"
               "  --commits FILE     to be killed: one side alone, which says what it commits\n"
               "  --images DIR       and shows each state there (natively)\n"
               "  --keep --tally --verbose --errors\n",
               program);
  return 2;
}

bool parse(int argc, char** argv, Arguments& args) {
  static const option options[] = {
      {"seed", 1, nullptr, 's'},       {"ops", 1, nullptr, 'o'},
      {"threads", 1, nullptr, 't'},    {"dir", 1, nullptr, 'd'},
      {"tools", 1, nullptr, 'T'},      {"min-deferred", 1, nullptr, 'm'},
      {"min-chunks", 1, nullptr, 'c'}, {"min-filtered", 1, nullptr, 'F'},
      {"native", 0, nullptr, 'n'},     {"fault", 1, nullptr, 'f'},
      {"drop", 1, nullptr, 'D'},       {"keep", 0, nullptr, 'k'},
      {"tally", 0, nullptr, 'y'},      {"verbose", 0, nullptr, 'v'},
      {"commits", 1, nullptr, 'C'},    {"images", 1, nullptr, 'I'},
      {"errors", 0, nullptr, 'e'},     {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
    switch (c) {
      case 's': args.run.seed = std::strtoull(optarg, nullptr, 10); break;
      case 'o': args.run.ops = std::strtoull(optarg, nullptr, 10); break;
      case 't': args.threads = static_cast<unsigned>(std::atoi(optarg)); break;
      case 'd': args.run.dir = optarg; break;
      case 'T': args.tools = optarg; break;
      case 'm': args.min_deferred = std::atoll(optarg); break;
      case 'c': args.min_chunks = std::atoll(optarg); break;
      case 'F': args.min_filtered = std::atoll(optarg); break;
      case 'n': args.run.native_both = true; break;
      case 'f': args.run.fault_at = std::atoll(optarg); break;
      case 'D': args.run.drop = parse_ranges(optarg); break;
      case 'k': args.keep = true; break;
      case 'y': args.tally = true; break;
      case 'e': Outcome::print_errors = true; break;
      case 'C': args.run.commits = optarg; break;
      case 'I': args.run.images = optarg; break;
      case 'v': args.run.verbose = true; break;
      default: return false;
    }
  }
  if (const char* at = std::getenv("STRESS_FAULT_AT")) args.run.fault_at = std::atoll(at);
  return optind == argc && args.threads >= 1 && args.threads <= 16;
}

// The summary's path must be in the environment before the library first looks there.
std::string configure_summary(const std::string& dir) {
  const char* configured = std::getenv("TIDELANE_SUMMARY");
  if (configured != nullptr && std::strchr(configured, '/') != nullptr) return configured;
  const std::string path = dir + "/summary.json";
  std::filesystem::remove(path);
  ::setenv("TIDELANE_SUMMARY", path.c_str(), 1);
  return path;
}

bool check_summary(const std::string& path, const Arguments& args) {
  const auto summary = testing::Summary::load(path);
  if (!summary) {
    std::fprintf(stderr, "FAILED: no summary at %s: the plugin was not loaded\n", path.c_str());
    return false;
  }
  const int64_t deferred = summary->counter("bytes_deferred");
  const int64_t busy = summary->counter("lane_busy_ns");
  std::printf(
      "bytes deferred %lld, in %lld writes, written by %lld requests; adopted files %lld, "
      "deferred closes %lld, lanes busy %.3f s, arena peak %lld\n",
      static_cast<long long>(deferred), static_cast<long long>(summary->counter("writes_deferred")),
      static_cast<long long>(summary->counter("requests_written")),
      static_cast<long long>(summary->counter("files_adopted")),
      static_cast<long long>(summary->counter("closes_deferred")), static_cast<double>(busy) / 1e9,
      static_cast<long long>(summary->counter("arena_peak_bytes")));
  for (const auto& [reason, count] : summary->fallbacks) {
    std::printf("fallback %s: %lld\n", reason.c_str(), static_cast<long long>(count));
  }
  const int64_t chunks =
      summary->counter("chunks_by_callers") + summary->counter("chunks_by_lanes");
  std::printf("filtered chunks decoded %lld, %lld of them by lanes\n",
              static_cast<long long>(chunks),
              static_cast<long long>(summary->counter("chunks_by_lanes")));
  if (chunks < args.min_chunks) {
    std::fprintf(stderr, "FAILED: at least %lld chunks expected\n",
                 static_cast<long long>(args.min_chunks));
    return false;
  }
  const int64_t by_lanes = summary->counter("chunks_filtered_by_lanes");
  const int64_t filtered = by_lanes + summary->counter("chunks_filtered_by_caller");
  std::printf("written chunks filtered %lld, %lld of them by lanes\n",
              static_cast<long long>(filtered), static_cast<long long>(by_lanes));
  if (filtered < args.min_filtered) {
    std::fprintf(stderr, "FAILED: at least %lld written chunks expected\n",
                 static_cast<long long>(args.min_filtered));
    return false;
  }
  const int64_t lent = summary->counter("bytes_lent");
  if (lends_buffers())
    std::printf("bytes stored from lent buffers %lld\n", static_cast<long long>(lent));
  if (lends_buffers() && lent == 0) {
    std::fprintf(stderr, "FAILED: no buffer was lent\n");
    return false;
  }
  if (deferred >= args.min_deferred && (busy > 0 || args.min_deferred < 0)) return true;
  std::fprintf(stderr, "FAILED: %lld bytes deferred, at least %lld expected\n",
               static_cast<long long>(deferred), static_cast<long long>(args.min_deferred));
  return false;
}

void print_tally(const std::vector<std::unique_ptr<Runner>>& runners) {
  std::map<std::string, Tally> sum;
  for (const auto& runner : runners) {
    for (const auto& [name, tally] : runner->tally()) {
      sum[name].succeeded += tally.succeeded;
      sum[name].failed += tally.failed;
    }
  }
  for (const auto& [name, tally] : sum) {
    std::printf("  %-18s %8llu succeeded %8llu failed on both sides\n", name.c_str(),
                static_cast<unsigned long long>(tally.succeeded),
                static_cast<unsigned long long>(tally.failed));
  }
}

// A difference ends the process at once: the state of the library is then anybody's guess.
void run_all(const Arguments& args, std::vector<std::unique_ptr<Runner>>& runners) {
  for (unsigned t = 0; t < args.threads; ++t) {
    RunOptions options = args.run;
    options.dir += "/" + std::to_string(t);
    options.seed = args.run.seed + t * 1000000ULL;  // what a report prints can be run alone
    options.ops = args.run.ops / args.threads;
    runners.push_back(std::make_unique<Runner>(options));
  }
  const auto body = [](Runner* runner) {
    if (!runner->run()) ::_exit(kExitDifference);
  };
  if (args.threads == 1) return body(runners[0].get());
  std::vector<std::thread> threads;
  for (auto& runner : runners) threads.emplace_back(body, runner.get());
  for (auto& thread : threads) thread.join();
}

// To be killed: whoever kills it looks at its files.
int run_alone(const RunOptions& options) {
  if (H5open() < 0) return 1;
  const bool whole = Runner(options).run();
  return H5close() < 0 || !whole ? 1 : 0;
}

int run(Arguments args) {
  const bool own_dir = args.run.dir.empty();
  if (own_dir) {
    args.run.dir =
        std::filesystem::temp_directory_path() / ("stress." + std::to_string(::getpid()));
  }
  std::filesystem::create_directories(args.run.dir);
  args.run.dir = std::filesystem::canonical(args.run.dir);
  if (args.run.alone()) return run_alone(args.run);
  const std::string summary = configure_summary(args.run.dir);
  if (H5open() < 0) {  // the connector named by the environment could not be loaded, for instance
    std::fprintf(stderr, "FAILED: HDF5 does not start\n");
    return 1;
  }
  hbool_t threadsafe = false;
  H5is_library_threadsafe(&threadsafe);
  if (args.threads > 1 && !threadsafe) {
    std::printf("SKIPPED: this HDF5 is not thread-safe\n");
    return 77;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Runner>> runners;
  run_all(args, runners);
  if (H5close() < 0) {
    std::fprintf(stderr, "FAILED: H5close\n");
    return 1;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  // Of files that are on their way still.
  if (const char* settle = std::getenv("STRESS_SETTLE"); settle != nullptr) {
    const std::string command = std::string(settle) + ' ' + args.run.dir;
    if (std::system(command.c_str()) != 0) {
      std::fprintf(stderr, "FAILED: %s\n", command.c_str());
      return 1;
    }
  }
  for (unsigned t = 0; t < args.threads; ++t) {
    if (!compare_files(args.run.dir + "/" + std::to_string(t), args.tools)) return kExitDifference;
  }
  if (args.tally) print_tally(runners);
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  std::printf("HDF5 %u.%u.%u\n", major, minor, release);
  std::printf("seed %llu: %llu operations, %u threads, %.1f s, no difference\n",
              static_cast<unsigned long long>(args.run.seed),
              static_cast<unsigned long long>(args.run.ops), args.threads, seconds);
  if (!args.run.native_both && !check_summary(summary, args)) return kExitNotDeferred;
  if (args.keep) return 0;
  for (unsigned t = 0; t < args.threads; ++t) {
    std::filesystem::remove_all(args.run.dir + "/" + std::to_string(t));
  }
  if (own_dir) std::filesystem::remove_all(args.run.dir);
  return 0;
}

}  // namespace
}  // namespace tidelane::stress

#ifdef __SANITIZE_ADDRESS__
// What native HDF5 forgets, on both sides alike, when a call fails: the chunk that its cache did not take, where a transform, a
// conversion's callback or a filter fails (H5D__chunk_read, H5D__chunk_write), and the filters of a dataset whose open is
// refused for its append boundary (H5D__open_oid).
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:H5D__chunk_lock\nleak:H5O__pline_copy\n";
}
#endif

int main(int argc, char** argv) {
  tidelane::stress::Arguments args;
  if (!tidelane::stress::parse(argc, argv, args)) return tidelane::stress::usage(argv[0]);
  return tidelane::stress::run(std::move(args));
}
