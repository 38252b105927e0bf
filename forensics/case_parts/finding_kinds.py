"""The kind that a finding has in a case. Other programs look for the ids of detectors, of which docs/case.md keeps the list; what a sign saw that no
detector looks for goes by the one whose question it answers, and its id names the sign."""

from __future__ import annotations

_OF = {
    "plateau": "evaluation_never_moves eval_never_better eval_at_chance_throughout training_score_at_chance nothing_decoded_right"
    " every_word_wrong_to_the_end accuracy_is_one_class hits_never_rise one_class_gets_all policy_hardly_moves",
    "frozen_weights": "weights_never_move weights_hardly_move weights_stop_moving gradient_zero_throughout",
    "divergence": "loss_climbs_above_any_guess climbed_before_it_stood loss_ends_above_start value_loss_exploded training_right_less_often",
    "rl_collapse": "reward_fell evaluated_return_falls_behind entropy_collapsed",
    "train_eval_gap": "eval_left_behind second_evaluation_turns_up second_evaluation_stays_behind closing_test_far_worse closing_test_costs_more",
    "eval_jump": "evaluation_size_changed eval_turned_where_training_jumped",
    "level_shift": "reward_steps_to_other_scale",
    "repeated_data": "epochs_count_anew samples_count_anew",
    "lr_schedule": "schedule_runs_slow warmup_ends_early cosine_counts_epochs rate_repeats_after_restart",
    "loss_scale": "overflows_to_the_end",
    "logger_artefact": "loss_added_up return_of_no_episode",
    "resume_break": "optimizer_said_lost",
}
OF_DETECTOR = {sign: detector for detector, signs in _OF.items() for sign in signs.split()}


def kind_of(kind: str) -> str:
    """The kind of a finding as a case, and what else users see, has it."""
    return OF_DETECTOR.get(kind, kind)
