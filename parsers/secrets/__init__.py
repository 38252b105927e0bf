"""Masks secrets: by key (whole words) and by value (the shapes of well-known tokens).

``num_key_value_heads``, ``tokenizer`` and ``max_tokens`` are no secrets; ``HF_TOKEN`` and ``api_key`` are. Texts and values
are masked as they are read; names (:func:`names`) only where they are shown, for they say what is the same.
"""

from parsers.secrets.display import names
from parsers.secrets.keys import is_secret_key
from parsers.secrets.settings_tree import mask_config, mask_value
from parsers.secrets.shapes import MASK, has_hints, has_shapes, mask_shapes
from parsers.secrets.texts import mask_text, mask_texts

__all__ = [
    "MASK",
    "has_hints",
    "has_shapes",
    "is_secret_key",
    "mask_config",
    "mask_shapes",
    "mask_text",
    "mask_texts",
    "mask_value",
    "names",
]
