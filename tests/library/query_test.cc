/// \file
/// The library's queries: what is asked of them, their bytes beside those that the plugin makes of the same query, and bytes that are none.
#include <array>
#include <cmath>
#include <latch>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "../../library/query_bytes.h"
#include "predicate/encoding.h"
#include "predicate/text.h"
#include "tidelane_query.h"

namespace tidelane::predicate {
namespace {

static_assert(TL_QUERY_MOST_DEPTH == kMostDepth && TL_QUERY_MOST_NODES == kMostNodes);
static_assert(TL_QUERY_MOST_NAME == kMostName && TL_QUERY_MOST_BYTES == kMostEncoded);

class LibraryQueryTest : public testing::Test {
 protected:
  LibraryQueryTest() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }
};

std::string BytesOf(hid_t query) {
  size_t size = 0;
  EXPECT_GE(H5Qencode(query, nullptr, &size), 0);
  std::string bytes(size, '\0');
  EXPECT_GE(H5Qencode(query, bytes.data(), &size), 0);
  EXPECT_EQ(size, bytes.size());
  return bytes;
}

// And closes it.
std::string TakeBytes(hid_t query) {
  std::string bytes = BytesOf(query);
  EXPECT_GE(H5Qclose(query), 0);
  return bytes;
}

std::string TypeBytes(hid_t type) {
  size_t size = 0;
  H5Tencode(type, nullptr, &size);
  std::string bytes(size, '\0');
  H5Tencode(type, bytes.data(), &size);
  return bytes;
}

std::string Encoded(Subject subject, const char* name, Comparison comparison,
                    std::vector<Value> values, std::string type = {}) {
  const QueryPtr query = Query::Of(subject, name, {comparison, std::move(values)}, std::move(type));
  return query == nullptr ? "no query" : Encode(*query);
}

std::string Error() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_DOWNWARD,
      [](unsigned, const H5E_error2_t* error, void* to) {
        *static_cast<std::string*>(to) = error->desc;
        return 0;
      },
      &text);
  return text;
}

hid_t OfInt(int value, H5Q_match_op_t op = H5Q_MATCH_LESS_THAN) {
  return H5Qcreate(H5Q_TYPE_DATA_ELEM, op, H5T_NATIVE_INT, &value);
}

template <typename T>
void NumbersAreEncodedAsThePluginDoes(hid_t type, std::vector<T> numbers) {
  for (const T number : numbers) {
    const hid_t query = H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_GREATER_THAN, type, &number);
    EXPECT_EQ(BytesOf(query), Encoded(Subject::kElement, "", Comparison::kGreater,
                                      {static_cast<Number>(number)}, TypeBytes(type)))
        << static_cast<Number>(number);
    hid_t same = H5I_INVALID_HID;
    T back{};
    size_t size = sizeof back;
    EXPECT_GE(tidelane_query_get_value(query, &same, &back, &size), 0) << Error();
    EXPECT_EQ(size, sizeof back);
    EXPECT_GT(H5Tequal(same, type), 0);
    EXPECT_TRUE(back == number ||
                (std::isnan(static_cast<Number>(back)) && std::isnan(static_cast<Number>(number))));
    H5Tclose(same);
    EXPECT_GE(H5Qclose(query), 0);
  }
}

TEST_F(LibraryQueryTest, NumbersKeepTheirTypeAndValue) {
  using D = std::numeric_limits<double>;
  using L = std::numeric_limits<long double>;
  NumbersAreEncodedAsThePluginDoes<signed char>(H5T_NATIVE_SCHAR, {0, -128, 127});
  NumbersAreEncodedAsThePluginDoes<int>(H5T_NATIVE_INT, {0, -1, 17});
  NumbersAreEncodedAsThePluginDoes<int64_t>(H5T_NATIVE_INT64,
                                            {INT64_MIN, INT64_MAX, (1ll << 53) + 1});
  NumbersAreEncodedAsThePluginDoes<uint64_t>(H5T_NATIVE_UINT64, {0, UINT64_MAX, 1ull << 63});
  NumbersAreEncodedAsThePluginDoes<float>(H5T_NATIVE_FLOAT, {0, 0.1f, -3});
  NumbersAreEncodedAsThePluginDoes<double>(
      H5T_NATIVE_DOUBLE, {0, -0.0, 0.1, 1e300, D::infinity(), -D::infinity(), D::quiet_NaN(),
                          5e-324, 9007199254740993.0, 1.8446744073709552e19, 1e19});
  NumbersAreEncodedAsThePluginDoes<long double>(
      H5T_NATIVE_LDOUBLE, {0.1L, 18446744073709551615.0L, 36893488147419103230.0L, L::infinity()});
}

TEST_F(LibraryQueryTest, TypesOfOtherMachinesAreReadAsWhatTheyAre) {
  const std::array<unsigned char, 2> big = {0x01, 0x02};
  EXPECT_EQ(TakeBytes(H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_EQUAL, H5T_STD_U16BE, big.data())),
            Encoded(Subject::kElement, "", Comparison::kEqual, {258.0L}, TypeBytes(H5T_STD_U16BE)));
  const hid_t colours = H5Tenum_create(H5T_NATIVE_INT);
  const int red = 7;
  H5Tenum_insert(colours, "red", &red);
  EXPECT_EQ(TakeBytes(H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_EQUAL, colours, &red)),
            Encoded(Subject::kElement, "", Comparison::kEqual, {7.0L}, TypeBytes(H5T_NATIVE_INT)));
  H5Tclose(colours);
}

TEST_F(LibraryQueryTest, EveryMatchAndSubjectHasItsNumber) {
  const int range[2] = {3, 5};
  const std::string type = TypeBytes(H5T_NATIVE_INT);
  for (int op = 0; op <= 6; ++op) {
    const auto match = static_cast<H5Q_match_op_t>(op);
    const auto comparison = static_cast<Comparison>(op);
    std::vector<Value> values = {3.0L};
    if (match == H5Q_MATCH_BETWEEN) values.emplace_back(5.0L);
    const hid_t query =
        tidelane_query_named(H5Q_TYPE_ATTR_VALUE, "unit", match, H5T_NATIVE_INT, range);
    EXPECT_EQ(BytesOf(query), Encoded(Subject::kAttributeValue, "unit", comparison, values, type));
    H5Q_type_t is = H5Q_TYPE_MISC;
    H5Q_match_op_t how = H5Q_MATCH_EQUAL;
    EXPECT_GE(H5Qget_match_info(query, &is, &how), 0);
    EXPECT_EQ(is, H5Q_TYPE_ATTR_VALUE);
    EXPECT_EQ(how, match);
    EXPECT_GE(H5Qget_match_op(query, &how), 0);
    EXPECT_GE(H5Qget_match_info(query, nullptr, nullptr), 0);
    char name[4] = "???";
    EXPECT_EQ(tidelane_query_get_name(query, name, sizeof name), 4);
    EXPECT_STREQ(name, "uni");
    EXPECT_EQ(tidelane_query_get_name(query, nullptr, 0), 4);
    int back[2] = {0, 0};
    size_t size = sizeof back;
    EXPECT_GE(tidelane_query_get_value(query, nullptr, back, &size), 0);
    EXPECT_EQ(size, values.size() * sizeof(int));
    EXPECT_EQ(back[0], 3);
    EXPECT_EQ(back[1], match == H5Q_MATCH_BETWEEN ? 5 : 0);
    EXPECT_GE(H5Qclose(query), 0);
  }
  EXPECT_EQ(TakeBytes(H5Qcreate(H5Q_TYPE_ATTR_NAME, H5Q_MATCH_NOT_EQUAL, "unit")),
            Encoded(Subject::kAttributeName, "", Comparison::kNotEqual, {"unit"}));
  EXPECT_EQ(TakeBytes(H5Qcreate(H5Q_TYPE_LINK_NAME, H5Q_MATCH_BETWEEN, "a", "b")),
            Encoded(Subject::kLinkName, "", Comparison::kBetween, {"a", "b"}));
}

TEST_F(LibraryQueryTest, StringsOfEachKind) {
  const auto fixed = [](H5T_str_t padding, const char* text, size_t size) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, size);
    H5Tset_strpad(type, padding);
    const hid_t query = H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_EQUAL, type, text);
    std::string back(size, '?');
    EXPECT_GE(tidelane_query_get_value(query, nullptr, back.data(), &size), 0) << Error();
    const hid_t again = H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_EQUAL, type, back.data());
    EXPECT_EQ(TakeBytes(again), BytesOf(query));
    std::string why;
    const std::string bytes = TakeBytes(query);
    const QueryPtr read = Decode(std::as_bytes(std::span(bytes)), why);
    EXPECT_NE(read, nullptr) << why;
    EXPECT_EQ(read->type(), TypeBytes(type));
    H5Tclose(type);
    return std::get<std::string>(read->condition().values[0]);
  };
  EXPECT_EQ(fixed(H5T_STR_NULLTERM, "ab\0c", 4), "ab");
  EXPECT_EQ(fixed(H5T_STR_NULLPAD, "a\0b\0", 4), std::string("a\0b", 3));
  EXPECT_EQ(fixed(H5T_STR_SPACEPAD, "a b  ", 5), "a b");
  EXPECT_EQ(fixed(H5T_STR_NULLTERM, "abcd", 4), "abcd");

  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  const char* texts[2] = {"first", nullptr};
  const hid_t query = H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_BETWEEN, type, texts);
  EXPECT_EQ(BytesOf(query),
            Encoded(Subject::kElement, "", Comparison::kBetween, {"first", ""}, TypeBytes(type)));
  char* back[2] = {nullptr, nullptr};
  size_t size = sizeof back;
  hid_t same = H5I_INVALID_HID;
  ASSERT_GE(tidelane_query_get_value(query, &same, back, &size), 0) << Error();
  EXPECT_GT(H5Tequal(same, type), 0);
  EXPECT_STREQ(back[0], "first");
  EXPECT_STREQ(back[1], "");
  H5free_memory(back[0]);
  H5free_memory(back[1]);
  H5Tclose(same);
  H5Tclose(type);
  H5Qclose(query);
}

TEST_F(LibraryQueryTest, CombinationsAreTheirPartsWhichMayBeClosed) {
  const hid_t low = OfInt(1, H5Q_MATCH_GREATER_EQUAL);
  const hid_t high = OfInt(9);
  const hid_t name = H5Qcreate(H5Q_TYPE_LINK_NAME, H5Q_MATCH_EQUAL, "T");
  const std::string low_bytes = BytesOf(low);
  const hid_t range = H5Qcombine(low, H5Q_COMBINE_AND, high);
  const hid_t negated = H5Qnegate(range);
  const hid_t all = H5Qcombine(negated, H5Q_COMBINE_OR, name);
  H5Q_type_t type = H5Q_TYPE_LINK_NAME;
  EXPECT_GE(H5Qget_type(range, &type), 0);
  EXPECT_EQ(type, H5Q_TYPE_DATA_ELEM);
  EXPECT_GE(H5Qget_type(all, &type), 0);
  EXPECT_EQ(type, H5Q_TYPE_MISC);
  for (const hid_t part : {low, high, name, range, negated}) EXPECT_GE(H5Qclose(part), 0);

  const std::string int_type = TypeBytes(H5T_NATIVE_INT);
  const auto of = [&](Comparison comparison, long double number) {
    return Query::Of(Subject::kElement, "", {comparison, {Value(number)}}, int_type);
  };
  const QueryPtr expected =
      Query::Or(Query::Not(Query::And(of(Comparison::kGreaterEqual, 1), of(Comparison::kLess, 9))),
                Query::Of(Subject::kLinkName, "", {Comparison::kEqual, {"T"}}));
  EXPECT_EQ(BytesOf(all), Encode(*expected));

  H5Q_combine_op_t op = H5Q_SINGLETON;
  hid_t left = H5I_INVALID_HID;
  hid_t right = H5I_INVALID_HID;
  EXPECT_GE(H5Qget_combine_op(all, &op), 0);
  EXPECT_EQ(op, H5Q_COMBINE_OR);
  ASSERT_GE(H5Qget_components(all, &left, &right), 0);
  EXPECT_EQ(BytesOf(left), Encode(*expected->left()));
  EXPECT_EQ(TakeBytes(right), Encode(*expected->right()));
  EXPECT_GE(H5Qclose(all), 0);
  hid_t inner = H5I_INVALID_HID;
  EXPECT_GE(H5Qget_combine_op(left, &op), 0);
  EXPECT_EQ(op, H5Q_COMBINE_NOT);
  ASSERT_GE(H5Qget_components(left, &inner, &right), 0);
  EXPECT_EQ(right, H5I_INVALID_HID);
  EXPECT_GE(H5Qclose(left), 0);
  ASSERT_GE(H5Qget_components(inner, &left, &right), 0);
  EXPECT_EQ(TakeBytes(left), low_bytes);
  EXPECT_GE(H5Qget_combine_op(right, &op), 0);
  EXPECT_EQ(op, H5Q_SINGLETON);
  EXPECT_GE(H5Qclose(right), 0);
  EXPECT_GE(H5Qclose(inner), 0);
}

TEST_F(LibraryQueryTest, AQueryIsAnIdentifierOfHdf5) {
  const hid_t query = OfInt(1);
  EXPECT_GE(static_cast<int>(H5Iget_type(query)), static_cast<int>(H5I_NTYPES));
  EXPECT_EQ(H5Iinc_ref(query), 2);
  EXPECT_GE(H5Qclose(query), 0);
  EXPECT_EQ(H5Iget_ref(query), 1);
  EXPECT_EQ(H5Idec_ref(query), 0);
  EXPECT_LT(H5Qclose(query), 0);
  EXPECT_EQ(Error(), "not a query");
}

// What a program leaves open does not keep HDF5 from closing, which it would complain about.
TEST_F(LibraryQueryTest, QueriesEndWithHdf5AndCanBeMadeAgain) {
  const hid_t left_open = OfInt(1);
  H5Eset_auto2(H5E_DEFAULT, reinterpret_cast<H5E_auto2_t>(H5Eprint2), stderr);
  testing::internal::CaptureStderr();
  EXPECT_GE(H5close(), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  EXPECT_LT(H5Qclose(left_open), 0);
  const hid_t query = OfInt(2);
  EXPECT_GE(query, 0);
  EXPECT_GE(H5Qclose(query), 0);
}

// Each of them may be the one that registers the type of queries.
TEST_F(LibraryQueryTest, ThreadsMakeTheFirstQueriesAtOnce) {
  hbool_t safe = false;
  H5is_library_threadsafe(&safe);
  if (!safe) GTEST_SKIP() << "an HDF5 for one thread at a time";
  for (int round = 0; round < 100; ++round) {
    H5close();
    std::vector<hid_t> queries(4, H5I_INVALID_HID);
    std::latch all(static_cast<std::ptrdiff_t>(queries.size()));
    std::vector<std::thread> threads;
    for (hid_t& query : queries) {
      threads.emplace_back([&] {
        all.arrive_and_wait();
        query = OfInt(5);
      });
    }
    for (std::thread& thread : threads) thread.join();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    for (const hid_t query : queries) EXPECT_EQ(TakeBytes(query), TakeBytes(OfInt(5)));
  }
}

TEST_F(LibraryQueryTest, ErrorsSayWhatIsWrong) {
  const int one = 1;
  const long double tiny = std::numeric_limits<long double>::denorm_min();
  const auto refused = [](hid_t query, const char* why) {
    EXPECT_LT(query, 0);
    EXPECT_EQ(Error(), why);
  };
  refused(H5Qcreate(H5Q_TYPE_MISC, H5Q_MATCH_EQUAL, "x"), "not a type of query that is created");
  refused(OfInt(1, static_cast<H5Q_match_op_t>(7)), "not a match operation");
  refused(H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_EQUAL, H5P_DEFAULT, &one), "not a datatype");
  refused(H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_EQUAL, H5T_NATIVE_INT, nullptr), "no value");
  refused(H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_EQUAL, H5T_STD_REF_OBJ, &one),
          "a constant is a number or a string");
  refused(H5Qcreate(H5Q_TYPE_DATA_ELEM, H5Q_MATCH_EQUAL, H5T_NATIVE_LDOUBLE, &tiny),
          "a number that no double, nor the sum of two, holds");
  refused(H5Qcreate(H5Q_TYPE_LINK_NAME, H5Q_MATCH_EQUAL, nullptr), "no name");
  refused(tidelane_query_named(H5Q_TYPE_LINK_NAME, "x", H5Q_MATCH_EQUAL, H5T_NATIVE_INT, &one),
          "neither H5Q_TYPE_DATA_ELEM nor H5Q_TYPE_ATTR_VALUE");
  refused(tidelane_query_named(H5Q_TYPE_DATA_ELEM, std::string(65536, 'x').c_str(), H5Q_MATCH_EQUAL,
                               H5T_NATIVE_INT, &one),
          "the name is longer than 65535 bytes");
  const hid_t query = OfInt(1);
  refused(H5Qcombine(query, H5Q_COMBINE_NOT, query), "neither H5Q_COMBINE_AND nor H5Q_COMBINE_OR");
  refused(H5Qcombine(query, H5Q_COMBINE_AND, H5T_NATIVE_INT), "not a query");
  hid_t part = H5I_INVALID_HID;
  refused(H5Qget_components(query, &part, &part), "not a combination");
  char small = 0;
  size_t size = sizeof small;
  refused(tidelane_query_get_value(query, nullptr, &small, &size), "the values need more room");
  unsigned result = 0;
  refused(H5Qapply(query, query, &result, H5P_DEFAULT), "neither a file, a group nor a dataset");
  const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(fapl, 65536, 0);
  hid_t file = H5Fcreate("native", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
  refused(H5Qapply(file, query, &result, H5P_DEFAULT),
          "queries are applied by the plugin tidelane, which is not in charge of this file (or is "
          "one that knows no queries)");
  refused(H5Qapply_multi(0, &file, query, &result, H5P_DEFAULT), "no location");
  refused(H5Qapply_async(file, query, nullptr, H5P_DEFAULT, H5ES_NONE), "no place for the result");
  H5Pclose(fapl);
  H5Fclose(file);
  H5Qclose(query);
}

TEST_F(LibraryQueryTest, LimitsAreThePlugins) {
  hid_t deep = OfInt(1);
  for (size_t i = 1; i < kMostDepth; ++i) {
    const hid_t next = H5Qnegate(deep);
    ASSERT_GE(next, 0) << i;
    H5Qclose(deep);
    deep = next;
  }
  EXPECT_LT(H5Qnegate(deep), 0);
  EXPECT_EQ(Error(), "the query is too deep: at most 256 combinations in each other");
  H5Qclose(deep);
  hid_t wide = OfInt(1);
  for (size_t nodes = 1; 2 * nodes + 1 <= kMostNodes; nodes = 2 * nodes + 1) {
    const hid_t next = H5Qcombine(wide, H5Q_COMBINE_OR, wide);
    ASSERT_GE(next, 0);
    H5Qclose(wide);
    wide = next;
  }
  EXPECT_LT(H5Qcombine(wide, H5Q_COMBINE_OR, wide), 0);
  EXPECT_EQ(Error(), "the query is too large: it has at most 65536 parts");
  H5Qclose(wide);
}

void FreeStrings(hid_t type, char* values, size_t size) {
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) <= 0) return;
  for (size_t at = 0; at < size; at += sizeof(char*)) {
    H5free_memory(*reinterpret_cast<char**>(values + at));
  }
}

// What one of the two reads, the other one does, and to the same bytes.
bool BothSay(const std::string& bytes) {
  std::string why;
  const QueryPtr plugin = Decode(std::as_bytes(std::span(bytes)), why);
  const std::vector<char> copy(bytes.begin(), bytes.end());  // of exactly that size, for sanitizers
  const hid_t library = tidelane_query_decode(copy.data(), copy.size());
  EXPECT_EQ(library >= 0, plugin != nullptr) << why;
  if (library < 0) return false;
  EXPECT_EQ(BytesOf(library), bytes);
  H5Q_combine_op_t op = H5Q_SINGLETON;
  H5Qget_combine_op(library, &op);
  std::vector<char> value(4096);
  size_t size = value.size();
  hid_t type = H5I_INVALID_HID;
  if (op == H5Q_SINGLETON && tidelane_query_get_value(library, &type, value.data(), &size) >= 0) {
    FreeStrings(type, value.data(), size);
    H5Tclose(type);
  }
  EXPECT_GE(H5Qclose(library), 0);
  return true;
}

TEST_F(LibraryQueryTest, BytesAreCheckedAsThePluginDoes) {
  std::mt19937_64 random(5);
  std::vector<std::string> good;
  std::string why;
  for (const char* text :
       {"x < 1", "not isnan(x) or y in (1, 2.5, -0.0)", "s == 'text' and 0.1L < z", "x == inf"}) {
    good.push_back(Encode(*Parse(text, why)));
  }
  good.push_back(TakeBytes(OfInt(3)));
  good.push_back(TakeBytes(H5Qcreate(H5Q_TYPE_LINK_NAME, H5Q_MATCH_EQUAL, "link")));
  for (const std::string& bytes : good) {
    EXPECT_TRUE(BothSay(bytes));
    const hid_t unsized = H5Qdecode(bytes.data());
    EXPECT_EQ(TakeBytes(unsized), bytes);
    for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(BothSay(bytes.substr(0, size)));
    EXPECT_FALSE(BothSay(bytes + "x"));
  }
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = good[random() % good.size()];
    for (size_t flips = 1 + random() % 2; flips > 0; --flips) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    }
    read += BothSay(bytes);
  }
  EXPECT_GT(read, 300);
  EXPECT_LT(read, 2700);
  std::string deep("H5Q1\x10\x27\0\0", 8);
  deep.append(10000, '\4');
  EXPECT_FALSE(BothSay(deep));
  EXPECT_LT(tidelane_query_decode("H5Q2", 4), 0);
  EXPECT_EQ(Error(), "at byte 0: no encoded query, or one of a version that is not known here");
}

TEST_F(LibraryQueryTest, ValuesOfQueriesWithoutTypesHaveOneThatHoldsThem) {
  std::string why;
  const auto type_of = [&](const char* text) {
    const std::string bytes = Encode(*Parse(text, why));
    const hid_t query = tidelane_query_decode(bytes.data(), bytes.size());
    hid_t type = H5I_INVALID_HID;
    alignas(char*) std::array<char, 64> value;
    size_t size = value.size();
    EXPECT_GE(tidelane_query_get_value(query, &type, value.data(), &size), 0) << Error();
    FreeStrings(type, value.data(), size);
    H5Qclose(query);
    return type;
  };
  EXPECT_GT(H5Tequal(type_of("x < 3"), H5T_NATIVE_INT64), 0);
  EXPECT_GT(H5Tequal(type_of("x < 18446744073709551615"), H5T_NATIVE_UINT64), 0);
  EXPECT_GT(H5Tequal(type_of("x < 0.5"), H5T_NATIVE_DOUBLE), 0);
  EXPECT_GT(H5Tequal(type_of("x between -1 and 18446744073709551615"), H5T_NATIVE_LDOUBLE), 0);
  EXPECT_GT(H5Tis_variable_str(type_of("x == 'a'")), 0);
}

// A type that the constants do not fit, in bytes that are otherwise a query.
TEST_F(LibraryQueryTest, ConstantsThatDoNotFitTheirTypeAreNotGiven) {
  const auto given = [](Value value, const std::string& type) {
    const std::string bytes =
        Encoded(Subject::kElement, "", Comparison::kEqual, {std::move(value)}, type);
    const hid_t query = tidelane_query_decode(bytes.data(), bytes.size());
    EXPECT_GE(query, 0);
    std::array<char, 64> to;
    size_t size = to.size();
    const herr_t result = tidelane_query_get_value(query, nullptr, to.data(), &size);
    const std::string said = result < 0 ? Error() : "given";
    H5Qclose(query);
    return said;
  };
  EXPECT_EQ(given(1.0L, TypeBytes(H5T_NATIVE_SCHAR)), "given");
  EXPECT_EQ(given(1000.0L, TypeBytes(H5T_NATIVE_SCHAR)), "a constant does not fit its type");
  EXPECT_EQ(given(0.5L, TypeBytes(H5T_NATIVE_INT)), "a constant does not fit its type");
  EXPECT_EQ(given(-1.0L, TypeBytes(H5T_NATIVE_UINT)), "a constant does not fit its type");
  EXPECT_EQ(given(0.1L, TypeBytes(H5T_NATIVE_DOUBLE)), "a constant does not fit its type");
  EXPECT_EQ(given("ab", TypeBytes(H5T_C_S1)), "a constant is longer than its type");
  EXPECT_EQ(given("ab", TypeBytes(H5T_NATIVE_INT)), "the constants are none of their type");
  EXPECT_EQ(given(1.0L, "noise"), "the constants' type is none that a query is created with");
  EXPECT_EQ(given(1.0L, TypeBytes(H5T_STD_REF_OBJ)),
            "the constants' type is none that a query is created with");
}

}  // namespace
}  // namespace tidelane::predicate
