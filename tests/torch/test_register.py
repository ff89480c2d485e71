"""A torch that cannot have the backend: each is said, with what to do."""

import sys

import pytest
import torch
import torch.distributed as dist

import col
import col.torch


def test_registered_once():
    col.torch.register()
    assert "COL" in dist.Backend._plugins and str(dist.Backend.COL).lower() == "col"


def test_too_old(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "1.12.1+cpu")
    with pytest.raises(col.Unavailable, match=r"needs torch 1\.13 or later: torch 1\.12\.1"):
        col.torch.register()


def test_without_distributed(monkeypatch):
    monkeypatch.setattr(dist, "is_available", lambda: False)
    with pytest.raises(col.Unavailable, match="built without torch.distributed"):
        col.torch.register()


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(col.Unavailable, match="needs torch, which cannot be imported"):
        col.torch.register()


def test_hook_of_another_backend():
    with pytest.raises(col.InvalidArgument, match="not of backend 'col'"):
        col.torch.allreduce_hook("gloo", None)
    with pytest.raises(AttributeError, match="no attribute 'allreduce_hok'"):
        col.torch.allreduce_hok
