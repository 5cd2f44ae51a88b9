"""Which view shows which study."""

from . import cmaes, control, groups, images, landscape, mutations, sensitivity, theorem
from .functions.view import FunctionsView
from .views import View

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
