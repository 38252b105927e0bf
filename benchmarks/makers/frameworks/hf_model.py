"""Data sets and models for the Trainer families, made from their configurations."""

import time

import numpy as np
import proj
import torch
import transformers as tf


class Items(torch.utils.data.Dataset):
    def __init__(self, x, y, task, f, bs):
        self.x, self.y, self.task, self.f, self.bs = x, y, task, f, bs
        self.cache = proj.SampleCache()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        f, x, y = self.f, torch.from_numpy(np.asarray(self.x[i])), torch.from_numpy(np.asarray(self.y[i]))
        if "slow" in f and i // self.bs >= f["slow"][0] and i % self.bs == 0:
            time.sleep(f["slow"][1])
        if "leak_mb" in f:
            self.cache.decode(i, size=int(f["leak_mb"] * 2**20))
        if self.task == "lm":
            return {"input_ids": x, "labels": x.clone() if not f.get("masked") else torch.full_like(x, -100)}
        if self.task == "reverse":
            if f.get("masked"):
                y = torch.full_like(y, -100)
            return {"input_ids": x, "labels": y}
        if self.task == "digits":
            return {"pixel_values": x * 255 if f.get("raw") else x, "labels": y}
        if "short" in f and i // self.bs == f["short"]:  # a record that lost a field
            return {"input_ids": x}
        return {"input_ids": x, "labels": y}


def build(task, m, f):
    if task == "lm":
        return tf.GPT2LMHeadModel(
            tf.GPT2Config(
                vocab_size=96,
                n_positions=40,
                n_embd=m.get("n_embd", 48),
                n_layer=m.get("n_layer", 2),
                n_head=m.get("n_head", 2),
                initializer_range=m.get("initializer_range", 0.02),
                resid_pdrop=m.get("dropout", 0.0),
                embd_pdrop=m.get("dropout", 0.0),
                attn_pdrop=0.0,
                bos_token_id=0,
                eos_token_id=0,
            )
        )
    if task == "seqcls":
        return tf.BertForSequenceClassification(
            tf.BertConfig(
                vocab_size=m.get("vocab_size", 32),
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=64,
                max_position_embeddings=32,
                num_labels=4,
                initializer_range=m.get("initializer_range", 0.08),
                hidden_dropout_prob=m.get("dropout", 0.0),
                attention_probs_dropout_prob=0.0,
                pad_token_id=0,
            )
        )
    if task == "reverse":
        return tf.T5ForConditionalGeneration(
            tf.T5Config(
                vocab_size=12,
                d_model=32,
                d_kv=16,
                d_ff=64,
                num_layers=1,
                num_decoder_layers=1,
                num_heads=2,
                dropout_rate=m.get("dropout", 0.0),
                decoder_start_token_id=0,
                pad_token_id=0,
                eos_token_id=1,
                initializer_factor=m.get("initializer_factor", 1.0),
            )
        )
    return tf.ViTForImageClassification(
        tf.ViTConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            image_size=8,
            patch_size=2,
            num_channels=1,
            num_labels=10,
            initializer_range=m.get("initializer_range", 0.05),
            hidden_dropout_prob=m.get("dropout", 0.0),
        )
    )


def clean_loss(task, model, xe, ye):
    was, tot = model.training, 0.0
    model.eval()
    with torch.no_grad():
        x, y = torch.from_numpy(xe), torch.from_numpy(ye)
        tot = model(**({"pixel_values": x} if task == "digits" else {"input_ids": x}), labels=x if task == "lm" else y).loss.item()
    model.train(was)
    return tot
