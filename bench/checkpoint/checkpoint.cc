// checkpoint: a simulation that writes its state to HDF5 after every step (the VPIC-IO pattern).
//
// It is the program a user already has: plain HDF5 calls, nothing of Tidelane. Each step writes
// eight 1-D variables into the group Step#N, of one file or of a file per step, then computes.
//
//   implicit   blocking calls, as most programs are written
//   explicit   H5*_async calls with an event set, waited for at the end of the next computation
//
// It prints as JSON where its time went. What it waits for is its total minus its computation; the
// total ends after H5close(), so that nothing a close deferred can hide behind the program's end.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
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
  std::string layout = "one";     // one | reopened | per-step
  std::string mode = "implicit";  // implicit | explicit
  int steps = 5;
  size_t bytes_per_variable = 4 << 20;
  int substeps = 0;  // 0: no computation
  int threads = 1;   // of the computation
  bool flush = false;
  bool late_wait = false;  // explicit: wait for all steps at the end only
  int copies = 0;          // how often to time the plain copy of a step
};

class Writer {
 public:
  Writer(const Options& options, Spans& spans) : options_(options), spans_(spans) {
    if (options.mode == "explicit") events_ = timed(Class::kCreate, "H5EScreate", H5EScreate);
  }

  void write_step(int step, const Particles& particles) {
    step_ = step;
    if (per_step()) {
      create_file("step-" + std::to_string(step) + ".h5");
    } else if (file_ == H5I_INVALID_HID) {
      step == 0 ? create_file(kOneFile) : open_file(kOneFile);
    }
    const std::string name = "Step#" + std::to_string(step);
    const hid_t group = timed(Class::kCreate, "H5Gcreate", [&] {
      return events_ ? H5Gcreate_async(file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT,
                                       events_)
                     : H5Gcreate(file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    });
    for (const Variable& v : particles.variables()) write_variable(group, v, particles.count());
    timed(Class::kClose, "H5Gclose",
          [&] { return events_ ? H5Gclose_async(group, events_) : H5Gclose(group); });
    if (options_.flush) {
      timed(Class::kFlush, "H5Fflush", [&] {
        return events_ ? H5Fflush_async(file_, H5F_SCOPE_LOCAL, events_)
                       : H5Fflush(file_, H5F_SCOPE_LOCAL);
      });
    }
    if (per_step() || reopens()) close_file();
  }

  // The buffers given to the last step's writes may change after this.
  void wait() {
    if (!events_) return;
    size_t in_progress = 0;
    hbool_t failed = false;
    timed(Class::kWait, "H5ESwait",
          [&] { return H5ESwait(events_, H5ES_WAIT_FOREVER, &in_progress, &failed); });
    if (failed || in_progress != 0) throw std::runtime_error("H5ESwait reports a failed operation");
  }

  void finish() {
    if (file_ != H5I_INVALID_HID) close_file();
    wait();
    if (events_) timed(Class::kClose, "H5ESclose", [&] { return H5ESclose(events_); });
    timed(Class::kShutdown, "H5close", H5close);
  }

 private:
  static constexpr char kOneFile[] = "checkpoint.h5";

  bool per_step() const { return options_.layout == "per-step"; }
  bool reopens() const { return options_.layout == "reopened"; }

  template <class F>
  std::invoke_result_t<F&> timed(Class c, const char* call, F&& f) {
    return ok(spans_.time(c, call, step_, f), call);
  }

  void create_file(const std::string& name) {
    const std::string path = options_.directory + "/" + name;
    file_ = timed(Class::kCreate, "H5Fcreate", [&] {
      return events_
                 ? H5Fcreate_async(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT, events_)
                 : H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    });
  }

  void open_file(const std::string& name) {
    const std::string path = options_.directory + "/" + name;
    file_ = timed(Class::kCreate, "H5Fopen", [&] {
      return events_ ? H5Fopen_async(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT, events_)
                     : H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    });
  }

  void close_file() {
    timed(Class::kFileClose, "H5Fclose",
          [&] { return events_ ? H5Fclose_async(file_, events_) : H5Fclose(file_); });
    file_ = H5I_INVALID_HID;
  }

  void write_variable(hid_t group, const Variable& v, size_t count) {
    const hsize_t dims[1] = {count};
    const hid_t space =
        timed(Class::kCreate, "H5Screate", [&] { return H5Screate_simple(1, dims, nullptr); });
    const hid_t type = v.is_integer ? H5T_NATIVE_INT32 : H5T_NATIVE_FLOAT;
    const hid_t set = timed(Class::kCreate, "H5Dcreate", [&] {
      return events_ ? H5Dcreate_async(group, v.name, type, space, H5P_DEFAULT, H5P_DEFAULT,
                                       H5P_DEFAULT, events_)
                     : H5Dcreate(group, v.name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    });
    timed(Class::kWrite, "H5Dwrite", [&] {
      return events_ ? H5Dwrite_async(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, v.data, events_)
                     : H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, v.data);
    });
    timed(Class::kClose, "H5Dclose",
          [&] { return events_ ? H5Dclose_async(set, events_) : H5Dclose(set); });
    timed(Class::kClose, "H5Sclose", [&] { return H5Sclose(space); });
  }

  const Options& options_;
  Spans& spans_;
  hid_t file_ = H5I_INVALID_HID;
  hid_t events_ = H5ES_NONE;
  int step_ = 0;
};

// What there is to hide, at the least: the time of memcpy for a step's variables, just computed, to
// memory that was written before (in huge pages where the system gives them). The best would be
// nobody's; the median is left to the reader.
nlohmann::json time_copies(const Options& options, Particles& particles) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t bytes = particles.count() * sizeof(float);
  const size_t room = (bytes * 8 + kHugePage - 1) / kHugePage * kHugePage;
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  const std::unique_ptr<char, Free> to(static_cast<char*>(std::aligned_alloc(kHugePage, room)));
  if (!to) throw std::bad_alloc();
  ::madvise(to.get(), room, MADV_HUGEPAGE);
  std::fill_n(to.get(), room, '\1');
  nlohmann::json out = nlohmann::json::array();
  for (int i = 0; i < options.copies; ++i) {
    particles.push(1);
    particles.swap();
    const double begin = now_us();
    size_t at = 0;
    for (const Variable& v : particles.variables()) {
      std::memcpy(to.get() + at, v.data, bytes);
      at += bytes;
    }
    out.push_back(now_us() - begin);
  }
  return out;
}

nlohmann::json simulate(const Options& options) {
  Particles particles(options.bytes_per_variable / sizeof(float));
  Spans spans;
  const measure::Phase total;
  const double begin = now_us();
  ok(spans.time(Class::kCreate, "H5open", 0, H5open), "H5open");
  Writer writer(options, spans);
  for (int step = 0; step < options.steps; ++step) {
    writer.write_step(step, particles);
    if (options.substeps > 0) {
      spans.time(Class::kCompute, "push", step,
                 [&] { particles.push(options.substeps, options.threads); });
      if (!options.late_wait) writer.wait();
      particles.swap();
    } else {
      if (!options.late_wait) writer.wait();
      particles.stamp(step + 1);
    }
  }
  writer.finish();
  const double end = now_us();

  nlohmann::json out = {
      {"layout", options.layout},
      {"mode", options.mode},
      {"steps", options.steps},
      {"bytes", static_cast<double>(options.bytes_per_variable) * 8 * options.steps},
      {"begin_us", begin},
      {"end_us", end},
      {"total_us", end - begin},
      {"cpu_us", total.end()["process_cpu_us"]},
      {"peak_bytes", measure::peak_memory()},
      {"spans", spans.json()}};
  for (int c = 0; c < kClassCount; ++c) {
    const Class which = static_cast<Class>(c);
    out["classes"][name_of(which)] = spans.total_us(which);
  }
  out["copy_us"] = time_copies(options, particles);
  return out;
}

}  // namespace
}  // namespace tidelane::checkpoint

int main(int argc, char** argv) {
  using namespace tidelane::checkpoint;
  tidelane::measure::CommandLine line(
      "A simulation that writes its state to HDF5 after every step (VPIC-IO pattern).");
  Options options;
  double calibrate_seconds = 0;
  std::string json_path;
  line.option("--directory", options.directory, "where the files go").shows_default();
  line.option("--layout", options.layout,
              "one file, the same opened again for each step, or a file per step")
      .one_of({"one", "reopened", "per-step"})
      .shows_default();
  line.option("--mode", options.mode, "blocking calls, or H5*_async with an event set")
      .one_of({"implicit", "explicit"})
      .shows_default();
  line.option("--steps", options.steps).positive().shows_default();
  line.option("--bytes", options.bytes_per_variable, "per variable and step")
      .positive()
      .shows_default();
  line.option("--substeps", options.substeps, "computation after each step; 0: none")
      .not_negative()
      .shows_default();
  line.flag("--flush", options.flush, "H5Fflush after each step");
  line.option("--threads", options.threads, "that compute").positive().shows_default();
  line.flag("--late-wait", options.late_wait, "explicit: wait for all steps at the end only");
  line.option("--copies", options.copies,
              "afterwards, time the plain copy of a step so many times");
  line.option("--json", json_path, "write the result there instead of to standard output");
  line.option("--calibrate", calibrate_seconds,
              "only print the sub-steps that compute for this many seconds");
  if (const auto status = line.parse(argc, argv)) return *status;

  if (calibrate_seconds > 0) {
    const size_t count = options.bytes_per_variable / sizeof(float);
    std::printf("%d\n", calibrate(count, calibrate_seconds, options.threads));
    return 0;
  }
  return tidelane::measure::report("checkpoint", json_path, [&] { return simulate(options); });
}
