"""What composes (claims, decisions, comparing, matching, counting, claiming), and the tests nearest to each module."""

from __future__ import annotations

TESTS: dict[str, tuple[str, ...]] = {
    # how sure figures are
    "gpubench/stats/choice.py": ("stats/test_choice_and_power.py",),
    "gpubench/stats/decisions.py": ("stats/test_decide.py",),
    "gpubench/stats/distributions.py": ("stats/test_decide.py", "stats/test_estimates.py"),
    "gpubench/stats/estimates.py": ("stats/test_estimates.py", "stats/test_decide.py"),
    "gpubench/stats/memory_line.py": ("stats/test_line_through_memory.py",),
    "gpubench/stats/noise.py": ("stats/test_choice_and_power.py",),
    "gpubench/stats/outliers.py": ("stats/test_outliers.py", "analyze/test_runs_and_summary.py"),
    "gpubench/stats/power.py": ("stats/test_choice_and_power.py",),
    "gpubench/stats/power_limits.py": ("stats/test_power_limits.py",),
    "gpubench/stats/steps.py": ("stats/test_step_means.py",),
    "gpubench/core/claims.py": ("stats/test_decide.py", "analyze/test_table_rows.py"),
    # what is claimed, and what is held against what
    "gpubench/analyze/batch_size.py": ("analyze/test_batch_size.py", "analyze/test_borders_of_questions.py"),
    "gpubench/analyze/compare.py": ("analyze/test_compare.py", "analyze/test_matching.py"),
    "gpubench/analyze/devices.py": ("analyze/test_devices.py",),
    "gpubench/analyze/intervals.py": (
        "analyze/test_runs_and_summary.py",
        "analyze/test_batch_size.py",
        "analyze/test_borders_of_questions.py",
    ),
    "gpubench/analyze/open_questions.py": ("analyze/test_open_questions.py",),
    "gpubench/analyze/network_size.py": ("analyze/test_sizes_of_networks.py",),
    "gpubench/analyze/series.py": (
        "analyze/test_devices.py",
        "analyze/test_sizes_of_networks.py",
        "analyze/test_runs_and_summary.py",
        "analyze/test_borders_of_questions.py",
    ),
    "gpubench/analyze/power_limit.py": ("analyze/test_power_limit.py",),
    "gpubench/analyze/sharing.py": ("analyze/test_jobs_that_share.py",),
    "gpubench/analyze/table_rows.py": ("analyze/test_table_rows.py", "analyze/test_borders_of_questions.py"),
    "gpubench/analyze/target.py": ("analyze/test_targets_reached.py", "analyze/test_borders_of_questions.py"),
    "gpubench/analyze/top1.py": ("analyze/test_top1_of_seeds.py",),
    "gpubench/analyze/versus.py": ("analyze/test_versus.py",),
    "gpubench/record/together.py": ("record/test_together.py",),
    # which attempt counts, and who measures what
    "gpubench/plan/shards.py": ("plan/test_shards.py",),
    "gpubench/plan/state.py": ("plan/test_state.py", "plan/test_rounds.py", "run/test_sweep_rounds.py"),
    "gpubench/results/counting.py": ("results/test_counting.py", "results/test_allowance.py"),
    "gpubench/results/plans.py": (
        "results/test_plans.py",
        "run/test_begun_by_epochs.py",
        "results/test_merging.py",
    ),
    "gpubench/results/unite.py": ("results/test_merging.py",),
    "gpubench/store/holder.py": ("store/test_work_claims.py",),
    "gpubench/store/work_claims.py": ("store/test_work_claims.py",),
    "gpubench/run/schedule.py": ("run/test_schedule.py",),
    "gpubench/run/work_queue.py": ("run/test_work_queue.py",),
    # what GPUs are set to, and back to
    "gpubench/node/limits/guard.py": ("node/limits/test_limits.py",),
    "gpubench/node/limits/guardian.py": ("node/limits/test_limits.py",),
    "gpubench/node/limits/kept.py": ("node/limits/test_limits.py",),
    "gpubench/run/gpu_limits.py": ("run/test_gpu_limits.py", "node/limits/test_limits.py"),
    # figures that these rest on
    "gpubench/analyze/derive.py": ("analyze/test_runs_and_summary.py",),
    "gpubench/analyze/frames.py": (
        "analyze/test_runs_and_summary.py",
        "analyze/test_borders_of_questions.py",
    ),
    "gpubench/analyze/audit.py": ("analyze/test_audit_rules_on_frames.py",),
    "gpubench/analyze/predict_limits.py": ("commands/test_predict_power_command.py",),
    "gpubench/analyze/predict.py": ("analyze/test_predict_from_rows.py", "analyze/test_stored_machine.py"),
    "gpubench/analyze/report.py": ("analyze/test_report_of_a_table.py",),
    "gpubench/basics/rounding.py": ("basics/test_rounding.py",),
    "gpubench/plan/estimate.py": ("plan/test_estimate.py",),
    # meters
    "gpubench/stats/alignment.py": ("stats/test_alignment.py", "record/test_meter_figures.py"),
    "gpubench/record/meter_figures.py": ("record/test_meter_figures.py",),
    "gpubench/node/watch/meters/growing_csv.py": ("node/watch/test_growing_csv.py",),
    "gpubench/node/watch/meters/meter.py": ("node/watch/test_growing_csv.py", "node/watch/test_over_http.py"),
    "gpubench/node/watch/meters/over_http.py": ("node/watch/test_over_http.py",),
    "gpubench/node/watch/meters/rapl.py": ("node/watch/test_rapl.py",),
    "gpubench/node/watch/meters/sampling.py": (
        "node/watch/test_meter_sampling.py",
        "record/test_meter_figures.py",
    ),
    "gpubench/record/epochs.py": ("record/test_epochs.py",),
    "gpubench/schema/window.py": ("train/test_window.py",),
    # a user's own command
    "gpubench/schema/command.py": ("schema/test_command.py", "script/test_output.py"),
    "gpubench/script/output.py": ("script/test_output.py",),
    "gpubench/script/marks.py": ("script/test_marks.py",),
    "gpubench/script/time_limit.py": ("script/test_time_limit.py",),
    "gpubench/script/worker.py": ("script/test_failures.py", "commands/test_own_commands.py"),
    "gpubench/record/commands.py": ("record/test_commands.py",),
    "gpubench/run/live_progress.py": ("run/test_live_progress.py",),
}
"""Module -> files below `tests/`."""
