"""Random numbers that are the same on every machine: raw bits of a hash, turned by inverse CDFs of our own.

Rule: a draw is a pure function of (seed, labels, position). Only IEEE 754 `+ - * /`, square root and exact scaling by
powers of two are used, in one order, so even the last bit does not depend on a platform's mathematics library.
Consumers round: tokens to whole numbers (`whole`), seconds to 1 ms (`milliseconds`).

A distribution is generic in the quantity `Q` that its values are written in, for example
`Distribution[Annotated[float, Field(ge=0)]]`. In YAML it is a bare quantity (fixed) or one named shape with limits:

    300        {lognormal: {median: 300, sigma: 1.2}, min: 1, max: 20000}        {quantiles: {0.25: 44, 0.5: 289}}
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import pydantic
import pydantic_core

from agentx.functions import exp, gamma_quantile, log, probit

Q = TypeVar("Q", bound=float)
MAX_DRAW = 1e15  # the highest draw; far above it a double has no whole numbers

# --- bits ----------------------------------------------------------------------------------------------------------


class Bits:
    """An endless stream of uniforms in (0, 1), named by a seed and labels; equal names give equal streams."""

    __slots__ = ("_block", "_key", "_ready")

    def __init__(self, seed: int, *labels: str | int) -> None:
        self._key = hashlib.blake2b(repr((seed, *labels)).encode(), digest_size=32).digest()
        self._block = 0
        self._ready: Iterator[float] = iter(())

    def uniform(self) -> float:
        """The next uniform: the middle of one of 2**52 equal cells, so neither 0 nor 1 occurs."""
        for value in self._ready:
            return value
        digest = hashlib.blake2b(self._block.to_bytes(8, "little"), key=self._key).digest()
        self._block += 1
        words = [int.from_bytes(digest[at : at + 8], "little") for at in range(0, 64, 8)]
        self._ready = iter([((word >> 12) + 0.5) * 2.0**-52 for word in words])
        return next(self._ready)


def whole(value: float) -> int:
    """The nearest whole number, halves upwards."""
    return math.floor(value + 0.5)


def milliseconds(value: float) -> float:
    """Seconds, rounded to 1 ms."""
    return math.floor(value * 1000 + 0.5) / 1000


# --- shapes --------------------------------------------------------------------------------------------------------


class _Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object) -> object:
        """YAML's true is no 1, and its false no 0: nothing of a distribution is either."""
        if isinstance(value, bool):
            raise ValueError("should be something other than true or false")
        return value


class _Shape(Protocol):
    def quantile(self, p: float) -> float: ...


class Fixed(_Model, Generic[Q]):
    value: Q

    def quantile(self, p: float) -> float:
        return self.value


class Uniform(_Model, Generic[Q]):
    """Every value from `low` to `high` alike."""

    low: Q
    high: Q

    @pydantic.model_validator(mode="after")
    def _ordered(self) -> Uniform[Q]:
        if self.low > self.high:
            raise ValueError(f"low {self.low:g} is more than high {self.high:g}")
        return self

    def quantile(self, p: float) -> float:
        return self.low + p * (self.high - self.low)


class Normal(_Model, Generic[Q]):
    """The bell curve; give `min` where values below 0 make no sense."""

    mean: Q
    sd: Q

    def quantile(self, p: float) -> float:
        return self.mean + self.sd * probit(p)


class Lognormal(_Model, Generic[Q]):
    """exp of a normal: `median`, and `sigma`, the standard deviation of the logarithm."""

    median: Q
    sigma: float = pydantic.Field(ge=0)

    def quantile(self, p: float) -> float:
        return self.median * exp(self.sigma * probit(p))


class Weibull(_Model, Generic[Q]):
    """`shape` below 1 has a heavier tail than the exponential, which is shape 1."""

    shape: float = pydantic.Field(gt=0)
    scale: Q

    def quantile(self, p: float) -> float:
        return self.scale * exp(log(-log(1 - p)) / self.shape)


class Gamma(_Model, Generic[Q]):
    """The mean is `shape` times `scale`; the coefficient of variation is 1 over the root of `shape`."""

    shape: float = pydantic.Field(ge=1e-3, le=1e6)
    scale: Q

    def quantile(self, p: float) -> float:
        return self.scale * gamma_quantile(self.shape, p)


class Burr12(_Model, Generic[Q]):
    """P(X > x) = (1 + (x / scale)**c)**-d: a sharp lower edge and a power-law tail."""

    c: float = pydantic.Field(gt=0)
    d: float = pydantic.Field(gt=0)
    scale: Q

    def quantile(self, p: float) -> float:
        above = exp(-log(1 - p) / self.d) - 1
        return self.scale * exp(log(above) / self.c) if above > 0 else 0.0


class Geometric(_Model):
    """Whole numbers from 1: tries until the first success, `mean` of them on average."""

    mean: float = pydantic.Field(ge=1)

    def quantile(self, p: float) -> float:
        return 1.0 if self.mean == 1 else float(max(1, math.ceil(log(1 - p) / log(1 - 1 / self.mean))))


class Quantiles(_Model, Generic[Q]):
    """An empirical curve, linear between its points and level outside them."""

    points: tuple[tuple[float, Q], ...]

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: pydantic_core.CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """As it is written: probabilities and their values."""
        points = handler.resolve_ref_schema(handler(core))["properties"]["points"]
        return {"type": "object", "additionalProperties": points["items"]["prefixItems"][1], "minProperties": 2}

    @pydantic.model_validator(mode="after")
    def _rising(self) -> Quantiles[Q]:
        if len(self.points) < 2:
            raise ValueError("quantiles need at least two points")
        for (p, x), (q, y) in pairwise(self.points):
            if not 0 <= p < q <= 1:
                raise ValueError(f"quantiles must rise from 0 to 1: {p:g}, {q:g}")
            if x > y:
                raise ValueError(f"quantile {q:g} is {y:g}, less than {x:g} at {p:g}")
        return self

    def quantile(self, p: float) -> float:
        if p <= self.points[0][0]:
            return self.points[0][1]
        for (low, x), (high, y) in pairwise(self.points):
            if p <= high:
                return x + (p - low) / (high - low) * (y - x)
        return self.points[-1][1]


# --- the YAML form -------------------------------------------------------------------------------------------------


class Plain(_Model, Generic[Q]):
    """One shape, and limits: a draw outside `min` ... `max` is moved to the limit; quantiles inside stay."""

    fixed: Q | None = None
    uniform: Uniform[Q] | None = None
    normal: Normal[Q] | None = None
    lognormal: Lognormal[Q] | None = None
    weibull: Weibull[Q] | None = None
    gamma: Gamma[Q] | None = None
    burr12: Burr12[Q] | None = None
    geometric: Geometric | None = None
    quantiles: Quantiles[Q] | None = None
    min: Q | None = None
    max: Q | None = None

    @functools.cached_property
    def _shape(self) -> _Shape:
        # Not a private attribute: pydantic looks those up slowly, and this is asked for at every draw.
        return self._made(getattr(self, self.shape_name))

    @pydantic.field_validator("quantiles", mode="before")
    @classmethod
    def _curve(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or "points" in value:
            return value
        if any(isinstance(x, bool) for x in value.values()):
            raise ValueError("should be something other than true or false")
        try:
            return {"points": sorted(((float(p), x) for p, x in value.items()), key=lambda point: point[0])}
        except ValueError:
            raise ValueError("quantiles should be probability: value, for example {0.5: 300, 0.9: 2000}") from None

    @pydantic.model_validator(mode="after")
    def _whole_sense(self) -> Plain[Q]:
        given = [name for name in self._choices() if getattr(self, name) is not None]
        if len(given) != 1:
            found = f"; {' and '.join(given)} are given" if given else ""
            raise ValueError(f"needs exactly one of {', '.join(self._choices())}{found}")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min:g} is more than max {self.max:g}")
        return self

    @property
    def shape_name(self) -> str:
        """The key of its shape, such as `lognormal`."""
        return next(name for name in self._choices() if getattr(self, name) is not None)

    @classmethod
    def _choices(cls) -> list[str]:
        return [name for name in cls.model_fields if name not in ("min", "max", "weight")]

    def _made(self, value: Any) -> _Shape:
        return Fixed(value=value) if isinstance(value, int | float) else value

    def quantile(self, p: float) -> float:
        """The inverse CDF at p in (0, 1)."""
        return self._limit(self._shape.quantile(p))

    def draw(self, bits: Bits) -> float:
        """One draw, unrounded."""
        return self._limit(
            self._shape.draw(bits) if isinstance(self._shape, Mixture) else self.quantile(bits.uniform())
        )

    def _limit(self, value: float) -> float:
        if self.min is not None and value < self.min:
            return self.min
        high: float = MAX_DRAW if self.max is None else self.max
        return high if value > high else value


class Component(Plain[Q], Generic[Q]):
    """One part of a mixture and its share of the draws."""

    weight: float = pydantic.Field(gt=0, le=1)


class Distribution(Plain[Q], Generic[Q]):
    """What a spec may write wherever a quantity is drawn: a bare quantity, a shape with limits, or a mixture."""

    mixture: tuple[Component[Q], ...] | None = None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return value if isinstance(value, Mapping | Distribution) else {"fixed": value}

    @pydantic.field_validator("mixture")
    @classmethod
    def _shares(cls, value: tuple[Component[Q], ...] | None) -> tuple[Component[Q], ...] | None:
        if value is not None:
            check_weights([part.weight for part in value])
        return value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: pydantic_core.CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Mappings as the model says, or a bare quantity."""
        mapping = handler.resolve_ref_schema(handler(core))
        quantity = mapping["properties"]["fixed"]["anyOf"][0]
        return {"anyOf": [quantity, dict(mapping)]}

    def _made(self, value: Any) -> _Shape:
        return Mixture(value) if isinstance(value, tuple) else super()._made(value)


@dataclass(frozen=True, slots=True)
class Mixture:
    """Draws from one of several parts, each with its weight."""

    parts: Sequence[Component[Any]]

    def draw(self, bits: Bits) -> float:
        return self.parts[choose([part.weight for part in self.parts], bits)].draw(bits)

    def quantile(self, p: float) -> float:
        """Found by halving, between the parts' own quantiles at p; for checks and plots, not for draws."""
        own = [part.quantile(p) for part in self.parts]
        low, high = min(own), max(own)
        for _ in range(60):
            middle = low + (high - low) / 2
            if sum(part.weight * _share_below(part, middle) for part in self.parts) < p:
                low = middle
            else:
                high = middle
        return high


def _share_below(part: Plain[Any], x: float) -> float:
    """P(X <= x), by halving on the inverse CDF."""
    low, high = 0.0, 1.0
    for _ in range(52):
        middle = (low + high) / 2
        if part.quantile(middle) <= x:
            low = middle
        else:
            high = middle
    return high


def check_weights(weights: Sequence[float]) -> None:
    """Raises ValueError unless the weights sum to 1 (to 1e-6)."""
    if abs(sum(weights) - 1) > 1e-6:
        raise ValueError(f"the weights sum to {sum(weights):g}, not 1")


def choose(weights: Sequence[float], bits: Bits) -> int:
    """An index drawn with the given weights; they need not sum to 1."""
    left = bits.uniform() * sum(weights)
    for index, weight in enumerate(weights):
        left -= weight
        if left < 0:
            return index
    return len(weights) - 1
