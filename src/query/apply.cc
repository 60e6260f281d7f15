#include "query/apply.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "query/attributes.h"
#include "query/late_search.h"
#include "query/object_name.h"
#include "query/scan.h"
#include "query/selection.h"

namespace tidelane::query {

namespace {

using predicate::Query;
using predicate::QueryPtr;
using predicate::Subject;
using Tell = std::function<Status(const Found&)>;

// What is left of a query where some of its conditions are decided: an answer, or a query.
struct Rest {
  bool answer = false;  // if there is no query
  QueryPtr query;
};

Rest Join(Query::Kind kind, Rest left, Rest right) {
  const bool decides = kind == Query::Kind::kOr;  // the answer that one side alone gives
  if (left.query == nullptr) return left.answer == decides ? left : right;
  if (right.query == nullptr) return right.answer == decides ? right : left;
  return {false, kind == Query::Kind::kAnd ? Query::And(left.query, right.query)
                                           : Query::Or(left.query, right.query)};
}

// `decide(condition, rest)` says what becomes of a condition.
template <typename Decide>
Status Reduce(const QueryPtr& query, const Decide& decide, Rest& rest) {
  if (query->kind() == Query::Kind::kCondition) return decide(query, rest);
  Rest left;
  if (Status status = Reduce(query->left(), decide, left); !status.ok()) return status;
  if (query->kind() == Query::Kind::kNot) {
    rest =
        left.query == nullptr ? Rest{!left.answer, nullptr} : Rest{false, Query::Not(left.query)};
    return {};
  }
  Rest right;
  if (Status status = Reduce(query->right(), decide, right); !status.ok()) return status;
  rest = Join(query->kind(), std::move(left), std::move(right));
  return {};
}

bool Has(unsigned subjects, Subject subject) {
  return (subjects >> static_cast<unsigned>(subject) & 1) != 0;
}

constexpr unsigned kElementsOnly = 1u << static_cast<unsigned>(Subject::kElement);

Found::Kind KindOf(const Query& query) {
  const unsigned subjects = query.Subjects();
  if (Has(subjects, Subject::kElement)) return Found::Kind::kRegion;
  if (Has(subjects, Subject::kAttributeValue) || Has(subjects, Subject::kAttributeName))
    return Found::Kind::kAttribute;
  return Found::Kind::kObject;
}

std::string LastOf(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// Datasets that are looked at together with others of their group.
struct Joined {
  std::set<std::string> groups;  // paths of those that have a hard link of each name of the query
  std::set<std::string> paths;   // of datasets that were looked at so
};

void Alternatives(const QueryPtr& query, std::vector<QueryPtr>& found) {
  if (query->kind() != Query::Kind::kOr) {
    found.push_back(query);
    return;
  }
  Alternatives(query->left(), found);
  Alternatives(query->right(), found);
}

// Sides of an OR find what they are about, each kind of thing for itself: it does not matter in which order they were combined.
std::vector<QueryPtr> PartsOf(const QueryPtr& query) {
  std::vector<QueryPtr> alternatives;
  Alternatives(query, alternatives);
  std::vector<QueryPtr> parts;
  for (const QueryPtr& one : alternatives) {
    const auto same =
        std::ranges::find(parts, KindOf(*one), [](const QueryPtr& part) { return KindOf(*part); });
    if (same == parts.end()) {
      parts.push_back(one);
    } else {
      *same = Query::Or(*same, one);
    }
  }
  if (parts.size() == 1) return {query};
  return parts;
}

// One object, by one of its links.
class Visit {
 public:
  Visit(h5::Library& hdf5, hid_t object, std::string path, std::string link, When when,
        Joined& joined, const Tell& tell)
      : hdf5_(hdf5),
        object_(object),
        path_(std::move(path)),
        link_(std::move(link)),
        when_(when),
        joined_(joined),
        tell_(tell) {}

  Status Apply(const std::vector<QueryPtr>& parts) {
    for (const QueryPtr& part : parts) {
      if (Status status = Apply(part); !status.ok()) return status;
    }
    return {};
  }

 private:
  Status Apply(const QueryPtr& query) {
    switch (KindOf(*query)) {
      case Found::Kind::kRegion: return Region(query);
      case Found::Kind::kAttribute: return Attributes(query);
      case Found::Kind::kObject: return Object(query);
    }
    return {};
  }

  Status Told(Found found) {
    found.object = object_;
    found.path = path_;
    return tell_(found);
  }

  Status ByLink(const QueryPtr& condition, Rest& rest) const {
    rest.answer = NameMatches(link_, condition->condition());
    return {};
  }

  Status Object(const QueryPtr& query) {
    Rest rest;
    Status status = Reduce(
        query, [&](const QueryPtr& condition, Rest& to) { return ByLink(condition, to); }, rest);
    if (!status.ok() || !rest.answer) return status;
    return Told({Found::Kind::kObject, {}, {}, {}, h5::kNoId, nullptr});
  }

  // Conditions on attributes are about one and the same attribute.
  Status Attributes(const QueryPtr& query) {
    if (Status status = LookAtAttributes(); !status.ok()) return status;
    for (const std::string& name : *attributes_) {
      Rest rest;
      Status status = Reduce(
          query,
          [&](const QueryPtr& condition, Rest& to) {
            if (condition->subject() == Subject::kLinkName) return ByLink(condition, to);
            return AttributeMatches(hdf5_, object_, name, *condition, to.answer);
          },
          rest);
      if (status.ok() && rest.answer)
        status = Told({Found::Kind::kAttribute, {}, {}, name, h5::kNoId, nullptr});
      if (!status.ok()) return status;
    }
    return {};
  }

  Status LookAtAttributes() {
    if (attributes_.has_value()) return {};
    return NamesOfAttributes(hdf5_, object_, attributes_.emplace());
  }

  // Beside elements a condition on attributes is fulfilled if one of them fulfils it.
  Status AnyAttribute(const QueryPtr& condition, Rest& rest) {
    if (Status status = LookAtAttributes(); !status.ok()) return status;
    for (const std::string& name : *attributes_) {
      Status status = AttributeMatches(hdf5_, object_, name, *condition, rest.answer);
      if (!status.ok() || rest.answer) return status;
    }
    return {};
  }

  Status Region(const QueryPtr& query) {
    if (hdf5_.Iget_type(object_) == H5I_GROUP) return Join(query);
    if (hdf5_.Iget_type(object_) != H5I_DATASET || joined_.paths.contains(path_)) return {};
    std::vector<ColumnSpec> specs;
    Rest rest;
    Status status = Reduce(
        query,
        [&](const QueryPtr& condition, Rest& to) {
          switch (condition->subject()) {
            case Subject::kElement: return Elements(condition, specs, to);
            case Subject::kLinkName: return ByLink(condition, to);
            default: return AnyAttribute(condition, to);
          }
        },
        rest);
    if (!status.ok()) return status;
    if (rest.query != nullptr) return Search(rest.query, specs);
    return rest.answer ? Everything() : Status();
  }

  // Whether the condition can be about this dataset's elements; if so, as what column.
  Status Elements(const QueryPtr& condition, std::vector<ColumnSpec>& specs, Rest& rest) const {
    const std::string& name = condition->name();
    for (const std::string& field : {name, std::string()}) {
      if (field.empty() && !name.empty() && name != link_) continue;
      std::vector<ColumnSpec> one{{field, object_, field}};
      Columns columns(hdf5_);
      if (!columns.Open(one).ok()) continue;
      const QueryPtr about =
          Query::Of(Subject::kElement, field, condition->condition(), condition->type());
      Filter filter;
      if (!filter.Make(*about, columns, predicate::Constants::kExact).ok()) continue;
      if (std::ranges::find(specs, field, &ColumnSpec::name) == specs.end())
        specs.push_back(one.front());
      rest.query = about;
      return {};
    }
    return {};
  }

  // Several datasets of this group, if that is what the query's names are.
  Status Join(const QueryPtr& query) {
    if (!joined_.groups.contains(path_)) return {};
    const std::set<std::string> names = query->Columns();
    std::vector<h5::OwnedId> datasets;
    std::vector<ColumnSpec> specs;
    for (const std::string& name : names) {
      datasets.emplace_back(hdf5_, hdf5_.Oopen(object_, name.c_str(), h5::kDefault));
      if (!datasets.back().valid() || hdf5_.Iget_type(datasets.back().get()) != H5I_DATASET)
        return {};
      specs.push_back({name, datasets.back().get(), ""});
    }
    Scan scan(hdf5_, query);
    if (!scan.Open(specs, predicate::Constants::kExact).ok()) return {};
    for (const ColumnSpec& spec : specs) joined_.paths.insert(Below(spec.name));
    return Search(scan, [&](Found found) {
      for (const ColumnSpec& spec : specs) {
        found.object = spec.dataset;
        found.path = Below(spec.name);
        if (Status status = tell_(found); !status.ok()) return status;
      }
      return Status();
    });
  }

  std::string Below(const std::string& name) const {
    return path_ == "." ? name : path_ + "/" + name;
  }

  Status Search(const QueryPtr& query, const std::vector<ColumnSpec>& specs) {
    Scan scan(hdf5_, query);
    if (Status status = scan.Open(specs, predicate::Constants::kExact); !status.ok()) return status;
    return Search(scan, [this](const Found& found) { return Told(found); });
  }

  // Tells of the region that it finds, if there is one, or is looking for.
  template <typename TellRegion>
  Status Search(Scan& scan, const TellRegion& tell) const {
    Found found;
    if (when_ == When::kLater) found.search = LateSearch::Begin(scan);
    if (found.search != nullptr) return tell(found);
    h5::OwnedId space;
    Status status = query::Search(scan, space);
    if (!status.ok() || !space.valid()) return status;
    found.space = space.get();
    return tell(found);
  }

  Status Everything() {
    const h5::OwnedId space(hdf5_, hdf5_.Dget_space(object_));
    if (hdf5_.Sget_simple_extent_npoints(space.get()) <= 0) return {};
    return Told({Found::Kind::kRegion, h5::kNoId, {}, {}, space.get(), nullptr});
  }

  h5::Library& hdf5_;
  const hid_t object_;
  const std::string path_;
  const std::string link_;
  const When when_;
  Joined& joined_;
  const Tell& tell_;
  std::optional<std::vector<std::string>> attributes_;  // nullopt: not looked at yet
};

struct Walk {
  h5::Library& hdf5;
  const std::vector<QueryPtr> parts;
  const When when;
  const Tell& tell;
  Joined joined;
  Status status;
  std::exception_ptr thrown;
};

// Soft and external links lead to objects that have hard links, or are in other files.
herr_t VisitLink(hid_t place, const char* path, const H5L_info2_t* info, void* context) noexcept {
  Walk& walk = *static_cast<Walk*>(context);
  try {
    if (info->type != H5L_TYPE_HARD) return 0;
    const h5::OwnedId object(walk.hdf5, walk.hdf5.Oopen(place, path, h5::kDefault));
    if (!object.valid()) {
      walk.status = FailedAt(walk.hdf5, "open object '" + std::string(path) + "' below", place);
      return -1;
    }
    Visit visit(walk.hdf5, object.get(), path, LastOf(path), walk.when, walk.joined, walk.tell);
    walk.status = visit.Apply(walk.parts);
  } catch (...) {  // HDF5's frames are C's
    walk.thrown = std::current_exception();
    return -1;
  }
  return walk.status.ok() ? 0 : -1;
}

// Hard links that have one of some names, each by the path of its group.
struct Named {
  const std::set<std::string>& names;
  std::map<std::string, size_t> groups;
  std::exception_ptr thrown;
};

herr_t NoteLink(hid_t, const char* path, const H5L_info2_t* info, void* context) noexcept {
  Named& named = *static_cast<Named*>(context);
  try {
    if (info->type != H5L_TYPE_HARD) return 0;
    const std::string whole = path;
    const size_t slash = whole.find_last_of('/');
    if (!named.names.contains(LastOf(whole))) return 0;
    ++named.groups[slash == std::string::npos ? "." : whole.substr(0, slash)];
    return 0;
  } catch (...) {  // HDF5's frames are C's
    named.thrown = std::current_exception();
    return -1;
  }
}

// Groups whose datasets may be looked at together. HDF5 walks into a group once, by the first of the links to it: that is the one to look by.
Status FindGroups(h5::Library& hdf5, hid_t place, const QueryPtr& query, Joined& joined) {
  const std::set<std::string> names = query->Columns();
  if (names.size() < 2 || names.contains("") || query->Subjects() != kElementsOnly) return {};
  Named named{names, {}, nullptr};
  const herr_t result = hdf5.Lvisit2(place, H5_INDEX_NAME, H5_ITER_INC, NoteLink, &named);
  if (named.thrown != nullptr) std::rethrow_exception(named.thrown);
  if (result < 0) return FailedAt(hdf5, "walk through links below", place);
  for (const auto& [path, links] : named.groups) {
    if (links == names.size()) joined.groups.insert(path);
  }
  return {};
}

}  // namespace

Status Apply(h5::Library& hdf5, hid_t place, const QueryPtr& query, When when,
             const std::function<Status(const Found&)>& tell) {
  const bool dataset = hdf5.Iget_type(place) == H5I_DATASET;
  const h5::OwnedId object(hdf5, hdf5.Oopen(place, ".", h5::kDefault));
  Walk walk{hdf5, PartsOf(query), when, tell, {}, {}, nullptr};
  for (const QueryPtr& part : walk.parts) {
    if (dataset) break;
    if (Status status = FindGroups(hdf5, place, part, walk.joined); !status.ok()) return status;
  }
  Visit own(hdf5, dataset ? place : object.get(), ".", LastOf(PathOf(hdf5, place)), when,
            walk.joined, tell);
  if (Status status = own.Apply(walk.parts); !status.ok()) return status;
  if (dataset) return {};
  const herr_t result = hdf5.Lvisit2(place, H5_INDEX_NAME, H5_ITER_INC, VisitLink, &walk);
  if (walk.thrown != nullptr) std::rethrow_exception(walk.thrown);
  if (result < 0 && walk.status.ok()) return FailedAt(hdf5, "walk through links below", place);
  return walk.status;
}

}  // namespace tidelane::query
