"""Errors a user of the command line can do something about."""


class LabError(Exception):
    """Ends a command with its message and `exit_code`."""

    exit_code = 2


class StorageError(LabError):
    """Something could not be written or read. What was finished before is intact."""

    exit_code = 1


def ending(error: Exception) -> LabError:
    """What ends a command that met another error: in one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return StorageError(f"{error.filename} cannot be used: {error.strerror}")
    return LabError(str(error))
