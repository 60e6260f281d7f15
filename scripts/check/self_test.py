#!/usr/bin/env python3
"""Checks that the checks would notice: each rule is given something that breaks it."""

import pathlib
import tempfile
import unittest

import ranks
import sizes
import structure


class Ranks(unittest.TestCase):
    RANKS = {"base": 0, "buffer": 1, "extent": 1, "h5": 4, "vol": 5, "vfd": 5}

    def allowed(self, room, bracket, target):
        return ranks.problem_of(room, bracket, target, self.RANKS) is None

    def test_lower_ranks_and_the_room_itself_are_allowed(self):
        self.assertTrue(self.allowed("extent", '"', "base/status.h"))
        self.assertTrue(self.allowed("extent", '"', "extent/map.h"))
        self.assertTrue(self.allowed("base", "<", "vector"))
        self.assertTrue(self.allowed("h5", "<", "hdf5.h"))
        self.assertTrue(self.allowed("vol", '"', "h5/hdf5.h"))

    def test_higher_ranks_and_neighbours_are_refused(self):
        self.assertFalse(self.allowed("base", '"', "extent/map.h"))
        self.assertFalse(self.allowed("extent", '"', "buffer/arena.h"))
        self.assertFalse(self.allowed("vol", '"', "vfd/driver.h"))

    def test_hdf5_and_mpi_belong_to_h5(self):
        self.assertFalse(self.allowed("vol", "<", "hdf5.h"))
        self.assertFalse(self.allowed("vfd", "<", "H5FDdevelop.h"))
        self.assertFalse(self.allowed("base", "<", "mpi.h"))

    def test_unknown_rooms_and_roomless_includes_are_refused(self):
        self.assertFalse(self.allowed("vol", '"', "attic/x.h"))
        self.assertFalse(self.allowed("vol", '"', "table.h"))

    def test_floors_of_a_room(self):
        def why(path, target):
            return ranks.problem_of_floors(path, target, {"vol": ["call", "write"]})

        for path, target in [("vol/write/x.cc", "vol/call/y.h"), ("vol/write/x.cc", "vol/write/y.h"), ("vol/table.h", "vol/write/y.h"),
                             ("vol/call/x.cc", "base/y.h"), ("base/x.cc", "base/y.h")]:
            self.assertIsNone(why(path, target))
        for path, target in [("vol/call/x.cc", "vol/write/y.h"), ("vol/call/x.cc", "vol/table.h"), ("vol/attic/x.cc", "base/y.h")]:
            self.assertIsNotNone(why(path, target))

    def test_a_tree_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            repo = pathlib.Path(folder)
            (repo / "CMakeLists.txt").write_text("set(TIDELANE_RANK_0 base)\nset(TIDELANE_RANK_1 extent\n  buffer)\n")
            (repo / "src/extent").mkdir(parents=True)
            (repo / "src/extent/map.cc").write_text('#include "base/x.h"\n#  include "buffer/y.h"\n')
            self.assertEqual(len(ranks.check(repo)), 1)
            (repo / "src/extent/map.h").write_text('#include "extent/test_hooks.h"\n')
            self.assertEqual(len(ranks.check(repo)), 2)


class Sizes(unittest.TestCase):
    def lengths(self, text):
        return {name: length for _, length, name in sizes.cpp_functions(text)}

    def test_functions_are_found(self):
        code = "namespace a {\nclass B : public C<int> {\n int f(int x) const override {\n  return 1;\n }\n};\n" \
               "Status g(const char* s)\n    noexcept {\n  if (s) {\n    h();\n  }\n}\n}\n"
        self.assertEqual(self.lengths(code), {"f": 3, "g": 5})

    def test_braces_in_literals_and_comments_do_not_count(self):
        code = 'void f() {\n  a("}{");  // }\n  b(\'}\');\n  /* } */\n  n(1\'000\'000);\n  c(R"x(}})x");\n}\nvoid g() {\n}\n'
        self.assertEqual(self.lengths(code), {"f": 7, "g": 2})

    def test_test_macros_and_constructors_count(self):
        code = "TEST(A, B) {\n  x();\n}\nF::F(int a) : a_(a), b_(2) {\n  y();\n}\n"
        self.assertEqual(sorted(self.lengths(code).values()), [3, 3])

    def test_types_do_not_count(self):
        code = "struct A {\n int x = f(2);\n int y;\n};\nenum class E : int {\n a,\n b\n};\nint table[] = {\n 1,\n};\n"
        self.assertEqual(self.lengths(code), {})

    def test_a_long_function_is_noticed(self):
        code = "void f() {\n" + "  x();\n" * 70 + "}\n"
        self.assertGreater(self.lengths(code)["f"], sizes.FUNCTION_MAX)


class Structure(unittest.TestCase):
    NONE = {"classes": {}, "definitions": [], "circles": []}

    def measured(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, "src", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return structure.measure(pathlib.Path(folder))

    def test_members_and_methods_are_counted(self):
        fields = "".join(f"  int f{i}_ TL_GUARDED_BY(mutex_) = {i};\n" for i in range(41))
        methods = "".join(f"  void m{i}() const TL_EXCLUDES(mutex_);\n" for i in range(42))
        now = self.measured({"a/x.h": f"namespace n {{\nclass X {{\n public:\n{methods} private:\n{fields}}};\n}}\n"})
        self.assertEqual(now["classes"], {"n::X": [41, 42]})
        self.assertTrue(structure.problems_of(now, self.NONE))
        self.assertFalse(structure.problems_of(now, now))

    def test_the_list_only_shrinks(self):
        allowed = {**self.NONE, "classes": {"n::X": [50, 10]}}
        self.assertTrue(structure.problems_of({**self.NONE, "classes": {"n::X": [51, 10]}}, allowed))
        self.assertIn("--fix", structure.problems_of({**self.NONE, "classes": {"n::X": [49, 10]}}, allowed)[0])

    def test_what_another_room_defines_is_seen(self):
        header = {"a/x.h": "namespace n {\nvoid F(int);\nvoid G();\n}\n"}
        now = self.measured({**header, "b/y.cc": '#include "a/x.h"\nnamespace n {\nvoid F(int) {\n}\n}\n'})
        self.assertEqual(now["definitions"], ["n::F: src/a/x.h, src/b/y.cc"])
        self.assertTrue(structure.problems_of(now, self.NONE))

    def test_circles_through_sources_are_seen(self):
        now = self.measured({"a/x.h": "void F();\n", "a/x.cc": '#include "a/y.h"\nvoid F() {\n}\n', "a/y.h": '#include "a/z.h"\n',
                             "a/z.h": "void G();\n", "a/other.cc": '#include "a/z.h"\n#include "a/x.h"\nvoid G() {\n}\n'})
        self.assertEqual(now["circles"], [["src/a/x.h", "src/a/y.h", "src/a/z.h"]])
        self.assertTrue(structure.problems_of(now, self.NONE))
        self.assertFalse(structure.problems_of({**now, "circles": [["src/a/x.h", "src/a/y.h"]]}, now)[0].startswith("a circle"))


if __name__ == "__main__":
    unittest.main()
