#include "tools/commands.h"

#include "tools/check.h"
#include "tools/completion.h"
#include "tools/config_command.h"
#include "tools/drain_command.h"
#include "tools/environment.h"
#include "tools/manual.h"
#include "tools/mover_command.h"
#include "tools/predict.h"
#include "tools/probe.h"
#include "tools/query_child.h"
#include "tools/query_command.h"
#include "tools/recover.h"
#include "tools/report_command.h"
#include "tools/run.h"
#include "tools/status_command.h"

namespace tidelane::tools {
namespace {

const Option kPlugins{"--plugins", "DIR",
                      "the folder with libtidelane.so; otherwise it is found beside this program",
                      false, Completes::kFolder};

Option Html(const char* meaning) { return {"--html", "FILE", meaning, false, Completes::kFile}; }

std::vector<Option> With(std::vector<Option> options, std::vector<Option> more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

Command RunCommand() {
  Command command;
  command.name = "run";
  command.operands_text = "-- PROGRAM [ARGUMENTS]";
  command.summary = "run a program with Tidelane, and say at its end what happened";
  command.description = {
      "Sets the environment that makes HDF5 load Tidelane, runs the program, and prints on stderr "
      "what was asynchronous, what was not and why, where the program waited, and which setting "
      "would help. Where nothing was loaded or captured, that is said with the reason.",
      "Under a launcher both orders work: `mpirun -n 4 tidelane run -- PROGRAM`, where the last "
      "process of a node tells for all of that node, and `tidelane run -- mpirun -n 4 PROGRAM`.",
      "What is set in the environment stays, but for what the options say: HDF5_PLUGIN_PATH gets "
      "our folder in front; the text after the connector's name in HDF5_VOL_CONNECTOR is kept. "
      "Signals sent to tidelane reach the program, and tidelane ends as the program did."};
  command.operands = Operands::kProgram;
  command.options =
      With({{"-q,--quiet", "", "say nothing at the end (files are written all the same)"},
            Html("write a page with the timeline of the run, for a browser"),
            kPlugins},
           SettingOptions());
  command.examples = {{"tidelane run -- ./my_simulation", "all defaults"},
                      {"tidelane run --close deferred --html run.html -- python my_script.py",
                       "closes return at once; look at run.html afterwards"},
                      {"mpirun -n 4 tidelane run -- ./my_simulation", "a summary for each node"}};
  command.main = Run;
  return command;
}

Command CheckCommand() {
  Command command;
  command.name = "check";
  command.operands_text = "[-- PROGRAM]";
  command.summary = "say whether an HDF5 and a folder are fit for it, and test that it works";
  command.description = {
      "Looks at the plugin, the HDF5 (its version, whether it is thread-safe and parallel, and "
      "with "
      "MPI the threads that this allows), the cores and lanes, ISA-L, and the speed of storage "
      "beside that of memory. Then a file is written asynchronously, read by native HDF5 and "
      "compared. Takes seconds, a minute at most; nothing is left behind. What fails is said with "
      "what to do.",
      "The HDF5 is the one that PROGRAM uses (it is not run; a Python is, to import h5py), or the "
      "one given, or the one this machine has."};
  command.operands = Operands::kProgram;
  command.options = {
      {"--hdf5", "PATH", "a libhdf5.so, or the prefix of an installation", false, Completes::kFile},
      {"-d,--dir", "DIR", "the folder that will be written to (default: this one)", false,
       Completes::kFolder},
      {"--json", "", "as JSON, for scripts"},
      kPlugins};
  command.examples = {{"tidelane check -d /scratch -- ./my_simulation", "before the first run"},
                      {"tidelane check -- python", "the HDF5 that Python's h5py brings"}};
  command.main = Check;
  return command;
}

Command ReportCommand() {
  Command command;
  command.name = "report";
  command.operands_text = "FILE...";
  command.summary = "show what runs left (TIDELANE_SUMMARY=run.json): tables, or a page";
  command.description = {
      "Prints the summary of one process or the sum of several (give all of their files), a line "
      "for each process, and who did what for how long if there is a timeline.",
      "With --html it writes one page that needs nothing else: the timeline, waits, overlap, what "
      "was not asynchronous and why, advice, settings. The timeline is the one that the summary "
      "names (TIDELANE_TRACE), or the ones given with --trace."};
  command.operands = Operands::kFiles;
  command.options = {Html("write a page for a browser instead (- for stdout)"),
                     {"--trace", "FILE", "a timeline; may be given again", true, Completes::kFile}};
  command.examples = {{"tidelane report run.json", "tables"},
                      {"tidelane report --html run.html run-*.json", "several processes"}};
  command.main = Report;
  return command;
}

Command TraceCommand() {
  Command command;
  command.name = "trace";
  command.operands_text = "FILE...";
  command.summary = "turn timelines (TIDELANE_TRACE=run.trace) into one for Perfetto or Chrome";
  command.description = {
      "Joins the timelines of one or several processes: times count from zero, processes and "
      "threads are named and in order, and the bytes that waited in memory are drawn as a curve. "
      "Open the result in ui.perfetto.dev or chrome://tracing."};
  command.operands = Operands::kFiles;
  command.options = {
      {"-o,--output", "FILE", "where to (default: stdout)", false, Completes::kFile}};
  command.examples = {{"tidelane trace run-*.trace -o run.json", "all processes of a run"}};
  command.main = Trace;
  return command;
}

Command PredictCommand() {
  Command command;
  command.name = "predict";
  command.summary = "predict what asynchronous I/O gains a program, with error bars";
  command.description = {
      "For a program that writes --size in each I/O phase and computes for --compute between two "
      "of "
      "them: what a phase and its computation take in both modes, which mode is quicker, and by "
      "how "
      "much. The rates of storage and memory come from earlier runs on the file system of --dir "
      "(docs/history.md), or from writes that are made and measured there now. The error is that "
      "of the rates: computing and copying are taken as they are.",
      "With --read the program reads: sync are reads that it waits for, async are those that lanes "
      "make before it asks, as they do where they can tell what comes next."};
  command.options = {
      {"-s,--size", "SIZE", "what a phase writes, of each rank: 64M"},
      {"-r,--read", "", "the program reads"},
      {"-c,--compute", "SECONDS", "how long the program computes between two phases: 0.5, 20ms"},
      {"-n,--ranks", "N", "processes that write at the same time (default: 1)"},
      {"--write-size", "SIZE", "of one write (default: 4M)"},
      {"--epochs", "N", "phases of a run (default: 10)"},
      {"-d,--dir", "DIR", "the folder that will be written to (default: this one)", false,
       Completes::kFolder},
      {"--program", "NAME", "only earlier runs of this one: 'checkpoint', 'python3 train.py'"},
      {"--history", "DIR", "where earlier runs are kept", false, Completes::kFolder},
      {"--measure", "", "no earlier runs: measure now"},
      {"--json", "", "as JSON, for scripts"}};
  command.examples = {{"tidelane predict --size 256M --compute 2 -d /scratch",
                       "a checkpoint of 256 MiB every two seconds"}};
  command.main = Predict;
  return command;
}

Command ConfigCommand() {
  Command command;
  command.name = "config";
  command.summary = "show the settings in force and where each came from";
  command.description = {
      "Reads what a program would read here: the file that TIDELANE_CONFIG names, HDF5_ASYNC_* and "
      "TIDELANE_* variables, the text after the connector's name in HDF5_VOL_CONNECTOR, and on top "
      "the options given. Everything that is wrong is named, with the nearest right word."};
  command.options = With(
      {{"--changed", "", "only what is not the default"}, {"--json", "", "as JSON, for scripts"}},
      SettingOptions());
  command.examples = {{"tidelane config --changed", "what the environment changes"}};
  command.main = ShowConfig;
  return command;
}

Command RecoverCommand() {
  Command command;
  command.name = "recover";
  command.operands_text = "[FILE|FOLDER...]";
  command.summary = "make files of killed programs what they were at their last commit";
  command.description = {
      "With journal=process or power a file that was open for writing when its program was killed "
      "has a mark, and a log beside it (`NAME-wal.0`). Tidelane recovers it when it is opened; "
      "HDF5 without Tidelane refuses it. This recovers FILE, or every such file in FOLDER (without "
      "an operand: this one), and removes the log.",
      "It also removes hidden files of publish=atomic, `.NAME.unpublished`, that nobody writes any "
      "more. `NAME.unpublished` stays: it is whole and could not be published. What a program "
      "still writes is left alone; to name such a FILE is an error. Logs that belong to no file "
      "here are named and left alone."};
  command.operands = Operands::kFiles;
  command.options = {
      {"-r,--recursive", "", "the folders below, too"},
      {"-n,--dry-run", "", "say what would be done"},
      {"--log", "SEGMENT", "the log of FILE, which was renamed or moved without it", false,
       Completes::kFile},
      {"--without-log", "",
       "FILE's log is lost or damaged: make HDF5 open it all the same; its content may be torn"}};
  command.examples = {
      {"tidelane recover -r /scratch/run7", "after a walltime limit"},
      {"tidelane recover --log old.h5-wal.0 new.h5", "old.h5 was renamed, its log was not"}};
  command.main = Recover;
  return command;
}

Command StatusCommand() {
  Command command;
  command.name = "status";
  command.operands_text = "[FILE|FOLDER...]";
  command.summary = "say what state files are in: plain, being written, to be recovered";
  command.description = {
      "A line for each HDF5 file: plain; being written; to be recovered, with its last commit and "
      "its "
      "log's size and age; in the tier (close=tier); never committed; without its log, or with one "
      "that cannot be used; not "
      "published yet (publish=atomic). Logs that belong to no file are stray. Without an operand: "
      "of this folder. Nothing is changed."};
  command.operands = Operands::kFiles;
  command.options = {
      {"-r,--recursive", "", "the folders below, too"},
      {"--tier", "", "what the fast tiers have, instead; of these files, if any are named"},
      {"--watch", "", "with --tier: until nothing is there any more"},
      {"--json", "", "as JSON, for scripts"}};
  command.examples = {{"tidelane status --tier --watch", "how far the mover is"},
                      {"tidelane status -r /scratch/run7", "before anything is copied from there"}};
  command.main = ShowStatus;
  return command;
}

Command DrainCommand() {
  Command command;
  command.name = "drain";
  command.operands_text = "[FILE|FOLDER...]";
  command.summary = "bring files from the fast tier to their own places, and wait for it";
  command.description = {
      "With close=tier a file that was closed is in the tier until a mover has brought it to its "
      "own place. This does the same, and returns when it is done: of FILE, of all files below "
      "FOLDER, or of all there are. For the end of a job script, where the scheduler would end the "
      "mover, and before files are copied or sent.",
      "The tiers are the one in memory, the one that TIDELANE_TIER names, and those "
      "in which FILE is, or files below FOLDER are."};
  command.operands = Operands::kFiles;
  command.options = {
      {"--discard", "", "also remove what belongs to files that are not there any more"}};
  command.examples = {{"tidelane drain /scratch/run7", "at the end of a job"}};
  command.main = DrainFiles;
  return command;
}

// Settings of a tier, and of its mover.
std::vector<Option> MoverSettings() {
  std::vector<Option> options = SettingOptions();
  std::erase_if(options, [](const Option& option) {
    return option.names != "--tier" && option.names != "--tier-rate" &&
           option.names != "--tier-streams" && option.names != "--tier-nice";
  });
  return options;
}

Command MoverCommand() {
  Command command;
  command.name = "mover";
  command.summary = "bring files from the fast tier as they come, in the foreground";
  command.description = {
      "With close=tier programs start a mover by themselves, which ends when there was nothing to "
      "do "
      "for five seconds. This is one that is started by hand: on a processor of your choice "
      "(taskset), for as long as a job lasts, at a rate. All programs of the user that use the "
      "tier "
      "have it move their files. It may be interrupted at any moment: the next one goes on."};
  command.options = With({{"--idle", "SECONDS",
                           "end when there was nothing to do for so long (default: 5; 0: never)"}},
                         MoverSettings());
  command.examples = {
      {"taskset -c 63 tidelane mover --tier memory --idle 0 &", "for all of a job"}};
  command.main = MoveFiles;
  return command;
}

Command QueryCommand() {
  Command command;
  command.name = "query";
  command.operands_text = "FILE 'QUERY'";
  command.summary = "find the elements of a file's datasets that fulfil a condition";
  command.description = {
      "A query is a condition on columns: 'Energy > 1.9 and (x < 3 or not y == 0)', with and, or, "
      "not, == != < <= > >=, '0 <= x < 3', 'x between 1 and 5', \"name in ('a', 'b')\", "
      "isnan(x). Columns are datasets of equal shape in FILE's root group, or in the one of "
      "--group ('step1/x' is below it), or the fields of one compound dataset (--dataset). Other "
      "names than x, x_1, a/b or a.b stand in backquotes.",
      "Prints the first hits as a table: indices, and the values of the columns that the query "
      "names and of --columns; then how many hits there are. Or their number alone, or all of them "
      "as CSV, as Arrow, or as a new HDF5 file. Nothing of the size of a dataset or of the hits is "
      "ever in "
      "memory.",
      "FILE is read through Tidelane, whose worker threads read and decode large chunks, by the "
      "HDF5 of this machine or the one given. Decimal constants are numbers of the column's type, "
      "as in NumPy: 'x == 0.1' finds what was stored as 0.1, as float or double."};
  command.operands = Operands::kFiles;
  command.options = {
      {"-g,--group", "PATH", "columns are datasets of this group (default: /)"},
      {"-d,--dataset", "PATH", "columns are fields of this compound dataset"},
      {"-c,--columns", "NAMES", "show these columns, too: a,b; may be given again", true},
      {"-n,--limit", "N", "hits that the table has (default: 20; 0: all)"},
      {"--count", "", "print the number of hits alone"},
      {"--csv", "", "print all hits as CSV (RFC 4180), numbers so that they read back the same"},
      {"--arrow", "", "print all hits as an Arrow stream; with --output an Arrow file"},
      {"-o,--output", "FILE", "write all hits into a new HDF5 file", false, Completes::kFile},
      {"--force", "", "replace the file of --output"},
      {"--explain", "",
       "say how the query is answered; nothing is read, unless --count is given, too"},
      {"--hdf5", "PATH", "a libhdf5.so, or the prefix of an installation", false, Completes::kFile},
      kPlugins};
  command.examples = {
      {"tidelane query run.h5 'Energy > 1.9 and x < 3'", "the first 20 hits, and their number"},
      {"tidelane query run.h5 'Energy > 1.9' -c x,y --csv > hits.csv", "all hits"},
      {"tidelane query run.h5 'Energy > 1.9' --arrow -o hits.arrow", "for pandas, Polars, DuckDB"},
      {"tidelane query run.h5 -d /events \"kind == 'tau'\" --count", "a table of records"}};
  command.main = Query;
  return command;
}

Command QueryHitsCommand() {
  Command command;
  command.name = "query-hits";
  command.operands = Operands::kWords;
  command.options = QueryCommand().options;
  command.main = QueryHits;
  command.hidden = true;
  return command;
}

Command CompletionCommand() {
  Command command;
  command.name = "completion";
  command.operands_text = "bash|zsh|fish";
  command.summary = "print the completion of a shell";
  command.description = {
      "Prints what makes a shell complete tidelane's commands, options and "
      "values. `make install` puts it where the shells look."};
  command.operands = Operands::kWords;
  command.words = {"bash", "zsh", "fish"};
  command.examples = {{"source <(tidelane completion bash)", "for this shell"}};
  command.main = Completion;
  return command;
}

Command Hidden(const char* name, Operands operands, int (*main)(const Arguments&)) {
  Command command;
  command.name = name;
  command.operands = operands;
  command.main = main;
  command.hidden = true;
  return command;
}

}  // namespace

const std::vector<Command>& Commands() {
  static const std::vector<Command>& commands =
      *new std::vector<Command>{RunCommand(),
                                CheckCommand(),
                                ReportCommand(),
                                TraceCommand(),
                                PredictCommand(),
                                ConfigCommand(),
                                RecoverCommand(),
                                StatusCommand(),
                                DrainCommand(),
                                MoverCommand(),
                                QueryCommand(),
                                CompletionCommand(),
                                Hidden("manual", Operands::kNone, Manual),
                                Hidden("probe", Operands::kWords, Probe),
                                QueryHitsCommand()};
  return commands;
}

const Command* FindCommand(const std::string& name) {
  for (const Command& command : Commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::vector<ExitStatus> ExitStatuses() {
  return {{"0", "done; `check`: usable"},
          {"1",
           "`check`: not usable; `recover`, `status`: of some file it could not be done; "
           "`query`: no HDF5 or plugin, or it could not be done to its end"},
          {"2", "a wrong option, setting or query, a file that cannot be read or written"},
          {"125", "`run`: a wrong option or setting, or no plugin; the program was not started"},
          {"126, 127", "`run`: the program cannot be executed, or does not exist"},
          {"130", "`query`: interrupted"},
          {"others", "`run`: the program's own; by a signal if the program ended by one"}};
}

}  // namespace tidelane::tools
