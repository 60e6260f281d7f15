// amr: a block-structured adaptive mesh that writes plotfiles (as Nyx and Castro do with AMReX).
//
//   amr --folder=. --cells=64 --box=32 --levels=2 --components=6 --time-steps=20 --plot-each=5 --compute-us=N
//
// Every level has as many cells as the first: level l covers the middle of the domain, with cells half as wide as those of
// the level before. A level's cells lie in boxes, a run of boxes for each rank. A plotfile is a file of its own: a group
// for each level, with the boxes' corners, the offset of each box and one dataset of all boxes' components, a write for
// each box. --compute-us is of one time step. Values are a plain function of where they stand and of the time step.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/app.h"

namespace tidelane::apps {
namespace {

struct Amr {
  std::string folder = ".";
  int cells = 64;  // of a level, along each side
  int box = 32;
  int levels = 2;
  int components = 6;
  int time_steps = 20;
  int plot_each = 5;
};

// The boxes of a level, and those of this rank.
struct Boxes {
  int side;                       // boxes along each side
  hsize_t first, last;            // this rank's
  hsize_t elements;               // of a box, all components
  hsize_t file_first, file_last;  // in the file
};

Boxes BoxesOf(const Run& run, const Amr& amr) {
  const int side = amr.cells / amr.box;
  const auto all = static_cast<hsize_t>(side) * static_cast<hsize_t>(side * side);
  const auto cells = static_cast<hsize_t>(amr.box) * static_cast<hsize_t>(amr.box * amr.box);
  const hsize_t first = all * run.rank() / run.ranks(), last = all * (run.rank() + 1) / run.ranks();
  const bool shared = run.shared();
  return {side,
          first,
          last,
          cells * static_cast<hsize_t>(amr.components),
          shared ? 0 : first,
          shared ? all : last};
}

hsize_t Count(const Boxes& boxes) { return boxes.file_last - boxes.file_first; }

using Level = std::vector<double>;  // of this rank's boxes, one behind the other

void Fill(Level& values, const Boxes& boxes, int level) {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = level + static_cast<double>(boxes.first * boxes.elements + i) * 1e-9;
}

// A step of the simulation changes little of what will be written, so that its own time is not the computation's.
void Advance(Level& values, int step) {
  for (size_t i = 0; i < values.size(); i += 4096) values[i] = step;
}

hid_t DatasetOf(const Run& run, hid_t group, const char* name, hid_t type, hsize_t rows,
                hsize_t columns) {
  const hsize_t extent[2] = {rows, columns};
  const hid_t space = ok(H5Screate_simple(columns > 1 ? 2 : 1, extent, nullptr), "H5Screate");
  const hid_t dataset = ok(H5Dcreate_async(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT,
                                           H5P_DEFAULT, run.events()),
                           "H5Dcreate");
  CloseSpace(space);
  return dataset;
}

// Corners and offsets are small and known to all ranks: the first one writes them.
void WriteSmall(Run& run, hid_t group, const char* name, const std::vector<int64_t>& values,
                hsize_t columns) {
  const hsize_t rows = values.size() / columns;
  const hid_t dataset = DatasetOf(run, group, name, H5T_NATIVE_INT64, rows, columns);
  const hid_t space = ok(H5Dget_space(dataset), "H5Dget_space");
  if (run.slot() != 0) ok(H5Sselect_none(space), "H5Sselect_none");
  ok(H5Dwrite(dataset, H5T_NATIVE_INT64, space, space, run.transfer(), values.data()), "H5Dwrite");
  CloseSpace(space);
  CloseDataset(run, dataset);
}

void WriteBoxes(Run& run, hid_t group, const Amr& amr, const Boxes& boxes) {
  std::vector<int64_t> corners, offsets;
  for (hsize_t box = boxes.file_first; box < boxes.file_last; ++box) {
    const auto number = static_cast<int64_t>(box);
    const int64_t at[3] = {number % boxes.side, number / boxes.side % boxes.side,
                           number / boxes.side / boxes.side};
    for (const int64_t place : at) corners.push_back(place * amr.box);
    for (const int64_t place : at) corners.push_back((place + 1) * amr.box - 1);
    offsets.push_back(static_cast<int64_t>(boxes.elements * (box - boxes.file_first)));
  }
  WriteSmall(run, group, "boxes", corners, 6);
  WriteSmall(run, group, "data:offsets=0", offsets, 1);
}

// A write for each box. Collective ones are as many on all ranks: who has no box left writes nothing.
void WriteData(Run& run, hid_t group, const Boxes& boxes, const Level& values) {
  const hid_t dataset =
      DatasetOf(run, group, "data:datatype=0", H5T_NATIVE_DOUBLE, Count(boxes) * boxes.elements, 1);
  const hid_t space = ok(H5Dget_space(dataset), "H5Dget_space");
  const hid_t memory = ok(H5Screate_simple(1, &boxes.elements, nullptr), "H5Screate");
  const hsize_t writes = (Count(boxes) + run.slots() - 1) / run.slots();
  for (hsize_t i = 0; i < writes; ++i) {
    const hsize_t start = (boxes.first + i - boxes.file_first) * boxes.elements;
    if (boxes.first + i < boxes.last) {
      ok(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &boxes.elements, nullptr),
         "H5Sselect_hyperslab");
      run.Moved(boxes.elements, sizeof(double));
    } else {
      ok(H5Sselect_none(space), "H5Sselect_none");
      ok(H5Sselect_none(memory), "H5Sselect_none");
    }
    const size_t at = boxes.first + i < boxes.last ? i * boxes.elements : 0;
    ok(H5Dwrite_async(dataset, H5T_NATIVE_DOUBLE, memory, space, run.transfer(), values.data() + at,
                      run.events()),
       "H5Dwrite");
  }
  CloseSpace(memory);
  CloseSpace(space);
  CloseDataset(run, dataset);
}

void Plot(Run& run, const Amr& amr, const Boxes& boxes, const std::vector<Level>& levels,
          int step) {
  char name[32];
  std::snprintf(name, sizeof name, "/plt%05d.h5", step);
  const hid_t file = CreateFile(run, amr.folder + name);
  WriteAttribute(run, file, "time", step * 0.01);
  WriteAttribute(run, file, "num_levels", amr.levels);
  WriteAttribute(run, file, "num_components", amr.components);
  for (int level = 0; level < amr.levels; ++level) {
    const hid_t group = GroupOf(run, file, "level_" + std::to_string(level), true);
    WriteAttribute(run, group, "dx", 1.0 / (1 << level));
    WriteBoxes(run, group, amr, boxes);
    WriteData(run, group, boxes, levels[static_cast<size_t>(level)]);
    CloseGroup(run, group);
  }
  CloseFile(run, file);
}

nlohmann::json Body(Run& run, const Amr& amr) {
  if (amr.cells % amr.box != 0) throw std::invalid_argument("--box must divide --cells");
  const Boxes boxes = BoxesOf(run, amr);
  std::vector<Level> levels(static_cast<size_t>(amr.levels),
                            Level((boxes.last - boxes.first) * boxes.elements));
  for (size_t i = 0; i < levels.size(); ++i) Fill(levels[i], boxes, static_cast<int>(i));
  for (int step = 0; step < amr.time_steps; step += amr.plot_each) {
    for (Level& level : levels) Advance(level, step);
    run.Io([&] { Plot(run, amr, boxes, levels, step); });
    const int left = amr.time_steps - step;
    run.Compute(left <= amr.plot_each, std::min(amr.plot_each, left));
  }
  return {{"plots", run.steps().size()}};
}

}  // namespace
}  // namespace tidelane::apps

int main(int argc, char** argv) {
  using namespace tidelane::apps;
  Amr amr;
  const auto add = [&](CommandLine& line) {
    line.option("--folder", amr.folder).shows_default();
    line.option("--cells", amr.cells, "of a level, along each side").positive();
    line.option("--box", amr.box, "cells along each side").positive();
    line.option("--levels", amr.levels).positive();
    line.option("--components", amr.components).positive();
    line.option("--time-steps", amr.time_steps).positive();
    line.option("--plot-each", amr.plot_each, "time steps").positive();
  };
  return Main(argc, argv, "amr", "An adaptive mesh that writes plotfiles.", add,
              [&](Run& run) { return Body(run, amr); });
}
