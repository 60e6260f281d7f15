// Random programs: datasets of all layouts and types, transfers of random selections from and to memory anywhere, against
// a model. A seed is a program; TIDELANE_TEST_GPU_SEEDS=5-9 runs others, TIDELANE_TEST_GPU_OPS longer ones.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gpu/gpu_fixture.h"
#include "gpu/values.h"

namespace tidelane::testing {
namespace {

struct Range {
  int first = 1;
  int last = 4;
};

// Read before a scenario forgets the environment.
Range seeds() {
  Range range;
  const char* const given = std::getenv("TIDELANE_TEST_GPU_SEEDS");
  if (given != nullptr && std::sscanf(given, "%d-%d", &range.first, &range.last) == 1)
    range.last = range.first;
  return range;
}
int operations() {
  const char* const given = std::getenv("TIDELANE_TEST_GPU_OPS");
  return given != nullptr ? std::atoi(given) : 400;
}

class RandomProgram {
 public:
  RandomProgram(hid_t opened, unsigned seed) : opened_(opened), random_(seed) {
    const hsize_t shape = 3;
    types_.push_back({Hid(H5Tcopy(H5T_NATIVE_INT)), true});
    types_.push_back({Hid(H5Tcopy(H5T_NATIVE_DOUBLE)), true});
    types_.push_back({Hid(H5Tcopy(H5T_STD_I64BE)), true});
    types_.push_back({Hid(H5Tcopy(H5T_NATIVE_UCHAR)), true});
    types_.push_back({Hid(H5Tcopy(H5T_IEEE_F32BE)), true});
    types_.push_back({Hid(H5Tarray_create2(H5T_NATIVE_SHORT, 1, &shape)), false});
    types_.push_back(
        {compound({{"a", H5T_NATIVE_INT}, {"b", H5T_NATIVE_SHORT}, {"c", H5T_NATIVE_LLONG}}),
         false});
  }

  // Whether all of it was right; told where it was not.
  bool run(int operations) {
    for (int step = 0; step < operations; ++step) {
      told_ = "operation " + std::to_string(step) + ": ";
      if (!one()) return false;
    }
    told_ = "at the end: ";
    while (!outstanding_.empty()) {
      if (!end_one(0)) return false;
    }
    for (Twin& twin : twins_) {
      told_ = "at the end, " + twin.name() + ": ";
      Memory whole(Where::kDevice, twin.bytes(), 1);
      if (twin.read(whole) < 0) return failed("read");
      if (whole.now() != whole.contents()) return wrong();
    }
    return true;
  }
  const std::string& told() const { return told_; }
  const std::vector<Twin>& twins() const { return twins_; }

 private:
  struct Type {
    Hid type;
    bool number;
  };
  struct Selected {
    Hid memory;
    Hid file;
    size_t size = 0;  // elements of memory
  };

  // A read in a set that the program has not waited for yet. Its ids go with the call.
  struct Outstanding {
    Hid set;
    std::unique_ptr<Memory> memory;
    std::string told;
  };

  hsize_t below(hsize_t limit) { return limit == 0 ? 0 : random_() % limit; }
  bool chance(int percent) { return below(100) < static_cast<hsize_t>(percent); }
  bool failed(const char* what) {
    told_ += std::string(what) + " failed\n" + error_text();
    return false;
  }
  bool wrong() {
    told_ += "other bytes than expected";
    return false;
  }

  bool one() {
    if (!outstanding_.empty() && (outstanding_.size() > 6 || chance(15)))
      return end_one(below(outstanding_.size()));
    if (twins_.empty() || (twins_.size() < 10 && chance(8))) return create();
    const size_t at = below(twins_.size());
    Twin& twin = twins_[at];
    told_ += twin.name() + " (" + notes_[at] + ") ";
    const hsize_t drawn = below(100);
    if (drawn < 3) {
      twin.close();
      twin.reopen(opened_);
      return twin.dataset() >= 0 || failed("opening");
    }
    if (drawn < 6) return H5Fflush(opened_, H5F_SCOPE_GLOBAL) >= 0 || failed("flush");
    if (drawn < 12 && growing_[at]) {
      if (twin.extent()[0] < 300) twin.resize(twin.extent()[0] + below(20));
      return true;
    }
    if (drawn < 17) gpu().StandInDelay(static_cast<unsigned>(below(3) * 40));
    return transfer(twin, at);
  }

  bool create() {
    Extent extent;
    const hsize_t rank = 1 + below(3);
    for (hsize_t i = 0; i < rank; ++i)
      extent.push_back(1 + below(rank == 1 ? 20'000 : rank == 2 ? 200 : 40));
    std::string note = "rank " + std::to_string(rank);
    Hid creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_fill_time(creation,
                     H5D_FILL_TIME_ALLOC);  // else new datasets have what lay there before
    Extent limits;
    if (chance(60)) {
      Extent chunk;
      for (const hsize_t size : extent) chunk.push_back(1 + below(std::min<hsize_t>(size, 80)));
      if (rank == 1) chunk[0] = std::min(extent[0], chunk[0] * 40);
      H5Pset_chunk(creation, static_cast<int>(rank), chunk.data());
      note += " chunks";
      if (chance(30)) H5Pset_shuffle(creation);
      if (chance(50)) {
        H5Pset_deflate(creation, 1);
        note += " gzip";
      }
      if (chance(20)) H5Pset_fletcher32(creation);
      if (chance(50)) {
        limits = extent;
        limits[0] = H5S_UNLIMITED;
      }
    }
    const Type& type = types_[below(types_.size())];
    note += " type " + std::to_string(&type - types_.data());
    const std::string name = "d" + std::to_string(twins_.size());
    told_ += "creating " + name + " (" + note + ")";
    twins_.emplace_back(opened_, name, extent,
                        Twin::Options{.type = type.type, .limits = limits, .creation = creation});
    numbers_.push_back(type.number);
    growing_.push_back(!limits.empty());
    notes_.push_back(note);
    return twins_.back().dataset() >= 0;
  }

  // A box, with strides and blocks now and then.
  void add_box(Hid& space, const Extent& extent, H5S_seloper_t how) {
    Extent start, stride, count, block;
    for (const hsize_t size : extent) {
      const hsize_t step = chance(60) ? 1 : 1 + below(5);
      start.push_back(below(size));
      stride.push_back(step);
      block.push_back(step == 1 ? 1 : 1 + below(step));
      const hsize_t fit = (size - start.back() + step - block.back()) / step;
      count.push_back(fit == 0 ? 0 : 1 + below(fit));
    }
    space = select(std::move(space), start, stride, count, block, how);
  }

  Hid draw_in_file(const Twin& twin) {
    Hid space = twin.space();
    const hsize_t drawn = below(100);
    const hssize_t all = H5Sget_simple_extent_npoints(space);
    if (drawn < 20 || all == 0) return space;
    if (drawn < 24) {
      H5Sselect_none(space);
    } else if (drawn < 34) {
      std::vector<hsize_t> points;
      for (hsize_t i = 0, count = 1 + below(30); i < count; ++i) {
        for (const hsize_t size : twin.extent()) points.push_back(below(size));
      }
      // The same element twice would be written in an order that nobody promises.
      if (twin.extent().size() == 1) {
        std::sort(points.begin(), points.end());
        points.erase(std::unique(points.begin(), points.end()), points.end());
        std::shuffle(points.begin(), points.end(), random_);
        H5Sselect_elements(space, H5S_SELECT_SET, points.size(), points.data());
      } else {
        H5Sselect_elements(space, H5S_SELECT_SET, 1, points.data());
      }
    } else {
      add_box(space, twin.extent(), H5S_SELECT_SET);
      if (drawn > 85) add_box(space, twin.extent(), H5S_SELECT_OR);
      if (drawn > 95) add_box(space, twin.extent(), H5S_SELECT_NOTB);
    }
    return space;
  }

  // A selection of memory with as many elements.
  Selected draw(const Twin& twin) {
    Selected drawn;
    drawn.file = draw_in_file(twin);
    const auto count = static_cast<hsize_t>(H5Sget_select_npoints(drawn.file));
    const auto whole = static_cast<size_t>(H5Sget_simple_extent_npoints(drawn.file));
    const hsize_t how = below(5);
    if (how == 0) {  // memory is shaped as the dataset
      drawn.memory = Hid(H5Scopy(drawn.file));
      drawn.size = whole;
    } else if (how == 1 && count != 0) {  // with steps
      const hsize_t step = 1 + below(4), first = below(10);
      drawn.size = first + count * step + below(5);
      drawn.memory = select(simple({drawn.size}), {first}, {step}, {count});
    } else if (how == 2 && count != 0 && count < 400) {  // in any order
      std::vector<hsize_t> points(count + below(20));
      std::iota(points.begin(), points.end(), hsize_t{0});
      drawn.size = points.size();
      std::shuffle(points.begin(), points.end(), random_);
      drawn.memory = simple({drawn.size});
      H5Sselect_elements(drawn.memory, H5S_SELECT_SET, count, points.data());
    } else if (how == 3 && count != 0) {  // rows of a plane
      hsize_t width = std::min<hsize_t>(count, 1 + below(100));
      while (count % width != 0) --width;
      const hsize_t left = below(4), right = below(4);
      drawn.size = (count / width + 1) * (width + left + right);
      drawn.memory = select(simple({count / width + 1, width + left + right}), {below(2), left}, {},
                            {count / width, width});
    } else {
      drawn.size = count;
      drawn.memory = simple({count});
    }
    return drawn;
  }

  Where draw_where() {
    constexpr Where kAll[] = {Where::kDevice,  Where::kDevice,      Where::kMiddle,
                              Where::kManaged, Where::kPooled,      Where::kHost,
                              Where::kHost,    Where::kOtherDevice, Where::kPinnedHost};
    return kAll[below(std::size(kAll))];
  }

  bool transfer(Twin& twin, size_t at) {
    const Selected selected = draw(twin);
    hid_t type = twin.type();
    if (numbers_[at] && chance(25)) type = types_[below(5)].type;
    const Where where = draw_where();
    const bool writing = chance(55);
    const bool in_set = chance(25);
    told_ += std::string(writing ? "write " : "read ") + name_of(where) +
             (in_set ? " in a set " : " ") + std::to_string(H5Sget_select_npoints(selected.file)) +
             " of " + std::to_string(selected.size) + " elements of type " +
             std::to_string(H5Tget_class(type)) + ":" + std::to_string(H5Tget_size(type)) + ": ";
    Bytes elements = elements_of(type, selected.size, static_cast<unsigned>(random_()));
    if (in_set && !writing && chance(70))
      return read_later(twin, std::make_unique<Memory>(where, std::move(elements)), selected, type);
    Memory memory(where, std::move(elements));
    if (in_set) return transfer_in_set(twin, memory, selected, type, writing);
    if (std::getenv("GPU_RANDOM_TRACE") != nullptr) std::fprintf(stderr, "%s\n", told_.c_str());
    const herr_t result = writing ? twin.write(memory, selected.memory, selected.file, type)
                                  : twin.read(memory, selected.memory, selected.file, type);
    if (result < 0) return failed("it");
    return memory.now() == memory.contents() || wrong();
  }

  bool transfer_in_set(Twin& twin, Memory& memory, const Selected& selected, hid_t type,
                       bool writing) {
    const Hid set(H5EScreate());
    const herr_t result = writing ? H5Dwrite_async(twin.dataset(), type, selected.memory,
                                                   selected.file, H5P_DEFAULT, memory.get(), set)
                                  : H5Dread_async(twin.dataset(), type, selected.memory,
                                                  selected.file, H5P_DEFAULT, memory.get(), set);
    if (result < 0) return failed("it");
    if (writing) {
      twin.model_write(memory.contents(), selected.memory, selected.file, type);
      memory.put(Bytes(memory.size(), 'x'));
    } else {
      twin.model_read(memory.contents(), selected.memory, selected.file, type);
    }
    size_t in_progress = 1;
    hbool_t wrong_in_set = true;
    if (H5ESwait(set, H5ES_WAIT_FOREVER, &in_progress, &wrong_in_set) < 0 || wrong_in_set ||
        in_progress != 0) {
      return failed("the set");
    }
    return memory.now() == memory.contents() || wrong();
  }

  // Goes on to other transfers, also of the same dataset, and waits some time.
  bool read_later(Twin& twin, std::unique_ptr<Memory> memory, const Selected& selected,
                  hid_t type) {
    Outstanding read{Hid(H5EScreate()), std::move(memory), told_ + "later: "};
    if (H5Dread_async(twin.dataset(), type, selected.memory, selected.file, H5P_DEFAULT,
                      read.memory->get(), read.set) < 0) {
      return failed("it");
    }
    twin.model_read(read.memory->contents(), selected.memory, selected.file, type);
    outstanding_.push_back(std::move(read));
    return true;
  }

  bool end_one(size_t at) {
    const Outstanding read = std::move(outstanding_[at]);
    outstanding_.erase(outstanding_.begin() + static_cast<std::ptrdiff_t>(at));
    told_ += read.told;
    size_t in_progress = 1;
    hbool_t wrong_in_set = false;
    for (int i = chance(50) ? 5 : 0; i > 0 && in_progress != 0 && !wrong_in_set; --i) {
      if (H5ESwait(read.set, below(2) * 100'000, &in_progress, &wrong_in_set) < 0)
        return failed("a question about the set");
    }
    if (!wrong_in_set && in_progress != 0 &&
        H5ESwait(read.set, H5ES_WAIT_FOREVER, &in_progress, &wrong_in_set) < 0) {
      return failed("the wait");
    }
    if (wrong_in_set || in_progress != 0) return failed("the set");
    return read.memory->now() == read.memory->contents() || wrong();
  }

  hid_t opened_;
  std::mt19937 random_;
  std::vector<Type> types_;
  std::vector<Twin> twins_;
  std::vector<bool> numbers_;
  std::vector<bool> growing_;
  std::vector<std::string> notes_;
  std::vector<Outstanding> outstanding_;
  std::string told_;
};

class GpuRandom : public GpuTest {
 public:
  // Settings under which the plugin goes other ways; every other seed has none.
  static void vary(int seed, Environment* given) {
    static const std::vector<std::pair<const char*, const char*>> settings{
        {"TIDELANE_ARENA", "1M"},
        {"TIDELANE_COPY_LIMIT", "0"},
        {"TIDELANE_PARALLEL_WRITES", "off"},
        {"TIDELANE_PARALLEL_READS", "off"},
        {"TIDELANE_LANES", "1"},
        {"TIDELANE_READAHEAD", "on"},
        {"TIDELANE_LINGER", "0"},
    };
    if (seed % 2 != 0) return;
    const auto& [name, value] = settings[static_cast<size_t>(seed / 2) % settings.size()];
    (*given)[name] = value;
  }
};

TEST_P(GpuRandom, ProgramsDoAsTheirModels) {
  const int count = operations();
  int64_t later = 0;
  for (int seed = seeds().first; seed <= seeds().last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Environment given = environment();
    if (plugged()) vary(seed, &given);
    const Summary summary = run_and_compare(
        [&](hid_t opened) {
          gpu().StandInDelay(0);
          if (plugged() && seed % 3 == 0) {  // storage takes a while
            storage::follow([](const storage::Call&) {
              return storage::Fault{.delay = std::chrono::milliseconds(1)};
            });
          }
          RandomProgram program(opened, static_cast<unsigned>(seed));
          EXPECT_TRUE(program.run(count)) << program.told();
          for (const Twin& twin : program.twins()) leave(twin);
        },
        given);
    if (HasFailure()) return;
    later += summary.counter("reads_deferred");
  }
  if (plugged()) {
    EXPECT_GT(later, 0) << "no read went on after its call";
  }
}

// The test itself: where a copy does not happen, it says so; not always, for elements may be written again before they are read.
TEST_P(GpuRandom, ACopyThatDoesNotHappenIsNoticed) {
  if (!plugged()) return;
  int noticed = 0;
  for (const int nth : {5, 8, 13, 21, 30, 50, 80, 120}) {
    const std::string note = in_folder("noticed " + std::to_string(nth));
    run_on_gpu([&] {
      const Hid opened = create(file());
      gpu().StandInDelay(0);
      RandomProgram program(opened, 1);
      gpu().StandInDropCopy(nth);
      if (!program.run(300)) std::ofstream(note) << program.told();
    });
    noticed += std::filesystem::exists(note) ? 1 : 0;
  }
  EXPECT_GE(noticed, 5);
}

GPU_WAYS_AND_NATIVE(GpuRandom);

}  // namespace
}  // namespace tidelane::testing
