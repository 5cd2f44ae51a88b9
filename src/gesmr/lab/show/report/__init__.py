"""The report: what studies give to it, and the page."""

from .page import Chapter, Outcome, Section, shell, write

__all__ = ["Chapter", "Outcome", "Section", "shell", "write"]
