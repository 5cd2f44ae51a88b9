"""The paper's experiments as data: each study is a deterministic generator of run specifications."""

from .base import Group, Program, Selection, Spec, Study, as_json, content_hash
from .functions import FunctionsStudy

STUDIES: dict[str, Study] = {study.name: study for study in (FunctionsStudy(),)}

__all__ = ["STUDIES", "Group", "Program", "Selection", "Spec", "Study", "as_json", "content_hash"]
