#include "apps/app.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>
#ifdef TIDELANE_APPS_MPI
#include <mpi.h>
#endif

namespace tidelane::apps {
namespace {

using measure::now_us;

void Sleep(double us) {
  const auto whole = static_cast<time_t>(us / 1e6);
  timespec left{.tv_sec = whole,
                .tv_nsec = static_cast<long>((us - static_cast<double>(whole) * 1e6) * 1e3)};
  while (::nanosleep(&left, &left) != 0) {
  }
}

void Work(double us) {
  volatile double sum = 0;
  for (const double end = now_us() + us; now_us() < end;) {
    for (int i = 1; i < 2000; ++i) sum = sum + 1.0 / (sum + i);
  }
}

#ifdef TIDELANE_APPS_MPI
struct World {
  World(int* argc, char*** argv) { MPI_Init(argc, argv); }
  ~World() { MPI_Finalize(); }
};
void Abort() { MPI_Abort(MPI_COMM_WORLD, 1); }
#else
struct World {
  World(int*, char***) {}
};
void Abort() {}
#endif

}  // namespace

Run::Run(const Options& options) : options_(options) {
#ifdef TIDELANE_APPS_MPI
  MPI_Barrier(MPI_COMM_WORLD);
#endif
  total_ = measure::Phase();
  begin_us_ = now_us();
  Io([] { ok(H5open(), "H5open"); });  // loads the connector
#ifdef TIDELANE_APPS_MPI
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  rank_ = static_cast<hsize_t>(rank), ranks_ = static_cast<hsize_t>(ranks);
  if (shared()) ShareFiles();
#endif
  if (options.events) events_ = ok(H5EScreate(), "H5EScreate");
}

#ifdef TIDELANE_APPS_MPI
void Run::ShareFiles() {
  access_ = ok(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
  ok(H5Pset_fapl_mpio(access_, MPI_COMM_WORLD, MPI_INFO_NULL), "H5Pset_fapl_mpio");
  ok(H5Pset_coll_metadata_write(access_, true), "H5Pset_coll_metadata_write");
  ok(H5Pset_all_coll_metadata_ops(access_, !options_.apart), "H5Pset_all_coll_metadata_ops");
  transfer_ = ok(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
  ok(H5Pset_dxpl_mpio(transfer_,
                      options_.independent ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE),
     "H5Pset_dxpl_mpio");
}
#endif

std::string Run::Path(const std::string& path) const {
  if (ranks_ == 1 || shared()) return path;
  const size_t dot = path.rfind('.');
  return path.substr(0, dot) + "-rank" + std::to_string(rank_) + path.substr(dot);
}

void Run::Wait() {
  if (events_ == H5ES_NONE) return;
  Io([&] {
    size_t in_progress = 0;
    hbool_t failed = false;
    ok(H5ESwait(events_, H5ES_WAIT_FOREVER, &in_progress, &failed), "H5ESwait");
    if (failed || in_progress != 0) throw std::runtime_error("H5ESwait tells of a failed call");
  });
}

void Run::Compute(bool last, double times) {
  const double us = last && options_.between ? 0 : options_.compute_us * times;
  if (us > 0) {
    const double begin = now_us();
    options_.busy ? Work(us) : Sleep(us);
    compute_us_ += now_us() - begin;
  }
#ifdef TIDELANE_APPS_MPI
  if (options_.together && !last) MPI_Barrier(MPI_COMM_WORLD);
#endif
  Wait();
  steps_.push_back(io_us_ - step_begin_us_);
  step_begin_us_ = io_us_;
}

nlohmann::json Run::Slowest(double total_us, double cpu_us) const {
  std::array<double, 3> mine{io_us_, compute_us_, total_us};
  double bytes = bytes_;
  std::vector<double> steps = steps_;
#ifdef TIDELANE_APPS_MPI
  struct {
    double waits;
    int rank;
  } worst{io_us_, static_cast<int>(rank_)};
  MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  MPI_Bcast(mine.data(), static_cast<int>(mine.size()), MPI_DOUBLE, worst.rank, MPI_COMM_WORLD);
  MPI_Bcast(steps.data(), static_cast<int>(steps.size()), MPI_DOUBLE, worst.rank, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &cpu_us, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#endif
  return {{"ranks", ranks_},       {"bytes", bytes},           {"io_us", mine[0]},
          {"compute_us", mine[1]}, {"total_us", mine[2]},      {"cpu_us", cpu_us},
          {"waits_us", steps},     {"events", options_.events}};
}

void Run::End() {
  if (ended_) return;
  ended_ = true;
  Wait();
  Io([&] {
    if (events_ != H5ES_NONE) ok(H5ESclose(events_), "H5ESclose");
    if (access_ != H5P_DEFAULT) ok(H5Pclose(access_), "H5Pclose");
    if (transfer_ != H5P_DEFAULT) ok(H5Pclose(transfer_), "H5Pclose");
    ok(H5close(), "H5close");
  });
  end_us_ = now_us();
}

nlohmann::json Run::Finish() {
  End();
  return Slowest(end_us_ - begin_us_, total_.end()["process_cpu_us"]);
}

int Main(int argc, char** argv, const char* name, const char* what,
         const std::function<void(CommandLine&)>& add,
         const std::function<nlohmann::json(Run&)>& body) {
  CommandLine line(what);
  Options options;
  add(line);
  line.option("--compute-us", options.compute_us, "of a step").not_negative();
  line.flag("--between", options.between, "no computation after the last step");
  line.flag("--busy", options.busy, "computes; otherwise it sleeps");
  line.flag("--events", options.events, "with an event set");
  line.flag("--together", options.together, "ranks begin each step together");
  line.flag("--own-files", options.own_files, "a file for each rank");
  line.flag("--independent", options.independent, "transfers of ranks, not collective ones");
  line.flag("--apart", options.apart, "ranks read metadata of one file each for itself");
  line.option("--json", options.json, "write the result there instead of to standard output");
  if (const auto status = line.parse(argc, argv)) return *status;
  const World world(&argc, &argv);
  std::string path = options.json;
#ifdef TIDELANE_APPS_MPI
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) path = "/dev/null";
#endif
  const int status = measure::report(name, path, [&] {
    Run run(options);
    const nlohmann::json own = body(run);
    nlohmann::json out = run.Finish();
    out["app"] = name;
    if (own.is_object()) out.update(own);
    return out;
  });
  if (status != 0) Abort();
  return status;
}

void CloseSpace(hid_t space) { ok(H5Sclose(space), "H5Sclose"); }

void CloseDataset(const Run& run, hid_t dataset) {
  ok(H5Dclose_async(dataset, run.events()), "H5Dclose");
}

void CloseGroup(const Run& run, hid_t group) {
  ok(H5Gclose_async(group, run.events()), "H5Gclose");
}

void CloseFile(const Run& run, hid_t file) { ok(H5Fclose_async(file, run.events()), "H5Fclose"); }

hid_t CreateFile(const Run& run, const std::string& path) {
  return ok(H5Fcreate_async(run.Path(path).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, run.access(),
                            run.events()),
            "H5Fcreate");
}

hid_t OpenFile(const Run& run, const std::string& path) {
  return ok(H5Fopen_async(run.Path(path).c_str(), H5F_ACC_RDONLY, run.access(), run.events()),
            "H5Fopen");
}

hid_t GroupOf(const Run& run, hid_t location, const std::string& name, bool create) {
  return create ? ok(H5Gcreate_async(location, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT,
                                     run.events()),
                     "H5Gcreate")
                : ok(H5Gopen_async(location, name.c_str(), H5P_DEFAULT, run.events()), "H5Gopen");
}

void WriteAttribute(const Run& run, hid_t object, const std::string& name, double value) {
  const hid_t space = ok(H5Screate(H5S_SCALAR), "H5Screate");
  const hid_t attribute = ok(H5Acreate_async(object, name.c_str(), H5T_NATIVE_DOUBLE, space,
                                             H5P_DEFAULT, H5P_DEFAULT, run.events()),
                             "H5Acreate");
  // Its value is on the stack, where an event set would not find it any more.
  ok(H5Awrite(attribute, H5T_NATIVE_DOUBLE, &value), "H5Awrite");
  ok(H5Aclose_async(attribute, run.events()), "H5Aclose");
  CloseSpace(space);
}

double ReadAttribute(const Run& run, hid_t object, const std::string& name) {
  const hid_t attribute =
      ok(H5Aopen_async(object, name.c_str(), H5P_DEFAULT, run.events()), "H5Aopen");
  double value = 0;
  ok(H5Aread(attribute, H5T_NATIVE_DOUBLE, &value), "H5Aread");
  ok(H5Aclose_async(attribute, run.events()), "H5Aclose");
  return value;
}

}  // namespace tidelane::apps
