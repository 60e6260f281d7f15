/// \file
/// Queries of the library, answered by the plugin: what is found in a file that the program has just written, and what a view has.
///
/// Thread safety: one thread.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tidelane_query.h"

namespace {

// A step's particles; `Energy` and `x` of one shape, and more that must not be found with them.
class QueryApplyTest : public ::testing::Test {
 protected:
  static constexpr int kParticles = 1000;

  void SetUp() override {
    file_ = H5Fcreate("query.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    ASSERT_GE(file_, 0);
    group_ = H5Gcreate2(file_, "step", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    std::vector<double> energy(kParticles), x(kParticles);
    for (int i = 0; i < kParticles; ++i) {
      energy[i] = i % 100;
      x[i] = i;
    }
    Write(group_, "Energy", {kParticles}, H5T_NATIVE_DOUBLE, energy.data(), true);
    Write(group_, "x", {kParticles}, H5T_NATIVE_DOUBLE, x.data(), false);
    std::vector<int> grid(20 * 30);
    for (int i = 0; i < 600; ++i) grid[i] = i;
    Write(file_, "Pressure", {20, 30}, H5T_NATIVE_INT, grid.data(), false);
    Name("step", "units", "eV");
    Name("Pressure", "units", "Pa");
    Name("Pressure", "note", "17");
  }

  void TearDown() override {
    H5Gclose(group_);
    EXPECT_EQ(H5Fget_obj_count(file_, H5F_OBJ_ALL | H5F_OBJ_LOCAL), 1);
    H5Fclose(file_);
  }

  static void Write(hid_t place, const char* name, std::vector<hsize_t> extent, hid_t type,
                    const void* values, bool chunked) {
    const hid_t space = H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr);
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 64;
    if (chunked) {
      H5Pset_chunk(list, 1, &chunk);
      H5Pset_deflate(list, 1);
    }
    const hid_t set = H5Dcreate2(place, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    EXPECT_GE(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
  }

  void Name(const char* object, const char* name, const char* text) const {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute =
        H5Acreate_by_name(file_, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    EXPECT_GE(H5Awrite(attribute, type, &text), 0);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
  }

  static hid_t Elements(const char* name, H5Q_match_op_t match, double value) {
    return tidelane_query_named(H5Q_TYPE_DATA_ELEM, name, match, H5T_NATIVE_DOUBLE, &value);
  }

  // Closes both.
  static hid_t Combine(hid_t a, H5Q_combine_op_t how, hid_t b) {
    const hid_t query = H5Qcombine(a, how, b);
    EXPECT_GE(query, 0);
    H5Qclose(a);
    H5Qclose(b);
    return query;
  }

  // The objects' names, each with how many elements its region has, or its attribute's name; "step/x: 5", "Pressure@units", "x".
  static std::set<std::string> InView(hid_t view, const char* name) {
    std::set<std::string> found;
    const hid_t set = H5Dopen2(view, name, H5P_DEFAULT);
    const hid_t space = H5Dget_space(set);
    std::vector<H5R_ref_t> references(static_cast<size_t>(H5Sget_simple_extent_npoints(space)));
    EXPECT_GE(H5Dread(set, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, references.data()), 0);
    for (H5R_ref_t& reference : references) {
      char object[256] = "", attribute[256] = "";
      EXPECT_GT(H5Rget_obj_name(&reference, H5P_DEFAULT, object, sizeof object), 0);
      std::string text = object;
      if (H5Rget_type(&reference) == H5R_ATTR) {
        H5Rget_attr_name(&reference, attribute, sizeof attribute);
        text += std::string("@") + attribute;
      } else if (H5Rget_type(&reference) == H5R_DATASET_REGION2) {
        const hid_t region = H5Ropen_region(&reference, H5P_DEFAULT, H5P_DEFAULT);
        text += ": " + std::to_string(H5Sget_select_npoints(region));
        H5Sclose(region);
      }
      found.insert(text);
      H5Rdestroy(&reference);
    }
    H5Sclose(space);
    H5Dclose(set);
    return found;
  }

  struct Answer {
    unsigned result = 99;
    std::set<std::string> regions, objects, attributes;
  };

  // Closes the query.
  static Answer Ask(hid_t place, hid_t query) {
    Answer answer;
    const hid_t view = H5Qapply(place, query, &answer.result, H5P_DEFAULT);
    EXPECT_GE(view, 0);
    if ((answer.result & H5Q_REF_REG) != 0) answer.regions = InView(view, H5Q_VIEW_REF_REG_NAME);
    if ((answer.result & H5Q_REF_OBJ) != 0) answer.objects = InView(view, H5Q_VIEW_REF_OBJ_NAME);
    if ((answer.result & H5Q_REF_ATTR) != 0)
      answer.attributes = InView(view, H5Q_VIEW_REF_ATTR_NAME);
    H5Gclose(view);
    H5Qclose(query);
    return answer;
  }

  // How many regions there are, the same one twice counted twice. Closes the query.
  static size_t AskForCount(hid_t place, hid_t query) {
    unsigned result = 0;
    hssize_t count = 0;
    const hid_t view = H5Qapply(place, query, &result, H5P_DEFAULT);
    EXPECT_GE(view, 0);
    if ((result & H5Q_REF_REG) != 0) {
      const hid_t set = H5Dopen2(view, H5Q_VIEW_REF_REG_NAME, H5P_DEFAULT);
      const hid_t space = H5Dget_space(set);
      count = H5Sget_simple_extent_npoints(space);
      H5Sclose(space);
      H5Dclose(set);
    }
    H5Gclose(view);
    H5Qclose(query);
    return static_cast<size_t>(count);
  }

  hid_t file_ = H5I_INVALID_HID;
  hid_t group_ = H5I_INVALID_HID;
};

using Set = std::set<std::string>;

TEST_F(QueryApplyTest, ElementsOfAnyDataset) {
  const int seventeen = 17;
  const hid_t query = H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_EQUAL, H5T_NATIVE_INT, &seventeen);
  const Answer answer = Ask(file_, query);
  EXPECT_EQ(answer.result, H5Q_REF_REG);
  EXPECT_EQ(answer.regions, (Set{"/step/Energy: 10", "/step/x: 1", "/Pressure: 1"}));
}

TEST_F(QueryApplyTest, ElementsOfDatasetsOfAName) {
  const hid_t query = Combine(Elements("", H5Q_MATCH_GREATER_EQUAL, 590), H5Q_COMBINE_AND,
                              H5Qcreate(H5Q_TYPE_LINK_NAME, H5Q_MATCH_EQUAL, "Pressure"));
  EXPECT_EQ(Ask(file_, query).regions, (Set{"/Pressure: 10"}));
}

TEST_F(QueryApplyTest, ElementsOfDatasetsWithAnAttribute) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  const char* pascal = "Pa";
  const hid_t units =
      tidelane_query_named(H5Q_TYPE_ATTR_VALUE, "units", H5Q_MATCH_EQUAL, type, &pascal);
  H5Tclose(type);
  const hid_t query = Combine(Elements("", H5Q_MATCH_LESS_THAN, 3), H5Q_COMBINE_AND, units);
  EXPECT_EQ(Ask(file_, query).regions, (Set{"/Pressure: 3"}));
}

TEST_F(QueryApplyTest, PlacesOfSeveralDatasets) {
  const auto query = [] {
    return Combine(Elements("Energy", H5Q_MATCH_GREATER_THAN, 97), H5Q_COMBINE_AND,
                   Elements("x", H5Q_MATCH_LESS_THAN, 300));
  };
  // 98, 99, 198, 199, 298, 299.
  EXPECT_EQ(Ask(file_, query()).regions, (Set{"/step/Energy: 6", "/step/x: 6"}));
  EXPECT_EQ(Ask(group_, query()).regions, (Set{"/step/Energy: 6", "/step/x: 6"}));
}

// HDF5 walks into a group by one of the links to it.
TEST_F(QueryApplyTest, PlacesOfAGroupWithSeveralLinksAreFoundOnce) {
  EXPECT_GE(H5Olink(group_, file_, "again", H5P_DEFAULT, H5P_DEFAULT), 0);
  EXPECT_GE(H5Olink(group_, group_, "itself", H5P_DEFAULT, H5P_DEFAULT), 0);
  const auto query = [] {
    return Combine(Elements("Energy", H5Q_MATCH_GREATER_THAN, 97), H5Q_COMBINE_AND,
                   Elements("x", H5Q_MATCH_LESS_THAN, 300));
  };
  EXPECT_EQ(AskForCount(file_, query()), 2u);
  EXPECT_EQ(AskForCount(group_, query()), 2u);
}

TEST_F(QueryApplyTest, PlacesAreOfDatasetsThatTheGroupHasHardLinksTo) {
  const hid_t other = H5Gcreate2(file_, "other", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  std::vector<double> energy(kParticles, 98.0);
  Write(other, "Energy", {kParticles}, H5T_NATIVE_DOUBLE, energy.data(), false);
  EXPECT_GE(H5Lcreate_soft("/step/x", other, "x", H5P_DEFAULT, H5P_DEFAULT), 0);
  EXPECT_GE(H5Lcreate_soft("/step", other, "soft", H5P_DEFAULT, H5P_DEFAULT), 0);
  for (const char* name : {"x", "soft/x", "../step/x", "/step/x"}) {
    const hid_t query = Combine(Elements("Energy", H5Q_MATCH_GREATER_THAN, 97), H5Q_COMBINE_AND,
                                Elements(name, H5Q_MATCH_LESS_THAN, 300));
    EXPECT_EQ(AskForCount(other, query), 0u) << name;
  }
  H5Gclose(other);
}

TEST_F(QueryApplyTest, ObjectsAndAttributes) {
  EXPECT_EQ(Ask(file_, H5Qcreate(H5Q_TYPE_LINK_NAME, H5Q_MATCH_NOT_EQUAL, "x")).objects,
            (Set{"/", "/step", "/step/Energy", "/Pressure"}));
  const Answer named = Ask(file_, H5Qcreate(H5Q_TYPE_ATTR_NAME, H5Q_MATCH_EQUAL, "units"));
  EXPECT_EQ(named.result, H5Q_REF_ATTR);
  EXPECT_EQ(named.attributes, (Set{"/step@units", "/Pressure@units"}));
  const hid_t both =
      Combine(H5Qcreate(H5Q_TYPE_ATTR_NAME, H5Q_MATCH_EQUAL, "units"), H5Q_COMBINE_AND,
              H5Qcreate(H5Q_TYPE_LINK_NAME, H5Q_MATCH_EQUAL, "step"));
  EXPECT_EQ(Ask(file_, both).attributes, (Set{"/step@units"}));
}

TEST_F(QueryApplyTest, SidesOfDifferentKindsFindTheirOwn) {
  const hid_t query = Combine(Elements("Pressure", H5Q_MATCH_EQUAL, 1), H5Q_COMBINE_OR,
                              H5Qcreate(H5Q_TYPE_LINK_NAME, H5Q_MATCH_EQUAL, "x"));
  const Answer answer = Ask(file_, query);
  EXPECT_EQ(answer.result, H5Q_REF_REG | H5Q_REF_OBJ);
  EXPECT_EQ(answer.regions, (Set{"/Pressure: 1"}));
  EXPECT_EQ(answer.objects, (Set{"/step/x"}));
}

TEST_F(QueryApplyTest, OrsMayBeCombinedInAnyOrder) {
  const auto low = [] { return Elements("Pressure", H5Q_MATCH_LESS_THAN, 1); };
  const auto high = [] { return Elements("Pressure", H5Q_MATCH_GREATER_THAN, 597); };
  const auto link = [] { return H5Qcreate(H5Q_TYPE_LINK_NAME, H5Q_MATCH_EQUAL, "x"); };
  const hid_t queries[] = {Combine(Combine(low(), H5Q_COMBINE_OR, high()), H5Q_COMBINE_OR, link()),
                           Combine(low(), H5Q_COMBINE_OR, Combine(high(), H5Q_COMBINE_OR, link())),
                           Combine(Combine(low(), H5Q_COMBINE_OR, link()), H5Q_COMBINE_OR, high())};
  for (const hid_t query : queries) {
    const Answer answer = Ask(file_, query);
    EXPECT_EQ(answer.regions, (Set{"/Pressure: 3"}));
    EXPECT_EQ(answer.objects, (Set{"/step/x"}));
  }
}

TEST_F(QueryApplyTest, SeveralViewsAreOpenAtOnce) {
  const hid_t query = Elements("", H5Q_MATCH_EQUAL, 5);
  std::vector<hid_t> views;
  unsigned result = 0;
  for (int i = 0; i < 3; ++i) {
    views.push_back(H5Qapply(file_, query, &result, H5P_DEFAULT));
    EXPECT_GE(views.back(), 0);
    EXPECT_EQ(result, H5Q_REF_REG);
  }
  for (const hid_t view : views) {
    EXPECT_EQ(InView(view, H5Q_VIEW_REF_REG_NAME).size(), 3u);
    H5Gclose(view);
  }
  H5Qclose(query);
}

TEST_F(QueryApplyTest, NothingIsAnEmptyView) {
  const Answer answer = Ask(file_, Elements("", H5Q_MATCH_GREATER_THAN, 1e6));
  EXPECT_EQ(answer.result, 0u);
}

TEST_F(QueryApplyTest, SeveralPlacesInOneView) {
  hid_t places[] = {group_, H5Dopen2(file_, "Pressure", H5P_DEFAULT)};
  const hid_t query = Elements("", H5Q_MATCH_EQUAL, 5);
  unsigned result = 0;
  const hid_t view = H5Qapply_multi(2, places, query, &result, H5P_DEFAULT);
  ASSERT_GE(view, 0);
  EXPECT_EQ(InView(view, H5Q_VIEW_REF_REG_NAME),
            (Set{"/step/Energy: 10", "/step/x: 1", "/Pressure: 1"}));
  H5Gclose(view);
  H5Qclose(query);
  H5Dclose(places[1]);
}

TEST_F(QueryApplyTest, WithAnEventSet) {
  const hid_t set = H5EScreate();
  const hid_t query = Elements("", H5Q_MATCH_EQUAL, 5);
  unsigned result = 0;
  const hid_t view = H5Qapply_async(file_, query, &result, H5P_DEFAULT, set);
  ASSERT_GE(view, 0);
  size_t left = 1;
  hbool_t failed = true;
  EXPECT_GE(H5ESwait(set, H5ES_WAIT_FOREVER, &left, &failed), 0);
  EXPECT_EQ(left, 0u);
  EXPECT_FALSE(failed);
  EXPECT_EQ(result, H5Q_REF_REG);
  H5Gclose(view);
  H5Qclose(query);
  H5ESclose(set);
}

// Runs, points and everything, in more than one dimension; and what H5Dread gives for them.
TEST_F(QueryApplyTest, ASelectionIsReadByHdf5) {
  const hid_t pressure = H5Dopen2(file_, "Pressure", H5P_DEFAULT);
  const auto read = [&](hid_t query) {
    const hid_t space = tidelane_query_select(pressure, query);
    EXPECT_GE(space, 0);
    const hsize_t count = static_cast<hsize_t>(H5Sget_select_npoints(space));
    std::vector<int> values(count);
    if (count != 0) {
      const hid_t memory = H5Screate_simple(1, &count, nullptr);
      EXPECT_GE(H5Dread(pressure, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values.data()), 0);
      H5Sclose(memory);
    }
    H5Sclose(space);
    H5Qclose(query);
    return values;
  };
  EXPECT_EQ(read(Combine(Elements("", H5Q_MATCH_EQUAL, 7), H5Q_COMBINE_OR,
                         Elements("", H5Q_MATCH_EQUAL, 599))),
            (std::vector<int>{7, 599}));
  const std::vector<int> run =
      read(Combine(Elements("", H5Q_MATCH_GREATER_EQUAL, 25), H5Q_COMBINE_AND,
                   Elements("", H5Q_MATCH_LESS_THAN, 95)));
  ASSERT_EQ(run.size(), 70u);
  for (int i = 0; i < 70; ++i) EXPECT_EQ(run[i], 25 + i);
  EXPECT_EQ(read(Elements("", H5Q_MATCH_GREATER_EQUAL, 0)).size(), 600u);
  EXPECT_EQ(read(Elements("", H5Q_MATCH_LESS_THAN, 0)).size(), 0u);
  H5Dclose(pressure);
}

TEST_F(QueryApplyTest, ASelectionOfTheLargestRank) {
  const int values[9] = {1, 7, 2, 7, 3, 4, 5, 6, 7};
  std::vector<hsize_t> extent(H5S_MAX_RANK, 1);
  extent[0] = extent[1] = 3;
  Write(file_, "deep", extent, H5T_NATIVE_INT, values, false);
  const hid_t deep = H5Dopen2(file_, "deep", H5P_DEFAULT);
  const hid_t query = Elements("", H5Q_MATCH_EQUAL, 7);
  const hid_t space = tidelane_query_select(deep, query);
  EXPECT_EQ(H5Sget_select_npoints(space), 3);
  H5Sclose(space);
  H5Qclose(query);
  H5Dclose(deep);
}

TEST_F(QueryApplyTest, AReferenceOpensItsObjectAndFile) {
  const hid_t query = Elements("Pressure", H5Q_MATCH_EQUAL, 31);
  unsigned result = 0;
  const hid_t view = H5Qapply(file_, query, &result, H5P_DEFAULT);
  const hid_t set = H5Dopen2(view, H5Q_VIEW_REF_REG_NAME, H5P_DEFAULT);
  H5R_ref_t reference;
  ASSERT_GE(H5Dread(set, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference), 0);
  const hid_t object = H5Ropen_object(&reference, H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(object, 0);
  const hid_t region = H5Ropen_region(&reference, H5P_DEFAULT, H5P_DEFAULT);
  int value = 0;
  const hsize_t one = 1;
  const hid_t memory = H5Screate_simple(1, &one, nullptr);
  EXPECT_GE(H5Dread(object, H5T_NATIVE_INT, memory, region, H5P_DEFAULT, &value), 0);
  EXPECT_EQ(value, 31);
  H5Sclose(memory);
  H5Sclose(region);
  H5Dclose(object);
  H5Rdestroy(&reference);
  H5Dclose(set);
  H5Gclose(view);
  H5Qclose(query);
}

// Everything that is on the error stack, from the program's call down.
std::string Errors() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_DOWNWARD,
      [](unsigned, const H5E_error2_t* error, void* context) -> herr_t {
        *static_cast<std::string*>(context) += std::string(error->desc) + "; ";
        return 0;
      },
      &text);
  return text;
}

TEST_F(QueryApplyTest, WhatCannotBeAskedSaysWhy) {
  unsigned result = 7;
  const hid_t query = H5Qcreate(H5Q_TYPE_LINK_NAME, H5Q_MATCH_EQUAL, "Pressure");
  const hid_t pressure = H5Dopen2(file_, "Pressure", H5P_DEFAULT);
  H5E_BEGIN_TRY {
    EXPECT_LT(tidelane_query_select(group_, query), 0);
    EXPECT_NE(Errors().find("no dataset"), std::string::npos) << Errors();
    EXPECT_LT(tidelane_query_select(pressure, query), 0);
    EXPECT_NE(Errors().find("go on with the query (no query on elements)"), std::string::npos)
        << Errors();
    EXPECT_LT(H5Qapply(H5P_DEFAULT, query, &result, H5P_DEFAULT), 0);
    EXPECT_NE(Errors().find("neither a file"), std::string::npos) << Errors();
    EXPECT_LT(H5Qapply(file_, file_, &result, H5P_DEFAULT), 0);
  }
  H5E_END_TRY
  H5Dclose(pressure);
  H5Qclose(query);
}

// A file whose object headers have checksums, one of which is wrong.
TEST_F(QueryApplyTest, WhatIsDamagedIsNamedWithItsFile) {
  const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  hid_t file = H5Fcreate("damaged.h5", H5F_ACC_TRUNC, H5P_DEFAULT, list);
  H5Pclose(list);
  const int value = 1;
  Write(file, "broken", {1}, H5T_NATIVE_INT, &value, false);
  H5Fclose(file);
  std::fstream bytes("damaged.h5", std::ios::in | std::ios::out | std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(bytes)), std::istreambuf_iterator<char>());
  const size_t header = all.rfind("OHDR");
  ASSERT_NE(header, std::string::npos);
  bytes.seekp(static_cast<std::streamoff>(header) + 10);
  bytes.put(static_cast<char>(~all[header + 10]));
  bytes.close();
  file = H5Fopen("damaged.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  const hid_t query = Elements("", H5Q_MATCH_EQUAL, 1);
  unsigned result = 0;
  H5E_BEGIN_TRY {
    EXPECT_LT(H5Qapply(file, query, &result, H5P_DEFAULT), 0);
    EXPECT_NE(Errors().find("open object 'broken' below '/' of 'damaged.h5'"), std::string::npos)
        << Errors();
  }
  H5E_END_TRY
  H5Qclose(query);
  H5Fclose(file);
}

}  // namespace
