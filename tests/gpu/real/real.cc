// GPU memory in HDF5 calls, on a machine with a real GPU.
//
//   gpu_real [--folder DIR] [--jobs N] [--large-mib N] [GROUP...]
//
// Runs with the plugin that the environment names (HDF5_VOL_CONNECTOR, HDF5_PLUGIN_PATH), and needs no CUDA to be built.
//
//   1. Each group of cases (groups.h) runs in a process of its own, which writes a file and tells in a report what it found.
//   2. After it, a process without the plugin compares the file with what the group says that it holds.
//   3. The plugin's summary of the group's process must say that it copied as many bytes as the group gave to it.
//
// Invariant: 0 only if every case of every group that ran was as it should be; 1: a difference; 77: there is no driver or GPU.
// Thread safety: groups are awaited by a thread each; what they find is put together under a mutex.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "gpu/real/groups.h"
#include "support/summary.h"

namespace tidelane::gpu_real {
namespace {

constexpr unsigned kMostSeconds = 300;  // of one process
constexpr size_t kMostListed = 20;
constexpr int kNoDevice = 77;

struct Options {
  std::string folder;
  unsigned jobs = 0;
  Settings settings;
  std::vector<std::string> names;
};

struct Found {
  std::vector<std::string> failures;
  std::vector<std::string> skipped;
  std::mutex mutex;
};

template <Kind kind>
Group of_kind() {
  std::string name = name_of(kind);
  std::ranges::replace(name, ' ', '-');
  return {name, kind != Kind::kPinned,
          [](Session& session, const Settings&) { kinds(session, kind); }};
}

// What the processes do.

int run_group(const std::string& folder, const std::string& name, size_t large_mib) {
  alarm(kMostSeconds);
  std::string why;
  if (!open(why)) {
    std::fprintf(stderr, "gpu_real: no GPU here: %s\n", why.c_str());
    return kNoDevice;
  }
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const auto group = std::ranges::find(groups(), name, &Group::name);
  Session session(folder, name);
  try {
    group->run(session, {large_mib});
  } catch (const std::exception& failure) {
    session.report().fail(std::string("the group ended: ") + failure.what());
  }
  session.finish();
  return 0;
}

int compare_natively(const std::string& path, const std::string& report_path) {
  alarm(kMostSeconds);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  Report report(report_path);
  const Hid file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!file.valid()) {
    report.fail("cannot open it natively: " + error_text());
    return 0;
  }
  for (const Model& model : load(path + ".models")) {
    report.begin(model.name + ", read natively");
    const std::string where = compare(file, model);
    if (!where.empty()) report.fail(where);
  }
  return 0;
}

int look_for_device() {
  std::string why;
  if (open(why)) {
    std::printf("gpu_real: %s\n", device_name().c_str());
    return 0;
  }
  std::printf("gpu_real: no GPU here, nothing is tested: %s\n", why.c_str());
  return kNoDevice;
}

// What the program that started them does.

void check_summary(const Group& group, const std::string& path, const Told& told,
                   std::vector<std::string>& failures) {
  const auto summary = testing::Summary::load(path);
  if (!summary.has_value()) {
    failures.push_back("the plugin left no summary: was it loaded?");
    return;
  }
  const auto at_least = [&](const char* counter, uint64_t bytes) {
    const auto counted = static_cast<uint64_t>(summary->counter(counter));
    const bool fits = group.on_device ? counted >= bytes : counted == 0;
    if (!fits) {
      failures.push_back(std::string(counter) + " is " + std::to_string(counted) + ", and " +
                         std::to_string(bytes) + " bytes of GPU memory were given to HDF5");
    }
  };
  at_least("gpu_bytes_down", told.down);
  at_least("gpu_bytes_up", told.up);
}

void run_and_check(const Group& group, const Options& options, Found& found) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string base = options.folder + "/" + group.name;
  std::vector<std::string> failures;
  int status = 0;
  const pid_t worker =
      start({"group", options.folder, group.name, std::to_string(options.settings.large_mib)},
            {"TIDELANE_SUMMARY=" + base + ".json"});
  const std::string how = await(worker, status);
  const Told told = gpu_real::told(base + ".report");
  if (!how.empty()) failures.push_back(how + " in or after \"" + told.last + "\"");
  failures.insert(failures.end(), told.failures.begin(), told.failures.end());
  size_t natively = 0;
  if (status == 0) {
    check_summary(group, base + ".json", told, failures);
    const pid_t native = start({"native", base + ".h5", base + ".native"}, {"HDF5_VOL_CONNECTOR"});
    const std::string ended = await(native, status);
    const Told compared = gpu_real::told(base + ".native");
    natively = compared.cases;
    if (!ended.empty()) failures.push_back("the native process " + ended + " in " + compared.last);
    failures.insert(failures.end(), compared.failures.begin(), compared.failures.end());
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::lock_guard lock(found.mutex);
  std::printf(
      "%-16s %5zu cases, %4zu natively; %8.1f MiB down, %8.1f MiB up; %zu failed, %zu skipped; "
      "%.1f s\n",
      group.name.c_str(), told.cases, natively, static_cast<double>(told.down) / (1 << 20),
      static_cast<double>(told.up) / (1 << 20), failures.size(), told.skipped.size(), seconds);
  std::fflush(stdout);
  for (const std::string& failure : failures) found.failures.push_back(group.name + ": " + failure);
  for (const std::string& skipped : told.skipped)
    found.skipped.push_back(group.name + ": " + skipped);
  // A gigabyte is not left lying while others still write.
  if (failures.empty()) std::filesystem::remove(base + ".h5");
}

int tell(const Found& found, const Options& options, bool own_folder) {
  if (!found.skipped.empty()) std::printf("\nskipped:\n");
  for (const std::string& skipped : found.skipped) std::printf("  %s\n", skipped.c_str());
  if (found.failures.empty()) {
    std::printf("\nall is as it should be\n");
    if (own_folder) std::filesystem::remove_all(options.folder);
    return 0;
  }
  std::printf("\n%zu failures; the files are in %s\n", found.failures.size(),
              options.folder.c_str());
  for (size_t i = 0; i < std::min(kMostListed, found.failures.size()); ++i)
    std::printf("  %s\n", found.failures[i].c_str());
  if (found.failures.size() > kMostListed) std::printf("  ...\n");
  return 1;
}

int run_all(Options& options) {
  int status = 0;
  const std::string looked = await(start({"look"}, {"HDF5_VOL_CONNECTOR"}), status);
  if (status == kNoDevice) return kNoDevice;
  if (status != 0) {
    std::printf("gpu_real: looking for a GPU %s\n", looked.c_str());
    return 1;
  }
  if (std::getenv("HDF5_VOL_CONNECTOR") == nullptr) {
    std::printf("gpu_real: the plugin is not turned on (HDF5_VOL_CONNECTOR)\n");
    return 1;
  }
  const bool own_folder = options.folder.empty();
  if (own_folder) {
    std::string made = (std::filesystem::temp_directory_path() / "gpu_real.XXXXXX").string();
    if (mkdtemp(made.data()) == nullptr) return 1;
    options.folder = made;
  }
  std::vector<const Group*> chosen;
  for (const Group& group : groups()) {
    if (options.names.empty() || std::ranges::count(options.names, group.name) != 0)
      chosen.push_back(&group);
  }
  Found found;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < chosen.size(); i = next++)
      run_and_check(*chosen[i], options, found);
  };
  std::vector<std::thread> workers(
      options.jobs != 0 ? options.jobs
                        : std::clamp(std::thread::hardware_concurrency() / 2, 1U, 6U));
  for (std::thread& worker : workers) worker = std::thread(work);
  for (std::thread& worker : workers) worker.join();
  return tell(found, options, own_folder);
}

int main_of(std::vector<std::string> arguments) {
  if (!arguments.empty()) {
    if (arguments[0] == "own") return own(std::stoull(arguments.at(1)));
    if (arguments[0] == "look") return look_for_device();
    if (arguments[0] == "native") return compare_natively(arguments.at(1), arguments.at(2));
    if (arguments[0] == "group")
      return run_group(arguments.at(1), arguments.at(2), std::stoull(arguments.at(3)));
  }
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--folder") {
      options.folder = arguments.at(++i);
    } else if (argument == "--jobs") {
      options.jobs = static_cast<unsigned>(std::stoul(arguments.at(++i)));
    } else if (argument == "--large-mib") {
      options.settings.large_mib = std::stoull(arguments.at(++i));
    } else if (std::ranges::count(groups(), argument, &Group::name) != 0) {
      options.names.push_back(argument);
    } else {
      std::printf("usage: gpu_real [--folder DIR] [--jobs N] [--large-mib N] [GROUP...]\ngroups:");
      for (const Group& group : groups()) std::printf(" %s", group.name.c_str());
      std::printf("\n");
      return 2;
    }
  }
  return run_all(options);
}

}  // namespace

const std::vector<Group>& groups() {
  static const auto* const all = new std::vector<Group>{
      {"large", true, large},
      {"sizes", true, sizes},
      {"streams", true, streams},
      of_kind<Kind::kImported>(),
      of_kind<Kind::kDevice>(),
      of_kind<Kind::kMiddle>(),
      of_kind<Kind::kManaged>(),
      of_kind<Kind::kPooled>(),
      of_kind<Kind::kVirtual>(),
      of_kind<Kind::kTwoMappings>(),
      of_kind<Kind::kOtherContext>(),
      of_kind<Kind::kPinned>(),
      {"event-sets", true, event_sets},
      {"many-datasets", true, many_datasets},
      {"threads", true, threads},
      {"forks", true, forks},
      {"refusals", true, pointers_to_the_host},
  };
  return *all;
}

}  // namespace tidelane::gpu_real

int main(int argc, char** argv) {
  try {
    return tidelane::gpu_real::main_of({argv + 1, argv + argc});
  } catch (const std::exception& failure) {
    std::printf("gpu_real: %s\n", failure.what());
    return 1;
  }
}
