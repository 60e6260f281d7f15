// query_later: a query over one dataset of random float32, with or without an event set, beside computation.
//
// Prints as JSON how long the program waited for each answer (in the call, and after it has computed for a while), the medians of the queries of a run.
// The answer is compared with what the program counts in the values that it has made.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "common/measure.h"
#include "common/options.h"
#include "tidelane_query.h"

namespace tidelane::query_later {
namespace {

using measure::now_us;
using measure::ok;

struct Options {
  std::string file = "query_later.h5";
  int rows = 100'000'000;
  bool gzip = false;
  bool make = false;
  bool later = false;
  int queries = 5;
  int compute_us = 100'000;
};

constexpr float kLimit = 0.99995F;

// With gzip in steps of a thousandth, so that there is something to compress.
std::vector<float> values(const Options& options) {
  std::vector<float> made(static_cast<size_t>(options.rows));
  uint32_t state = 1;
  for (float& value : made) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / 16777216.0F;
    if (options.gzip && value < 0.999F)
      value = static_cast<float>(static_cast<int>(value * 1000)) / 1000;
  }
  return made;
}

nlohmann::json make(const Options& options) {
  const std::vector<float> made = values(options);
  const hsize_t rows = made.size(), chunk = std::min<hsize_t>(rows, 256u << 10);
  const hid_t file =
      ok(H5Fcreate(options.file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate");
  const hid_t space = ok(H5Screate_simple(1, &rows, nullptr), "H5Screate_simple");
  const hid_t list = ok(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  if (options.gzip) {
    ok(H5Pset_chunk(list, 1, &chunk), "H5Pset_chunk");
    ok(H5Pset_deflate(list, 1), "H5Pset_deflate");
  }
  const hid_t dataset = ok(
      H5Dcreate2(file, "x", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list, H5P_DEFAULT), "H5Dcreate2");
  ok(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, made.data()), "H5Dwrite");
  ok(H5Dclose(dataset), "H5Dclose");
  ok(H5Pclose(list), "H5Pclose");
  ok(H5Sclose(space), "H5Sclose");
  ok(H5Fclose(file), "H5Fclose");
  return {{"hits", std::ranges::count_if(made, [](float value) { return value > kLimit; })}};
}

// Keeps a core busy for a while.
double compute(int for_us) {
  double x = 1;
  for (const double end = now_us() + for_us; now_us() < end;) {
    for (int i = 0; i < 10000; ++i) x = x * 1.0000001 + 1e-9;
  }
  return x;
}

int64_t hits_in(hid_t view) {
  const hid_t dataset = ok(H5Dopen2(view, H5Q_VIEW_REF_REG_NAME, H5P_DEFAULT), "H5Dopen2");
  H5R_ref_t reference;
  ok(H5Dread(dataset, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference), "H5Dread");
  const hid_t region = ok(H5Ropen_region(&reference, H5P_DEFAULT, H5P_DEFAULT), "H5Ropen_region");
  const hssize_t hits = H5Sget_select_npoints(region);
  ok(H5Sclose(region), "H5Sclose");
  ok(H5Rdestroy(&reference), "H5Rdestroy");
  ok(H5Dclose(dataset), "H5Dclose");
  return hits;
}

double median(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

nlohmann::json ask(const Options& options) {
  const hid_t file = ok(H5Fopen(options.file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "H5Fopen");
  const hid_t query =
      ok(H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_GREATER_THAN, H5T_NATIVE_FLOAT, &kLimit),
         "H5Qcreate");
  std::vector<double> calls, waits, visible;
  double computed = 0;
  int64_t hits = 0;
  const measure::Phase phase;
  for (int i = 0; i < options.queries; ++i) {
    const hid_t set = ok(H5EScreate(), "H5EScreate");
    unsigned result = 0;
    const double begin = now_us();
    const hid_t view = ok(options.later ? H5Qapply_async(file, query, &result, H5P_DEFAULT, set)
                                        : H5Qapply(file, query, &result, H5P_DEFAULT),
                          "H5Qapply");
    calls.push_back(now_us() - begin);
    computed += compute(options.compute_us);
    const double waiting = now_us();
    size_t left = 0;
    hbool_t failed = false;
    ok(H5ESwait(set, H5ES_WAIT_FOREVER, &left, &failed), "H5ESwait");
    ok(failed || result != H5Q_REF_REG ? -1 : 0, "the query");
    waits.push_back(now_us() - waiting);
    visible.push_back(calls.back() + waits.back());
    hits = hits_in(view);
    ok(H5Gclose(view), "H5Gclose");
    ok(H5ESclose(set), "H5ESclose");
  }
  nlohmann::json report = phase.end();
  ok(H5Qclose(query), "H5Qclose");
  ok(H5Fclose(file), "H5Fclose");
  report.update({{"hits", hits},
                 {"call_us", median(calls)},
                 {"wait_us", median(waits)},
                 {"visible_us", median(visible)},
                 {"computed", computed}});
  return report;
}

}  // namespace
}  // namespace tidelane::query_later

int main(int argc, char** argv) {
  using namespace tidelane;
  query_later::Options options;
  std::string json;
  measure::CommandLine line("Asks a query over a dataset of random numbers, and computes.");
  line.option("--file", options.file);
  line.option("--json", json, "where the report goes; standard output if it is left out");
  line.option("--rows", options.rows).positive();
  line.option("--queries", options.queries).positive();
  line.option("--compute-us", options.compute_us, "after each query").not_negative();
  line.flag("--gzip", options.gzip, "the dataset is in chunks, and compressed");
  line.flag("--make", options.make, "writes the file, and asks nothing");
  line.flag("--later", options.later, "with an event set");
  if (const auto status = line.parse(argc, argv)) return *status;
  return measure::report("query_later", json, [&] {
    return options.make ? query_later::make(options) : query_later::ask(options);
  });
}
