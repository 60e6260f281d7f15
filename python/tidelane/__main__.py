"""`python -m tidelane run script.py [arguments]` and `eval "$(python -m tidelane env)"`."""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import shlex
import sys
from typing import Iterator

from . import _enable, _plugin


def _options(items: list[str]) -> dict[str, str]:
    options = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise _enable.SettingError(f"--set {item}: expected name=value")
        options[name] = value
    return options


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except (_enable.SettingError, _enable.TooLateError, RuntimeError) as error:
        sys.exit(f"tidelane: {error}")


def _run(arguments: argparse.Namespace) -> None:
    if not arguments.program:
        sys.exit("python -m tidelane run: which script? (or -m and a module)")
    with _plain_errors():
        _enable.enable(**_options(arguments.set))
    if arguments.program[0] == "-m":
        sys.argv = arguments.program[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments.program
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


def _env(arguments: argparse.Namespace) -> None:
    with _plain_errors():
        variables = _enable.environment(_enable.checked(_options(arguments.set)))
    for name, text in variables.items():
        print(f"export {name}={shlex.quote(text)}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tidelane", description="HDF5 programs compute while their data is written.")
    parser.add_argument("--version", action="version", version=f"tidelane {_plugin.version()}")
    commands = parser.add_subparsers(required=True, metavar="run | env")
    run = commands.add_parser("run", help="run a script, or -m and a module, with every HDF5 file through Tidelane")
    env = commands.add_parser("env", help="print the variables for a shell")
    for command in (run, env):
        command.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting, such as close=deferred")
    run.add_argument("program", nargs=argparse.REMAINDER, metavar="script.py [arguments]")
    run.set_defaults(do=_run)
    env.set_defaults(do=_env)
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    main()
