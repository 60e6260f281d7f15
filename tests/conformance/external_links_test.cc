// External links that are followed with a file access list of their own: HDF5 opens the file without asking any connector.
#include "conformance/fixture.h"

namespace tidelane::testing {
namespace {

constexpr size_t kMany = 4 * kElements;  // more than HDF5's sieve buffer holds

class ExternalLinks : public Conformance {
 protected:
  std::string target() const { return in_folder("target.h5"); }
  // A file with one link, to all of the target.
  Hid create_linking(hid_t fapl = H5P_DEFAULT) const {
    Hid linking = create(file(), fapl);
    EXPECT_GE(H5Lcreate_external("target.h5", "/", linking, "link", H5P_DEFAULT, H5P_DEFAULT), 0);
    return linking;
  }
  Environment unlocked() const {
    Environment settings = environment();
    settings["HDF5_USE_FILE_LOCKING"] = "FALSE";
    return settings;
  }
};

Hid list_with(hid_t fapl) {
  Hid list(H5Pcreate(H5P_LINK_ACCESS));
  EXPECT_GE(H5Pset_elink_fapl(list, fapl), 0);
  return list;
}

Hid follow(hid_t linking, hid_t lapl) {
  Hid group(H5Gopen2(linking, "link", lapl));
  EXPECT_TRUE(group.valid()) << error_text();
  return group;
}

hid_t driver_of(hid_t object) {
  const Hid opened(H5Iget_file_id(object));
  return H5Pget_driver(Hid(H5Fget_access_plist(opened)));
}

TEST_P(ExternalLinks, WithAListOfItsOwnALinkReachesAFileThatIsOpen) {
  const auto scenario = [&] {
    const Hid linking = create_linking();
    const Hid opened = create(target());
    put(opened, "a", 1);
    const Hid fapl(H5Pcreate(H5P_FILE_ACCESS));
    const Hid list = list_with(fapl);
    const Hid group = follow(linking, list);
    expect_dataset(group, "a", 1);
    overwrite(opened, "a", 2);
    expect_dataset(group, "a", 2);
    put(group, "b", 3);
    expect_dataset(opened, "b", 3);
    EXPECT_EQ(driver_of(group), H5FD_SEC2);
    const Hid kept([&] {
      hid_t given = H5I_INVALID_HID;
      EXPECT_GE(H5Pget(list, "external link fapl", &given), 0);
      return given;
    }());
    EXPECT_EQ(H5Pget_driver(kept), H5FD_SEC2);
  };
  const auto twice = [&] {
    scenario();
    EXPECT_GE(H5close(), 0);  // and what was set up in the library is set up again
    EXPECT_GE(H5open(), 0);
    scenario();
  };
  run_deferring(twice);
  expect_natively(target(), {{"a", 2}, {"b", 3}});
  run(twice, unlocked());
  expect_natively(target(), {{"a", 2}, {"b", 3}});
}

TEST_P(ExternalLinks, WithAListOfItsOwnALinkReachesAFileThatWasJustClosed) {
  run_deferring([&] {
    const Hid linking = create_linking();
    put(create(target()), "a", 1);
    const Hid group = follow(linking, list_with(Hid(H5Pcreate(H5P_FILE_ACCESS))));
    expect_dataset(group, "a", 1);
    put(group, "b", 2);
  });
  expect_natively(target(), {{"a", 1}, {"b", 2}});
}

struct Asked {
  int times = 0;
  hid_t driver = H5I_INVALID_HID;     // that it saw
  herr_t (*choose)(hid_t) = nullptr;  // what it does to the list
};

herr_t note(const char*, const char*, const char* file, const char* object, unsigned*, hid_t fapl,
            void* data) {
  Asked& asked = *static_cast<Asked*>(data);
  ++asked.times;
  asked.driver = H5Pget_driver(fapl);
  EXPECT_EQ(std::string(file), "target.h5");
  EXPECT_EQ(std::string(object), "/");
  return asked.choose == nullptr ? 0 : asked.choose(fapl);
}

TEST_P(ExternalLinks, ACallbackSeesAndChoosesDriversAsNatively) {
  const Summary summary = run([&] {
    const Hid linking = create_linking();
    put(create(target()), "a", 1);
    const Hid core(H5Pcreate(H5P_FILE_ACCESS));
    EXPECT_GE(H5Pset_fapl_core(core, 1 << 16, false), 0);
    for (const bool own_list : {false, true}) {
      Asked asked;
      const Hid list = own_list ? list_with(core) : Hid(H5Pcreate(H5P_LINK_ACCESS));
      EXPECT_GE(H5Pset_elink_cb(list, note, &asked), 0);
      EXPECT_GE(H5Pset_elink_acc_flags(list, H5F_ACC_RDWR), 0);
      const auto reached = [&] {
        const Hid group = follow(linking, list);
        expect_dataset(group, "a", 1);
        return driver_of(group);
      };
      EXPECT_EQ(reached(), own_list ? H5FD_CORE : H5FD_SEC2);
      EXPECT_EQ(asked.driver, own_list ? H5FD_CORE : H5FD_SEC2);
      asked.choose = [](hid_t fapl) { return H5Pset_fapl_core(fapl, 1 << 16, false); };
      EXPECT_EQ(reached(), H5FD_CORE);
      asked.choose = H5Pset_fapl_sec2;
      EXPECT_EQ(reached(), H5FD_SEC2);
      asked.choose = [](hid_t) { return -1; };
      EXPECT_LT(H5Gopen2(linking, "link", list), 0);
      EXPECT_NE(error_text().find("traversal operator failed"), std::string::npos) << error_text();
      EXPECT_EQ(asked.times, 4);
      H5L_elink_traverse_t callback = nullptr;
      void* data = nullptr;
      EXPECT_GE(H5Pget_elink_cb(list, &callback, &data), 0);
      EXPECT_TRUE(callback == note && data == &asked);
    }
  });
  if (plugged()) {
    EXPECT_EQ(summary.counter("errors"), 0);
  }
}

// Its bytes are stored when the other driver opens the file, and whatever is written later at once.
TEST_P(ExternalLinks, AnotherDriverFindsWhatWasWrittenToAFileThatIsOpen) {
  run(
      [&] {
        const Hid linking = create_linking();
        const Hid opened = create(target());
        put(opened, "a", 1, kMany);
        EXPECT_GE(H5Fflush(opened, H5F_SCOPE_GLOBAL), 0);
        overwrite(opened, "a", 2, kMany);
        const Hid log(H5Pcreate(H5P_FILE_ACCESS));
        EXPECT_GE(H5Pset_fapl_log(log, nullptr, 0, 0), 0);
        const Hid list = list_with(log);
        EXPECT_GE(H5Pset_elink_acc_flags(list, H5F_ACC_RDONLY), 0);
        const Hid group = follow(linking, list);
        EXPECT_EQ(driver_of(group), H5FD_LOG);
        expect_dataset(group, "a", 2, kMany);
        overwrite(opened, "a", 3, kMany);
        expect_dataset(group, "a", 3, kMany);
      },
      unlocked());
}

TEST_P(ExternalLinks, FilesThatAreOpenedWithoutTheConnectorAreLeftAlone) {
  const Summary summary = run([&] {
    const Hid ours = create(in_folder("ours.h5"));
    const Hid natively(H5Pcreate(H5P_FILE_ACCESS));
    const Hid connector(H5VLget_connector_id_by_name("native"));
    EXPECT_GE(H5Pset_vol(natively, connector, nullptr), 0);
    {
      const Hid made = create(target(), natively);
    }
    const Hid linking = create_linking(natively);
    put(follow(linking, list_with(natively)), "a", 1);
  });
  if (plugged()) {
    EXPECT_EQ(summary.counter("files_opened"), 1);
  }
  expect_natively(target(), {{"a", 1}});
}

CONFORMANCE_WAYS(ExternalLinks, kNative, kImplicit, kDeferredClose, kDeferredAll, kAuto);

}  // namespace
}  // namespace tidelane::testing
