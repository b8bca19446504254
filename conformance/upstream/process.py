"""What a process sets before it builds, saves or loads models."""

from __future__ import annotations

import importlib
import logging
import os
import warnings


def quiet() -> None:
    """One thread, no hub, no advice on the terminal: what every process that builds models sets first."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    import torch

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module=r"transformers(\..*)?")
    warnings.filterwarnings("ignore", module=r"torch(\..*)?")
    logging.getLogger("transformers").setLevel(logging.ERROR)


def no_progress_bars() -> None:
    """Saving and loading draw none."""
    importlib.import_module("transformers.utils.logging").disable_progress_bar()


def no_advice_on_loading() -> None:
    """No progress bars and no warnings of what was offloaded, for the rest of the process."""
    no_progress_bars()
    logging.getLogger("accelerate").setLevel(logging.ERROR)
