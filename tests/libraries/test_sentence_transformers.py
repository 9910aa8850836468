"""sentence-transformers with backend="onnx" returns the results of its backend torch."""

from __future__ import annotations

import numpy as np

SENTENCES = ["hello world", "the cat sat on a mat"]


def test_sentences(provider, save, tmp_path_factory):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 37}
    folder, _ = save(BertModel(BertConfig(vocab_size=32, max_position_embeddings=64, **sizes)))
    torches = SentenceTransformer(modules=[Transformer(str(folder)), Pooling(sizes["hidden_size"])])
    whole = str(tmp_path_factory.mktemp("sentences"))
    torches.save(whole)
    ours = SentenceTransformer(whole, backend="onnx", model_kwargs={"provider": provider})
    np.testing.assert_allclose(ours.encode(SENTENCES), torches.encode(SENTENCES), rtol=1e-3, atol=1e-5)
