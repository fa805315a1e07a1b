"""Elementary and special functions that have the same last bit on every machine.

Only IEEE 754 `+ - * /`, square root and exact scaling by powers of two are used, in one order.
"""

from __future__ import annotations

import math

# --- elementary functions ------------------------------------------------------------------------------------------

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # ln 2 in two parts (fdlibm)
_SQRT_HALF = 0.7071067811865476


def log(x: float) -> float:
    """Natural logarithm of x > 0 by the series of artanh; within 2 units of the last place."""
    mantissa, exponent = math.frexp(x)
    if mantissa < _SQRT_HALF:
        mantissa, exponent = mantissa * 2, exponent - 1
    s = (mantissa - 1) / (mantissa + 1)
    square, total = s * s, 0.0
    for odd in range(23, 1, -2):
        total = (total + 1 / odd) * square
    return exponent * _LN2_HIGH + (exponent * _LN2_LOW + (2 * s * total + 2 * s))


def exp(x: float) -> float:
    """e to the x by Taylor's series, for x from -700 to 700; beyond, the value at that limit."""
    x = min(max(x, -700.0), 700.0)
    power = math.floor(x * 1.4426950408889634 + 0.5)
    rest = (x - power * _LN2_HIGH) - power * _LN2_LOW
    total = 1.0
    for n in range(15, 0, -1):
        total = 1.0 + total * rest / n
    return math.ldexp(total, power)


# Wichura (1988), algorithm AS 241 (PPND16), Applied Statistics 37: numerators and denominators, highest power first.
_CENTRE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
_SIDE = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)  # fmt: skip
_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: float) -> float:
    top = bottom = 0.0
    for above, below in zip(*coefficients, strict=True):
        top, bottom = top * x + above, bottom * x + below
    return top / bottom


def probit(p: float) -> float:
    """The standard normal quantile of p in (0, 1)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(_CENTRE, 0.180625 - q * q)
    r = math.sqrt(-log(p if q < 0 else 1 - p))
    size = _ratio(_SIDE, r - 1.6) if r <= 5 else _ratio(_TAIL, r - 5)
    return size if q > 0 else -size


# --- the gamma distribution ----------------------------------------------------------------------------------------

# Stirling's series for ln gamma (Abramowitz and Stegun 6.1.41): the coefficients of 1/z, 1/z^3, ...
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_HALF_LN_2PI = 0.9189385332046728
_TERMS = 10_000  # of a series; reached by no shape below 1e6


def log_gamma(x: float) -> float:
    """ln of the gamma function for x > 0: Stirling's series, from 10 on; below, by the recurrence."""
    shift = 1.0
    while x < 10:
        shift *= x
        x += 1
    inverse = 1 / x
    square, total = inverse * inverse, 0.0
    for coefficient in reversed(_STIRLING):
        total = total * square + coefficient
    return (x - 0.5) * log(x) - x + _HALF_LN_2PI + total * inverse - log(shift)


def gamma_share_below(shape: float, x: float) -> float:
    """The regularised lower incomplete gamma function P(shape, x) for x > 0.

    Its power series below shape + 1, the continued fraction of its complement above (Abramowitz and Stegun 6.5.29 and
    6.5.31, the latter by Lentz's method).
    """
    front = exp(shape * log(x) - x - log_gamma(shape))
    if x < shape + 1:
        term = total = 1 / shape
        for n in range(1, _TERMS):
            term *= x / (shape + n)
            total += term
            if term < total * 1e-17:
                break
        return min(1.0, front * total)
    tiny = 1e-300
    b = x + 1 - shape
    c, d = 1 / tiny, 1 / b
    fraction = d
    for n in range(1, _TERMS):
        a = -n * (n - shape)
        b += 2
        d = a * d + b
        c = b + a / c
        d = 1 / (d if abs(d) > tiny else tiny)
        c = c if abs(c) > tiny else tiny
        fraction *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return max(0.0, 1 - front * fraction)


def gamma_quantile(shape: float, p: float) -> float:
    """The quantile of p in (0, 1) for scale 1: Newton's method on ln x, kept inside a shrinking bracket."""
    norm = log_gamma(shape)
    lowest = (log(p) + norm + log(shape)) / shape  # P(shape, x) < x ** shape / gamma(shape + 1)
    low, high = lowest, max(lowest, log(shape)) + 6 + 6 / math.sqrt(shape)
    # Wilson and Hilferty (1931): the cube root is nearly normal.
    cube = 1 - 1 / (9 * shape) + probit(p) / (3 * math.sqrt(shape))
    at = log(shape) + 3 * log(cube) if cube > 0.1 else lowest
    for _ in range(80):
        at = at if low < at < high else low + (high - low) / 2
        x = exp(at)
        miss = gamma_share_below(shape, x) - p
        if miss < 0:
            low = at
        else:
            high = at
        step = miss / exp(shape * at - x - norm)  # the density of ln x
        at -= step
        if abs(step) < 1e-13:
            break
    return exp(at)
