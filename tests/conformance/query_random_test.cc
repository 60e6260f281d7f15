// Random datasets, queries with an event set, and random calls before anybody waits: what a query finds is what the same query has found
// in the same moment without an event set (which tests/query/ compares with NumPy).
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "conformance/event_set.h"
#include "conformance/fixture.h"
#include "conformance/regions.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kLongRead = 32u << 10;

class QueryRandom : public Conformance {};

class Program {
 public:
  Program(unsigned seed, const std::string& path)
      : random_(seed), file_(create(path)), set_(H5EScreate()) {
    for (int i = 0; i < 4; ++i) make();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      switch (draw(12)) {
        case 0:
        case 1:
        case 2: ask(); break;
        case 3:
        case 4:
        case 5: rewrite(); break;
        case 6: extend(); break;
        case 7: make(); break;
        case 8: rename(); break;
        case 9: EXPECT_GE(H5Fflush(file_, H5F_SCOPE_LOCAL), 0) << error_text(); break;
        case 10: finish(); break;
        default: {
          size_t left = 0;
          hbool_t failed = false;
          EXPECT_GE(H5ESwait(set_, draw(2) == 0 ? 0 : 1'000'000, &left, &failed), 0);
          EXPECT_FALSE(failed);
        }
      }
    }
    finish();
  }

  int asked() const { return asked_; }

 private:
  struct Pending {
    unsigned result = 99;
    unsigned expected_result = 98;
    Hid view;
    Hid expected;  // of the query that was asked just before, without an event set
  };

  size_t draw(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  std::string any() { return names_[draw(names_.size())]; }
  Hid open_any() {
    Hid dataset(H5Dopen2(file_, any().c_str(), H5P_DEFAULT));
    EXPECT_TRUE(dataset.valid()) << error_text();
    return dataset;
  }

  static hid_t type_of(size_t kind) {
    const hid_t types[] = {H5T_NATIVE_INT,    H5T_STD_I16BE,    H5T_NATIVE_DOUBLE, H5T_IEEE_F32BE,
                           H5T_NATIVE_UINT64, H5T_NATIVE_SCHAR, H5T_NATIVE_FLOAT,  H5T_STD_I64LE};
    return types[kind % std::size(types)];
  }

  // Of one to three dimensions, some thousand to some hundred thousand elements.
  void make() {
    const int rank = static_cast<int>(draw(3)) + 1;
    std::vector<hsize_t> extent, most, chunk;
    const size_t elements = size_t{1} << (12 + draw(6));
    size_t left = elements;
    for (int d = 0; d < rank; ++d) {
      const size_t size = d + 1 == rank ? left : std::max<size_t>(1, size_t{1} << draw(6));
      left = std::max<size_t>(1, left / size);
      extent.push_back(size + draw(5));
      most.push_back(d == 0 ? H5S_UNLIMITED : extent.back());
      chunk.push_back(1 + draw(extent.back()));
    }
    if (chunk[0] * (rank > 1 ? chunk[1] : 1) < 64) chunk = extent;
    const Hid list(H5Pcreate(H5P_DATASET_CREATE));
    const size_t layout = draw(5);
    const bool chunked = layout >= 2;
    if (chunked) H5Pset_chunk(list, rank, chunk.data());
    if (layout == 3) H5Pset_deflate(list, 1);
    if (layout == 4) {
      H5Pset_shuffle(list);
      H5Pset_deflate(list, 1);
    }
    const int fill = 7;
    if (draw(2) == 0) H5Pset_fill_value(list, H5T_NATIVE_INT, &fill);
    const Hid space(H5Screate_simple(rank, extent.data(), chunked ? most.data() : nullptr));
    names_.push_back("d" + std::to_string(made_++));
    const Hid dataset(H5Dcreate2(file_, names_.back().c_str(), type_of(draw(100)), space,
                                 H5P_DEFAULT, list, H5P_DEFAULT));
    EXPECT_TRUE(dataset.valid()) << error_text();
    if (draw(4) != 0) write_some(dataset, draw(3) != 0);
  }

  void write_some(hid_t dataset, bool all) {
    const Hid space(H5Dget_space(dataset));
    const int rank = H5Sget_simple_extent_ndims(space);
    hsize_t extent[3], start[3], size[3];
    H5Sget_simple_extent_dims(space, extent, nullptr);
    hsize_t count = 1;
    for (int d = 0; d < rank; ++d) {
      start[d] = all ? 0 : draw(extent[d]);
      size[d] = all ? extent[d] : 1 + draw(extent[d] - start[d]);
      count *= size[d];
    }
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, size, nullptr);
    // In the dataset's own type, so that it is not converted: the bytes of an element may be anything small.
    const Hid type(H5Dget_type(dataset));
    std::vector<double> values(count);
    // Long runs: HDF5 takes time with the square of their number to read a region back.
    double value = 0;
    for (double& element : values) {
      if (draw(500) == 0) value = static_cast<double>(draw(100));
      element = value;
    }
    std::vector<double> stored = values;
    EXPECT_GE(H5Tconvert(H5T_NATIVE_DOUBLE, type, count, stored.data(), nullptr, H5P_DEFAULT), 0);
    const Hid memory(H5Screate_simple(rank, size, nullptr));
    EXPECT_GE(H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, stored.data()), 0)
        << error_text();
  }

  void rewrite() { write_some(open_any(), draw(4) == 0); }

  void extend() {
    const Hid dataset = open_any();
    hsize_t extent[3], most[3];
    const Hid space(H5Dget_space(dataset));
    H5Sget_simple_extent_dims(space, extent, most);
    if (most[0] != H5S_UNLIMITED) return;
    extent[0] = draw(3) == 0 ? std::max<hsize_t>(1, extent[0] / 2) : extent[0] + draw(50);
    EXPECT_GE(H5Dset_extent(dataset, extent), 0) << error_text();
  }

  void rename() {
    std::string& name = names_[draw(names_.size())];
    const std::string other = "d" + std::to_string(made_++);
    EXPECT_GE(H5Lmove(file_, name.c_str(), file_, other.c_str(), H5P_DEFAULT, H5P_DEFAULT), 0);
    name = other;
  }

  Hid condition() {
    const int values[2] = {static_cast<int>(draw(100)), static_cast<int>(draw(100))};
    const H5Q_match_op_t matches[] = {H5Q_MATCH_EQUAL,      H5Q_MATCH_LESS_THAN,
                                      H5Q_MATCH_NOT_EQUAL,  H5Q_MATCH_GREATER_EQUAL,
                                      H5Q_MATCH_LESS_EQUAL, H5Q_MATCH_BETWEEN};
    const H5Q_match_op_t match = matches[draw(std::size(matches))];
    return match == H5Q_MATCH_BETWEEN
               ? Hid(H5Qcreate(H5Q_TYPE_DATA_ELEM, match, H5T_NATIVE_INT, values))
               : Hid(H5Qcreate(H5Q_TYPE_DATA_ELEM, match, H5T_NATIVE_INT, &values[0]));
  }

  void ask() {
    Hid query = condition();
    if (draw(3) == 0)
      query = Hid(H5Qcombine(query, draw(2) == 0 ? H5Q_COMBINE_AND : H5Q_COMBINE_OR, condition()));
    if (draw(5) == 0) query = Hid(H5Qnegate(query));
    // What is stored lanes do not have at once.
    if (draw(2) == 0) {
      EXPECT_GE(H5Fflush(file_, H5F_SCOPE_LOCAL), 0) << error_text();
    }
    const Hid dataset = open_any();
    const hid_t place = draw(2) == 0 ? file_.get() : dataset.get();
    pending_.push_back(std::make_unique<Pending>());
    Pending& pending = *pending_.back();
    pending.expected = Hid(H5Qapply(place, query, &pending.expected_result, H5P_DEFAULT));
    pending.view = Hid(H5Qapply_async(place, query, &pending.result, H5P_DEFAULT, set_));
    ASSERT_TRUE(pending.expected.valid() && pending.view.valid()) << error_text();
    ++asked_;
    if (draw(2) == 0) write_some(dataset, draw(2) == 0);
  }

  void finish() {
    EXPECT_EQ(wait(set_), 0u);
    for (const auto& pending : pending_) {
      EXPECT_EQ(pending->result, pending->expected_result);
      EXPECT_EQ(regions(pending->view), regions(pending->expected));
    }
    pending_.clear();
  }

  std::mt19937 random_;
  Hid file_;
  Hid set_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Pending>> pending_;  // `result` stays where it is
  int made_ = 0;
  int asked_ = 0;
};

TEST_P(QueryRandom, FindsWhatTheCallWouldHaveFound) {
  const char* const seeds = std::getenv("TIDELANE_QUERY_SEEDS");  // how many, for longer runs
  const unsigned count = seeds == nullptr ? 5 : static_cast<unsigned>(std::atoi(seeds));
  int64_t deferred = 0;
  for (unsigned seed = 1; seed <= count && !HasFailure(); ++seed) {
    const Summary summary = run([&] {
      SCOPED_TRACE(seed);
      // So that there is time to change what lanes have not read yet.
      storage::follow_reads([program = std::this_thread::get_id()](const storage::Call& call) {
        storage::Fault fault;
        if (std::this_thread::get_id() != program && call.size >= kLongRead) fault.delay = 20ms;
        return fault;
      });
      Program program(seed, file());
      program.run(100);
      EXPECT_GT(program.asked(), 5);
    });
    deferred += summary.counter("reads_deferred");
  }
  EXPECT_GT(deferred, 5 * static_cast<int64_t>(count)) << "lanes must have looked";
}

CONFORMANCE_WAYS(QueryRandom, kImplicit, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
