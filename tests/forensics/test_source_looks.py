"""Each look at source, in pairs: the slip, and its twin that does the thing right; and source of which nothing can be told."""

from __future__ import annotations

import pytest

from forensics.source.all_looks import LOOKS, agreed, looked
from forensics.source.answers import FAULT, RIGHT, UNKNOWN
from forensics.source.parsed_module import Listing, Module, parse
from forensics.source.program import programs

HEAD = """import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader as Loader
from torchvision import datasets
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.drop = nn.Dropout(0.1)
    def forward(self, x):
        return self.body(x)
model = Net().to("cuda")
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
scaler = torch.cuda.amp.GradScaler()
"""
LOOP = """
for i, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""
ACCUMULATES = """
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    loss = loss / accum
    loss.backward()
    if (i + 1) % accum == 0:
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
"""
SCALED = """
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""
EVALUATES = """
def validate(model, val_loader):
    model.eval()
    with torch.no_grad():
        for x, y in val_loader:
            hits = model(x).argmax(1) == y
for epoch in range(3):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    validate(model, val_loader)
"""
TOTAL = """
total = 0
for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    total += loss.item()
"""
RESUMES = """
checkpoint = torch.load(path)
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
scheduler.load_state_dict(checkpoint["scheduler"])
start = checkpoint["epoch"] + 1
for epoch in range(start, 9):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    scheduler.step()
"""
NLL = "\nclass Log(nn.Module):\n    def forward(self, x):\n        x = model(x)\n        return F.log_softmax(x, 1)\nlog = Log()\nloss = F.nll_loss(log(x), y)\n"
CAUSAL = """
mask = torch.tril(torch.ones(8, 8))
for tokens in loader:
    x, y = tokens[:, :-1], tokens[:, 1:]
    logits = model(x)
    loss = F.cross_entropy(logits.view(-1, 100), y.reshape(-1))
"""
SHIFTS = """
from transformers import AutoModelForCausalLM
lm = AutoModelForCausalLM.from_pretrained("gpt2")
for tokens in loader:
    loss = lm(input_ids=tokens, labels=tokens).loss
"""
ORDER = """
train_set = datasets.CIFAR10("data", train=True)
loader = Loader(train_set, batch_size=32, shuffle=True)
"""
HELD_OUT = """
train_set = datasets.MNIST("data", train=True, transform=augment)
test_set = datasets.MNIST("data", train=False, transform=plain)
"""
WORKERS = """
def seeded(worker):
    np.random.seed(7 + worker)
loader = Loader(train_set, batch_size=32, shuffle=True, num_workers=4, worker_init_fn=seeded)
"""
UNFREEZES = """
for p in model.parameters():
    p.requires_grad = True
tuned = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()))
"""
LATE = """
tuned = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()))
for p in model.parameters():
    p.requires_grad = True
"""
LAYERS = """
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
"""
CLIPS = LOOP.replace("    optimizer.step()", "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()")
TRIES = """
for x, y in loader:
    try:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    except Exception:
        pass
"""

PAIRS = {  # look: (right, faulty), behind HEAD
    "keeps_gradients": (LOOP, LOOP.replace("    optimizer.zero_grad()\n", "")),
    "clips_scaled_gradients": (SCALED, SCALED.replace("    scaler.unscale_(optimizer)\n", "")),
    "clips_after_step": (CLIPS, LOOP + "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"),
    "adds_undivided_losses": (ACCUMULATES, ACCUMULATES.replace("    loss = loss / accum\n", "")),
    "steps_scheduler_often": (ACCUMULATES, ACCUMULATES.replace("        scheduler.step()\n", "") + "    scheduler.step()\n"),
    "evaluates_in_training_mode": (EVALUATES, EVALUATES.replace("    model.eval()\n", "")),
    "trains_in_evaluation_mode": (EVALUATES, EVALUATES.replace("    model.train()\n", "")),
    "squashes_twice": (LOOP, LOOP.replace("criterion(model(x), y)", "criterion(F.softmax(model(x), -1), y)")),
    "gives_nll_no_logs": (NLL, NLL.replace("F.log_softmax(x, 1)", "F.softmax(x, 1)")),
    "shifts_no_labels": (CAUSAL, CAUSAL.replace("y.reshape", "x.reshape")),
    "shifts_labels_twice": (SHIFTS, SHIFTS.replace("labels=tokens", "labels=tokens[:, 1:]")),
    "keeps_order": (ORDER + LOOP, ORDER.replace(", shuffle=True", "") + LOOP),
    "seeds_workers_alike": (WORKERS + LOOP, WORKERS.replace("7 + worker", "7") + LOOP),
    "evaluates_on_training_data": (HELD_OUT, HELD_OUT.replace("train=False", "train=True")),
    "keeps_graphs": (TOTAL, TOTAL.replace("loss.item()", "loss")),
    "loads_no_optimizer": (RESUMES, RESUMES.replace('optimizer.load_state_dict(checkpoint["optimizer"])\n', "")),
    "loads_no_scheduler": (RESUMES, RESUMES.replace('scheduler.load_state_dict(checkpoint["scheduler"])\n', "")),
    "unfreezes_late": (UNFREEZES, LATE),
    "hides_layers": (LAYERS, LAYERS.replace("nn.ModuleList(", "(")),
    "hides_errors": (LOOP, TRIES),
}


def states(text: str, *others: tuple[str, str]) -> dict[str, str]:
    modules = [parse(Listing(path, t)) for path, t in (("train.py", text), *others)]
    assert all(isinstance(m, Module) for m in modules), modules
    each = [looked(p) for p in programs([m for m in modules if isinstance(m, Module)])]
    answers = {name: agreed([e[name] for e in each]) for name in LOOKS}
    assert not [a.text for a in answers.values() if "look failed" in a.text]
    return {name: a.state for name, a in answers.items()}


def test_every_look_has_a_pair() -> None:
    assert PAIRS.keys() == LOOKS.keys()


@pytest.mark.parametrize("look", PAIRS)
def test_a_slip_is_seen_and_its_twin_is_right(look: str) -> None:
    right, faulty = PAIRS[look]
    assert faulty != right
    assert states(HEAD + right)[look] == RIGHT
    assert states(HEAD + faulty)[look] == FAULT


@pytest.mark.parametrize("look", PAIRS)
def test_a_right_program_has_no_slip(look: str) -> None:
    assert FAULT not in states(HEAD + PAIRS[look][0]).values()


@pytest.mark.parametrize("look", PAIRS)
def test_a_slip_is_that_one_alone(look: str) -> None:
    assert [n for n, state in states(HEAD + PAIRS[look][1]).items() if state == FAULT] == [look]


def test_the_place_is_file_and_line() -> None:
    text = HEAD + PAIRS["keeps_gradients"][1]
    module = parse(Listing("runs/train.py", text))
    assert isinstance(module, Module)
    answer = looked(programs([module])[0])["keeps_gradients"]
    line = int(answer.where.removeprefix("runs/train.py line "))
    assert text.split("\n")[line - 1].strip() == answer.line == "optimizer.step()"


def test_a_loop_that_a_library_runs_is_not_judged() -> None:
    for text in (
        "from transformers import Trainer\nTrainer(model=model, args=args, train_dataset=data).train()\n",
        "import lightning as L\nclass M(L.LightningModule):\n    def training_step(self, batch, i):\n        return self.net(batch)\nL.Trainer().fit(M())\n",
        "import keras\nmodel = keras.Sequential([keras.layers.Dense(10, activation='softmax')])\nmodel.compile('adam', 'sparse_categorical_crossentropy')\nmodel.fit(x, y)\n",
    ):
        assert set(states(text).values()) == {UNKNOWN}


def test_keras_takes_logits_from_a_softmax() -> None:
    text = (
        "import keras\nmodel = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(10, activation='softmax')])\n"
        "model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))\nmodel.fit(x, y)\n"
    )
    assert states(text)["squashes_twice"] == FAULT
    assert states(text.replace("from_logits=True", ""))["squashes_twice"] == UNKNOWN
    assert states(text.replace(", activation='softmax'", ""))["squashes_twice"] == UNKNOWN


def test_gradients_may_be_cleared_elsewhere() -> None:
    step = "\ndef step(x, y):\n    criterion(model(x), y).backward()\n    optimizer.step()\n"
    assert states(HEAD + step + "for x, y in loader:\n    optimizer.zero_grad()\n    step(x, y)\n")["keeps_gradients"] == RIGHT
    assert states(HEAD + step + "for x, y in loader:\n    step(x, y)\n")["keeps_gradients"] == FAULT
    assert states(HEAD + step)["keeps_gradients"] == UNKNOWN
    by_hand = LOOP.replace("optimizer.zero_grad()", "for p in model.parameters():\n        p.grad = None")
    assert states(HEAD + by_hand)["keeps_gradients"] == RIGHT
    helper = LOOP.replace("optimizer.zero_grad()", "utils.reset(optimizer)")
    assert states(HEAD + "import utils\n" + helper)["keeps_gradients"] == UNKNOWN
    known = ("utils.py", "def reset(optimizer):\n    optimizer.zero_grad()\n")
    assert states(HEAD + "import utils\n" + helper, known)["keeps_gradients"] == RIGHT
    only_before = "optimizer.zero_grad()\n" + PAIRS["keeps_gradients"][1]
    assert states(HEAD + only_before)["keeps_gradients"] == FAULT


def test_what_is_right_in_another_form() -> None:
    freed = TOTAL.replace("loss.item()", "loss.detach()")
    assert states(HEAD + freed)["keeps_graphs"] == RIGHT
    summed = "\nfor x, y in loader:\n    total = 0\n    for head in heads:\n        loss = criterion(head(x), y)\n        total += loss\n    total.backward()\n"
    assert states(HEAD + summed)["keeps_graphs"] == UNKNOWN
    log_twice = LOOP.replace("criterion(model(x), y)", "criterion(F.log_softmax(model(x), -1), y)")
    assert states(HEAD + log_twice)["squashes_twice"] == RIGHT  # log_softmax of log_softmax is itself
    soft_targets = LOOP.replace("criterion(model(x), y)", "criterion(model(x), F.softmax(teacher(x), -1))")
    assert states(HEAD + soft_targets)["squashes_twice"] == RIGHT
    sampler = ORDER.replace("shuffle=True", "sampler=sampler")
    assert states(HEAD + sampler + LOOP)["keeps_order"] == UNKNOWN
    critic = LOOP.replace("    optimizer.step()", "    if i % n_critic == 0:\n        optimizer.step()")
    assert states(HEAD + critic)["adds_undivided_losses"] == UNKNOWN
    frozen = EVALUATES.replace("    model.train()\n", "").replace("    model.eval()\n", "    teacher.eval()\n")
    assert states(HEAD + frozen)["trains_in_evaluation_mode"] == UNKNOWN
    branch = "\nfor x, y in loader:\n    optimizer.zero_grad()\n    loss = criterion(model(x), y)\n    if amp:\n        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n    else:\n        loss.backward()\n        nn.utils.clip_grad_norm_(model.parameters(), 1)\n        optimizer.step()\n"
    assert states(HEAD + branch)["clips_scaled_gradients"] == UNKNOWN


def test_scripts_that_differ_tell_nothing() -> None:
    right, faulty = (HEAD + t for t in PAIRS["keeps_gradients"])
    assert states(right, ("other.py", faulty))["keeps_gradients"] == UNKNOWN
    assert states(faulty, ("other.py", faulty))["keeps_gradients"] == FAULT


def test_a_loss_that_is_made_to_require_a_gradient_silences_the_error_that_said_why() -> None:
    forced = TOTAL.replace("    loss.backward()\n", "    loss.requires_grad_(True)\n    loss.backward()\n")
    assert states(HEAD + forced)["hides_errors"] == FAULT
    assert states(HEAD + TOTAL)["hides_errors"] == RIGHT


def test_an_error_that_is_told_or_that_is_of_memory_is_not_hidden() -> None:
    for told in ("except Exception as e:\n        print(e)\n        raise", "except torch.cuda.OutOfMemoryError:\n        continue"):
        assert states(HEAD + TRIES.replace("except Exception:\n        pass", told))["hides_errors"] == RIGHT
