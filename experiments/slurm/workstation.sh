#!/bin/bash
# Several experiments on a machine without SLURM, one after the other, say over a night:
#   nohup experiments/slurm/workstation.sh experiments/*.toml > night.log 2>&1 &
# The same line goes on where it was stopped. The exit code is that of the worst experiment.
if [ "$#" -eq 0 ]; then
  echo "usage: $0 EXPERIMENT.toml ..." >&2
  exit 2
fi
worst=0
for experiment in "$@"; do
  gpubench sweep "$experiment" --yes
  code=$?
  if [ "$code" -eq 75 ] || [ "$code" -ge 128 ]; then
    echo "stopped in $experiment; the same command goes on" >&2
    exit "$code"
  fi
  # 1: some trials failed, and the table says why. The other experiments are measured all the same.
  if [ "$code" -gt "$worst" ]; then
    worst=$code
  fi
done
exit "$worst"
