"""Which samples the run saw, in which order, and what its troubles share."""

from __future__ import annotations

from forensics.batches import first_batches
from forensics.batches.data_passes import contents
from forensics.batches.recorded import shard_ends
from forensics.batches.recurrence import epochs_of
from forensics.batches.resume_data import BY_LOSS
from forensics.batches.resume_loss import VALUES
from forensics.case import Finding
from forensics.detectors import config_change, dataset_loss, divergence, eval_jump, level_shift, loss_spike, repeated_data, spike_data
from forensics.detectors.train_eval_gap import Facts as Gap
from forensics.many_runs.config_diff import kind_of
from forensics.run.announced import announced
from forensics.run.inputs import surviving
from forensics.run.series import parts, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

NO_IDS = "no file maps steps to samples."
IDS = ("sample", "batch", "shard", "source")
SAME = 0.5  # share of samples that batches at one place have in common: most, beside random augmentation
LEAST = 5  # values: a few logging intervals, where single batches make one
NEAR = 3  # steps by which a stretch may miss the beginning of its shard: a loader that reads ahead
CHANCE = 0.25  # share of a shard's steps that are so near its beginning: of shorter shards nearly every step is
BESIDE = 20  # steps: two logging intervals of ten, the most usual one


def _few_spikes(s: Symptoms) -> str:
    n = len(s.of(loss_spike.Facts))
    return f"{n or 'no'} spike{'' if n == 1 else 's'}; two are needed to share anything." if n < 2 else ""


def spikes_share_samples(s: Symptoms) -> Sign:
    """Several spikes fall on one sample, batch, shard or source more often than chance allows (exact test, 1 % for the whole run)."""
    if found := [f for f in s.of(spike_data.Common) if f.facts.what in IDS]:
        f = found[0]
        return seen(f"{f.title}.", found, p=f.facts.p, steps=f.facts.steps, first=f.first_step, last=f.last_step, what=f.facts.what)
    if not s.run.tables["batches"].num_rows:
        return cannot_tell(NO_IDS)
    if few := _few_spikes(s):
        return cannot_tell(few)
    return absent(f"{len(s.of(loss_spike.Facts))} spikes share no sample, batch, shard or source beyond chance.")


def spikes_same_place_in_epoch(s: Symptoms) -> Sign:
    """Spikes of different epochs lie at the same place of the epoch, away from its seam."""
    places: list[Finding[spike_data.Facts]] = [f for f in s.of(spike_data.Place) if not f.facts.seam]
    places += [f for f in s.of(spike_data.Common) if f.facts.what == "place"]
    if places:
        f = places[0]
        return seen(f"{f.title}.", places, p=f.facts.p, steps=f.facts.steps, first=f.first_step, last=f.last_step)
    if s.of(spike_data.Place):
        return cannot_tell("the spikes lie at the seam of the epochs, where the loop does other things, too.")
    train, epochs = series(s.run, "loss.train"), epochs_of(s.run)
    if train is None or epochs is None:
        return cannot_tell("the log does not say where epochs begin.")
    if int(epochs.number(int(train.step.max()))) - int(epochs.number(int(train.step.min()))) < 1:
        return cannot_tell("the run is within its first epoch.")
    if few := _few_spikes(s):
        return cannot_tell(few)
    return absent(f"{len(s.of(loss_spike.Facts))} spikes come at no common place of the epoch ({epochs.steps:.0f} steps long).")


def _stretch(s: Symptoms) -> Finding[loss_spike.Facts] | None:
    """The spike that lasts and ends, and stands out most."""
    ended = [f for f in s.of(loss_spike.Facts) if f.facts.values >= LEAST and (f.facts.end is not None or f.facts.falls_at is not None)]
    return max(ended, key=lambda f: f.facts.noise_sigmas * f.facts.values**0.5, default=None)


def stretch_is_a_shard(s: Symptoms) -> Sign:
    """A stretch of high loss begins with the step at which a shard of the data begins."""
    best = _stretch(s)
    if best is None:
        return cannot_tell("no stretch of high loss begins and ends in the log.")
    start, end = best.facts.start, best.facts.end if best.facts.end is not None else best.facts.falls_at
    shard = shard_ends(s.run, start) or shard_ends(s.run, start + NEAR)
    if shard is None:
        return cannot_tell("no file says which shard was read there, or it was read elsewhere, too.")
    name, first, last = shard
    text = f"The stretch goes from step {start} to {end}; shard {name} was read from step {first} to {last}."
    if CHANCE * (last - first + 1) < 2 * NEAR + 1:
        return cannot_tell(f"shards there are {last - first + 1} steps long, so that any step is near the beginning of one.")
    return seen(text, [best], shard=name, first=first, last=last) if abs(first - start) <= NEAR else absent(text, [best])


def one_dataset_got_worse(s: Symptoms) -> Sign:
    """The loss of one dataset rose, or its accuracy fell, while those of the others got better."""
    if found := s.of(dataset_loss.Facts):
        return seen(f"{found[0].title}.", found, first=found[0].first_step, last=found[0].last_step, tag=found[0].facts.tag)
    sets = [len([p for p in parts(s.run, name) if len(surviving(p)) >= dataset_loss.LEAST]) for name in dataset_loss.NAMES]
    if max(sets) < 2:
        return cannot_tell("the loss or accuracy of fewer than two datasets was logged.")
    return absent(f"Of {max(sets)} datasets none gets worse while the others get better.")


def dataset_worse_at_jump(s: Symptoms) -> Sign:
    """One dataset began to get worse at the step where the training loss jumped or changed its level."""
    worse, jumps = s.of(dataset_loss.Facts), s.of(level_shift.Facts, loss_spike.Facts, traps=True)
    if not worse or not jumps:
        return cannot_tell(f"no {'dataset gets worse by itself' if not worse else 'jump of the loss was found'}.")
    pairs = [(w, j) for w in worse for j in jumps if abs((j.first_step or 0) - w.facts.step) <= w.facts.interval]
    if not pairs:
        return absent(
            f"{worse[0].facts.tag} gets worse from step {worse[0].facts.step} on, where the training loss does not jump.", worse[:1]
        )
    w, j = pairs[0]
    text = (
        f"{w.facts.tag} is at its lowest at step {w.facts.step} and gets worse from there; the training loss jumps at step {j.first_step}."
    )
    return seen(text, [w, j], first=j.first_step)


def _position(s: Symptoms, found: list[Finding[repeated_data.Facts]], what: str, *, restarted: bool = True) -> Sign:
    """A sign on ids: seen where `found` has one, absent where ids of a restart show none."""
    if found:
        f = found[0]
        return seen(f"{f.title}.", found, first=f.facts.step, last=f.last_step, offset=f.facts.offset, share=f.facts.share)
    batches = contents(s.run) if s.run.tables["batches"].num_rows else {}
    if not batches:
        return cannot_tell(NO_IDS)
    if restarted and len(s.run.attempts) < 2:
        return cannot_tell("the run was not restarted.")
    if len(s.run.attempts) > 1 and not any(a > 0 for a, _ in batches):
        return cannot_tell("no file says which samples were read after the restart.")
    return absent(f"The samples of {len(batches)} steps are known; {what}.")


def _of_ids(s: Symptoms, what: str) -> list[Finding[repeated_data.Facts]]:
    return [f for f in s.of(repeated_data.Facts) if f.facts.what == what and f.facts.how != BY_LOSS]


def samples_repeated(s: Symptoms) -> Sign:
    """By their ids, batches in a row hold the samples of an earlier stretch of the run."""
    return _position(s, _of_ids(s, "repeated"), "no batches in a row repeat an earlier stretch", restarted=False)


def samples_skipped(s: Symptoms) -> Sign:
    """By their ids, samples that came next were left out."""
    return _position(s, _of_ids(s, "skipped"), "none that came next were left out")


def samples_again_within_epoch(s: Symptoms) -> Sign:
    """By their ids, samples came again before the epoch ended."""
    return _position(s, [f for f in _of_ids(s, "reshuffled") if f.facts.share], "none come again before the epoch ends")


def loss_says_samples_repeat(s: Symptoms) -> Sign:
    """The ups and downs of the loss after a restart follow those of an earlier stretch."""
    if found := [f for f in s.of(repeated_data.Facts) if f.facts.how == BY_LOSS]:
        return seen(f"{found[0].title}.", found, first=found[0].facts.step, p=found[0].facts.p, offset=found[0].facts.offset)
    train = series(s.run, "loss.train")
    if train is None or len(s.run.attempts) < 2:
        return cannot_tell("the training loss was not logged." if train is None else "the run was not restarted.")
    named = {a for a, _ in contents(s.run)} if s.run.tables["batches"].num_rows else set()
    if (train.attempt[train.usable] > 0).sum() < first_batches.LEAST or named - {0}:
        return cannot_tell(
            "the samples after the restart are known by their ids, which say it better."
            if named - {0}
            else f"fewer than {first_batches.LEAST} losses follow the restart."
        )
    earlier = "no earlier stretch" if (train.attempt[train.usable] > 0).sum() >= VALUES else "not those that the run began with"
    return absent(f"The ups and downs of the loss after the restart follow {earlier}.")


def begins_with_first_batch(s: Symptoms) -> Sign:
    """After a restart the data begin again with the very first batch of the run."""
    again = s.of(repeated_data.Facts)
    if not again:
        return cannot_tell("no data come again after a restart.")
    if found := [f for f in again if f.facts.from_start]:
        return seen(f"From step {found[0].facts.step} on the data begin again with the very first batch.", found, first=found[0].facts.step)
    return absent(f"{again[0].title}, not with the very first batch.", again)


def data_settings_changed(s: Symptoms) -> Sign:
    """The config has other data from a step on, or from a launch on, and the loss or the evaluation changes there."""
    told = [(a.step, f"{a.key} = {a.says}", a.where) for a in announced(s.run) if a.about == "data"]
    for f in s.of(config_change.Facts):
        keys = [k for k in f.facts.keys if kind_of(k)[0] in ("data", "tokens")]
        if keys and f.facts.step is not None:
            told.append((f.facts.step, ", ".join(keys[:3]), next((e.where for e in f.evidence if e.where), "")))
    if not told:
        return cannot_tell("config names no change of the data on the way.")
    train = series(s.run, "loss.train")
    reach = max(BESIDE, 2 * train.interval if train is not None else 0)
    effects = s.of(level_shift.Facts, loss_spike.Facts, divergence.Facts, eval_jump.Facts, Gap, dataset_loss.Facts, traps=True)
    for step, says, where in told:
        if near := [f for f in effects if f.first_step is not None and abs(f.first_step - step) <= reach]:
            return seen(f"The data are set otherwise from step {step} on ({says}): {near[0].title}.", near[:2], where=where, first=step)
    return absent(
        f"The data are set otherwise from step {told[0][0]} on ({told[0][1]}), and no jump of the loss begins there.", where=told[0][2]
    )
