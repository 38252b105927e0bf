"""A Trainer whose own metric function fails at the second evaluation."""

import hf

CALLS = []


def compute_metrics(predictions):
    CALLS.append(len(CALLS))
    best = predictions.predictions.argmax(-1)
    labels = predictions.label_ids if len(CALLS) < 2 else predictions.label_ids[:500]
    return {"accuracy": float((best - labels == 0).mean())}


if __name__ == "__main__":
    hf.accuracy = compute_metrics
    hf.main()
