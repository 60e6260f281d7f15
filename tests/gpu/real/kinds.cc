// Memory kind by memory kind, with every layout, selection and type: see groups.h.
#include <optional>

#include "gpu/real/groups.h"

namespace tidelane::gpu_real {
namespace {

constexpr size_t kMost = size_t{256} << 10;  // of memory that a case uses

struct Case {
  Layout layout;
  const Selection* selection;
  Type type;
  uint32_t seed;
  std::optional<size_t> model;

  std::string name() const {
    return std::string(name_of(layout)) + ", " + selection->name + ", " + name_of(type);
  }
};

void write_attribute(Session& session, Memory& memory, Type type, uint32_t seed) {
  const Selection all = everything({400});
  const std::string name = std::string("@") + name_of(type);
  const hsize_t count = all.memory.elements();
  const Hid space(H5Screate_simple(1, &count, nullptr));
  const Hid attribute(
      H5Acreate2(session.file(), name.c_str(), file_type(type), space, H5P_DEFAULT, H5P_DEFAULT));
  const Hid in_memory = memory_type(type);
  memory.use(count * size_of(type));
  memory.put(image(type, seed, count));
  call("H5Awrite", [&] { return H5Awrite(attribute, in_memory, memory.get()); });
  memory.spoil();
  const size_t index = session.add(
      {.name = name, .type = type, .count = count, .rule = Model::Rule::kNumber, .seed = seed});
  Bytes expected = image(type, seed + 1, count);
  for (size_t i = 0; i < count; ++i)
    store(type, session.model(index).at(i), expected.data() + i * size_of(type));
  memory.put(image(type, seed + 1, count));
  call("H5Aread", [&] { return H5Aread(attribute, in_memory, memory.get()); });
  same("memory that an attribute was read into", memory.now(), expected, size_of(type));
}

void run(Session& session, Memory& memory, Case& one) {
  Target target = session.create(one.name(), one.layout, *one.selection, one.type);
  one.model = target.model;
  memory.use(target.memory_bytes());
  memory.put(target.image(one.seed));
  session.write(target, memory, one.seed);
  session.read(target, memory, one.seed + 1);  // what may not be stored yet
}

void run_all(Session& session, Memory& memory, std::vector<Case>& cases) {
  for (Case& one : cases) {
    session.attempt(one.name(), [&] { run(session, memory, one); });
  }
  session.reopen();
  session.compare_all();
  for (const Case& one : cases) {
    if (!one.model.has_value()) continue;
    session.attempt(one.name() + ", read after the file was closed", [&] {
      const Target target = session.open(*one.model, *one.selection);
      session.read(target, memory, one.seed + 2);
    });
  }
}

void take(std::vector<Case>& cases, const std::vector<Selection>& from,
          const std::vector<Layout>& layouts, const std::vector<Type>& types) {
  for (const Layout layout : layouts) {
    for (const Selection& selection : from) {
      for (const Type type : types) {
        const auto seed = static_cast<uint32_t>(cases.size() * 3);
        cases.push_back({layout, &selection, type, seed, std::nullopt});
      }
    }
  }
}

}  // namespace

void kinds(Session& session, Kind kind) {
  std::optional<Memory> memory;
  session.attempt(std::string("memory: ") + name_of(kind), [&] { memory.emplace(kind, kMost); });
  if (!memory.has_value()) return;
  for (const Type type : kTypes) {
    session.attempt(std::string("attribute, ") + name_of(type),
                    [&] { write_attribute(session, *memory, type, static_cast<uint32_t>(type)); });
  }
  const std::vector<Selection> small = selections(1);
  std::vector<Case> cases;
  take(cases, small, {std::begin(kLayouts), std::end(kLayouts)},
       {std::begin(kTypes), std::end(kTypes)});
  run_all(session, *memory, cases);
}

// Transfers are copied in one piece, in several, and on a stream of the plugin's own, as their size is.
void sizes(Session& session, const Settings&) {
  for (const size_t scale : {size_t{20}, size_t{200}, size_t{2000}}) {
    std::optional<Memory> memory;
    const std::vector<Selection> all = selections(scale);
    session.attempt("memory of " + std::to_string(scale),
                    [&] { memory.emplace(Kind::kDevice, scale * 9000 * 12 + 1); });
    std::vector<Layout> layouts = {Layout::kContiguous, Layout::kChunked};
    std::vector<Type> types = {Type::kFloat, Type::kBigEndian};
    if (scale < 2000) layouts.push_back(Layout::kFiltered);
    if (scale < 200) types.push_back(Type::kLacking);
    for (const Layout layout : layouts) {
      for (const Selection& selection : all) {
        for (const Type type : types) {
          Case one{layout, &selection, type, static_cast<uint32_t>(scale), std::nullopt};
          const std::string name = std::to_string(scale) + " times " + one.name();
          session.attempt(name, [&] {
            Target target = session.create(name, layout, selection, type);
            memory->use(target.memory_bytes());
            memory->put(target.image(one.seed));
            session.write(target, *memory, one.seed);
            session.read(target, *memory, one.seed + 1);
          });
        }
      }
    }
  }
  session.reopen();
  session.compare_all();
}

}  // namespace tidelane::gpu_real
