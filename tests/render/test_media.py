"""Reports as Markdown, LaTeX and JSON."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import reports
from reports import make_claim

from gpubench.render import json as as_json
from gpubench.render import latex, markdown, terminal, words

FORMS = {
    "text": terminal.format_text,
    "json": as_json.format_text,
    "markdown": markdown.format_text,
    "latex": latex.format_text,
}
SCHEMA = json.loads((Path(as_json.__file__).parent / "report.schema.json").read_text())


def load(report):
    (data,) = json.loads(as_json.format_text([report]))["reports"]
    return data


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", reports.REPORTS)
def test_every_form_takes_every_report_and_ends_its_last_line(form, name):
    text = FORMS[form]([reports.REPORTS[name](), reports.not_sure()])
    assert text.endswith("\n")
    assert "\x1b" not in text


@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_say_that_there_is_nothing(form):
    assert FORMS[form]([]).endswith("\n")


def test_markdown_has_question_table_and_findings():
    report = reports.one_process()
    blocks = markdown.format_text([report]).split("\n\n")
    name, *facts = map(markdown.escape_markdown, words.list_heading_facts(report))
    assert (name, facts[2]) == ("mobilenet\\_v2-4gpu", "mobilenet\\_v2")
    assert blocks[:3] == [f"## {name}", " · ".join(facts), f"**{report.question}**"]
    assert blocks[3] == "**ddp**"
    lines = blocks[4].splitlines()
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines)
    cells = [line[2:-2].split(" | ") for line in lines]
    assert [*cells[:3], cells[5], cells[7]] == [
        ["batch", "images/s", "GiB"],
        ["---:", "---:", "---:"],
        ["16", "1,261", "2.0"],
        ["**128**", "**6,097**", "**4.3**"],
        ["512", words.describe_ending(report, report.rows[5]), ""],
    ]
    assert blocks[5] == "**dp** !"
    answer, *others = [markdown.escape_markdown(line.text) for line in words.list_sentences(report)]
    findings, warnings = others[:2], others[2:]
    assert blocks[-1].splitlines() == [
        f"- **{answer}**", *(f"- {text}" for text in findings), *(f"- ! {text}" for text in warnings),
    ]  # fmt: skip


def test_markdown_names_series_and_escapes_what_others_wrote():
    text = markdown.format_text([replace(reports.batch_sizes(), question="a|b *c* <i>")])
    assert "**a\\|b \\*c\\* \\<i\\>**" in text
    assert " 1 GPU<br>epoch s | 1 GPU<br>GiB " in text


def test_latex_has_rules_of_booktabs_series_and_notes():
    text = latex.format_text([reports.batch_sizes()])
    assert r"\begin{tabular}{@{}rrrrrrr@{}}" in text
    (series,) = (line for line in text.splitlines() if "{1 GPU}" in line)
    assert series.split(" & ")[:2] == [r"\multicolumn{1}{c}{}", r"\multicolumn{2}{c}{1 GPU}"]
    assert r"\textbf{128} & \textbf{2.85 $\pm$5\%}" in text
    assert r"16 ! & 4.90 $\pm$38\%" in text
    assert latex.escape_latex(words.list_sentences(reports.batch_sizes())[0].text) in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1


def test_latex_gives_endings_the_rest_of_their_row_and_heads_a_line():
    report = reports.one_process()
    text = latex.format_text([report])
    ending = words.describe_ending(report, report.rows[5])
    assert rf"512 & \multicolumn{{2}}{{l@{{}}}}{{{ending}}} \\" in text
    assert "\\midrule\n\\multicolumn{3}{@{}l}{dp !} \\\\" in text


def test_latex_escapes_what_others_wrote():
    assert latex.escape_latex("5 % of a_b&{c} --d\n[x]≥1") == r"5 \% of a\_b\&\{c\} -{}-d {[}x{]}$\ge$1"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.parametrize("name", reports.REPORTS)
def test_latex_compiles(name, tmp_path):
    body = latex.format_text([reports.REPORTS[name]()])
    head = "\\documentclass{article}\n\\usepackage[utf8]{inputenc}\\usepackage{booktabs,graphicx}\n"
    (tmp_path / "t.tex").write_text(f"{head}\\begin{{document}}\n{body}\\end{{document}}\n")
    subprocess.run(
        ["pdflatex", "-interaction=batchmode", "-halt-on-error", "t.tex"], cwd=tmp_path, check=True
    )


@pytest.mark.parametrize("name", reports.REPORTS)
def test_json_is_what_its_schema_says(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(as_json.format_text([reports.REPORTS[name]()])), SCHEMA)


def test_json_without_what_the_schema_requires_is_refused():
    data = json.loads(as_json.format_text([reports.target()]))
    del data["reports"][0]["findings"][0]["verdict"]
    with pytest.raises(jsonschema.ValidationError, match="verdict"):
        jsonschema.validate(data, SCHEMA)


def test_json_has_choice_verdict_effect_and_claims():
    data = load(reports.batch_sizes())
    batch, devices, versus = data["findings"]
    assert (batch["question"], batch["verdict"]) == ("batch_size", "sure")
    assert batch["choice"] == {
        "row": 13, "bound": 0.146, "gains": {"14": 0.146, "12": 0.111}, "series": [10, 11, 12, 13, 14, 15],
        "is_firm": True,
    }  # fmt: skip
    assert batch["details"]["memory_ratio"] == 1.74
    assert batch["details"]["least_cost"][1] == {
        "label": {"gpus": 2, "strategy": "ddp"}, "row": 11, "low": 11, "high": 12, "word": "sure",
    }  # fmt: skip
    assert devices["effect"] == {
        "metric": "images_per_s", "is_ratio": True, "least": pytest.approx(0.78), "most": pytest.approx(1.86),
        "low": pytest.approx(0.702), "high": pytest.approx(2.046),
    }  # fmt: skip
    assert devices["claims"][2] == {
        "metric": "images_per_s", "candidate": 12, "baseline": 2, "is_ratio": True, "figure": pytest.approx(1.6),
        "low": pytest.approx(1.44), "high": pytest.approx(1.76), "p": 0.01, "verdict": "sure", "direction": "more",
        "test": "paired", "limit": None, "processes": [3, 3], "noise": None,
    }  # fmt: skip
    assert devices["details"]["speed_ups"][2]["efficiency"] == 0.8
    assert devices["details"]["speed_ups"][2]["claim"] == devices["claims"][2]
    assert (versus["effect"]["low"], versus["details"]["field"]) == (None, "strategy")
    (chosen,) = (row for row in data["rows"] if row["row"] == batch["choice"]["row"])
    assert chosen == {
        "row": 13,
        "fields": {"batch_size": 128, "gpus": 2, "strategy": "ddp"},
        "figures": {"epoch_time_s": 1.74, "images_per_s": 2948.0, "gpu_mem_mib": pytest.approx(7137.28)},
        "missing": {},
    }


def test_json_effect_is_of_the_first_metric_and_null_without_claims():
    report = reports.batch_sizes()
    claims = (make_claim(11, 10, 1.5), make_claim(11, 10, 9.0, metric="memory_time"))
    finding = replace(report.findings[2], claims=claims)
    effect = as_json.finding_to_data(report, finding)["effect"]
    assert (effect["metric"], effect["most"]) == ("images_per_s", pytest.approx(1.5))
    assert load(reports.not_sure())["findings"][0]["effect"] is None
    assert load(reports.not_sure())["findings"][0]["remedy"] == {
        "rounds": 16, "minutes": 3.6, "is_of_seeds": False,
    }  # fmt: skip


def test_json_has_limits_as_ratios_rows_as_printed_and_no_number_that_json_lacks():
    report = reports.one_process()
    claim = make_claim(1, 1, 1.9, design="above", limit=math.log(1.1))
    data = as_json.finding_to_data(report, replace(report.findings[1], claims=(claim,)))
    assert data["claims"][0]["limit"] == pytest.approx(1.1)
    data = load(replace(report, figures={0: {"loss": float("nan")}}, findings=()))
    assert data["rows"][0]["figures"] == {"loss": None}
    last = data["table"][0]["rows"][-1]
    assert (last["status"], last["reason"], last["skipped"]) == (
        "oom",
        "OutOfMemoryError: CUDA out of memory",
        [1024, 2048],
    )
    assert last["cells"][0]["column"] == "batch_size"
    assert data["warnings"][0]["text"].startswith("One process a row")
