// parallel_stress: random operations of several ranks through the configured connector, native HDF5 as the oracle.
//
//   mpirun -np 2 parallel_stress --seed 7 --ops 300 --dir /tmp/x
//
// Leaves a/x.h5 (through the environment) and b/x.h5 (native) for the comparison by HDF5's tools, which parallel_seeds.py
// makes when all ranks are gone. Exit status: 0 no difference seen by any rank; 10 a difference; 1 anything else.
#include <getopt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string>

#include "parallel/side.h"

namespace tidelane::parallel {
namespace {

constexpr int kExitDifference = 10;
constexpr size_t kHistory = 30;

struct Arguments {
  uint64_t seed = 1, ops = 300;
  uint64_t fault_at = ~0ULL;  // damage the first read from there on: the program's own check
  std::string dir = ".";
  bool strict = false, read_only = false, filters = true, compressed = false, verbose = false,
       native_both = false;
  unsigned most_skew_us = 300;
};

bool parse(int argc, char** argv, Arguments& args) {
  static const option options[] = {{"seed", 1, nullptr, 's'},       {"ops", 1, nullptr, 'o'},
                                   {"dir", 1, nullptr, 'd'},        {"fault", 1, nullptr, 'f'},
                                   {"strict", 0, nullptr, 'S'},     {"no-filters", 0, nullptr, 'F'},
                                   {"verbose", 0, nullptr, 'v'},    {"native", 0, nullptr, 'n'},
                                   {"errors", 0, nullptr, 'e'},     {"skew", 1, nullptr, 'k'},
                                   {"compressed", 0, nullptr, 'c'}, {"read-only", 0, nullptr, 'r'},
                                   {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
    switch (c) {
      case 's': args.seed = std::strtoull(optarg, nullptr, 10); break;
      case 'o': args.ops = std::strtoull(optarg, nullptr, 10); break;
      case 'd': args.dir = optarg; break;
      case 'f': args.fault_at = std::strtoull(optarg, nullptr, 10); break;
      case 'S': args.strict = true; break;
      case 'r': args.read_only = true; break;
      case 'c': args.compressed = true; break;
      case 'F': args.filters = false; break;
      case 'v': args.verbose = true; break;
      case 'n': args.native_both = true; break;
      case 'e': Outcome::print_errors = true; break;
      case 'k': args.most_skew_us = static_cast<unsigned>(std::atoi(optarg)); break;
      default: return false;
    }
  }
  return optind == argc;
}

class Runner {
 public:
  Runner(const Arguments& args, int me, int ranks)
      : args_(args),
        me_(me),
        skew_(args.seed * 1000 + static_cast<uint64_t>(me)),
        model_({ranks, args.strict, args.filters, args.read_only, args.compressed}),
        manner_(Manner::draw(args.seed)),
        plugin_(args.dir + "/a/x.h5",
                args.native_both ? Side::Through::Native : Side::Through::Environment, manner_),
        native_(args.dir + "/b/x.h5", Side::Through::Native, manner_) {}

  bool run() {
    for (uint64_t i = 0; i < args_.ops; ++i) {
      if (!step(i)) return false;
    }
    Outcome plugin, native;
    plugin_.finish(plugin);
    native_.finish(native);
    return same("finish", plugin, native);
  }

 private:
  bool step(uint64_t index) {
    const Op op = model_.draw(args_.seed, index);
    if (args_.verbose && me_ == 0)
      std::fprintf(stderr, "%llu %s\n", static_cast<unsigned long long>(index), op.text().c_str());
    // Ranks are never in step.
    if (skew_.chance(30)) ::usleep(static_cast<useconds_t>(skew_.below(args_.most_skew_us + 1)));
    if (args_.strict || op.barrier_first) MPI_Barrier(MPI_COMM_WORLD);
    Outcome plugin, native;
    if (op.data_seed & 1) {
      plugin_.run(op, plugin);
      native_.run(op, native);
    } else {
      native_.run(op, native);
      plugin_.run(op, plugin);
    }
    if (index >= args_.fault_at && !fault_done_) fault_done_ = plugin.corrupt();
    history_.push_back(std::to_string(index) + " " + op.text());
    if (history_.size() > kHistory) history_.pop_front();
    if (!same(op.text(), plugin, native)) return false;
    if (native.failed_any) {  // the model draws what must work
      std::fprintf(stderr, "FAILED natively: %s\n", op.text().c_str());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    model_.commit(op);
    return true;
  }

  bool same(const std::string& what, const Outcome& plugin, const Outcome& native) {
    const std::string difference = Outcome::difference(plugin, native);
    if (difference.empty()) return true;
    std::string text = "\nDIFFERENCE seed " + std::to_string(args_.seed) + " rank " +
                       std::to_string(me_) + ": " + what + "\n  " + difference + "\n";
    for (const auto& line : history_) text += "  " + line + "\n";
    std::fputs(text.c_str(), stderr);
    return false;
  }

  const Arguments& args_;
  const int me_;
  Rng skew_;
  Model model_;
  const Manner manner_;
  Side plugin_, native_;
  std::deque<std::string> history_;
  bool fault_done_ = false;
};

int run(const Arguments& args) {
  int me = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (me == 0) {
    std::filesystem::create_directories(args.dir + "/a");
    std::filesystem::create_directories(args.dir + "/b");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (H5open() < 0) return 1;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // failures are compared, not printed
  if (Runner runner(args, me, ranks); !runner.run()) {
    MPI_Abort(MPI_COMM_WORLD, kExitDifference);
    return kExitDifference;
  }
  return H5close() < 0 ? 1 : 0;
}

}  // namespace
}  // namespace tidelane::parallel

int main(int argc, char** argv) {
  tidelane::parallel::Arguments args;
  if (!tidelane::parallel::parse(argc, argv, args)) {
    std::fprintf(stderr, "usage: see the first lines of tests/parallel/main.cc\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  const int status = tidelane::parallel::run(args);
  MPI_Finalize();
  return status;
}
