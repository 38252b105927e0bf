"""Logged names get their canonical name, whatever the framework, the folder and the neighbours."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers import name_rules
from parsers.frameworks import detect
from parsers.names import meaning, vocabulary

SHARED = Path(__file__).parents[2].parent / "shared"
REFERENCE = SHARED / "reference" / "metric_names.json"
SCALARS = SHARED / "open" / "runs_scalars.parquet"

# How the reference table calls what detect() calls otherwise
FRAMEWORKS = {
    "HF Trainer": "hf-trainer", "TRL (DPO/KTO)": "hf-trainer", "TRL (GRPO)": "hf-trainer", "Axolotl": "hf-trainer",
    "LLaMA-Factory (trainer_log.jsonl)": "hf-trainer", "ms-swift (logging.jsonl)": "hf-trainer",
    "Megatron-LM": "megatron", "Megatron-DeepSpeed (BLOOM)": "megatron", "GPT-NeoX": "gpt-neox", "NeMo 2": "nemo",
    "DeepSpeed monitor": "deepspeed", "LLM-Foundry / Composer": "composer", "OLMo-core": "olmo-core",
    "OLMo (2024)": "olmo", "Levanter / Marin": "levanter", "metaseq / fairseq": "fairseq", "RLlib": "rllib",
    "MMEngine (vis_data/scalars.json)": "mmengine", "Detectron2 (metrics.json)": "detectron2", "verl": "verl",
    "Ultralytics (results.csv)": "ultralytics", "OpenCLIP": "openclip", "Stable-Baselines3": "stable-baselines3",
    "torchtitan": "torchtitan", "nanoGPT": "nanogpt", "nanochat": "nanochat", "Lightning": "lightning",
    "Keras": "keras", "PaddleNLP": "paddlenlp", "OpenRLHF": "openrlhf", "CleanRL": "cleanrl", "MaxText": "maxtext",
    "torchtune": "torchtune",
}  # fmt: skip

KNOWN = {
    "loss.train": ["loss", "Loss", "LOSS", "train/loss", "train_loss", "train.loss", "Train Loss", "trainLoss",
                   "trainloss", "training_loss", "tr_loss", "loss/train", "Loss/train", "losses/total", "total_loss",
                   "loss_total", "lm loss", "train/lm_loss", "reduced_train_loss", "train_loss_step", "epoch_loss",
                   "batch_loss", "loss_metrics/global_avg_loss", "loss/train/total", "train/CE loss", "Loss/total",
                   "metrics/train/LanguageCrossEntropy", "cross_entropy", "cross_entropy_1", "loss_1", "train/nll",
                   "trl", "train/ce", "ce_train", "learning/loss", "Train/Samples/train_loss", "metrics.dpo_loss", "running_loss",
                   "loss/fit", "learners/default_policy/total_loss", "\x1b[31mloss\x1b[0m", "smoothed_train_loss", "bce_loss"],
    "loss.eval": ["ce_val", "val_loss", "val/loss", "valLoss", "valid_loss", "loss/valid", "Loss/test", "eval_loss", "eval/loss",
                  "validation_loss", "lm loss validation", "dev_loss", "loss/val", "tel", "test loss", "valloss",
                  "validation_metrics/loss", "eval/lm/pile-validation/CE loss", "val_loss/dataloader_idx_1",
                  "epoch_val_loss", "eval/avg_loss", "heldout/loss", "loss/hold", "oof loss"],
    "loss.aux": ["box_loss", "train/cls_loss", "val/obj_loss", "loss_bbox", "loss_rpn_cls", "z_loss", "train/ZLoss",
                 "load_balancing_loss", "moe/aux_loss", "loss_mask", "lossG", "d_loss", "generator_loss", "recon_loss",
                 "losses/l_g_pix", "l_percep", "best_val_loss", "router_z_loss"],
    "loss.train_max_rank": ["loss_metrics/global_max_loss"],
    "ppl.train": ["ppl", "train/PPL", "train/Perplexity"],
    "ppl.eval": ["eval_ppl", "val/perplexity", "lm loss validation ppl"],
    "bpb.eval": ["val/bpb", "val_bpb"],
    "acc.train": ["acc", "accuracy", "train/acc", "accuracy_1", "Acc@1", "train_top1", "mean_token_accuracy"],
    "acc.eval": ["val_acc", "val_accuracy", "eval_top1", "eval/accuracy", "Accuracy/test", "testacc"],
    "grad.norm": ["grad_norm", "optim/gn", "gn", "opt/grad", "grad-norm", "grad norm", "gradnorm", "gnorm", "train/grad_norm", "Grad/total_norm",
                  "optim/total_grad_norm", "actor/grad_norm", "l2_norm/grad/global", "grad_2.0_norm_total", "norm",
                  "gradient_norm", "grad_total", "learning/raw_grad_norm", "grad/norm/total", "global_grad_norm",
                  "grad_norm_before_clip", "gnorm reduced"],
    "grad.norm_layer": ["grad_norm/wte", "gnorm local", "gnorm_blocks.0", "gradients/net.14", "grad_2.0_norm/layer.weight",
                        "l2_norm/grad/model.layers.0.weight", "model.layers.3.grad_norm", "gradient_norms/layers.0"],
    "grad.zeros": ["num-zeros", "num_zeros_in_grad"],
    "act.zeros": ["zero/0", "zeros/layer_2", "zero_frac", "layer3/zero_fraction", "frac_zero", "frac_zero_relu", "fraction_of_zeros", "zero_activations", "zero_frac_0", "zeros_share_layer_2", "act_zero"],
    "act.active": ["code_active", "frac_active", "alive_frac", "active_fraction", "act/frac_active_h0", "units_alive", "share_of_active_units"],
    "pred.std": ["pred_std", "val/prediction_std", "std_pred", "y_pred_std", "output_std"],
    "param.norm": ["params-norm", "pnorm", "w_norm", "param_norm", "train/weight_norm", "learning/param_norm",
                   "|theta|", "||w||", "||w||_2", "‖θ‖", "theta_norm", "coef_l2", "weights_l2", "w_l2", "train/param_l2", "l2_of_weights", "weight_l2_norm", "norm_of_params"],
    "param.norm_layer": ["weight_norm/c1", "encoder/weights_l2", "wnorm_wpe", "wnorm/fc", "pnorm/conv1", "p_norm/layer1", "parameters/net.16"],
    "pad.share": ["padding_ratio", "train/pad_fraction", "data/padding_share"],
    "upd.norm": ["train/update_norm", "optim/param_update_norm"],
    "upd.ratio": ["update_ratio", "train/update_to_weight_ratio", "relative_update", "upd/weight ratio"],
    "lr": ["lr", "LR", "learning_rate", "learning-rate", "lr-AdamW", "lr-AdamW/pg1", "x/lr0", "lr/pg0", "train/lr",
           "optim/LR (group 0)", "charts/learning_rate", "epoch_learning_rate", "train/actor_lr"],
    "lr.mult": ["train/lrm", "lr_scale"],
    "loss_scale": ["loss_scale", "loss-scale", "loss scale", "train/loss_scale", "amp/scale", "grad_scale"],
    "attn.max_logit": ["max_attention_logit", "attn_max", "diag/max_attn", "train/max_attention_logit", "max_attn_logit"],
    "attn.entropy": ["attn_entropy", "attention/entropy"],
    "nan.count": ["number of nan iterations", "num_nans"],
    "skip.count": ["number of skipped iterations", "skipped", "amp/overflow", "train/skipped_steps", "optim/step skipped"],
    "spike.score": ["spike/SpikeScore"],
    "step": ["step", "global_step", "_step", "iter", "iteration", "trainer/global_step", "num_updates"],
    "epoch": ["epoch", "train/epoch", "ep"],
    "tokens.seen": ["num_input_tokens_seen", "n_tokens_seen", "total_tokens", "time/token", "train/tokens"],
    "samples.seen": ["examples_seen", "pairs_seen", "seen_images", "consumed samples", "samples_seen", "train/num_input_samples", "time/total_timesteps", "train/samples"],
    "batch.size": ["batch-size", "global batch size", "bsz"],
    "time.step": ["step_s", "iter_ms", "batch_sec", "step_time", "iteration-time", "dt", "elapsed time per iteration (ms)", "perf/time_per_step",
                  "step_avg", "t_step", "ms/batch", "avg_batch_cost", "batch_time", "train_step_timing in s"],
    "time.data": ["data_s", "t_data", "avg_reader_cost", "fetch_ms", "data_time", "time_metrics/data_loading(s)", "train/data_loading_time"],
    "time.data_frac": ["time_metrics/data_loading(%)"],
    "time.total": ["_runtime", "_timestamp", "timestamp", "elapsed", "wall", "time/time_elapsed", "train_time"],
    "tput.tokens": ["tok/sec", "tok_per_s", "tokens-per-sec", "perf/tokens_per_sec", "wps", "tps"],
    "tput.tokens_dev": ["throughput(tps)", "throughput/device/TPS", "tokens_per_second_per_gpu"],
    "tput.samples": ["samples_per_sec", "utt_per_s", "graphs/sec", "CurrSamplesPerSec", "images/sec", "eval_samples_per_second"],
    "tput.samples_dev": ["device/samples_per_sec"],
    "tput.steps": ["steps_s", "step/s", "global_step/sec", "it/s", "time/fps", "ups", "batch_steps_per_second", "charts/SPS"],
    "flops.dev": ["tflops", "TFLOPS_per_GPU", "throughput per GPU (TFLOP/s/GPU)", "runtime/flops_per_sec_per_gpu"],
    "mfu": ["mfu", "mfu(%)", "bf16_mfu", "runtime/model_flops_utilization"],
    "mem.alloc": ["memory", "mem_gb", "max_memory_allocated", "memory/max_active(GiB)", "peak_memory_active",
                  "mem-allocated-bytes", "System/Peak GPU Memory (MB)"],
    "mem.reserved": ["memory/max_reserved(GiB)", "mem-reserved-bytes"],
    "mem.retries": ["memory/num_alloc_retries"],
    "mem.oom": ["memory/num_ooms"],
    "gpu.util": ["system.gpu.0.gpu", "system/gpu_0_utilization_percentage"],
    "gpu.mem": ["system.gpu.1.memoryAllocated", "system/gpu_mem_gb", "system/gpu_0_memory_usage_megabytes"],
    "gpu.temp": ["system.gpu.0.temp"],
    "gpu.power": ["system.gpu.0.powerWatts", "system/gpu_0_power_usage_watts"],
    "gpu.ecc": ["system.gpu.0.uncorrectedMemoryErrors"],
    "cpu.util": ["system.cpu", "system/cpu_utilization_percentage"],
    "mem.host": ["system.memory", "system/system_memory_usage_megabytes"],
    "mem.process": ["system.proc.memory.rssMB"],
    "disk.util": ["system.disk"],
    "net.sent": ["system.network.sent"],
    "net.recv": ["system.network.recv"],
    "rl.reward": ["rollout/ep_rew_mean", "episode_reward_mean", "charts/episodic_return", "reward", "train/reward", "eprewmean", "rewards/iter", "rewards/time"],
    "rl.reward_std": ["StdReturn", "reward_std"],
    "rl.zero_std": ["frac_reward_zero_std"],
    "rl.kl": ["kl", "train/approx_kl", "actor/ppo_kl", "objective/kl", "approxkl", "loss/approxkl", "policy/approxkl_avg"],
    "rl.entropy": ["entropy", "train/entropy_loss", "losses/entropy"],
    "rl.clipfrac": ["train/clip_fraction", "losses/clipfrac", "clip_ratio/region_mean"],
    "rl.loss_policy": ["train/policy_gradient_loss", "policy_loss", "actor/pg_loss", "act_loss", "LossPi"],
    "rl.loss_value": ["train/value_loss", "critic/vf_loss", "critic_loss", "losses/qf1_loss", "loss/value"],
    "rl.expl_var": ["train/explained_variance"],
    "rl.len": ["rollout/ep_len_mean", "completions/mean_length", "eplenmean", "episode_lengths/step"],
    "rl.trunc": ["completions/clipped_ratio"],
    "pref.chosen": ["rewards/chosen", "metrics.logps_chosen"],
    "pref.rejected": ["logps/rejected", "eval_rewards/rejected"],
    "pref.margin": ["rewards/margins", "metrics.reward_margin"],
    "pref.acc": ["rewards/accuracies"],
}  # fmt: skip
AXIS = ["lm loss vs samples", "steps-vs-tokens/tokens", "total_flos", "eval/runtime", "train_runtime", "remaining_time",
        "percentage", "elapsed_time", "eta", "evaluation_loss_vs_iterations"]  # fmt: skip
OTHER = ["moe/overflow", "hp_metric", "momentum", "max_grad_norm", "loss_weight", "num_loss_spikes", "train/batch_token_entropy",
         "layer1/weights/summaries/mean", "metrics/mAP_0.5", "dead_frac", "weight_decay", "",
         "loss_scale_window", "best_acc", "grad_norm_max", "optimizer/beta2",
         "frac_active_features", "moe/active_expert_fraction", "active_users", "active_params_frac", "active_units", "l2_penalty", "l2_reg", "l2_weight", "weight_l2", "l2_coef", "weight_decay_l2", "theta", "l2"]  # fmt: skip


def name(tag: str, *siblings: str, **context: str) -> str:
    return meaning(tag, siblings=frozenset({tag, *siblings} if siblings else ()), **context).name  # type: ignore[arg-type]


@pytest.mark.parametrize("canonical", KNOWN)
def test_known_names(canonical: str) -> None:
    assert {tag: name(tag) for tag in KNOWN[canonical]} == dict.fromkeys(KNOWN[canonical], canonical)


def test_the_list_is_long_enough_and_covers_the_vocabulary() -> None:
    assert sum(map(len, KNOWN.values())) > 200
    assert set(KNOWN) <= set(vocabulary())


def test_axis_and_unknown_names_keep_their_tag() -> None:
    assert [name(tag) for tag in AXIS] == [f"axis/{tag}" for tag in AXIS]
    assert [name(tag) for tag in OTHER] == [f"other/{tag}" for tag in OTHER]


@pytest.mark.skipif(not REFERENCE.exists(), reason="needs the reference table")
def test_every_name_of_the_reference_table() -> None:
    wrong = []
    for row in json.loads(REFERENCE.read_text()):
        for tag in row["examples"]:
            wanted = f"axis/{tag}" if row["canonical"] == "DROP" else row["canonical"]
            for framework in (FRAMEWORKS[row["framework"]], None):
                got = meaning(tag, framework=framework).name
                if got != wanted and not (framework is None and tag == "throughput"):  # needs its framework
                    wrong.append((tag, framework, wanted, got))
    assert not wrong


@pytest.mark.skipif(not REFERENCE.exists(), reason="needs the reference table")
def test_frameworks_are_told_by_their_names() -> None:
    tags: dict[str, set[str]] = {}
    for row in json.loads(REFERENCE.read_text()):
        tags.setdefault(row["framework"], set()).update(row["examples"])
    assert {f: detect(t) for f, t in tags.items()} == FRAMEWORKS


@pytest.mark.skipif(not SCALARS.exists(), reason="needs the open runs")
def test_wherever_a_loss_is_logged_it_is_recognized() -> None:
    pl = pytest.importorskip("polars")
    found: dict[str, set[str]] = {}
    for run, file, tags in pl.read_parquet(SCALARS).group_by("run", "file").agg(pl.col("tag").unique()).rows():
        if any("loss" in tag.lower() for tag in tags):
            siblings, folder = frozenset(tags), file.rpartition("/")[0]
            found.setdefault(run, set()).update(meaning(t, folder=folder, siblings=siblings).name for t in tags)
    assert len(found) > 30
    assert not {run for run, got in found.items() if not any(n.startswith(("loss.", "rl.loss")) for n in got)}


# -- what else is logged ----------------------------------------------------------------------------------------------


def test_the_mean_of_the_run_is_no_curve() -> None:
    trainer = ("loss", "train_runtime", "eval_loss", "train_samples_per_second", "total_flos")
    found = meaning("train_loss", siblings=frozenset({"train_loss", *trainer}))
    assert (found.name, found.smoothing) == ("other/train_loss", "mean of run") and found.trap
    assert name("train_samples_per_second", *trainer) == "other/train_samples_per_second"
    assert name("train/train_loss", "train/train_runtime", "train/loss") == "other/train/train_loss"
    assert name("train_loss", "val_loss", "epoch") == "loss.train"
    assert name("train_loss", "train_runtime") == "loss.train"  # nothing else says how the loss went


def test_terms_stand_behind_a_total() -> None:
    for total in ("loss", "total_loss", "train/loss_total", "loss/train/total"):
        for term in ("box_loss", "ce_loss", "loss_kl", "generator_loss", "my_loss", "contrastive_loss"):
            assert name(term, total) == "loss.aux", (term, total)
            assert name(total, term) == "loss.train", (term, total)


def test_terms_without_a_total_stay_terms() -> None:
    yolo = ["train/box_loss", "train/obj_loss", "val/box_loss", "val/obj_loss"]
    assert {name(tag, *yolo) for tag in yolo} == {"loss.aux"}
    assert {name(tag, "foo_loss", "bar_loss") for tag in ("foo_loss", "bar_loss")} == {"loss.aux"}
    assert name("lossG", "lossD") == name("lossD", "lossG") == "loss.aux"
    assert name("loss_0", "loss_1") == name("loss_1", "loss_0") == "loss.aux" and name("loss_0") == "loss.train"


def test_a_critic_is_a_player_where_nothing_is_rewarded() -> None:
    assert name("critic_loss", "gen_loss", "gp") == name("gen_loss", "critic_loss", "gp") == "loss.aux"
    gan = ("loss/critic", "loss/artist", "score/real", "score/fake")
    assert name("loss/critic", *gan) == name("loss/artist", *gan) == "loss.aux"  # whatever the other one is called
    assert name("loss/critic", "rollout/ep_rew_mean") == name("critic_loss", "actor_loss") == "rl.loss_value"
    assert name("loss/vae", "loss/critic") == "loss.train"  # nothing scores real samples beside generated ones


def test_what_players_pull_at_and_a_policy_by_short_words() -> None:
    gan = ("adv_D", "adv_G", "D_real", "D_fake")
    assert name("adv_D", *gan) == name("adv_G", *gan) == "loss.aux" and name("adv_D", "loss") == "other/adv_D"
    ppo = ("surrogate", "critic_mse", "H", "kl3", "ret_mean")
    assert [name(tag, *ppo) for tag in ppo] == ["rl.loss_policy", "rl.loss_value", "rl.entropy", "rl.kl", "rl.reward"]
    assert name("ent", "pi_loss", "v_loss") == "rl.entropy" and name("ent", "loss") == "other/ent"
    assert name("H", "loss") == "other/H" and name("ret_mean", "rollout/ep_len_mean") == "rl.reward"


def test_a_cross_entropy_beside_a_policy_and_its_critic_is_a_term() -> None:
    assert name("CE", "Pi", "Q") == "loss.aux" and name("CE", "acc") == "loss.train"


@pytest.mark.parametrize(
    ("beside", "read"), [("commit", ("other/perplexity", "")), ("vq_loss", ("other/perplexity", "")), ("lr", ("ppl.train", "nats/token"))]
)
def test_beside_a_codebook_a_perplexity_counts_its_codes(beside: str, read: tuple[str, str]) -> None:
    """van den Oord et al., arXiv 1711.00937: no exp of a loss, which is then of no token."""
    tags = frozenset({"loss", "perplexity", beside})
    assert (meaning("perplexity", siblings=tags).name, meaning("loss", siblings=tags).unit) == read


def test_a_length_is_one_of_episodes_beside_a_reward() -> None:
    assert name("Avg length", "Total reward") == "rl.len" and name("length", "loss") == "other/length"


def test_the_only_loss_of_the_training_is_the_whole_where_the_evaluation_has_it_too() -> None:
    assert name("pixel_ce", "val/ce") == "loss.train"
    assert name("pixel_kl_loss", "val/ce") == "loss.aux"
    assert name("pixel_ce", "val/ce", "edge_loss") == "loss.aux"


def test_the_loss_of_one_player_is_no_whole() -> None:
    assert name("D/loss", "G/adv", "G/l1") == "loss.aux"
    assert name("D/loss", "accuracy") == "loss.train"


def test_an_estimate_is_no_loss() -> None:
    beside = ("charts/episodic_return", "losses/value_loss")
    assert name("losses/value_mean", *beside) == "other/losses/value_mean"
    assert name("losses/qf1_values", *beside) == "other/losses/qf1_values"
    assert name("losses/mean_value", *beside) == "other/losses/mean_value"
    assert name("losses/value_loss", *beside) == name("losses/value", *beside) == "rl.loss_value"


def test_h_is_the_entropy_of_attention_beside_its_logits() -> None:
    assert name("att_H/0", "qk_max/0") == "attn.entropy"
    assert name("att_h/0", "att_w/0") == "other/att_h/0"  # a height beside a width


def test_te_beside_tr_is_the_test() -> None:
    pair = ["tr_loss", "te_loss", "tr_acc", "te_acc"]
    assert [name(tag, *pair) for tag in pair] == ["loss.train", "loss.eval", "acc.train", "acc.eval"]
    assert name("loss_te", "loss") == "loss.part"  # something else of that name


def test_likelihood_is_the_headline_where_no_total_is_logged() -> None:
    assert name("train/CE loss", "train/Z loss") == "loss.train"
    assert name("ce_loss", "dice_loss") == "loss.train" and name("dice_loss", "ce_loss") == "loss.aux"
    assert name("lm loss", "load_balancing_loss", "loss") == "loss.train"


def test_norms_of_layers_are_of_weights_where_the_name_says_so() -> None:
    assert [name(tag, "loss") for tag in ("pnorm/conv1", "norm/conv1", "layernorm/conv1")] == [
        "param.norm_layer",
        "other/norm/conv1",
        "other/layernorm/conv1",
    ]


@given(st.sampled_from(["box", "my", "kl", "generator", "entropy", "l1", "aux", "Dice", "x_y", "best"]),
       st.sampled_from(["{}_loss", "loss_{}", "loss/{}", "train/{}_loss", "losses/{}Loss"]))  # fmt: skip
def test_a_single_loss_is_the_loss(word: str, form: str) -> None:
    tag = form.format(word)
    assert name(tag, "lr", "step") == "loss.train"
    assert name(f"val/{tag}".replace("train/", ""), "lr") == "loss.eval"


def test_parts_of_the_data() -> None:
    assert name("loss/wikipedia", "loss", "loss/code") == "loss.part"
    assert name("loss_wikipedia", "loss") == "loss.part"
    assert name("eval_wikipedia_loss", "loss", "eval_loss") == "loss.part"
    assert name("eval_wikipedia_loss", "loss", "eval_code_loss") == "loss.eval"  # no eval loss but these


def test_reinforcement_learning_is_told_by_its_neighbours() -> None:
    assert name("kl_loss", "recon_loss", "loss") == "loss.aux"
    assert name("kl_loss", "policy_loss", "reward") == "rl.kl"
    assert name("entropy_loss", "policy_loss", "value_loss") == "rl.entropy"
    assert name("entropy", "loss", "num_tokens") == "other/entropy"
    assert name("train/ent_coef_loss", "train/actor_loss", "train/critic_loss") == "loss.aux"
    assert [name(tag, "r", "l", "t") for tag in "rlt"] == ["rl.reward", "rl.len", "time.total"]
    assert name("r", "p") == "other/r" and name("r", framework="stable-baselines3") == "rl.reward"


def test_a_bare_split_is_a_loss_or_the_hits_beside_one() -> None:
    assert name("val", "train") == "loss.eval"  # build-nanogpt's
    assert name("Val", "Train", "Loss") == "acc.eval" and name("Train", "Val", "Loss") == "acc.train"  # PyTorch Geometric's


def test_time_is_a_step_time_only_beside_a_data_time() -> None:
    assert name("time", "data_time", "loss") == "time.step"
    assert name("time", "loss", "step") == "time.total"


@pytest.mark.parametrize("tag", ["d/real_acc", "d/fake_acc", "disc_acc", "critic/accuracy", "acc_real"])
def test_how_often_a_discriminator_is_right_is_no_accuracy_of_the_task(tag: str) -> None:
    assert meaning(tag).name == f"other/{tag}"
    assert meaning("train/acc").name == "acc.train"


def test_top5_and_averages_do_not_mix_with_top1() -> None:
    meters = ["Time", "Time (avg)", "Loss", "Loss (avg)", "Acc@1", "Acc@1 (avg)", "Acc@5"]
    wanted = ["time.step", "other/Time (avg)", "loss.train", "loss.aux", "acc.train"]
    assert [name(tag, *meters) for tag in meters] == [*wanted, "other/Acc@1 (avg)", "other/Acc@5"]
    assert name("Loss (avg)", "lr") == "loss.train"


def test_loss_value_is_a_value_loss_only_in_reinforcement_learning() -> None:
    assert name("validation lm_loss value", "lm_loss") == "loss.eval"
    assert name("loss_value", "policy_loss", "episode_reward") == "rl.loss_value"


# -- folders, overrides -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "split"),
    [("", "train"), ("logs/train", "train"), ("logs/validation", "eval"), ("eval", "eval"), ("eval_wiki", "eval"),
     ("exp/val", "eval"), ("log/test", "eval"), ("test/version_3", "train"), ("val/run_1", "eval"),
     ("eval/train", "train"), ("evaluation2", "train"), ("latest", "train"), ("a\\val\\", "eval")],
)  # fmt: skip
def test_folder_says_which_split(folder: str, split: str) -> None:
    assert name("epoch_loss", folder=folder) == f"loss.{split}"
    assert name("accuracy_1", folder=folder) == f"acc.{split}"


def test_a_name_that_says_its_split_wins_over_the_folder() -> None:
    assert name("train/loss", folder="eval") == "loss.train"
    assert name("val_loss", folder="train") == "loss.eval"
    assert name("lr", folder="eval") == "lr"


def test_folders_of_add_scalars() -> None:
    assert name("loss", "loss", folder="tb/loss_train") == "loss.train"
    assert name("loss", "loss", folder="tb/loss_val") == "loss.eval"
    assert name("data/loss", folder="data_loss_test") == "loss.eval"
    assert name("Losses", "Losses", folder="Losses_box") == "loss.aux"


def test_overrides() -> None:
    mine = {"loss.train": "my/own/tag", "grad.norm": "g"}
    assert meaning("my/own/tag", overrides=mine).name == "loss.train"
    assert meaning("loss", overrides=mine).name == "loss.aux"
    assert meaning("grad_norm", overrides=mine).name == "other/grad_norm"
    assert meaning("val_loss", overrides=mine).name == "loss.eval"
    assert meaning("loss", framework="fairseq", overrides={"loss.train": "loss"}).unit == "bits"


# -- unit, smoothing, trap --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "framework", "unit"),
    [("loss", None, ""), ("train/nll_loss", None, "nats"), ("lm loss", None, "nats/token"), ("loss", "fairseq", "bits"),
     ("loss_metrics/global_avg_loss", "torchtitan", "nats/token"), ("val_bpb", None, "bits/byte"),
     ("step_time", None, "s"), ("elapsed time per iteration (ms)", None, "ms"), ("train_time_min", None, "min"),
     ("mem-allocated-bytes", None, "bytes"), ("memory/max_active(GiB)", None, "GiB"), ("mem_gb", None, "GB"),
     ("memory/max_active(%)", None, "%"), ("memory", "mmengine", "MB"), ("mfu(%)", None, "%"),
     ("tok/s", None, "tokens/s"),
     ("throughput", "megatron", "TFLOP/s"), ("throughput", "hf-trainer", "tokens/s"), ("lr", None, ""),
     ("runtime/flops_per_sec_per_gpu", None, "FLOP/s"), ("train/global batch size", "olmo-core", "tokens"),
     ("system.gpu.0.powerPercent", None, "%"), ("system.gpu.0.powerWatts", None, "W"),
     ("_timestamp", None, "s since 1970")],
)  # fmt: skip
def test_unit(tag: str, framework: str | None, unit: str) -> None:
    assert meaning(tag, framework=framework).unit == unit


def test_unit_of_the_loss_follows_from_tokens_beside_it() -> None:
    assert meaning("loss", siblings=frozenset({"loss", "tokens_per_sec"})).unit == "nats/token"
    assert meaning("loss", siblings=frozenset({"loss", "accuracy"})).unit == ""


def test_the_word_of_a_split_alone_is_the_loss_of_that_name() -> None:
    assert name("sft_val", "sft_loss") == "loss.eval"
    assert name("sft_val", "sft_exact") == "other/sft_val"
    assert name("lr_val", "sft_loss") != "loss.eval"


@pytest.mark.parametrize(
    ("tag", "framework", "smoothing"),
    [("loss", None, "none"), ("loss", "hf-trainer", "mean of interval"), ("loss", "mmengine", "mean of 10"),
     ("total_loss", "detectron2", "median of 20"), ("train/loss", "nanochat", "EMA 0.9"), ("loss_ema", None, "EMA"),
     ("train/loss_mean", "openrlhf", "EMA 0.9"), ("loss", "keras", "running epoch mean"),
     ("grad_norm", "mmengine", "mean of 10"),
     ("train_loss_epoch", "lightning", "running epoch mean"), ("train_loss_step", "lightning", "none"),
     ("train/box_loss", "ultralytics", "running epoch mean"), ("smooth_l1_loss", None, "none")],
)  # fmt: skip
def test_smoothing(tag: str, framework: str | None, smoothing: str) -> None:
    assert meaning(tag, framework=framework).smoothing == smoothing


@pytest.mark.parametrize(
    ("tag", "framework", "word"),
    [("l2_norm/grad/global", "composer", "after clipping"), ("learning/grad_norm", "maxtext", "After clipping"),
     ("learning/raw_grad_norm", "maxtext", "Before clipping"), ("loss", "hf-trainer", "NaN"),
     ("lm loss", "megatron", "NaN"),
     ("Train/Samples/train_loss", "deepspeed", "samples"), ("perf/total_num_tokens", "verl", "this step"),
     ("perf/throughput", "verl", "GPU"), ("train/entropy_loss", "stable-baselines3", "Minus"),
     ("eval_rewards/chosen", None, "evaluation"), ("throughput", None, "Megatron"),
     ("lm loss vs samples", None, "axis")],
)  # fmt: skip
def test_trap(tag: str, framework: str | None, word: str) -> None:
    trap = meaning(tag, framework=framework).trap
    assert word in trap and trap.endswith(".")


def test_megatrons_console_is_smoothed_and_its_tracker_is_not() -> None:
    console = frozenset({"lm loss", "global batch size", "elapsed time per iteration (ms)"})
    assert meaning("lm loss", framework="megatron", siblings=console).smoothing == "mean of interval"
    assert meaning("lm loss", framework="megatron", siblings=frozenset({"lm loss", "batch-size"})).smoothing == "none"


# -- frameworks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("framework", "tags", "rest"),
    [
        ("hf-trainer", [], {"formats": ["trainer_state"]}),
        ("hf-trainer", ["loss", "grad_norm", "learning_rate", "epoch"], {}),
        ("hf-trainer", ["train/loss", "train/total_flos", "train/epoch"], {}),
        ("hf-trainer", ["loss"], {"file_names": ["out/checkpoint-10/training_args.bin"]}),
        ("hf-trainer", ["loss", "rewards/margins", "logps/chosen"], {}),
        ("lightning", ["train_loss_step", "train_loss_epoch", "val_loss"], {}),
        ("lightning", ["train_loss", "val_loss"], {"file_names": ["lightning_logs/version_0/metrics.csv"]}),
        ("megatron", ["lm loss", "grad-norm", "learning-rate"], {}),
        ("gpt-neox", ["lm_loss", "samples/sec", "elapsed time per iteration (ms)"], {}),
        ("torchtitan", ["loss_metrics/global_avg_loss", "grad_norm"], {}),
        ("deepspeed", ["Train/Samples/train_loss"], {}),
        ("nanogpt", ["train loss", "val loss", "loss", "time"], {}),
        ("keras", ["epoch_loss"], {"file_names": ["logs/validation/events.out.tfevents.1.host.v2"]}),
        ("keras", ["loss", "accuracy", "val_loss", "val_accuracy"], {}),
        ("ultralytics", ["train/box_loss", "x/lr0"], {}),
        ("stable-baselines3", ["r"], {"file_names": ["ppo/0.monitor.csv"]}),
        ("stable-baselines3", ["rollout/ep_rew_mean", "time/fps"], {}),
        ("mmengine", ["loss", "data_time", "memory"], {}),
        ("mmcv", ["train/loss", "train/loss_cls", "momentum", "learning_rate"], {}),
        ("detectron2", ["total_loss", "data_time", "lr"], {}),
        ("fairseq", ["loss", "wps", "num_updates", "gnorm"], {}),
        ("nanogpt", ["loss"], {"config_keys": ["eval_iters", "block_size"]}),
        (None, ["loss", "lr"], {}),
        (None, ["train/loss", "train/grad_norm", "train/learning_rate", "train/epoch", "train/step_time"], {}),
        (None, ["epoch_loss", "lr"], {}),
        (None, [], {}),
    ],
)  # fmt: skip
def test_detect_framework(framework: str | None, tags: list[str], rest: dict[str, list[str]]) -> None:
    assert detect(tags, **rest) == framework


def test_the_data_is_sound() -> None:
    data = name_rules.data()
    special = {"loss", "ppl", "acc", "bpb", "axis", "other"}
    notes = [note for entry in data["framework"].values() for note in entry.get("note", ())]
    for rule in data["rule"] + notes:
        assert {rule[k] for k in ("name", "of") if k in rule} <= special | set(vocabulary()), rule
        assert set(rule) <= {"name", "of", "when", "near", "beside", "unit", "smoothing", "trap"}, rule
        for regex in (rule.get("when", ""), *rule.get("near", ()), *rule.get("beside", ())):
            re.compile(regex)
        assert not rule.get("trap") or rule["trap"].endswith("."), rule
    for framework, entry in data["framework"].items():
        for sign in (s for signs in entry["signs"] for s in signs):
            assert re.fullmatch(r"(tag|config|format|file):.+", sign), (framework, sign)
            re.compile(sign.partition(":")[2])


# -- whatever a tag holds ---------------------------------------------------------------------------------------------


@given(st.text(max_size=400), st.text(max_size=60), st.frozensets(st.text(max_size=30), max_size=5))
@settings(deadline=None)
def test_any_text_has_a_meaning(tag: str, folder: str, siblings: frozenset[str]) -> None:
    found = meaning(tag, folder=folder, siblings=siblings)
    assert found.name in vocabulary() or found.name in (f"other/{tag}", f"axis/{tag}")
    assert found == meaning(tag, folder=folder, siblings=siblings)


@pytest.mark.parametrize(
    "piece",
    ["a", "grad ", "grad norm ", "loss/", "gpu mem ", "train ", "eval ", "max attn ", "1.", "/", "\n", "\x1b[31m", "é",
     "\ud800", "token entropy ", "reward/", "num total tokens "],
)  # fmt: skip
def test_long_tags_finish(piece: str) -> None:
    tag = piece * 100_000
    found = meaning(tag, siblings=frozenset({tag, tag + "x", "loss"}))
    assert found.name in vocabulary() or found.name.endswith(tag)


def test_tags_that_differ_behind_the_cut_stay_apart() -> None:
    long = "z" * 5000
    assert name(long + "1") != name(long + "2")


def test_beside_a_generator_and_a_discriminator_no_loss_is_the_whole() -> None:
    sides = ("Generator Loss", "Discriminator Loss")
    assert name("domain_classifier_loss", *sides) == "loss.aux"
    assert name("domain_classifier_loss", "lr") == "loss.train"


def test_the_terms_and_the_sum_of_a_tracker_s_table() -> None:
    table = ("box", "conf", "id", "total", "nTargets")
    assert [name(x, *table) for x in table] == ["loss.aux", "loss.aux", "loss.aux", "loss.train", "other/nTargets"]


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        (("loss", "eval_g0_loss", "eval_g1_loss"), "loss.eval"),
        (("loss", "eval_g_loss", "eval_d_loss"), "loss.aux"),
        (("g0_loss", "g1_loss", "eval_g0_loss", "eval_g1_loss"), "loss.aux"),
    ],
    ids=["data sets that are counted", "terms", "terms that training has, too"],
)
def test_counted_sets_of_the_evaluation_are_no_terms(tags: tuple[str, ...], name: str) -> None:
    assert {meaning(t, siblings=frozenset(tags)).name for t in tags if t.startswith("eval")} == {name}


def test_a_split_alone_beside_the_other_is_its_loss() -> None:
    both = frozenset({"train", "val", "hella"})
    assert [meaning(t, siblings=both).name for t in ("train", "val", "hella")] == ["loss.train", "loss.eval", "other/hella"]
    assert meaning("val", siblings=frozenset({"val", "x"})).name == "other/val"


def test_losses_of_quarters_are_no_value_losses() -> None:
    quarters = ("loss", "loss_q0", "loss_q1", "loss_q2", "loss_q3")
    assert name("loss_q1", *quarters) == "loss.part"
    assert name("loss_q1", "loss_q2", "loss_pi") == "rl.loss_value"


def test_te_is_of_the_test_set_before_or_behind_the_metric() -> None:
    assert [name(tag, "nll_tr") for tag in ("nll_te", "te_nll", "acc_te", "nll_tr")] == ["loss.eval", "loss.eval", "acc.eval", "loss.train"]
    assert [name(tag, "acc@tr") for tag in ("acc@va", "va_loss", "acc@tr")] == ["acc.eval", "loss.eval", "acc.train"]
    assert name("site_te_rate") == "other/site_te_rate"


def test_iterations_a_second_without_a_stroke() -> None:
    assert name("it_s") == name("it/s") == "tput.steps"
    assert name("its") == "other/its"


def test_one_letter_is_told_by_what_stands_beside_it() -> None:
    """v_loss is the loss of the validation beside t_loss, and that of the value beside a policy."""
    assert [name(tag, "t_loss", "v_loss", "t_acc", "v_acc") for tag in ("t_loss", "v_loss", "t_acc", "v_acc")] == [
        "loss.train",
        "loss.eval",
        "acc.train",
        "acc.eval",
    ]
    assert [name("v_loss", "pg_loss", "t_loss"), name("vloss", "ep_ret"), name("v_loss", "pi_loss")] == ["rl.loss_value"] * 3
