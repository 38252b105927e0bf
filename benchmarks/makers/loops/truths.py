"""What the folder shows of each cause, and which other readings a careful reader would let pass."""

# cause: (accepted besides, what shows it, what must be logged to name it for sure)
T = {
    "bad_data_batch": (["nan_from_sample", "bad_data_pocket"], "loss jumps for single batches and is back at once", ()),
    "bad_data_pocket": (
        ["bad_data_batch", "data_distribution_shift"],
        "loss is raised over one contiguous stretch and returns to its level",
        (),
    ),
    "data_distribution_shift": (
        ["bad_data_pocket", "eval_changed"],
        "training loss changes level at one step for good with the rate unchanged",
        (),
    ),
    "labels_wrong": (
        ["double_softmax", "frozen_parameters", "regularization_floor"],
        "training loss stays at or near what guessing gives and evaluation learns little",
        ("eval",),
    ),
    "labels_all_masked": ([], "training loss is NaN or zero from the first step", ()),
    "train_eval_leakage": ([], "evaluation is as good as training where it should be worse", ("eval", "gap")),
    "eval_changed": (["data_distribution_shift"], "evaluation jumps at one step while training goes on as before", ("eval",)),
    "lr_too_high": (
        ["gradient_clipping_missing", "warmup_too_short"],
        "loss diverges or stays high from the start; the rate is large",
        ("lr|config",),
    ),
    "lr_too_low": (["frozen_parameters"], "loss falls far too slowly and is still falling at the end; the rate is tiny", ("lr|config",)),
    "warmup_too_short": (
        ["lr_too_high", "gradient_clipping_missing"],
        "loss blows up in the first steps at the full rate, no warmup",
        ("lr|config",),
    ),
    "schedule_wrong_units": (["lr_too_low"], "the rate reaches its end early and the loss stops falling", ("lr",)),
    "lr_jump": (["lr_too_high"], "rate and loss change together inside the run", ("lr",)),
    "gradient_clipping_missing": (["lr_too_high", "bad_data_batch"], "rare huge gradients throw the loss off", ("gnorm|config",)),
    "optimizer_second_moment": (
        ["lr_too_low", "lr_too_high"],
        "epsilon or beta2 is far from usual and the loss falls too slowly or is unstable",
        ("config",),
    ),
    "weight_decay_too_strong": (["lr_too_low", "regularization_floor"], "weight decay is huge and the loss stays high", ("config",)),
    "loss_scaled_wrong": (
        ["lr_too_high", "gradients_not_cleared", "gradient_clipping_missing"],
        "gradients are larger by a constant factor and training suffers",
        ("gnorm",),
    ),
    "gradients_not_cleared": (
        ["lr_too_high", "loss_scaled_wrong", "gradient_clipping_missing"],
        "gradient norm grows with the step count and the loss oscillates or diverges",
        ("gnorm",),
    ),
    "fp16_overflow": (
        ["nan_from_layer"],
        "the loss scale falls or gradients are infinite from the start of a float16 run",
        ("scale|config",),
    ),
    "nan_from_sample": (["bad_data_batch", "nan_from_layer"], "NaN out of a calm curve at one step", ()),
    "nan_from_layer": (["nan_from_sample", "lr_too_high"], "NaN at one step, the state having grown towards it", ()),
    "init_too_large": (["lr_too_high", "inputs_not_normalized"], "the first loss is far above what guessing gives and stays bad", ()),
    "attention_logit_growth": (["lr_too_high"], "the largest attention logit grows and the loss stops or rises", ("attn",)),
    "dead_or_saturated_units": (
        ["frozen_parameters", "lr_too_low", "class_collapse"],
        "the loss sticks at the constant answer, with gradients near zero",
        ("gnorm",),
    ),
    "frozen_parameters": (["lr_too_low", "dead_or_saturated_units"], "the loss hardly moves although the rate is right", ("gnorm",)),
    "double_softmax": (["regularization_floor", "labels_wrong"], "loss floor near ln(e + K - 1) - 1 while accuracy is good", ("acc",)),
    "inputs_not_normalized": (["init_too_large", "lr_too_high"], "very large first losses and gradients, slow or no learning", ("gnorm",)),
    "class_collapse": (["labels_wrong", "dead_or_saturated_units"], "one class is always answered", ("acc",)),
    "tokenizer_mismatch": (
        ["eval_changed", "labels_wrong", "data_distribution_shift"],
        "evaluation loss is above guessing and rises while training falls",
        ("eval",),
    ),
    "regularization_floor": (
        ["labels_wrong", "double_softmax"],
        "the loss has a high floor given by the smoothing or the penalty",
        ("config|parts",),
    ),
    "eval_mode_missing": (["overfitting"], "evaluation is much worse and noisier than training, as dropout stays on", ("eval",)),
    "moe_routing_collapse": ([], "one expert gets nearly all tokens", ("experts",)),
    "forgetting": (["data_distribution_shift"], "the old task's evaluation gets worse after the switch", ("eval",)),
    "gan_imbalance": ([], "the discriminator loss goes to zero while the generator loss rises", ()),
    "posterior_collapse": (["regularization_floor"], "the KL term is about zero and the reconstruction stays at the mean's", ("parts",)),
    "rl_reward_scale": (["lr_too_high", "rl_value_explosion"], "returns or value losses of very large (or tiny) size", ()),
    "rl_entropy_collapse": (["lr_too_high"], "entropy falls to zero early and the return sticks", ("entropy",)),
    "rl_kl_runaway": (["lr_too_high", "rl_entropy_collapse"], "the KL to the old policy is large and the return falls", ("kl",)),
    "rl_value_explosion": (["lr_too_high", "rl_reward_scale"], "the value loss grows without bound", ()),
    "optimizer_state_lost": (["lr_schedule_reset"], "a bump right after the resume, with rate and data unchanged", ("resume",)),
    "data_order_restarted": (["optimizer_state_lost"], "after the resume the data position starts again at zero", ("at",)),
    "lr_schedule_reset": (["optimizer_state_lost", "lr_jump"], "the rate starts anew after the resume", ("lr",)),
    "crash_and_restart": (["stopped_from_outside"], "steps appear twice in the log", ()),
    "batch_size_changed": (["config_changed"], "the second launch has another batch size", ("config|bs",)),
    "config_changed": (["batch_size_changed", "lr_jump"], "the second launch has another setting", ("config|lr",)),
    "silent_data_corruption": (
        ["bad_data_batch", "nan_from_layer", "lr_jump"],
        "loss jumps in one step out of calm and comes back slowly or not; nothing else changed",
        (),
    ),
    "throughput_collapse": ([], "step times rise at one step and stay up", ("time",)),
    "out_of_memory": (["code_error"], "the traceback says that memory could not be allocated", ("console",)),
    "hang": (["stopped_from_outside"], "no progress, then a timeout message or a kill", ("console",)),
    "disk_full": ([], "the traceback of a save says that no space is left or that writing failed", ("console",)),
    "stopped_from_outside": ([], "the log ends inside the run, with a signal's message", ("console",)),
    "code_error": ([], "a traceback of an uncaught exception", ("console",)),
    "overfitting": ([], "evaluation loss turns up for good while training falls", ("eval",)),
    "logger_artefact": ([], "the logged value disagrees with the other values in the log at the rows named", ()),
}


def describe(fam, spec):
    if spec.cause is None:
        return [], "yes", f"healthy: {spec.words}"
    accept, what, need = T.get(spec.cause, ([], "", ()))
    have = fam.logs | ({"config"} if fam.config else set()) | ({"console"} if fam.console else set())
    missing = [n for n in need if not any(x in have for x in n.split("|"))]
    if spec.cause == "disk_full" and not fam.h.get("pickle_save"):
        missing, what = (
            ["errno"],
            "the traceback of a save: the zip writer failed at an unexpected position, which is what it says on a full disk",
        )
    ident = spec.ident or ("yes" if not missing else "partly")
    return (spec.accept if spec.accept is not None else accept), ident, spec.what or what
