// checkpoint_<mpi>: checkpoint for the ranks of an MPI program (the VPIC-IO pattern, weak scaling).
//
// Every rank has particles of its own; each step writes eight variables, each rank its slice, with collective transfers into
// one file of all ranks, then computes. Plain HDF5 calls, nothing of Tidelane, and no MPI thread support asked for.
//
// Rank 0 prints as JSON where the time of the slowest rank went. What the program waits for is its total minus its
// computation; the total ends after H5close().
#include <mpi.h>

#include <array>
#include <cstdio>
#include <string>
#include <type_traits>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "checkpoint/particles.h"
#include "checkpoint/spans.h"
#include "common/measure.h"
#include "common/options.h"

namespace tidelane::checkpoint {
namespace {

using measure::ok;

struct Options {
  std::string directory = ".";
  int steps = 5;
  size_t bytes_per_variable = 4 << 20;
  int substeps = 0;  // 0: no computation
  bool independent = false;
};

class Writer {
 public:
  Writer(const Options& options, Spans& spans) : spans_(spans) {
    MPI_Comm_rank(MPI_COMM_WORLD, &me_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    const hid_t fapl = ok(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
    ok(H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, MPI_INFO_NULL), "H5Pset_fapl_mpio");
    dxpl_ = ok(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
    ok(H5Pset_dxpl_mpio(dxpl_, options.independent ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE),
       "H5Pset_dxpl_mpio");
    const std::string path = options.directory + "/checkpoint.h5";
    file_ = timed(Class::kCreate, "H5Fcreate",
                  [&] { return H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl); });
    H5Pclose(fapl);
  }

  void write_step(int step, const Particles& particles) {
    step_ = step;
    const std::string name = "Step#" + std::to_string(step);
    const hid_t group = timed(Class::kCreate, "H5Gcreate", [&] {
      return H5Gcreate2(file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    });
    for (const Variable& v : particles.variables()) write_variable(group, v, particles.count());
    timed(Class::kClose, "H5Gclose", [&] { return H5Gclose(group); });
  }

  void finish() {
    timed(Class::kFileClose, "H5Fclose", [&] { return H5Fclose(file_); });
    H5Pclose(dxpl_);
    timed(Class::kShutdown, "H5close", H5close);
  }

 private:
  template <class F>
  std::invoke_result_t<F&> timed(Class c, const char* call, F&& f) {
    return ok(spans_.time(c, call, step_, f), call);
  }

  void write_variable(hid_t group, const Variable& v, size_t count) {
    const hsize_t mine[1] = {count}, all[1] = {count * static_cast<hsize_t>(ranks_)};
    const hsize_t start[1] = {count * static_cast<hsize_t>(me_)};
    const hid_t memory = ok(H5Screate_simple(1, mine, nullptr), "H5Screate_simple");
    const hid_t space = ok(H5Screate_simple(1, all, nullptr), "H5Screate_simple");
    ok(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, mine, nullptr),
       "H5Sselect_hyperslab");
    const hid_t type = v.is_integer ? H5T_NATIVE_INT32 : H5T_NATIVE_FLOAT;
    const hid_t set = timed(Class::kCreate, "H5Dcreate", [&] {
      return H5Dcreate2(group, v.name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    });
    timed(Class::kWrite, "H5Dwrite",
          [&] { return H5Dwrite(set, type, memory, space, dxpl_, v.data); });
    timed(Class::kClose, "H5Dclose", [&] { return H5Dclose(set); });
    H5Sclose(space);
    H5Sclose(memory);
  }

  Spans& spans_;
  int me_ = 0, ranks_ = 1, step_ = 0;
  hid_t file_ = H5I_INVALID_HID, dxpl_ = H5P_DEFAULT;
};

// The rank that waited longest speaks for all.
nlohmann::json slowest(const Spans& spans, double total_us, double cpu_us) {
  std::array<double, kClassCount> mine{};
  for (int c = 0; c < kClassCount; ++c)
    mine[static_cast<size_t>(c)] = spans.total_us(static_cast<Class>(c));
  struct {
    double waits;
    int rank;
  } worst{total_us - mine[static_cast<size_t>(Class::kCompute)], 0};
  MPI_Comm_rank(MPI_COMM_WORLD, &worst.rank);
  MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  MPI_Bcast(mine.data(), kClassCount, MPI_DOUBLE, worst.rank, MPI_COMM_WORLD);
  MPI_Bcast(&total_us, 1, MPI_DOUBLE, worst.rank, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &cpu_us, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  nlohmann::json out = {{"total_us", total_us}, {"cpu_us", cpu_us}, {"slowest_rank", worst.rank}};
  for (int c = 0; c < kClassCount; ++c)
    out["classes"][name_of(static_cast<Class>(c))] = mine[static_cast<size_t>(c)];
  return out;
}

nlohmann::json simulate(const Options& options) {
  Particles particles(options.bytes_per_variable / sizeof(float));
  Spans spans;
  MPI_Barrier(MPI_COMM_WORLD);
  const measure::Phase total;
  const double begin = now_us();
  ok(spans.time(Class::kCreate, "H5open", 0, H5open), "H5open");
  Writer writer(options, spans);
  for (int step = 0; step < options.steps; ++step) {
    writer.write_step(step, particles);
    if (options.substeps > 0) {
      spans.time(Class::kCompute, "push", step, [&] { particles.push(options.substeps); });
      particles.swap();
    } else {
      particles.stamp(step + 1);
    }
  }
  writer.finish();
  const double end = now_us();
  return slowest(spans, end - begin, total.end()["process_cpu_us"]);
}

int run(const Options& options, double calibrate_seconds, const std::string& json_path) {
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  if (calibrate_seconds > 0) {  // by all ranks at once, as they will compute
    const int substeps = calibrate(options.bytes_per_variable / sizeof(float), calibrate_seconds);
    if (me == 0) std::printf("%d\n", substeps);
    return 0;
  }
  const std::string path = me == 0 ? json_path : "/dev/null";
  return measure::report("checkpoint", path, [&] { return simulate(options); });
}

}  // namespace
}  // namespace tidelane::checkpoint

int main(int argc, char** argv) {
  tidelane::measure::CommandLine line(
      "Ranks that write their state to one HDF5 file after every step (VPIC-IO pattern).");
  tidelane::checkpoint::Options options;
  double calibrate_seconds = 0;
  std::string json_path;
  line.option("--directory", options.directory, "where the file goes").shows_default();
  line.option("--steps", options.steps).positive().shows_default();
  line.option("--bytes", options.bytes_per_variable, "per variable, step and rank")
      .positive()
      .shows_default();
  line.option("--substeps", options.substeps, "computation after each step; 0: none")
      .not_negative()
      .shows_default();
  line.flag("--independent", options.independent, "independent transfers, not collective ones");
  line.option("--json", json_path, "write the result there instead of to standard output");
  line.option("--calibrate", calibrate_seconds,
              "only print the sub-steps that compute for this many seconds");
  if (const auto status = line.parse(argc, argv)) return *status;
  MPI_Init(nullptr, nullptr);
  const int status = tidelane::checkpoint::run(options, calibrate_seconds, json_path);
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
