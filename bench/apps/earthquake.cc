// earthquake: checkpoints of a 3-D seismic simulation (as EQSIM's SW4 makes them).
//
//   earthquake --folder=. --nx=128 --ny=128 --nz=64 --checkpoints=6 --compute-us=N
//
// The state is the displacement at two times, three components each, on a grid of nz layers; below it lies one of half the
// resolution. Ranks share the horizontal plane, so that a rank's part of a dataset is many runs in the file. A checkpoint is
// a file of its own; two names take turns, as a simulation keeps the last two. The grid stays the same however many ranks
// there are (strong scaling).
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/app.h"

namespace tidelane::apps {
namespace {

struct Earthquake {
  std::string folder = ".";
  hsize_t nx = 128, ny = 128, nz = 64;
  int checkpoints = 6;
};

constexpr int kDimensions = 4;  // component, z, y, x
using Extent = std::array<hsize_t, kDimensions>;

// A grid, and the part of it that is this rank's.
struct Grid {
  std::string name;
  Extent all, start, count;
  std::array<std::vector<float>, 2> times;
};

// Ranks in the plane: as square as their number allows.
std::array<hsize_t, 2> Plane(hsize_t ranks) {
  hsize_t across = 1;
  for (hsize_t i = 1; i * i <= ranks; ++i) {
    if (ranks % i == 0) across = i;
  }
  return {across, ranks / across};
}

Grid GridOf(const Run& run, const Earthquake& quake, int number) {
  Grid grid;
  grid.name = "grid" + std::to_string(number);
  const hsize_t coarse = number == 0 ? 1 : 2;
  grid.all = {3, quake.nz / coarse, quake.ny / coarse, quake.nx / coarse};
  grid.count = grid.all;
  grid.start = {};
  const auto plane = Plane(run.ranks());
  const std::array<hsize_t, 2> at = {run.rank() / plane[1], run.rank() % plane[1]};
  for (size_t i = 0; i < 2; ++i) {
    const hsize_t whole = grid.all[i + 2];
    grid.start[i + 2] = whole * at[i] / plane[i];
    grid.count[i + 2] = whole * (at[i] + 1) / plane[i] - grid.start[i + 2];
  }
  if (!run.shared()) {  // its part is all that its file has
    grid.all = grid.count;
    grid.start = {};
  }
  size_t elements = 1;
  for (const hsize_t count : grid.count) elements *= count;
  for (size_t time = 0; time < 2; ++time) {
    grid.times[time].resize(elements);
    for (size_t i = 0; i < elements; ++i)
      grid.times[time][i] =
          static_cast<float>(i % 4093) * 1e-3f + static_cast<float>(run.rank() * 10 + time);
  }
  return grid;
}

void WriteGrid(Run& run, hid_t file, Grid& grid) {
  const hid_t group = GroupOf(run, file, grid.name, true);
  const hid_t space = ok(H5Screate_simple(kDimensions, grid.all.data(), nullptr), "H5Screate");
  const hid_t memory = ok(H5Screate_simple(kDimensions, grid.count.data(), nullptr), "H5Screate");
  ok(H5Sselect_hyperslab(space, H5S_SELECT_SET, grid.start.data(), nullptr, grid.count.data(),
                         nullptr),
     "H5Sselect_hyperslab");
  for (size_t time = 0; time < 2; ++time) {
    const hid_t dataset = ok(H5Dcreate_async(group, time == 0 ? "Um" : "U", H5T_NATIVE_FLOAT, space,
                                             H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT, run.events()),
                             "H5Dcreate");
    ok(H5Dwrite_async(dataset, H5T_NATIVE_FLOAT, memory, space, run.transfer(),
                      grid.times[time].data(), run.events()),
       "H5Dwrite");
    CloseDataset(run, dataset);
    run.Moved(grid.times[time].size(), sizeof(float));
  }
  CloseSpace(memory);
  CloseSpace(space);
  CloseGroup(run, group);
}

nlohmann::json Body(Run& run, const Earthquake& quake) {
  std::vector<Grid> grids;
  for (int i = 0; i < 2; ++i) grids.push_back(GridOf(run, quake, i));
  for (int number = 0; number < quake.checkpoints; ++number) {
    for (Grid& grid : grids)
      for (auto& time : grid.times) time[0] = static_cast<float>(number);
    run.Io([&] {
      const hid_t file = CreateFile(
          run, quake.folder + (number % 2 == 0 ? "/checkpoint-a.h5" : "/checkpoint-b.h5"));
      WriteAttribute(run, file, "cycle", number * 100);
      WriteAttribute(run, file, "time", number * 0.5);
      for (Grid& grid : grids) WriteGrid(run, file, grid);
      CloseFile(run, file);
    });
    run.Compute(number + 1 == quake.checkpoints);
  }
  return {{"checkpoints", quake.checkpoints}};
}

}  // namespace
}  // namespace tidelane::apps

int main(int argc, char** argv) {
  using namespace tidelane::apps;
  Earthquake quake;
  const auto add = [&](CommandLine& line) {
    line.option("--folder", quake.folder).shows_default();
    line.option("--nx", quake.nx).positive();
    line.option("--ny", quake.ny).positive();
    line.option("--nz", quake.nz).positive();
    line.option("--checkpoints", quake.checkpoints).positive();
  };
  return Main(argc, argv, "earthquake", "Checkpoints of a 3-D seismic simulation.", add,
              [&](Run& run) { return Body(run, quake); });
}
