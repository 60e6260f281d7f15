// scale: what a program of so many ranks would see on a machine that is not here (cluster.h), as JSON.
//
//   scale --machine=summit --workload=vpic --ranks 192 --ranks 384 ...      bandwidth, in both modes, and what the model predicts
//   scale --machine=cori --workload=nyx-small --ranks 2048 --steps-each 1 --steps-each 2 ... --time-steps=192
//
// The model learns from all numbers of ranks but the one that it predicts (src/model: the rate of storage, and of copies,
// by regression on bytes and ranks), in the modes' terms: synchronous rates are storage's, asynchronous ones the copies'. The
// forms are the paper's: linear-log for the first, linear for the second.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/measure.h"
#include "common/options.h"
#include "model/io_rate.h"
#include "scale/machines.h"

namespace tidelane::scale {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string machine = "summit", workload = "vpic", json;
  std::vector<uint64_t> ranks;
  std::vector<int> steps_each;  // time steps between two I/O phases
  int time_steps = 192;
  double step_seconds = 0;
  double bytes = 0, write_bytes = 0;  // 0: the workload's
  double small_requests = 0, small_bytes = 0;
};

Workload WorkloadOf(const Options& options) {
  Workload workload = WorkloadCalled(options.workload);
  if (options.bytes > 0) workload.bytes = options.bytes;
  if (options.write_bytes > 0) workload.write_bytes = options.write_bytes;
  if (options.small_requests > 0) workload.small_requests = options.small_requests;
  if (options.small_bytes > 0) workload.small_bytes = options.small_bytes;
  return workload;
}

struct Seen {
  Program program;
  double seconds;  // of a phase
};

Seen See(const Machine& machine, Program program, bool async) {
  program.async = async;
  const Outcome outcome = Simulate(machine, program);
  const auto bytes = static_cast<double>(program.ranks * program.bytes);
  return {program, bytes / SeenBandwidth(program, outcome)};
}

double Total(const Program& program) { return static_cast<double>(program.ranks * program.bytes); }

// Without what was seen with as many ranks.
model::IoRate Learned(const std::vector<Seen>& all, std::optional<uint64_t> without) {
  model::IoRate rate;
  for (const Seen& seen : all) {
    if (seen.program.ranks == without) continue;
    rate.Add(Total(seen.program), static_cast<double>(seen.program.ranks), seen.seconds);
  }
  return rate;
}

// Of the form that the paper uses for the mode.
Json Curve(const std::vector<Seen>& all, model::Form form) {
  Json points = Json::array();
  for (const Seen& seen : all) {
    const double bytes = Total(seen.program);
    const auto predicted = Learned(all, seen.program.ranks)
                               .PredictBy(form, bytes, static_cast<double>(seen.program.ranks));
    points.push_back({{"ranks", seen.program.ranks},
                      {"bandwidth", bytes / seen.seconds},
                      {"predicted", predicted ? Json(bytes / predicted->seconds) : Json()}});
  }
  const auto fit = Learned(all, std::nullopt).PredictBy(form, Total(all[0].program), 1);
  return {{"points", points},
          {"form", model::Name(form)},
          {"r2", fit && fit->r2 ? Json(*fit->r2) : Json()}};
}

Json Scaling(const Options& options) {
  const Machine machine = MachineCalled(options.machine);
  Json out = {{"machine", options.machine}, {"workload", options.workload}};
  for (const bool async : {false, true}) {
    std::vector<Seen> all;
    for (const uint64_t ranks : options.ranks)
      all.push_back(See(machine, WorkloadOf(options).At(ranks), async));
    out[async ? "async" : "sync"] =
        Curve(all, async ? model::Form::kLinear : model::Form::kLinearLog);
  }
  return out;
}

// The same time steps, with more or fewer of them between two I/O phases.
Json Frequency(const Options& options) {
  const Machine machine = MachineCalled(options.machine);
  Program program = WorkloadOf(options).At(options.ranks.at(0));
  Json out = {{"machine", options.machine}, {"workload", options.workload}};
  for (const bool async : {false, true}) {
    Json points = Json::array();
    for (const int each : options.steps_each) {
      program.async = async;
      program.compute = each * options.step_seconds;
      program.epochs = (options.time_steps + each - 1) / each;
      points.push_back({{"steps", each}, {"seconds", Simulate(machine, program).total}});
    }
    out[async ? "async" : "sync"]["points"] = points;
  }
  return out;
}

}  // namespace
}  // namespace tidelane::scale

int main(int argc, char** argv) {
  using namespace tidelane::scale;
  tidelane::measure::CommandLine line("What a program of many ranks would see on a large machine.");
  Options options;
  line.option("--machine", options.machine, "summit, cori or here").shows_default();
  line.option("--workload", options.workload).shows_default();
  line.option("--ranks", options.ranks, "once for each number").required().between(1, 1 << 20);
  line.option("--steps-each", options.steps_each, "time steps between two I/O phases").positive();
  line.option("--time-steps", options.time_steps).positive();
  line.option("--step-seconds", options.step_seconds).not_negative();
  line.option("--bytes", options.bytes, "in place of the workload's").positive();
  line.option("--write-bytes", options.write_bytes).positive();
  line.option("--small-requests", options.small_requests,
              "in an I/O phase, of a rank, besides those of its bytes")
      .not_negative();
  line.option("--small-bytes", options.small_bytes, "of each of these").not_negative();
  line.option("--json", options.json, "write the result there instead of to standard output");
  if (const auto status = line.parse(argc, argv)) return *status;
  return tidelane::measure::report("scale", options.json, [&] {
    return options.steps_each.empty() ? Scaling(options) : Frequency(options);
  });
}
