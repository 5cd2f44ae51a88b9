"""The first few hundred real images of each set, shipped with the tests, for machines that do not have the sets."""

import gzip
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gesmr.problems import datasets

from . import DATA as SAMPLE


def sample_source(name):
    """The set's source with the digests of the sample."""
    source = datasets.SOURCES[name]

    def known(data):
        return datasets.Known(len(data), hashlib.sha256(data).hexdigest())

    def of_sample(file):
        packed = (SAMPLE / name / file.name).read_bytes()
        return file._replace(packed=known(packed), content=known(gzip.decompress(packed)))

    return replace(source, files={part: tuple(map(of_sample, files)) for part, files in source.files.items()})


@pytest.fixture
def sample(monkeypatch):
    """Sets are their samples for the length of a test."""
    sources = {name: sample_source(name) for name in datasets.SOURCES}
    monkeypatch.setattr(datasets, "SOURCES", sources)
    monkeypatch.setenv("GESMR_DATA", str(SAMPLE))


def whole_sets():
    """Skip a test where the sets themselves are not at hand."""
    given = os.environ.get("GESMR_DATA")
    if not given or not (Path(given) / "mnist").is_dir():
        pytest.skip("GESMR_DATA does not name the whole sets; the other tests use the sample in tests/data")
