// Other calls than one write and one read: event sets, many datasets at once, threads, forks, what is refused, and a large transfer:
// see groups.h.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <thread>

#include "gpu/real/groups.h"

namespace tidelane::gpu_real {
namespace {

constexpr size_t kSome = 6000;  // elements

// Datasets that are written and read together: of every layout, selection and type, from several memories.
struct Together {
  std::vector<Selection> all = selections(20);
  std::vector<Target> targets;
  std::vector<std::unique_ptr<Memory>> memories;

  Together(Session& session, const std::string& name, const std::vector<Kind>& kinds) {
    for (size_t i = 0; i < kinds.size(); ++i) {
      const Selection& selection = all[i % all.size()];
      const Type type = kTypes[i % std::size(kTypes)];
      const Layout layout = kLayouts[i % 3];
      targets.push_back(session.create(name + " " + std::to_string(i), layout, selection, type));
      const Target& target = targets.back();
      std::unique_ptr<Memory> memory;
      try {
        memory = std::make_unique<Memory>(kinds[i], target.memory_bytes());
      } catch (const Unavailable& unavailable) {
        session.report().skip(std::string(name_of(kinds[i])) +
                              " beside others: " + unavailable.what());
        memory = std::make_unique<Memory>(Kind::kDevice, target.memory_bytes());
      }
      memory->use(target.memory_bytes());
      memory->put(target.image(seed(i)));
      memories.push_back(std::move(memory));
    }
  }
  static uint32_t seed(size_t i) { return static_cast<uint32_t>(1000 + i); }

  void was_written(Session& session) {
    for (size_t i = 0; i < targets.size(); ++i) {
      memories[i]->spoil();
      session.count_down(*memories[i], targets[i].selected_bytes());
      session.wrote(targets[i], seed(i));
    }
  }
  void prepare_to_read() {
    for (size_t i = 0; i < targets.size(); ++i) memories[i]->put(targets[i].image(seed(i) + 50));
  }
  void was_read(Session& session) {
    for (size_t i = 0; i < targets.size(); ++i) {
      session.count_up(*memories[i], targets[i].selected_bytes());
      same("memory that was read into", memories[i]->now(),
           session.expected(targets[i], seed(i) + 50), size_of(targets[i].type));
    }
  }
};

void await_set(hid_t set) {
  size_t in_progress = 1;
  hbool_t failed = true;
  call("H5ESwait", [&] { return H5ESwait(set, H5ES_WAIT_FOREVER, &in_progress, &failed); });
  if (in_progress != 0 || failed) throw std::runtime_error("an operation of the event set failed");
}

void with_event_set(Session& session, const std::vector<Kind>& kinds, const std::string& name) {
  Together together(session, name, kinds);
  const hid_t set = H5EScreate();
  for (size_t i = 0; i < together.targets.size(); ++i) {
    Target& target = together.targets[i];
    Memory& memory = *together.memories[i];
    call("H5Dwrite_async", [&] {
      return H5Dwrite_async(target.dataset, target.memory_type, target.in_memory(),
                            target.in_file(), H5P_DEFAULT, memory.get(), set);
    });
    memory.spoil();  // the memory is the program's again when the call returns
  }
  await_set(set);
  together.was_written(session);
  together.prepare_to_read();
  for (size_t i = 0; i < together.targets.size(); ++i) {
    Target& target = together.targets[i];
    call("H5Dread_async", [&] {
      return H5Dread_async(target.dataset, target.memory_type, target.in_memory(), target.in_file(),
                           H5P_DEFAULT, together.memories[i]->get(), set);
    });
  }
  await_set(set);
  together.was_read(session);
  H5ESclose(set);
}

struct Rows {
  std::vector<hid_t> datasets;
  std::vector<hid_t> types;
  std::vector<hid_t> memory_spaces;
  std::vector<hid_t> file_spaces;
  std::vector<void*> buffers;

  explicit Rows(const Together& together) {
    for (size_t i = 0; i < together.targets.size(); ++i) {
      const Target& target = together.targets[i];
      datasets.push_back(target.dataset);
      types.push_back(target.memory_type);
      memory_spaces.push_back(target.in_memory());
      file_spaces.push_back(target.in_file());
      buffers.push_back(together.memories[i]->get());
    }
  }
};

void all_at_once(Session& session, const std::vector<Kind>& kinds, const std::string& name) {
  Together together(session, name, kinds);
  Rows rows(together);
  const std::vector<const void*> from(rows.buffers.begin(), rows.buffers.end());
  call("H5Dwrite_multi", [&] {
    return H5Dwrite_multi(from.size(), rows.datasets.data(), rows.types.data(),
                          rows.memory_spaces.data(), rows.file_spaces.data(), H5P_DEFAULT,
                          const_cast<const void**>(from.data()));
  });
  together.was_written(session);
  together.prepare_to_read();
  call("H5Dread_multi", [&] {
    return H5Dread_multi(from.size(), rows.datasets.data(), rows.types.data(),
                         rows.memory_spaces.data(), rows.file_spaces.data(), H5P_DEFAULT,
                         rows.buffers.data());
  });
  together.was_read(session);
}

// What a child does between fork and _exit; the driver does not live on there.
bool write_in_child(const std::string& path) {
  const Bytes bytes = image(Type::kInt, 77, kSome);
  Hid file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  const hsize_t count = kSome;
  {
    const Hid space(H5Screate_simple(1, &count, nullptr));
    const Hid dataset(
        H5Dcreate2(file, "child", H5T_NATIVE_INT32, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    if (H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
      return false;
  }
  return file.reset() >= 0;
}

void fork_once(Session& session, Memory& memory, const std::string& name) {
  const Selection all = everything({kSome});
  const auto write_one = [&](const std::string& when, uint32_t seed) {
    for (const Layout layout : kLayouts) {
      Target target = session.create(name + when + name_of(layout), layout, all, Type::kBigEndian);
      memory.use(target.memory_bytes());
      memory.put(target.image(seed));
      session.write(target, memory, seed);
      session.read(target, memory, seed + 1);
    }
  };
  const std::string path = session.path() + "." + name;
  write_one(", before, ", 5);
  const pid_t child = fork();
  if (child == 0) _exit(write_in_child(path) ? 0 : 1);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) throw std::runtime_error("the child ended with " + std::to_string(status));
  write_one(", after, ", 6);
  const Hid file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const Model model{.name = "child",
                    .type = Type::kInt,
                    .count = kSome,
                    .rule = Model::Rule::kNumber,
                    .seed = 77};
  const std::string where = compare(file, model);
  if (!where.empty()) throw std::runtime_error("what the child wrote: " + where);
}

void refuse(Session& session, Kind kind) {
  constexpr hsize_t kCount = 50;
  const Hid type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type, H5T_VARIABLE);
  const Hid space(H5Screate_simple(1, &kCount, nullptr));
  const std::string name = std::string("strings ") + name_of(kind);
  const Hid dataset(
      H5Dcreate2(session.file(), name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  Memory memory(kind, kCount * sizeof(char*));
  memory.use(kCount * sizeof(char*));
  memory.put(Bytes(memory.bytes()));
  if (H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get()) >= 0)
    throw std::runtime_error("strings of variable length were written from a device");
  if (error_text().find("device memory") == std::string::npos)
    throw std::runtime_error("the error does not say why: " + error_text());
  if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get()) >= 0)
    throw std::runtime_error("strings of variable length were read into a device");
  const std::vector<const char*> words(kCount, "word");
  call("H5Dwrite of strings of the host",
       [&] { return H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, words.data()); });
}

}  // namespace

void event_sets(Session& session, const Settings&) {
  const std::vector<Kind> kinds(8, Kind::kDevice);
  session.attempt("device", [&] { with_event_set(session, kinds, "device"); });
  const std::vector<Kind> mixed = {Kind::kMiddle,  Kind::kPooled,       Kind::kPinned,
                                   Kind::kVirtual, Kind::kOtherContext, Kind::kManaged};
  session.attempt("mixed", [&] { with_event_set(session, mixed, "mixed"); });
  session.reopen();
  session.compare_all();
}

void many_datasets(Session& session, const Settings&) {
  const std::vector<Kind> kinds = {Kind::kPinned, Kind::kDevice,       Kind::kPooled,
                                   Kind::kPinned, Kind::kOtherContext, Kind::kManaged,
                                   Kind::kMiddle, Kind::kVirtual,      Kind::kPinned};
  session.attempt("host and device", [&] { all_at_once(session, kinds, "host and device"); });
  session.attempt("device",
                  [&] { all_at_once(session, std::vector<Kind>(7, Kind::kDevice), "device"); });
  session.attempt("host",
                  [&] { all_at_once(session, std::vector<Kind>(3, Kind::kPinned), "host"); });
  session.reopen();
  session.compare_all();
}

void forks(Session& session, const Settings&) {
  Memory memory(Kind::kDevice, kSome * 12);
  for (const char* const name : {"first", "second"}) {
    session.attempt(name, [&] { fork_once(session, memory, name); });
  }
  session.reopen();
  session.compare_all();
}

// The calling thread need not have a context at all.
void threads(Session& session, const Settings&) {
  const std::vector<Selection> all = selections(20);
  size_t made = 0;
  for (const Kind kind :
       {Kind::kDevice, Kind::kPooled, Kind::kManaged, Kind::kVirtual, Kind::kOtherContext}) {
    for (const Layout layout : {Layout::kContiguous, Layout::kFiltered}) {
      const std::string name = std::string(name_of(kind)) + ", " + name_of(layout);
      session.attempt(name, [&] {
        const Selection& selection = all[made++ % all.size()];
        Target target = session.create(name, layout, selection, Type::kFloatAsDouble);
        Memory memory(kind, target.memory_bytes());
        memory.use(target.memory_bytes());
        memory.put(target.image(3));
        std::string failure;
        const auto without_context = [&](bool reads) {
          try {
            call(reads ? "H5Dread" : "H5Dwrite", [&] {
              return reads ? H5Dread(target.dataset, target.memory_type, target.in_memory(),
                                     target.in_file(), H5P_DEFAULT, memory.get())
                           : H5Dwrite(target.dataset, target.memory_type, target.in_memory(),
                                      target.in_file(), H5P_DEFAULT, memory.get());
            });
          } catch (const std::exception& thrown) {
            failure = thrown.what();
          }
        };
        std::thread(without_context, false).join();
        if (!failure.empty()) throw std::runtime_error(failure);
        session.count_down(memory, target.selected_bytes());
        session.wrote(target, 3);
        memory.put(target.image(4));
        std::thread(without_context, true).join();
        if (!failure.empty()) throw std::runtime_error(failure);
        session.count_up(memory, target.selected_bytes());
        same("memory that was read into", memory.now(), session.expected(target, 4),
             size_of(target.type));
      });
    }
  }
  session.reopen();
  session.compare_all();
}

void pointers_to_the_host(Session& session, const Settings&) {
  for (const Kind kind : {Kind::kDevice, Kind::kManaged, Kind::kPooled}) {
    session.attempt(name_of(kind), [&] { refuse(session, kind); });
  }
}

void large(Session& session, const Settings& settings) {
  const hsize_t count = (hsize_t{settings.large_mib} << 20) / 4;
  session.attempt(std::to_string(settings.large_mib) + " MiB", [&] {
    const Hid space(H5Screate_simple(1, &count, nullptr));
    const Hid dataset(H5Dcreate2(session.file(), "large", H5T_NATIVE_INT32, space, H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT));
    const Bytes expected = image(Type::kInt, 9, count);
    Memory memory(Kind::kDevice, expected.size());
    memory.use(expected.size());
    memory.put(expected);
    call("H5Dwrite", [&] {
      return H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get());
    });
    memory.spoil();
    session.count_down(memory, expected.size());
    session.add({.name = "large",
                 .type = Type::kInt,
                 .count = count,
                 .rule = Model::Rule::kNumber,
                 .seed = 9});
    call("H5Dread", [&] {
      return H5Dread(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, memory.get());
    });
    session.count_up(memory, expected.size());
    same("memory that was read into", memory.now(), expected, 4);
  });
  session.reopen();
  session.compare_all();
}

}  // namespace tidelane::gpu_real
