"""The paper's experiments as data: each study is a deterministic generator of run specifications."""

from .base import Group, Program, Selection, Spec, Study, as_json, content_hash
from .cmaes import CmaesStudy
from .control import ControlStudy
from .functions import FunctionsStudy
from .groups import GroupsStudy
from .images import ImagesStudy
from .landscape import LandscapeStudy
from .mutations import MutationsStudy
from .sensitivity import SensitivityStudy
from .theorem import TheoremStudy

_ALL: tuple[Study, ...] = (
    FunctionsStudy(),
    MutationsStudy(),
    LandscapeStudy(),
    TheoremStudy(),
    GroupsStudy(),
    SensitivityStudy(),
    CmaesStudy(),
    ImagesStudy(),
    ControlStudy(),
)

STUDIES: dict[str, Study] = {study.name: study for study in _ALL}

__all__ = ["STUDIES", "Group", "Program", "Selection", "Spec", "Study", "as_json", "content_hash"]
