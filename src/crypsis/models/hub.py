"""Networks that lie as transformers' `save_pretrained` writes them: in a folder, or on the hub of Hugging Face.

What the hub has is looked for in huggingface_hub's cache first, so that a machine without network needs no setting; it
is fetched if it is not there. Weights are read from safetensors alone, and no code that lies beside them is run.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CrypsisError, MissingDependencyError, ModelError
from .foreign import import_extra, sha256_of, told
from .segmenter import Description

__all__ = ["Pretrained", "find_pretrained", "quiet"]

_CONFIGURATION = ("config.json", "preprocessor_config.json", "processor_config.json")
_TOKENS = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "vocab.txt", "merges.txt",
)  # fmt: skip
_VOCABULARY = ("tokenizer.json", "vocab.txt", "vocab.json")
"""Files one of which a tokenizer needs."""
_INDEX = "model.safetensors.index.json"
_WANTED = [*_CONFIGURATION, *_TOKENS, "model*.safetensors", _INDEX]
_FETCH = "hf download {} --include '*.json' --include '*.txt' --include 'model*.safetensors'"


@dataclass(frozen=True)
class Pretrained:
    """Where a network's files are.

    Attributes:
        label: owner and name on the hub, or the folder's name.
        folder: what holds the files.
        revision: commit on the hub; None for a folder of one's own.
    """

    label: str
    folder: Path
    revision: str | None = None

    def describe(self, role: str) -> Description:
        """Return name, commit and hashes of the files, their keys starting with `role`; no absolute paths."""
        small = (path for name in (*_CONFIGURATION, *_TOKENS) if (path := self.folder / name).is_file())
        return {
            role: self.label,
            f"{role}_revision": self.revision,
            f"{role}_weights_sha256": sha256_of(sorted(self.folder.glob("model*.safetensors"))),
            f"{role}_files_sha256": sha256_of(small),
        }

    def settings(self) -> Mapping[str, Any]:
        """Return how images are prepared, as saved beside the weights; nothing where that is not saved.

        Raises:
            ModelError: the file cannot be read.
        """
        for name in ("preprocessor_config.json", "processor_config.json"):
            if (self.folder / name).is_file():
                found = _read_object(self.folder / name)
                inner = found.get("image_processor")
                return inner if isinstance(inner, dict) else found
        return {}

    def load(self, architecture: Any, *, what: str, **options: Any) -> Any:
        """Build a network of a class of transformers and fill it, in float32.

        Args:
            architecture: the class.
            what: what it should be, for error messages.
            options: more for its `from_pretrained`.

        Raises:
            ModelError: the files are none of such a network with all its weights.
            MissingDependencyError: a package that the network needs is missing.
        """
        import torch

        network, report = self.read(
            architecture,
            what=what,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            **options,
        )
        if missing := sorted({*report["missing_keys"], *(str(key) for key, *_ in report["mismatched_keys"])}):
            raise ModelError(
                f"{self.label}: {len(missing)} of its weights are missing or of another shape, such as {missing[0]}; "
                "it would answer at random: give the trained network."
            )
        return network

    def tokenizer(self, kind: Any, *, what: str) -> Any:
        """Return the tokenizer of a class of transformers, which makes an empty one where there are no files.

        Raises:
            ModelError: it is missing or cannot be read.
        """
        if not _holds(self.folder, _VOCABULARY):
            raise ModelError(
                f"{self.label}: has no {', '.join(_VOCABULARY)}, without which all names would be read alike; fetch "
                f"the network whole: {_FETCH.format('OWNER/NAME')}"
            )
        return self.read(kind, what=what)

    def read(self, kind: Any, *, what: str, **options: Any) -> Any:
        """Return what `from_pretrained` of a class of transformers makes of the folder, silently.

        Raises:
            ModelError: it makes nothing of it.
            MissingDependencyError: a package that it needs is missing.
        """
        try:
            with quiet():
                return kind.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False, **options)
        except CrypsisError:
            raise
        except ImportError as error:
            raise MissingDependencyError(
                f"{self.label}: a package that this model needs is missing ({told(error)})."
            ) from error
        except Exception as error:
            raise ModelError(f"{self.label}: is not {what} that transformers can load ({told(error)}).") from error


def find_pretrained(
    model: str, *, revision: str | None = None, types: Collection[str], extra: str, option: str, reads: bool = False
) -> Pretrained:
    """Return the files of a network; what is on the hub and not in its cache is fetched.

    Args:
        model: a folder, or owner and name on the hub.
        revision: branch, tag or commit on the hub.
        types: what `model_type` in its `config.json` may be.
        extra: the extra of Crypsis that brings huggingface_hub.
        option: how a user names a folder instead, for error messages, such as `segmenter=FOLDER`.
        reads: whether the network needs a tokenizer.

    Raises:
        ModelError: there is no such folder, or its network is of another type or without weights in safetensors.
        MissingDependencyError: it is neither here nor can it be fetched; the message says how to.
    """
    if Path(model).is_dir():
        if revision is not None:
            raise ModelError(f"A revision is for networks on the hub; {model} is a folder; leave the revision out.")
        found = Pretrained(Path(model).resolve().name, Path(model))
    elif model.startswith((".", "~", "/")) or "\\" in model or model.count("/") != 1:
        raise ModelError(
            f"There is no folder {model} (looked in {Path(model).absolute().parent}); give a folder, or OWNER/NAME on "
            "the hub."
        )
    else:
        folder = _fetch(model, revision, extra, option, reads=reads)
        found = Pretrained(model, folder, folder.name)
    if not (found.folder / "config.json").is_file():
        raise ModelError(f"{model}: has no config.json, so it is no folder that transformers' save_pretrained wrote.")
    kind = _read_object(found.folder / "config.json").get("model_type")
    if kind not in types:
        raise ModelError(f"{model}: is a network of type {kind}; one of type {' or '.join(types)} is needed here.")
    if not _has_weights(found.folder):
        raise ModelError(
            f"{model}: has no weights, or not all of them, in safetensors; other files of weights are pickles, which "
            "run code: load it in transformers and save it again by save_pretrained."
        )
    return found


def _fetch(model: str, revision: str | None, extra: str, option: str, *, reads: bool) -> Path:
    """Return the folder in which huggingface_hub keeps a network."""
    hub = import_extra("huggingface_hub", extra)
    cached: Path | None = None
    with contextlib.suppress(Exception):
        cached = Path(hub.snapshot_download(model, revision=revision, allow_patterns=_WANTED, local_files_only=True))
        whole = not reads or (_holds(cached, _CONFIGURATION[1:]) and _holds(cached, _VOCABULARY))
        if whole and _has_weights(cached):
            return cached
    try:
        return Path(hub.snapshot_download(model, revision=revision, allow_patterns=_WANTED))
    except Exception as error:
        if cached is not None and _has_weights(cached):
            return cached  # what it lacks is told by what needs it
        advice = (
            f"accept its terms on its page of the hub, log in (hf auth login), and fetch it: {_FETCH.format(model)}"
            if "gated" in f"{type(error).__name__} {error}".lower()
            else f"correct the name, or fetch it where there is a network: {_FETCH.format(model)}"
        )
        raise MissingDependencyError(
            f"The weights {model} are not on this machine, and the hub does not give them ({told(error)}); {advice}; "
            f"with --local-dir FOLDER the folder can be carried here, for {option}."
        ) from error


def _holds(folder: Path, names: Sequence[str]) -> bool:
    return any((folder / name).is_file() for name in names)


def _has_weights(folder: Path) -> bool:
    """Tell whether all weights are there, in safetensors, in one file or in those that an index lists."""
    if (folder / _INDEX).is_file():
        listed = _read_object(folder / _INDEX).get("weight_map")
        names = set(map(str, listed.values())) if isinstance(listed, dict) else set()
        return bool(names) and all((folder / Path(name).name).is_file() for name in names)
    return (folder / "model.safetensors").is_file()


def _read_object(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read as JSON ({told(error)}).") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path}: is not a JSON object.")
    return content


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' progress bars, warnings and notes off the terminal: what matters comes as an error."""
    logging = import_extra("transformers.utils.logging", "transformers")
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
