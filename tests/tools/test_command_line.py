"""What can be typed: help, mistakes, completions, the man page. All of it comes from one table, so they must agree."""

import re
import shutil
import subprocess

import pytest
from conftest import REPO, error_line

COMMANDS = ["run", "check", "report", "trace", "predict", "config", "recover", "status", "drain", "mover", "query", "completion"]


def options_of(tidelane, command):
    return set(re.findall(r"(--[a-z][a-z0-9-]+)", tidelane(command, "--help").stdout.split("Options:")[1].split("Examples:")[0]))


def test_version(tidelane):
    version = re.search(r'"([0-9.]+)"', (REPO / "src/base/version.h").read_text())[1]
    for word in ("--version", "-V"):
        assert tidelane(word).stdout == f"tidelane {version}\n"


def test_help_names_every_command_and_status(tidelane):
    done = tidelane("--help")
    assert done.returncode == 0 and done.stderr == ""
    for word in [*COMMANDS, "125", "126, 127", "130"]:
        assert re.search(rf"^  {word}\b", done.stdout, re.M), word
    assert "probe" not in done.stdout and "query-hits" not in done.stdout
    assert tidelane("help", "run").stdout == tidelane("run", "--help").stdout
    assert tidelane().returncode == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_fits_a_terminal(tidelane, command):
    done = tidelane(command, "-h")
    assert done.returncode == 0 and done.stdout.startswith(f"usage: tidelane {command} ")
    assert all(len(line) <= 100 for line in done.stdout.splitlines())


def test_every_setting_is_an_option(tidelane):
    names = re.findall(r"^\| \[?`([a-z_]+)`", (REPO / "docs/settings.md").read_text(), re.M)
    assert len(names) > 10
    for command in ("run", "config"):
        assert {"--" + name.replace("_", "-") for name in names} <= options_of(tidelane, command)


@pytest.mark.parametrize(
    "words, status, said",
    [
        (["rum"], 2, "the nearest is run"),
        (["xyzzy"], 2, "tidelane --help lists them"),
        (["run", "--clos", "wait", "--", "true"], 125, "there is no option --clos; the nearest is --close"),
        (["run", "--close=wait", "--close=deferred", "true"], 125, "--close was given 2 times"),
        (["run"], 125, "no program"),
        (["report", "--htlm", "x"], 2, "the nearest is --html"),
        (["report", "run.json", "--html"], 2, "--html"),
        (["report"], 2, "no file"),
        (["trace"], 2, "no file"),
        (["predict"], 2, "--size says how much"),
        (["predict", "-s", "64M"], 2, "--compute says how long"),
        (["predict", "-s", "64Q", "-c", "1"], 2, "a size such as 64M"),
        (["predict", "-s", "16E", "-c", "1"], 2, "a size such as 64M"),
        (["predict", "-s", "64M", "-c", "infs"], 2, "seconds, such as 0.5 or 20ms"),
        (["predict", "-s", "64M", "-c", "nan"], 2, "seconds, such as 0.5 or 20ms"),
        (["predict", "-s", "64M", "-c", "-1"], 2, "seconds, such as 0.5 or 20ms"),
        (["predict", "-s", "64M", "-c", "1", "--epochs", "99999999999999999999"], 2, "--epochs is a number"),
        (["predict", "-s", "64M", "-c", "1", "-n", "0"], 2, "--ranks is a number from 1 on"),
        (["predict", "-s", "64M", "-c", "1", "-d", "/nonexistent"], 2, "/nonexistent: No such file"),
        (["config", "more"], 2, "'more' is one word too many"),
        (["recover", "/nonexistent"], 2, "/nonexistent: no such file or folder"),
        (["recover", "--without"], 2, "the nearest is --without-log"),
        (["status", "/nonexistent"], 2, "/nonexistent: no such file or folder"),
        (["query"], 2, "no file"),
        (["query", "run.h5"], 2, "no query: tidelane query run.h5 'Energy > 1.9'"),
        (["query", "run.h5", "x", ">", "1"], 2, "'>' is one word too many: the query is one word, in quotes"),
        (["query", "run.h5", "x > 1", "--cvs"], 2, "the nearest is --csv"),
        (["query", "run.h5", "x > 1", "--csv", "--count"], 2, "--count and --csv are one or the other"),
        (["query", "run.h5", "x > 1", "--csv", "--arrow"], 2, "--csv and --arrow are one or the other"),
        (["query", "run.h5", "x > 1", "--csv", "--explain"], 2, "--explain goes with --count or alone"),
        (["query", "run.h5", "x > 1", "-g", "a", "-d", "b"], 2, "--group and --dataset are one or the other"),
        (["query", "run.h5", "x > 1", "-n", "some"], 2, "--limit is a number of hits"),
        (["query", "run.h5", "x > 1", "--force"], 2, "--force is for --output"),
        (["query", "/nonexistent.h5", "x > 1"], 2, "/nonexistent.h5: no such file"),
        (["mover"], 2, "no tier: --tier (or TIDELANE_TIER) says memory, or a folder"),
        (["mover", "--tier", "memory", "--idle", "soon"], 2, "--idle is a number of seconds"),
        (["mover", "--tier", "/nonexistent/folder"], 1, "/nonexistent/folder/tidelane-"),
        (["mover", "--tier-nice", "77"], 2, "a number from 0 to 19"),
        (["mover", "--tier-streams", "0"], 2, "a number from 1 to 16"),
        (["completion", "tcsh"], 2, "bash, zsh or fish"),
        (["config", "--lanes", "900"], 2, "lanes='900' (command line): accepted are a number from 1 to 64"),
        (["config", "--arena", "99999999999999999999"], 2, "a size of at least 64k"),
        (["config", "--linger", "-3ms"], 2, "up to 10s"),
        (["config", "--journal", "on"], 2, "accepted are off, process or power"),
        (["config", "--journal-commits", "5m"], 2, "a number of flushes, such as 1 or 10, or a time, such as 5s"),
        (["run", "--journal-require=on", "true"], 125, "the nearest is --journal-required"),
        (["config", "--set", "lane=2"], 2, "the nearest is lanes"),
        (["config", "--set", "lanes"], 2, "expected name=value"),
    ],
)
def test_mistakes_are_one_line_with_what_is_right(tidelane, words, status, said):
    assert said in error_line(tidelane(*words), status)


def test_config_says_where_each_value_came_from(tidelane):
    (tidelane.folder / "night.conf").write_text("lanes = 4\narena = 64M\n")
    done = tidelane(
        "config", "--changed", "--flush", "deferred",
        TIDELANE_CONFIG="night.conf", TIDELANE_ARENA="128M", HDF5_VOL_CONNECTOR="tidelane close=deferred",
        HDF5_ASYNC_EXE_FCLOSE="1",
    )  # fmt: skip
    lines = {line.split()[0]: line.split()[1:3] for line in done.stdout.splitlines()[1:]}
    assert lines["lanes"] == ["4", "night.conf:1"]
    assert lines["arena"] == ["128M", "TIDELANE_ARENA"]
    assert lines["close"] == ["deferred", "HDF5_VOL_CONNECTOR"]
    assert lines["flush"] == ["deferred", "TIDELANE_FLUSH"]
    assert lines["HDF5_ASYNC_EXE_FCLOSE"][0] == "1" and "nothing to do here" in done.stdout
    assert "mode" not in lines and "mode" in tidelane("config").stdout


def test_config_names_every_mistake(tidelane):
    done = tidelane("config", TIDELANE_CLOSE="deferrd", TIDELANE_LANE="3", HDF5_VOL_CONNECTOR="tidelane gapp=1")
    assert done.returncode == 2
    for said in ("nearest is deferred", "TIDELANE_LANES", "nearest is gap"):
        assert said in done.stderr
    assert len(done.stderr.splitlines()) == 3


def complete(script, *words):
    code = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tidelane; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", code, "bash", script, *words], capture_output=True, text=True, timeout=60)
    assert done.stderr == "", done
    return done.stdout.split()


def test_bash_completes(tidelane):
    script = tidelane.folder / "tidelane.bash"
    script.write_text(tidelane("completion", "bash").stdout)
    assert complete(script, "tidelane", "rep") == ["report"]
    assert complete(script, "tidelane", "run", "--clo") == ["--close"]
    assert complete(script, "tidelane", "run", "--close", "") == ["wait", "deferred", "tier", "tier_deferred"]
    assert complete(script, "tidelane", "completion", "") == ["bash", "zsh", "fish"]
    assert "true" in complete(script, "tidelane", "run", "--", "tru")
    for command in COMMANDS:
        assert options_of(tidelane, command) - {"--set"} <= set(complete(script, "tidelane", command, "-")) | {"--help"}


@pytest.mark.parametrize("shell, check", [("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])])
def test_other_shells_complete(tidelane, shell, check):
    text = tidelane("completion", shell).stdout
    for option in options_of(tidelane, "run") - {"--help"}:
        assert option.removeprefix("--") in text, option
    if shutil.which(check[0]):
        script = tidelane.folder / "completion"
        script.write_text(text)
        subprocess.run([*check, script], check=True, timeout=60)


def test_the_man_page_has_every_option(tidelane):
    page = tidelane("manual").stdout
    plain = page.replace("\\-", "-")
    for command in COMMANDS:
        assert f".SS tidelane {command} " in plain
        for option in options_of(tidelane, command) - {"--help"}:
            assert f"\\fB{option}\\fR" in plain, option
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stderr == ""
