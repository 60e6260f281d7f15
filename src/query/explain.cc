#include "query/explain.h"

#include <nlohmann/json.hpp>

#include "predicate/text.h"
#include "query/object_name.h"

namespace tidelane::query {

namespace {

using Json = nlohmann::ordered_json;

Json FiltersOf(h5::Library& hdf5, hid_t dataset) {
  Json names = Json::array();
  const h5::OwnedId list(hdf5, hdf5.Dget_create_plist(dataset));
  const int count = list.valid() ? hdf5.Pget_nfilters(list.get()) : 0;
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    size_t values = 0;
    char name[256] = "";
    const H5Z_filter_t id = hdf5.Pget_filter2(list.get(), static_cast<unsigned>(i), &flags, &values,
                                              nullptr, sizeof name, name, nullptr);
    names.push_back(*name != '\0' ? std::string(name) : "filter " + std::to_string(id));
  }
  return names;
}

}  // namespace

std::string Explain(const Scan& scan) {
  const Columns& columns = scan.columns();
  const Layout& layout = columns.layout();
  Json shape = Json::array();
  for (int d = 0; d < layout.rank && !layout.scalar; ++d) shape.push_back(layout.extent[d]);
  Json list = Json::array();
  for (size_t i = 0; i < columns.count(); ++i) {
    const Column& column = columns.at(i);
    list.push_back({{"name", column.name},
                    {"dataset", NameOfDataset(columns.hdf5(), columns.dataset_of(i))},
                    {"field", column.field},
                    {"type", column.type_name},
                    {"layout", columns.layout_of(i).kind},
                    {"filters", FiltersOf(columns.hdf5(), columns.dataset_of(i))},
                    {"read", column.as_stored ? "as stored" : "converted"}});
  }
  const Scan::Totals& totals = scan.totals();
  const Json json = {{"query", predicate::Text(scan.query())},
                     {"shape", shape},
                     {"elements", scan.blocks().elements()},
                     {"columns", list},
                     {"blocks", scan.blocks().count()},
                     {"strategy", "scan"},
                     {"scanned",
                      {{"blocks", totals.blocks},
                       {"elements", totals.elements},
                       {"bytes", columns.bytes_read()},
                       {"hits", totals.hits}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tidelane::query
