"""Which words are never taken for a name: a person called "data" or a host called "train" would blank out half of a report.

The words of our own reports (ids of causes and detectors, canonical metric names) are added by :func:`ours`.
"""

from __future__ import annotations

from functools import cache

from parsers.lazy_regex import lazy_re

_WORD = lazy_re(r"[^\W_]+")


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ACCOUNTS = """root admin administrator user users username ubuntu debian centos fedora ec2-user ec2 azureuser opc core vagrant docker
jovyan nobody nogroup daemon system guest test default anonymous none null unknown true false yes no auto any all self me unset empty
git hf wandb mlflow slurm pbs lsf sge k8s kubernetes kubelet systemd sshd cron runner github gitlab jenkins ci bot service app www"""
_HOSTS = """localhost localdomain host hosts hostname node nodes nodename machine master worker workers server client head login compute
cluster local internal container pod gateway proxy cpu gpu cuda tpu mps xpu npu npus gpus rocm x86 x86_64 amd64 aarch64 arm64 i386
linux windows darwin macos posix unix spawn fork static c10d etcd file tcp env local_machine multi_gpu multi_cpu fsdp ddp nccl gloo mpi"""
_TRAINING = """train training trainer eval evaluation val valid validation test testing data dataset datasets dataloader loader batch
batches sample samples step steps epoch epochs iter iteration iterations loss losses grad grads gradient gradients norm norms lr rate
learning model models module modules layer layers block blocks weight weights bias param params parameter parameters optimizer
scheduler schedule checkpoint checkpoints ckpt save saved resume run runs log logs logger metric metrics score value values tensor
token tokens tokenizer text image images audio video input inputs output outputs label labels target targets seed rank ranks world
size device devices memory time seconds config configs setting settings args name names key keys path paths project projects
experiment experiments exp job jobs task tasks work workspace home scratch tmp temp base main demo debug dev prod research lab team
public private shared common share small medium large tiny mini big new old final best last first adam adamw sgd lamb lion muon bert
gpt gpt2 llama mistral qwen gemma t5 vit resnet unet nanogpt transformer transformers torch pytorch tensorflow keras jax flax
lightning deepspeed megatron accelerate huggingface fairseq ray dask numpy scipy sklearn pandas python conda pip cudnn torchrun ultralytics openai eleutherai meta google microsoft nvidia facebook facebookresearch
api docs blog spaces orgs repos explore join help support about pricing features
tensorboard sweep stage shard shards process processes thread threads queue"""
_ENGLISH = """a an and are as at be been but by can could did do does done each else end error errors every failed fails failure few for
from get got had has have he help her here him his how i if in info into is it its just like made make many may might mark max min more
most much must my near next not now of off ok on once one only open or other our out over per please set she should since so some
start started starting stop stopped still such than that the their them then there these they this those time to too two under until
up us use used using very want warning was we were what when where which while who why will with would write wrong you your art"""
COMMON = words(f"{_ACCOUNTS} {_HOSTS} {_TRAINING} {_ENGLISH}")
# Not machines though they end in digits: counters, number formats, accelerators.
_COUNTED = lazy_re(
    r"(?i)(?:rank|local_?rank|epoch|step|iter|layer|cuda|device|stage|shard|batch|block|expert|top|v|k|ep|fold|seed|attempt|run)[-_:]?\d+"
    r"|(?:u?int|float|fp|bf|tf|nf)\d+\w*|(?:a(?:10g?|16|30|40|100|800|6000)|h(?:20|100|200|800)|b[123]00|l(?:4|40s?)|p(?:4|40|100)|t4|g[bh]200|mi\d{2,3}[ax]?|[rg]tx-?a?\d{3,4})|(?:cu|sm|tpu|py|python|x)[-_]?v?\d+"
    r"|(?:cifar|imagenet|mnist|wikitext|openwebtext|coco|gsm|math|mmlu|squad|resnet|vgg|densenet|bert|gpt|llama|opt|pythia|qwen|mistral|gemma|phi"
    r"|vit|bloom|yolo|efficientnet|unet|swin|wav2vec|mobilenet|adam)[-_.]?v?\d[\w.\-]*"
)
_FILE = lazy_re(
    r"(?i)\.(?:py|pyc|c|cc|cpp|cu|cuh|h|hpp|rs|go|js|sh|md|txt|log|out|err|json|jsonl|ya?ml|toml|ini|cfg|csv|tsv|parquet|arrow|pt|pth"
    r"|ckpt|bin|safetensors|npy|npz|h5|hdf5|keras|pkl|pickle|so|html|png|jpg|gz|tar|zip|wandb|db|sqlite|ipynb|lock|v2)$"
)
_NAME = lazy_re(r"[^\W_](?:[\w.\-+ ]*[\w$])?")


def is_name(text: str) -> bool:
    """Whether a text from a place where names stand is one that can be hidden wherever it stands as a whole word."""
    folded = text.casefold()
    if not 2 <= len(text) <= 253 or not any(c.isalpha() for c in text) or not _NAME.fullmatch(text):
        return False
    return folded not in COMMON and folded not in ours() and not is_count(text) and not _FILE.search(text)


def is_count(text: str) -> bool:
    """`rank0`, `bf16`, `H100`: numbered things that are no machines."""
    return _COUNTED.fullmatch(text) is not None


def is_file(text: str) -> bool:
    return _FILE.search(text) is not None


@cache
def ours() -> frozenset[str]:
    """The words of causes, detectors and canonical metric names, as the report prints them."""
    from forensics.causes.files import causes
    from forensics.rules import detectors, further_causes, id_of
    from parsers import names

    ids = [*causes(), *map(id_of, (*detectors(), *further_causes()))]
    return frozenset(w.casefold() for text in [*ids, *names.vocabulary()] for w in (text, *_WORD.findall(text)))
