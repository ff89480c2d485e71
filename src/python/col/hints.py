"""The names of typing that annotations need. To import typing takes longer than all of col, so at run time they mean nothing:
annotations are not evaluated here. Modules that import torch, Ray or pytest take typing itself, which those have imported."""

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import (
        Any as Any, Callable as Callable, ClassVar as ClassVar, Iterator as Iterator, Mapping as Mapping, NoReturn as NoReturn,
        Optional as Optional, Sequence as Sequence, Union as Union,
    )
else:
    Any = Callable = ClassVar = Iterator = Mapping = NoReturn = Optional = Sequence = Union = None
