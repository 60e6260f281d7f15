#!/usr/bin/env bash
# Checks a built plugin file: it is loaded into programs we know nothing about, so it exports only its entry
# points, needs neither libhdf5 nor a C++ runtime, takes no data from libhdf5 and cannot be unloaded.
set -euo pipefail
file=$1
bad=0
complain() { echo "$(basename "$file"): $*" >&2; bad=1; }

exported=$(nm -D --defined-only "$file" | awk '$2 != "A" {print $3}')
for name in H5PLget_plugin_type H5PLget_plugin_info; do
  grep -qx "$name" <<<"$exported" || complain "does not export $name"
done
extra=$(grep -vE '^(H5PLget_plugin_(type|info)|tidelane_[a-z0-9_]+)$' <<<"$exported" || true)
[ -z "$extra" ] || complain "exports more than its entry points: $(head -5 <<<"$extra" | tr '\n' ' ')"

needed=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
unwanted=$(grep -E '^lib(hdf5|stdc\+\+|gcc_s)' <<<"$needed" || true)
[ -z "$unwanted" ] || complain "needs $(tr '\n' ' ' <<<"$unwanted")"

undefined=$(nm -D --undefined-only "$file" | awk '$1 == "U" {print $2}' | grep -E '^(H5|_?_Z)' || true)
[ -z "$undefined" ] || complain "leaves to the program: $(head -5 <<<"$undefined" | tr '\n' ' ')"

# Both are set up in every program that loads the plugin: locales come with streams and std::filesystem (a tenth of a millisecond, and as
# much again to load them), and __builtin_cpu_supports asks the processor some 25 times, in a virtual machine by way of the hypervisor.
slow=$(nm --defined-only "$file" | awk '{print $NF}' | grep -E '^(_ZNSt6localeC[0-9]|__cpu_indicator_init)' || true)
[ -z "$slow" ] || complain "starts slowly: $(tr '\n' ' ' <<<"$slow")"

readelf -d "$file" | grep -q NODELETE || complain "may be unloaded (no -z nodelete)"
exit $bad
