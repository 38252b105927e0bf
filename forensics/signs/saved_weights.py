"""What the values and files of the checkpoints show: damage, absurd values, and which weights moved between the saves."""

from __future__ import annotations

from collections.abc import Callable

from forensics.case import Finding
from forensics.checkpoints import run_saves, tokenizer_files, vocabulary_files
from forensics.checkpoints.describe import plain_name
from forensics.detectors import checkpoint_damage, checkpoint_state, config_change, frozen_weights
from forensics.run import settings
from forensics.run.settings import Setting
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.loss_names import EVAL, TRAIN
from parsers.name_rules import words
from parsers.tables import Run

NO_SAVE = "there is no checkpoint in the folder"
# what says which id a symbol or a class has
_ENCODING = lazy_re(
    r"(?i)(?:^|[._/ -])(?:charset|alphabet|characters|vocab(?:ulary)?(?:_?file)?|tokenizer(?:_?(?:name|path))?|merges|bpe_?codes|label_?map"
    r"|id2label|label2id|class_?(?:names|to_?idx))$"
)
TOKENIZER = ("tokenizer_config.json", "tokenizer.json", "special_tokens_map.json")


def absurd_weight(s: Symptoms) -> Sign:
    """A weight or moment in a checkpoint has a size that no training reaches."""
    return _values(s, "absurd", "of a size that no training reaches")


def weight_not_finite(s: Symptoms) -> Sign:
    """A weight or moment in a checkpoint is NaN or infinite."""
    return _values(s, "nonfinite", "that is NaN or infinite")


def checkpoint_torn(s: Symptoms) -> Sign:
    """A checkpoint file is empty, cut off, or not what its header says."""
    found = [f for f in s.of(checkpoint_damage.Facts) if f.facts.bytes is not None]
    if found:
        more = f" {len(found)} files are damaged." if len(found) > 1 else ""
        where = found[0].facts.path
        return seen(f"{found[0].title}.{more}", found[:5], where=where, first=found[0].first_step)
    table = s.run.tables["checkpoints"]
    if not table.num_rows:
        return cannot_tell(f"{NO_SAVE}.")
    whole = table["complete"].to_pylist().count(True)
    if not whole:
        return cannot_tell("no checkpoint file in the folder tells its own length.")
    others = ", and the others do not tell" if whole < table.num_rows else ""
    return absent(f"{whole} of {table.num_rows} checkpoint files are as long as their headers say{others}.")


def weights_bit_equal(s: Symptoms) -> Sign:
    """Weights are bit for bit the same in two checkpoints, while others moved."""
    if found := s.of(frozen_weights.Facts):
        return seen(f"{found[0].title}.", found, first=found[0].first_step, last=found[0].last_step)
    return _moved(s.run, absent)


def weights_all_move(s: Symptoms) -> Sign:
    """Every weight that two checkpoints share changed between them."""
    if found := s.of(frozen_weights.Facts):
        return absent(f"{found[0].title}.", found)
    return _moved(s.run, seen)


def tokenizer_differs(s: Symptoms) -> Sign:
    """The tokenizer or chat template beside a checkpoint is not that beside the one before; or a launch sets another vocabulary or character set, or
    another one for the evaluation than for the training; or the files of two vocabularies that lie with the run give their tokens other numbers."""
    found = [f for f in s.of(checkpoint_state.Facts) if f.facts.what == "tokenizer"]
    if found:
        return seen(f"{found[0].title}.", found, first=found[0].last_step)
    for f in s.of(config_change.Facts):
        told = [f"{k} from {old} to {new}" for k, (old, new) in zip(f.facts.keys, f.facts.changes, strict=True) if _ENCODING.search(k)]
        if told:
            return seen(f"Between two launches the config changed {told[0]}.", [f], first=f.first_step)
    if (pair := _by_side(s.run)) is not None:
        return seen(
            f"Config sets {pair[0].key} = {str(pair[0].value)[:80]} and {pair[1].key} = {str(pair[1].value)[:80]}.", where=pair[1].where
        )
    if apart := vocabulary_files.apart_by_side(s.run):
        return seen(f"{apart}.")
    homes = dict.fromkeys(tokenizer_files.home(c.path) for c in run_saves.of_run(s.run))
    beside = [h for h in homes if any((h / name).is_file() for name in TOKENIZER)]
    if len(beside) < 2:
        return cannot_tell("there are no two checkpoints in the folder with tokenizer files beside them.")
    return absent(f"The tokenizer files beside {len(beside)} checkpoints say the same from each to the next.")


def _by_side(run: Run) -> tuple[Setting, Setting] | None:
    """Two settings of one encoding, of the training and of an evaluation, that say otherwise (``train_alphabet``, ``eval_alphabet``)."""
    told = {words(t.key): t for t in settings.every(run) if _ENCODING.search(t.key)}
    for key in (k for k in told if TRAIN.search(k)):
        same = (k for k in told if EVAL.search(k) and EVAL.sub("", k).split() == TRAIN.sub("", key).split())
        if (other := next((k for k in same if told[k].value != told[key].value), None)) is not None:
            return told[key], told[other]
    return None


def _values(s: Symptoms, what: str, words: str) -> Sign:
    found: list[Finding[checkpoint_damage.Facts]] = [f for f in s.of(checkpoint_damage.Facts) if f.facts.what == what]
    if found:
        return seen(f"{found[0].title}.", found, where=found[0].facts.path, first=found[0].first_step)
    if not s.run.tables["checkpoints"].num_rows:
        return cannot_tell(f"{NO_SAVE}.")
    read = [c for c in run_saves.tensors(s.run) if c.stats]
    if not read:
        return cannot_tell("there is no checkpoint in the folder whose values could be read.")
    count = sum(len(c.stats) for c in read)
    return absent(f"None of {count} tensors in {len(read)} checkpoints holds a value {words}.")


def _moved(run: Run, state: Callable[..., Sign]) -> Sign:
    """Whether all weights move, where the detector found no weight that stands still while others move."""
    pair = frozen_weights.pair(run_saves.tensors(run))
    if pair is None:
        return cannot_tell("there are no two checkpoints in the folder that hold the same weights.")
    a, b = pair
    old = {plain_name(t.name): a.stats.get(t.name) for t in a.contents.tensors if t.role == "weight" and not t.why}
    new = {plain_name(t.name): b.stats.get(t.name) for t in b.contents.tensors if t.role == "weight" and not t.why}
    both = [n for n in old.keys() & new.keys() if old[n] is not None and new[n] is not None]
    moved = sum(old[n] != new[n] for n in both)
    if not both or not moved:
        return does_not_arise(
            f"no weight moved between the checkpoints of step {a.step} and step {b.step}: they are copies, or nothing was learnt."
        )
    if moved < len(both):
        return cannot_tell(f"the values of {len(both) - moved} weights could not be told apart between step {a.step} and step {b.step}.")
    text = f"All {len(both)} weights changed between the checkpoints of step {a.step} and step {b.step}."
    return state(text, where=run_saves.name(b, run))
