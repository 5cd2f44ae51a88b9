"""The paper's experiments as data: each study is a deterministic generator of run specifications."""

from ..run.specs import Job, Program, Selection, Spec, Study, as_json, content_hash
from .cmaes.runs import CmaesStudy
from .control.runs import ControlStudy
from .functions.runs import FunctionsStudy
from .groups.runs import GroupsStudy
from .images.runs import ImagesStudy
from .landscape.runs import LandscapeStudy
from .mutations.runs import MutationsStudy
from .sensitivity.runs import SensitivityStudy
from .theorem.runs import TheoremStudy

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

__all__ = ["STUDIES", "Job", "Program", "Selection", "Spec", "Study", "as_json", "content_hash"]
