/// \file
/// Where elements lie: which place an address is in, and that what a call says of it ends with the call.
#include "file/element_places.h"

#include <gtest/gtest.h>

#include "file/call_scope.h"

namespace tidelane {
namespace {

TEST(ElementPlacesTest, AnAddressIsInOnePlaceOrInNone) {
  ElementPlaces places;
  EXPECT_EQ(places.Of(100), 0u);
  places.Add({100, 200});
  for (const uint64_t outside : {0, 99, 200, 1000}) EXPECT_EQ(places.Of(outside), 0u) << outside;
  for (const uint64_t inside : {100, 150, 199}) EXPECT_EQ(places.Of(inside), 100u) << inside;
  places.Add({20, 60});
  places.Add({200, 300});
  places.Sort();
  for (const uint64_t outside : {0, 19, 60, 99, 300}) EXPECT_EQ(places.Of(outside), 0u) << outside;
  EXPECT_EQ(places.Of(59), 20u);
  EXPECT_EQ(places.Of(199), 100u);
  EXPECT_EQ(places.Of(200), 200u);
  places.Clear();
  EXPECT_EQ(places.Of(59), 0u);
}

TEST(ElementPlacesTest, PlacesThatOverlapAreNone) {
  ElementPlaces places;
  places.Add({100, 201});
  places.Add({200, 300});
  places.Sort();
  EXPECT_TRUE(places.empty());
}

TEST(ElementPlacesTest, TheInnermostCallSaysIt) {
  ElementPlaces outer, inner;
  outer.Add({100, 200});
  inner.Add({150, 200});
  EXPECT_EQ(CallContext::Current().PlaceOf(160), 0u);
  {
    const ElementsIn elements(&outer);
    EXPECT_EQ(CallContext::Current().PlaceOf(160), 100u);
    EXPECT_EQ(CallContext::Current().ForMetadata().PlaceOf(160), 0u);
    {
      const ElementsIn others(&inner);
      EXPECT_EQ(CallContext::Current().PlaceOf(160), 150u);
      const ElementsIn unknown(nullptr);
      EXPECT_EQ(CallContext::Current().PlaceOf(160), 0u);
    }
    EXPECT_EQ(CallContext::Current().PlaceOf(160), 100u);
  }
  EXPECT_EQ(CallContext::Current().PlaceOf(160), 0u);
}

}  // namespace
}  // namespace tidelane
