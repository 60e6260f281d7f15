// The library for programs: what it sets on lists and asks of files, with the plugin and without.
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "conformance/fixture.h"
#include "tidelane.h"

namespace tidelane::testing {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMany =
    1u << 20;  // 4 MiB: what lanes would store at once, and the caller itself later
constexpr off_t kManyBytes = kMany * sizeof(int);
constexpr size_t kSome =
    2 * kElements;  // too few to be stored before they lingered, too many for HDF5's sieve
constexpr uint64_t kHour = 3'600'000'000;

class Control : public Conformance {
 public:
  static Hid access() { return Hid(H5Pcreate(H5P_FILE_ACCESS)); }
  static Hid transfer() { return Hid(H5Pcreate(H5P_DATASET_XFER)); }
  static int tested(hid_t file) {
    int completed = -1;
    EXPECT_GE(H5Ftest(file, &completed), 0) << error_text();
    return completed;
  }
  static herr_t write(hid_t dataset, int seed, size_t count, hid_t dxpl) {
    const std::vector<int> values = elements(seed, count);
    return H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, values.data());
  }
  static Hid dataset_in(hid_t opened, const char* name, size_t count = kElements) {
    const hsize_t extent = count;
    const Hid space(H5Screate_simple(1, &extent, nullptr));
    return Hid(
        H5Dcreate2(opened, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  // What a reader that does not use HDF5 finds: where this dataset's elements are, whatever the library thinks.
  bool on_storage(int seed, size_t count) const {
    const std::vector<int> values = elements(seed, count);
    const std::string wanted(reinterpret_cast<const char*>(values.data()), count * sizeof(int));
    return bytes_on_storage(file()).find(wanted) != std::string::npos;
  }
  // Time enough for lanes to store what they may.
  static void give_lanes_time() { std::this_thread::sleep_for(50ms); }
};

TEST_P(Control, ListsRememberWhatWasSet) {
  run([&] {
    const Hid fapl = access();
    const Hid dxpl = transfer();
    hbool_t flag = true;
    uint64_t number = 7;
    hsize_t limit = 7;
    tidelane_when_t when = TIDELANE_DEFERRED;
    EXPECT_TRUE(H5Pget_fapl_pause(fapl, &flag) >= 0 && !flag);
    EXPECT_TRUE(H5Pget_dxpl_disable_async_implicit(H5P_DEFAULT, &flag) >= 0 && !flag);
    EXPECT_TRUE(H5Pget_dxpl_async(dxpl, &flag) >= 0 && flag);
    EXPECT_TRUE(H5Pget_dxpl_delay(dxpl, &number) >= 0 && number == 0);
    EXPECT_TRUE(H5Pget_dxpl_async_cp_limit(dxpl, &limit) >= 0 && limit == UINT64_MAX);
    EXPECT_TRUE(tidelane_get_fapl_close(fapl, &when) >= 0 && when == TIDELANE_AS_CONFIGURED);
    for (const bool on : {true, false, true}) {
      EXPECT_TRUE(H5Pset_fapl_pause(fapl, on) >= 0 && H5Pget_fapl_pause(fapl, &flag) >= 0 &&
                  flag == on);
      EXPECT_TRUE(H5Pset_dxpl_pause(dxpl, on) >= 0 && H5Pget_dxpl_pause(dxpl, &flag) >= 0 &&
                  flag == on);
      EXPECT_TRUE(H5Pset_fapl_disable_async_implicit(fapl, on) >= 0 &&
                  H5Pget_fapl_disable_async_implicit(fapl, &flag) >= 0 && flag == on);
      EXPECT_TRUE(H5Pset_dxpl_disable_async_implicit(dxpl, on) >= 0 &&
                  H5Pget_dxpl_async(dxpl, &flag) >= 0 && flag == !on);
      EXPECT_TRUE(H5Pset_dxpl_async(dxpl, on) >= 0 &&
                  H5Pget_dxpl_disable_async_implicit(dxpl, &flag) >= 0 && flag == !on);
    }
    EXPECT_TRUE(H5Pset_fapl_delay(fapl, 5) >= 0 && H5Pget_fapl_delay(fapl, &number) >= 0 &&
                number == 5);
    EXPECT_TRUE(H5Pset_dxpl_delay(dxpl, 6) >= 0 && H5Pget_dxpl_delay(dxpl, &number) >= 0 &&
                number == 6);
    EXPECT_TRUE(H5Pset_dxpl_async_cp_limit(dxpl, 0) >= 0 &&
                H5Pget_dxpl_async_cp_limit(dxpl, &limit) >= 0 && limit == 0);
    void* const stream = &flag;
    void* got = stream;
    EXPECT_TRUE(tidelane_get_dxpl_gpu_stream(dxpl, &got) >= 0 && got == nullptr);
    EXPECT_TRUE(tidelane_set_dxpl_gpu_stream(dxpl, stream) >= 0 &&
                tidelane_get_dxpl_gpu_stream(dxpl, &got) >= 0 && got == stream);
    EXPECT_TRUE(tidelane_set_fapl_close(fapl, TIDELANE_DEFERRED) >= 0 &&
                tidelane_get_fapl_close(fapl, &when) >= 0 && when == TIDELANE_DEFERRED);
    EXPECT_TRUE(tidelane_set_fapl_flush(fapl, TIDELANE_WAIT) >= 0 &&
                tidelane_get_fapl_flush(fapl, &when) >= 0 && when == TIDELANE_WAIT);
    tidelane_journal_t journal = TIDELANE_JOURNAL_POWER;
    double seconds = 7;
    EXPECT_TRUE(tidelane_get_fapl_journal(fapl, &journal) >= 0 &&
                journal == TIDELANE_JOURNAL_AS_CONFIGURED);
    EXPECT_TRUE(tidelane_set_fapl_journal(fapl, TIDELANE_JOURNAL_OFF) >= 0 &&
                tidelane_get_fapl_journal(fapl, &journal) >= 0 && journal == TIDELANE_JOURNAL_OFF);
    EXPECT_TRUE(tidelane_set_fapl_journal_required(fapl, true) >= 0 &&
                tidelane_get_fapl_journal_required(fapl, &flag) >= 0 && flag);
    EXPECT_TRUE(tidelane_get_fapl_journal_commits(fapl, &number, &seconds) >= 0 && number == 0 &&
                seconds == 0);
    EXPECT_TRUE(tidelane_set_fapl_journal_commits(fapl, 3, 1e-9) >= 0 &&
                tidelane_get_fapl_journal_commits(fapl, &number, &seconds) >= 0 && number == 3 &&
                seconds == 1e-6);
    const Hid copy(H5Pcopy(fapl));
    EXPECT_TRUE(H5Pget_fapl_delay(copy, &number) >= 0 && number == 5);
    // Harmless where nobody reads them.
    Hid opened = create(file(), copy);
    EXPECT_GE(write(dataset_in(opened, "d"), 1, kElements, dxpl), 0) << error_text();
    EXPECT_GE(H5Fclose(opened.release()), 0) << error_text();
  });
  expect_natively(file(), {{"d", 1}});
}

TEST_P(Control, MistakesAreErrorsThatSayWhatIsWrong) {
  run([&] {
    const Hid fapl = access();
    const Hid dxpl = transfer();
    const auto fails = [](herr_t result, const char* why) {
      EXPECT_LT(result, 0);
      EXPECT_NE(error_text().find(why), std::string::npos) << error_text();
      H5Eclear2(H5E_DEFAULT);
    };
    fails(H5Pset_fapl_pause(dxpl, true), "not a file access list");
    fails(H5Pset_dxpl_pause(fapl, true), "not a transfer list");
    fails(H5Pset_dxpl_async_cp_limit(H5P_DEFAULT, 0), "H5P_DEFAULT cannot be changed");
    fails(H5Pset_dxpl_pause(H5P_DATASET_XFER_DEFAULT, true), "default list cannot be changed");
    fails(H5Pget_dxpl_delay(dxpl, nullptr), "no place for the answer");
    fails(H5Pget_dxpl_async_cp_limit(dxpl, nullptr), "no place for the answer");
    fails(tidelane_get_fapl_flush(fapl, nullptr), "no place for the answer");
    fails(tidelane_set_fapl_close(fapl, static_cast<tidelane_when_t>(3)), "TIDELANE_DEFERRED");
    fails(tidelane_set_fapl_journal(fapl, static_cast<tidelane_journal_t>(4)),
          "TIDELANE_JOURNAL_POWER");
    for (const double seconds : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()})
      fails(tidelane_set_fapl_journal_commits(fapl, 1, seconds), "seconds");
    uint64_t flushes = 0;
    fails(tidelane_get_fapl_journal_commits(fapl, &flushes, nullptr), "no place for the answer");
    fails(H5Pset_vol_async(dxpl), "not a file access list");
    const Hid opened = create(file());
    const Hid dataset = dataset_in(opened, "d");
    fails(H5Fwait(dataset, H5P_DEFAULT), "not a file");
    fails(H5Dwait(opened, H5P_DEFAULT), "not a dataset");
    fails(tidelane_commit(dataset), "not a file");
    fails(H5Fstart(H5I_INVALID_HID, H5P_DEFAULT), "not a file");
    fails(H5Ftest(opened, nullptr), "no place for the answer");
  });
}

// As in HDF5's own functions: the stack of a call tells of that call, and is printed once.
TEST_P(Control, AMistakeIsToldAloneAndOnce) {
  run([&] {
    H5E_BEGIN_TRY { H5Fopen("earlier_mistake.h5", H5F_ACC_RDONLY, H5P_DEFAULT); }
    H5E_END_TRY
    static int printed;
    printed = 0;
    const H5E_auto2_t print = [](hid_t, void*) -> herr_t { return ++printed; };
    H5Eset_auto2(H5E_DEFAULT, print, nullptr);
    EXPECT_LT(H5Pset_dxpl_pause(H5P_DEFAULT, true), 0);
    EXPECT_EQ(error_text().find("earlier_mistake"), std::string::npos) << error_text();
    EXPECT_EQ(printed, 1);
    EXPECT_LT(H5Pset_fapl_pause(H5I_INVALID_HID - 1, true), 0);
    EXPECT_LT(H5Pset_fapl_pause(hid_t{1} << 56, true), 0);
    EXPECT_LT(H5Fwait(hid_t{1} << 56, H5P_DEFAULT), 0);
    EXPECT_EQ(printed, 4);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  });
}

// Of a file without a journal: all that is in HDF5's caches is there for whoever reads the file then.
TEST_P(Control, ACommitIsAFlush) {
  run([&] {
    Hid opened = create(file());
    put(opened, "d", 1);
    EXPECT_GE(tidelane_commit(opened), 0) << error_text();
    if (!GetParam().flush_deferred()) {
      EXPECT_TRUE(on_storage(1, kElements));
      std::filesystem::copy_file(file(), in_folder("copy.h5"));
    }
    EXPECT_GE(H5Fclose(opened.release()), 0) << error_text();
  });
  if (!GetParam().flush_deferred()) expect_natively(in_folder("copy.h5"), {{"d", 1}});
  expect_natively(file(), {{"d", 1}});
}

TEST_P(Control, WaitReturnsWhenEverythingIsStored) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    if (plugged()) storage::hold();
    put(opened, "d", 1, kSome);
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    EXPECT_EQ(tested(opened), plugged() ? 0 : 1);
    int completed = -1;
    EXPECT_GE(H5Dtest(dataset, &completed), 0);
    EXPECT_EQ(completed, plugged() ? 0 : 1);
    EXPECT_TRUE(!plugged() || storage::wait_held()) << "a test has the work begin";
    storage::release_after(20ms);
    EXPECT_GE(H5Fwait(opened, H5P_DEFAULT), 0) << error_text();
    EXPECT_EQ(tested(opened), 1);
    EXPECT_TRUE(on_storage(1, kSome));
    EXPECT_GE(write(dataset, 2, kSome, H5P_DEFAULT), 0);
    EXPECT_EQ(on_storage(2, kSome), !plugged());
    EXPECT_GE(H5Dwait(dataset, H5P_DEFAULT), 0) << error_text();
    EXPECT_TRUE(on_storage(2, kSome));
    EXPECT_GE(H5Dtest(dataset, &completed), 0);
    EXPECT_EQ(completed, 1);
  });
  EXPECT_TRUE(!plugged() || summary.counter("bytes_deferred") > 0);
}

TEST_P(Control, WaitAndTestSayWhatCouldNotBeStored) {
  if (!plugged()) GTEST_SKIP() << "natively the write itself fails";
  const Summary summary = run([&] {
    const Hid opened = create(file());
    storage::fail_with(ENOSPC);
    put(opened, "d", 1);
    for (int attempt = 0; attempt < 2; ++attempt) {
      EXPECT_LT(H5Fwait(opened, H5P_DEFAULT), 0);
      EXPECT_NE(error_text().find("No space left on device"), std::string::npos) << error_text();
      EXPECT_NE(error_text().find(file()), std::string::npos) << error_text();
    }
    int completed = -1;
    EXPECT_LT(H5Ftest(opened, &completed), 0);
    EXPECT_EQ(completed, 0);
    storage::fail_with(0);
    EXPECT_GE(H5Dwait(Hid(H5Dopen2(opened, "d", H5P_DEFAULT)), H5P_DEFAULT), 0) << error_text();
    EXPECT_TRUE(on_storage(1, kElements));
  });
  EXPECT_GE(summary.counter("errors"), 2);
  expect_natively(file(), {{"d", 1}});
}

TEST_P(Control, APausedFileIsStoredWhenStarted) {
  run([&] {
    const Hid opened = create(file());
    EXPECT_GE(H5Fpause(opened, H5P_DEFAULT), 0) << error_text();
    put(opened, "d", 1, kMany);
    give_lanes_time();
    EXPECT_EQ(size_on_storage(file()) < kManyBytes, plugged());
    EXPECT_GE(H5Fstart(opened, H5P_DEFAULT), 0) << error_text();
    EXPECT_GE(H5Fwait(opened, H5P_DEFAULT), 0) << error_text();
    EXPECT_TRUE(on_storage(1, kMany));
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    EXPECT_GE(H5Dpause(dataset, H5P_DEFAULT), 0);
    EXPECT_GE(write(dataset, 2, kMany, H5P_DEFAULT), 0);
    give_lanes_time();
    EXPECT_EQ(on_storage(2, kMany), !plugged());
    expect_dataset(opened, "d", 2, kMany);
    EXPECT_GE(H5Dstart(dataset, H5P_DEFAULT), 0);
    EXPECT_GE(H5Dwait(dataset, H5P_DEFAULT), 0);
    EXPECT_TRUE(on_storage(2, kMany));
  });
}

TEST_P(Control, ADelayedFileIsStoredWhenSomebodyWaits) {
  run([&] {
    const Hid opened = create(file());
    EXPECT_GE(H5Fset_delay_time(opened, H5P_DEFAULT, kHour), 0) << error_text();
    put(opened, "d", 1, kMany);
    give_lanes_time();
    EXPECT_EQ(size_on_storage(file()) < kManyBytes, plugged());
    EXPECT_GE(H5Fwait(opened, H5P_DEFAULT), 0) << error_text();
    EXPECT_TRUE(on_storage(1, kMany));
    const Hid dataset(H5Dopen2(opened, "d", H5P_DEFAULT));
    EXPECT_GE(H5Dset_delay_time(dataset, H5P_DEFAULT, 0), 0);
    EXPECT_GE(write(dataset, 2, kMany, H5P_DEFAULT), 0);
    EXPECT_GE(H5Dstart(dataset, H5P_DEFAULT), 0);
    while (tested(opened) == 0) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(on_storage(2, kMany));
  });
}

TEST_P(Control, ListsPauseAndDelay) {
  run([&] {
    const Hid fapl = access();
    EXPECT_GE(H5Pset_fapl_pause(fapl, true), 0);
    const Hid opened = create(file(), fapl);
    const Hid dataset = dataset_in(opened, "d", kMany);
    EXPECT_GE(write(dataset, 1, kMany, H5P_DEFAULT), 0);
    give_lanes_time();
    EXPECT_EQ(on_storage(1, kMany), !plugged());
    const Hid dxpl = transfer();
    EXPECT_GE(H5Pset_dxpl_pause(dxpl, false), 0);
    EXPECT_GE(write(dataset, 2, kMany, dxpl), 0);  // ends the pause
    EXPECT_GE(H5Fstart(opened, H5P_DEFAULT), 0);
    while (tested(opened) == 0) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(on_storage(2, kMany));
    EXPECT_GE(H5Pset_dxpl_delay(dxpl, kHour), 0);
    EXPECT_GE(write(dataset, 3, kMany, dxpl), 0);
    give_lanes_time();
    EXPECT_EQ(on_storage(3, kMany), !plugged());
    EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
    EXPECT_GE(H5Fwait(opened, H5P_DEFAULT), 0);
    EXPECT_TRUE(on_storage(3, kMany));
  });
}

TEST_P(Control, AFileMayBeSynchronousButForCallsWithAnEventSet) {
  const Summary summary = run([&] {
    const Hid fapl = access();
    EXPECT_GE(H5Pset_fapl_disable_async_implicit(fapl, true), 0);
    const Hid opened = create(file(), fapl);
    const Hid dataset = dataset_in(opened, "d", kSome);
    EXPECT_GE(write(dataset, 1, kSome, H5P_DEFAULT), 0);
    EXPECT_TRUE(on_storage(1, kSome));
    const Hid set(H5EScreate());
    const std::vector<int> values = elements(2, kSome);
    EXPECT_GE(
        H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data(), set),
        0);
    EXPECT_EQ(on_storage(2, kSome), !plugged());
    size_t in_progress = 0;
    hbool_t failed = true;
    EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &in_progress, &failed), 0);
    EXPECT_TRUE(on_storage(2, kSome));
  });
  if (plugged()) {
    EXPECT_GT(summary.fallback("implicit_off"), 0);
    EXPECT_GE(summary.counter("bytes_deferred"), static_cast<int64_t>(kSome * sizeof(int)));
  }
  run_natively([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "d", 2, kSome); });
}

TEST_P(Control, AWriteMayBeSynchronous) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const Hid dataset = dataset_in(opened, "d", kSome);
    const Hid dxpl = transfer();
    EXPECT_GE(H5Pset_dxpl_disable_async_implicit(dxpl, true), 0);
    EXPECT_GE(write(dataset, 1, kSome, dxpl), 0);
    EXPECT_TRUE(on_storage(1, kSome));
    EXPECT_GE(write(dataset, 2, kSome, H5P_DEFAULT), 0);
    EXPECT_EQ(on_storage(2, kSome), !plugged());
  });
  EXPECT_EQ(summary.fallback("implicit_off"), plugged() ? 1 : 0);
  run_natively([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "d", 2, kSome); });
}

TEST_P(Control, AWriteAboveTheCopyLimitIsStoredFromItsBuffer) {
  const Summary summary = run([&] {
    const Hid opened = create(file());
    const Hid dataset = dataset_in(opened, "d", kMany);
    const Hid dxpl = transfer();
    const Hid set(H5EScreate());
    const std::vector<int> values = elements(1, kMany);
    for (const hsize_t limit :
         {hsize_t{kManyBytes}, hsize_t{0}}) {  // as large as the limit: copied
      EXPECT_GE(H5Pset_dxpl_async_cp_limit(dxpl, limit), 0);
      EXPECT_GE(H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, values.data(), set),
                0);
      size_t in_progress = 0;
      hbool_t failed = true;
      EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &in_progress, &failed), 0);
      EXPECT_FALSE(failed);
    }
    EXPECT_TRUE(on_storage(1, kMany));
    EXPECT_GE(write(dataset, 2, kMany, dxpl), 0);  // nobody says when this buffer is free: copied
  });
  EXPECT_EQ(summary.counter("bytes_lent"), plugged() ? kManyBytes : 0);
  run_natively([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "d", 2, kMany); });
}

TEST_P(Control, TheCopyLimitOfTheProcessHoldsForListsThatSayNothing) {
  Environment with_limit = environment();
  if (plugged()) with_limit["TIDELANE_COPY_LIMIT"] = "64k";
  const Summary summary = run(
      [&] {
        const Hid opened = create(file());
        const Hid dataset = dataset_in(opened, "d", kMany);
        const Hid set(H5EScreate());
        const std::vector<int> values = elements(1, kMany);
        EXPECT_GE(H5Dwrite_async(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                                 values.data(), set),
                  0);
        size_t in_progress = 0;
        hbool_t failed = true;
        EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &in_progress, &failed), 0);
      },
      with_limit);
  EXPECT_EQ(summary.counter("bytes_lent"), plugged() ? kManyBytes : 0);
  run_natively([&] { expect_dataset(open(file(), H5F_ACC_RDONLY), "d", 1, kMany); });
}

TEST_P(Control, EachFileHasACloseAndAFlushOfItsOwn) {
  const std::string other = in_folder("other.h5");
  const Summary summary = run([&] {
    const Hid deferred = access();
    EXPECT_GE(tidelane_set_fapl_close(deferred, TIDELANE_DEFERRED), 0);
    EXPECT_GE(tidelane_set_fapl_flush(deferred, TIDELANE_DEFERRED), 0);
    const Hid waiting = access();
    EXPECT_GE(tidelane_set_fapl_close(waiting, TIDELANE_WAIT), 0);
    EXPECT_GE(tidelane_set_fapl_flush(waiting, TIDELANE_WAIT), 0);
    Hid one = create(file(), deferred);
    Hid two = create(other, waiting);
    put(one, "d", 1);
    put(two, "d", 2);
    if (plugged()) storage::hold();
    EXPECT_GE(H5Fflush(one, H5F_SCOPE_GLOBAL), 0);  // both return while nothing can be stored
    EXPECT_GE(H5Fclose(one.release()), 0);
    EXPECT_EQ(on_storage(1, kElements), !plugged());
    storage::release_after(20ms);
    EXPECT_GE(H5Fflush(two, H5F_SCOPE_GLOBAL), 0);
    EXPECT_NE(bytes_on_storage(other).find("HDF"), std::string::npos);
    put(two, "e", 3);
    EXPECT_GE(H5Fclose(two.release()), 0);
  });
  EXPECT_EQ(summary.counter("closes_deferred"), plugged() ? 1 : 0);
  expect_natively(file(), {{"d", 1}});
  expect_natively(other, {{"d", 2}, {"e", 3}});
}

TEST_P(Control, FilesThatRunNativelyHaveNothingToWaitFor) {
  run([&] {
    const Hid core = access();
    EXPECT_GE(H5Pset_fapl_core(core, 1 << 20, false), 0);
    const Hid native = access();
    EXPECT_GE(H5Pset_vol(native, H5VL_NATIVE, nullptr), 0);
    for (const hid_t fapl : {core.get(), native.get()}) {
      const Hid opened = create(file(), fapl);
      const Hid dataset = dataset_in(opened, "d");
      EXPECT_GE(write(dataset, 1, kElements, H5P_DEFAULT), 0);
      EXPECT_GE(H5Fwait(opened, H5P_DEFAULT), 0) << error_text();
      EXPECT_GE(H5Dwait(dataset, H5P_DEFAULT), 0) << error_text();
      EXPECT_GE(H5Fpause(opened, H5P_DEFAULT), 0);
      EXPECT_GE(H5Fstart(opened, H5P_DEFAULT), 0);
      EXPECT_GE(H5Fset_delay_time(opened, H5P_DEFAULT, 1), 0);
      EXPECT_EQ(tested(opened), 1);
    }
  });
}

TEST_P(Control, ALibraryOpenedAgainIsUnderstoodAgain) {
  run([&] {
    for (int life = 0; life < 2; ++life) {
      Hid opened = create(file());
      put(opened, "d", life);
      EXPECT_EQ(tested(opened), plugged() ? 0 : 1);
      EXPECT_GE(H5Fwait(opened, H5P_DEFAULT), 0) << error_text();
      EXPECT_EQ(tested(opened), 1);
      opened.reset();
      EXPECT_GE(H5close(), 0);
    }
  });
  expect_natively(file(), {{"d", 1}});
}

CONFORMANCE_WAYS(Control, kNative, kImplicit, kDeferredAll, kAsyncName);

// H5Pset_vol_async, for programs that choose by themselves.
class ChoosingTheConnector : public Conformance {
 public:
  // The environment of a program that nobody told to use the plugin; it may be in the plugin path.
  Environment unasked(bool in_path) const {
    Environment environment = this->environment(kImplicit);
    environment["HDF5_VOL_CONNECTOR"] = "";
    if (!in_path) environment["HDF5_PLUGIN_PATH"] = in_folder("");
    return environment;
  }
  void write_a_file() const {
    const Hid fapl(H5Pcreate(H5P_FILE_ACCESS));
    EXPECT_GE(H5Pset_vol_async(fapl), 0) << error_text();
    const Hid opened = create(file(), fapl);
    put(opened, "d", 1);
    EXPECT_GE(H5Fwait(opened, H5P_DEFAULT), 0) << error_text();
    expect_dataset(opened, "d", 1);
  }
};

TEST_P(ChoosingTheConnector, ThePluginIsUsedWhereItIsFound) {
  Child child(unasked(true), [&] { write_a_file(); });
  child.expect_success();
  EXPECT_GT(child.summary(summaries()).counter("bytes_deferred"), 0);
  expect_natively(file(), {{"d", 1}});
}

TEST_P(ChoosingTheConnector, WithoutThePluginFilesAreNativeAndAPersonIsTold) {
  const std::string log = in_folder("stderr");
  Child child(unasked(false), [&] {
    ASSERT_NE(std::freopen(log.c_str(), "w", stderr), nullptr);
    write_a_file();
    write_a_file();
  });
  child.expect_success();
  const std::string told = bytes_on_storage(log);
  EXPECT_NE(told.find("HDF5_PLUGIN_PATH"), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  expect_natively(file(), {{"d", 1}});
}

TEST_P(ChoosingTheConnector, WhatTheEnvironmentChoseStays) {
  Environment environment = this->environment(kImplicit);
  environment["HDF5_VOL_CONNECTOR"] = "async under_vol=0;under_info={}";
  run(
      [&] {
        const Hid fapl(H5Pcreate(H5P_FILE_ACCESS));
        EXPECT_GE(H5Pset_vol_async(fapl), 0) << error_text();
        const Hid opened = create(file(), fapl);
        char name[16] = "";
        EXPECT_GT(H5VLget_connector_name(opened, name, sizeof name), 0);
        EXPECT_STREQ(name, "async");
      },
      environment);
}

TEST_P(ChoosingTheConnector, AMisspeltSettingIsAnErrorNotAFallback) {
  Environment environment = unasked(true);
  environment["TIDELANE_CLOSE"] = "defered";
  Child child(environment, [&] {
    const Hid fapl(H5Pcreate(H5P_FILE_ACCESS));
    EXPECT_GE(H5Pset_vol_async(fapl), 0) << error_text();
    EXPECT_LT(H5Fcreate(file().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, fapl), 0);
    EXPECT_NE(error_text().find("TIDELANE_CLOSE"), std::string::npos) << error_text();
  });
  child.expect_success();
}

CONFORMANCE_WAYS(ChoosingTheConnector, kImplicit);

}  // namespace
}  // namespace tidelane::testing
