#include "query/attributes.h"

#include <exception>
#include <memory>
#include <new>

#include "predicate/matcher.h"
#include "query/element.h"
#include "query/object_name.h"

namespace tidelane::query {

namespace {

using predicate::Condition;
using predicate::ElementType;
using predicate::Matcher;
using predicate::Query;
using predicate::Subject;

// Compounds are compared field by field of the program's choice, which a condition on an attribute does not name.
Status ReadAndCompare(h5::Library& hdf5, hid_t attribute, const std::string& name,
                      const Condition& condition, bool& matches) {
  const h5::OwnedId type(hdf5, hdf5.Aget_type(attribute));
  const h5::OwnedId space(hdf5, hdf5.Aget_space(attribute));
  Element element;
  std::string why;
  if (!FindElement(hdf5, type.get(), "", element).ok()) return {};
  const auto matcher = Matcher::Make(condition, element.type, predicate::Constants::kExact, why);
  const hssize_t count = hdf5.Sget_simple_extent_npoints(space.get());
  if (!matcher.has_value() || count <= 0) return {};
  const auto elements = static_cast<size_t>(count);
  const auto memory = std::make_unique<std::byte[]>(elements * element.record);
  if (hdf5.Aread(attribute, element.memory_type.get(), memory.get()) < 0)
    return FailedAt(hdf5, "read attribute '" + name + "' of", attribute);
  matches = matcher->Count(memory.get(), elements) != 0;
  if (element.type.kind == ElementType::Kind::kVariableString)
    hdf5.Treclaim(element.memory_type.get(), space.get(), h5::kDefault, memory.get());
  return {};
}

}  // namespace

bool NameMatches(const std::string& name, const Condition& condition) {
  std::string why;
  const ElementType type{ElementType::Kind::kVariableString, sizeof(char*), false, {}};
  const auto matcher = Matcher::Make(condition, type, predicate::Constants::kExact, why);
  const char* const text = name.c_str();
  return matcher.has_value() && matcher->Count(&text, 1) != 0;
}

Status NamesOfAttributes(h5::Library& hdf5, hid_t object, std::vector<std::string>& names) {
  names.clear();
  struct Listing {
    std::vector<std::string>& names;
    std::exception_ptr thrown;
  } listing{names, nullptr};
  const auto note = [](hid_t, const char* name, const H5A_info_t*,
                       void* context) noexcept -> herr_t {
    Listing& list = *static_cast<Listing*>(context);
    try {
      list.names.emplace_back(name);
      return 0;
    } catch (...) {
      list.thrown = std::current_exception();
      return -1;
    }
  };
  const herr_t result =
      hdf5.Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, note, &listing);
  if (listing.thrown != nullptr) std::rethrow_exception(listing.thrown);
  return result < 0 ? FailedAt(hdf5, "list attributes of", object) : Status();
}

Status AttributeMatches(h5::Library& hdf5, hid_t object, const std::string& name,
                        const Query& condition, bool& matches) {
  matches = false;
  if (condition.subject() == Subject::kAttributeName) {
    matches = NameMatches(name, condition.condition());
    return {};
  }
  if (!condition.name().empty() && condition.name() != name) return {};
  const h5::OwnedId attribute(hdf5, hdf5.Aopen(object, name.c_str(), h5::kDefault));
  if (!attribute.valid()) return FailedAt(hdf5, "open attribute '" + name + "' of", object);
  return ReadAndCompare(hdf5, attribute.get(), name, condition.condition(), matches);
}

}  // namespace tidelane::query
