"""Which view shows which study."""

from .show.views import View
from .studies.cmaes import show as cmaes
from .studies.control import show as control
from .studies.functions.show import FunctionsView
from .studies.groups import show as groups
from .studies.images import show as images
from .studies.landscape import show as landscape
from .studies.mutations import show as mutations
from .studies.sensitivity import show as sensitivity
from .studies.theorem import show as theorem

VIEWS: dict[str, View] = {
    "functions": FunctionsView(),
    "mutations": mutations.VIEW,
    "landscape": landscape.VIEW,
    "theorem": theorem.VIEW,
    "groups": groups.VIEW,
    "sensitivity": sensitivity.VIEW,
    "cmaes": cmaes.VIEW,
    "images": images.VIEW,
    "control": control.VIEW,
}
