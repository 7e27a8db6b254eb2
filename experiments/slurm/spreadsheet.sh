#!/bin/bash
# Results folders as one workbook, here or as the last job:
#   experiments/slurm/spreadsheet.sh results.xlsx results/batch-size
#   sbatch --dependency=afterany:JOB experiments/slurm/spreadsheet.sh results.xlsx results/batch-size
# An ending of .csv gives CSV. For the workbook: pip install 'gpubench[xlsx]'.
set -euo pipefail
file=${1:?"usage: $0 FILE.xlsx RESULTS ..."}
shift
gpubench export "$@" --out "$file"
gpubench status "$@" >&2 || true # what is still missing; the file holds what there is
