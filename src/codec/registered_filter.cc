#include "codec/registered_filter.h"

namespace tidelane {
namespace {

struct Known {
  int id;
  internal::BoundFilter (*bind)(const FilterLibrary& library, std::span<const unsigned> values);
};

constexpr Known kKnown[] = {
    {32000, internal::BindLzf},        {32001, internal::BindBlosc}, {32004, internal::BindLz4},
    {32008, internal::BindBitshuffle}, {32015, internal::BindZstd},  {32026, internal::BindBlosc2},
};

}  // namespace

std::shared_ptr<const RegisteredFilter> BindRegisteredFilter(int id, const void* code,
                                                             std::span<const unsigned> values) {
  if (code == nullptr) return nullptr;
  for (const Known& known : kKnown) {
    if (known.id == id) return known.bind(FilterLibrary(code), values);
  }
  return nullptr;
}

}  // namespace tidelane
