"""All checks, in the order in which they run and are told: for people in lines, for scripts as one JSON object."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rich.console import Console

from gpubench.basics.encodable import replace_unencodable_signs
from gpubench.basics.folding import wrap_sentence
from gpubench.basics.words import clean_line, format_count
from gpubench.doctor import gpus, host, torch_works
from gpubench.doctor.context import CheckContext, CheckResult, make_failure

Check = Callable[[CheckContext], Iterable[CheckResult]]

CHECKS: Mapping[str, Sequence[Check]] = {
    "software": (host.check_versions,),
    "CPU and memory": (host.check_cpus,),
    "SLURM": (host.check_slurm_job,),
    "limits": (host.check_shared_memory_and_files,),
    "folders": (host.check_folders,),
    "GPUs": (gpus.check_driver, gpus.check_listed_gpus, gpus.check_left_limits, gpus.check_compute_modes),
    "others on the GPUs": (gpus.check_others_on_gpus,),
    "readings of the GPUs": (gpus.check_gpu_readings,),
    "torch at work": (
        torch_works.check_imports,
        torch_works.check_cuda,
        torch_works.check_driver_process_memory,
        torch_works.check_ranks,
    ),
}
"""Heading -> what is looked at under it. What torch's child disturbs comes before it."""


def run_checks(
    context: CheckContext, checks: Mapping[str, Sequence[Check]] = CHECKS
) -> Iterator[CheckResult]:
    """All findings, each as soon as it is made. A check that breaks is a finding, and the others go on."""
    for group, check in [(group, check) for group, of_group in checks.items() for check in of_group]:
        try:
            for result in check(context):
                yield dataclasses.replace(result, group=group)
        except Exception as error:  # noqa: BLE001 - a machine may be broken in ways that no check foresaw
            name = check.__name__.removeprefix("check_").replace("_", " ")
            remedy = "gpubench did not foresee this: please report it"
            result = make_failure(name, f"{type(error).__name__}: {error}", remedy)
            yield dataclasses.replace(result, group="checks that broke")


STYLES = {"ok": "green", "doubt": "yellow", "no": "bold red"}
VERDICT, NAME = 7, 20
"""Widths of the first two columns, gap included."""
INDENT = " " * (2 + VERDICT + NAME)


def print_findings(findings: Iterable[CheckResult], console: Console) -> list[CheckResult]:
    """Prints each finding as it comes, under the heading of its group, and a summary. Returns them all.

    On a terminal sentences wrap at words under their own column; elsewhere each stands on one line, for grep.
    """
    width = console.width - len(INDENT) if console.is_terminal else None
    results: list[CheckResult] = []
    for finding in findings:
        if not results or results[-1].group != finding.group:
            _print_line(console, finding.group, "bold")
        results.append(finding)
        first, *more = wrap_sentence(clean_line(finding.found), width, hang="")
        head = f"  {finding.verdict.ljust(VERDICT)}{finding.name.ljust(NAME)}"
        _print_line(console, head + first, STYLES[finding.verdict])
        for line in more:
            _print_line(console, INDENT + line)
        if finding.remedy:
            for line in wrap_sentence(clean_line(f"remedy: {finding.remedy}"), width, hang=""):
                _print_line(console, INDENT + line, "cyan")
    _print_line(console, format_summary(results), "bold")
    return results


def _print_line(console: Console, words: str, style: str = "") -> None:
    line = replace_unencodable_signs(words, console.encoding)
    if console.is_terminal:
        console.print(line, style=style, soft_wrap=True, highlight=False, markup=False)
    else:
        console.file.write(line.rstrip() + "\n")
        console.file.flush()


def format_summary(findings: Sequence[CheckResult]) -> str:
    """One line: how many of each, and whether a sweep can run."""
    count = {verdict: sum(f.verdict == verdict for f in findings) for verdict in STYLES}
    stops = dict.fromkeys(finding.name for finding in findings if finding.forbids)
    can = f"no sweep can run here: {', '.join(stops)}" if stops else "a sweep can run here"
    return f"{count['ok']} ok, {format_count(count['doubt'], 'doubt')}, {count['no']} no: {can}"


def format_json(findings: Sequence[CheckResult]) -> str:
    """The findings as one JSON object."""
    answer = {
        "can_sweep": not any(finding.forbids for finding in findings),
        "findings": [dataclasses.asdict(finding) for finding in findings],
    }
    return json.dumps(answer, ensure_ascii=True, indent=1)
