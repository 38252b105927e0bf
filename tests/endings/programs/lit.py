"""Lightning with the CSV logger over the toy task; its ending is chosen by the environment."""

import os
import sys

import lightning
import torch
from lib import make_model, prefetch, toy_batch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger

ENDING = os.environ.get("ENDING", "")


class LitClassifier(lightning.LightningModule):
    def __init__(self, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.model = make_model()

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.log("train_loss", loss, prog_bar=True)
        prefetch(self.global_step, int(os.environ.get("AT", "-1")))
        if ENDING == "step" and self.global_step == 270:
            self.log("train_margin", self.margin(x, y))
        return loss

    def margin(self, x, y):
        return self.model(x).gather(1, y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        if ENDING == "sanity":
            x = x.half()
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.log("val_loss", loss, prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def loader(rows, seed):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*toy_batch(rows, torch.Generator().manual_seed(seed))), batch_size=64)


def main():
    lightning.seed_everything(1)
    callbacks = [TQDMProgressBar(refresh_rate=20), ModelCheckpoint(monitor="val_loss")]
    if ENDING == "early":
        callbacks.append(EarlyStopping(monitor="val_loss", min_delta=0.05, patience=2, verbose=True))
    trainer = lightning.Trainer(
        max_epochs=8,
        accelerator="cpu",
        devices=1,
        logger=CSVLogger("logs", name="toy"),
        callbacks=callbacks,
        log_every_n_steps=10,
        enable_model_summary=True,
    )
    trainer.fit(LitClassifier(), loader(64 * 80, 2), loader(64 * 8, 3))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
