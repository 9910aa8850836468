"""Metadata of a model, as in `onnxruntime.ModelMetadata`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir


@dataclass(frozen=True)
class ModelMetadata:
    """Fields and names as in onnxruntime; texts are empty where the model says nothing.

    Attributes:
        producer_name: The tool that wrote the model.
        graph_name: The name of its graph.
        domain: Its namespace, as a reversed domain name.
        description: The model's description.
        graph_description: Its graph's description.
        version: The model's version; 2**63 - 1 if it has none, as in onnxruntime.
        custom_metadata_map: Whatever else the model says, by keys of its author.
    """

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, model: ir.Model) -> ModelMetadata:
        """Take the metadata from a model that was just read."""
        return cls(
            producer_name=model.producer_name or "",
            graph_name=model.graph.name or "",
            domain=model.domain or "",
            description=model.doc_string or "",
            graph_description=model.graph.doc_string or "",
            version=model.model_version if model.model_version is not None else 2**63 - 1,
            custom_metadata_map=dict(model.metadata_props),
        )
