"""Which view shows which study."""

from .functions.view import FunctionsView
from .views import View

VIEWS: dict[str, View] = {"functions": FunctionsView()}
