"""The curves of a run as SVG, which a notebook shows without another package."""

import math
from html import escape
from typing import Any, Callable, Dict, List, Sequence, Tuple

from rematch.errors import problem
from rematch.logs import Log, add_row

_WIDTH, _HEIGHT = 440, 200  # pixels of a chart, with its margins
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 26, 26
_COLORS = ("#0f766e", "#b45309", "#7c3aed")
# (title, [(name, key of the log)], whether the scale is 0 to 1)
_CHARTS = (
    ("loss", [("training", "loss"), ("validation", "eval_loss")], False),
    (
        "its answers",
        [
            ("F1 @ IoU 0.5", "eval_rollout_f1_iou50"),
            ("label F1 @ IoU 0.5", "eval_rollout_f1_labels_iou50"),
            ("malformed", "eval_rollout_parse_malformed_rate"),
        ],
        True,
    ),
)

Points = List[Tuple[float, float]]


def live_plot() -> Callable[[Dict[str, Any]], None]:
    """Makes a callback of rematch.train that draws loss and scores below the cell as the run goes
    on.

    Needs IPython, which a notebook has.

    Example:
        >>> rematch.train("rematch.yaml", rematch.live_plot())                # doctest: +SKIP
    """
    try:
        from IPython.display import HTML, display
    except ImportError:
        raise problem(
            "environment",
            "a live plot needs a notebook",
            "rematch.live_plot",
            "this Python has no module IPython",
            "give another callback, or none: then progress is printed",
        ) from None
    log = Log([], [])
    shown = display(HTML(page_of_run(log, "waiting for the first step")), display_id=True)

    def draw(row: Dict[str, Any]) -> None:
        add_row(log, row)
        shown.update(HTML(page_of_run(log, f"step {row['step']}")))

    return draw


def page_of_run(log: Log, title: str) -> str:
    """HTML: a title, and a chart for the loss and one for the scores, where there are any."""
    charts = [_chart(*chart, log) for chart in _CHARTS]
    return f'<div style="font-family:sans-serif"><b>{escape(title)}</b><br>{"".join(charts)}</div>'


def _chart(title: str, lines: Sequence[Tuple[str, str]], is_share: bool, log: Log) -> str:
    found = [(name, _points(log, key)) for name, key in lines]
    found = [(name, points) for name, points in found if points]
    if not found:
        return ""
    every = [point for _, points in found for point in points]
    low, high = (0.0, 1.0) if is_share else _range([y for _, y in every])
    last_step = max(x for x, _ in every) or 1

    def place(x: float, y: float) -> Tuple[float, float]:
        across = _WIDTH - _LEFT - _RIGHT
        down = _HEIGHT - _TOP - _BOTTOM
        return _LEFT + x / last_step * across, _TOP + (high - y) / (high - low) * down

    parts = [_frame(low, high, last_step)]
    heading = [f"<tspan>{escape(title)}</tspan>"]
    for (name, points), color in zip(found, _COLORS):
        spots = [place(x, y) for x, y in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(
            f'<circle cx="{spots[-1][0]:.1f}" cy="{spots[-1][1]:.1f}" r="3" fill="{color}"/>'
        )
        heading.append(f'<tspan dx="8" fill="{color}">{escape(name)} {points[-1][1]:.3g}</tspan>')
    text = f'<text x="4" y="15" font-size="11">{"".join(heading)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'style="background:#fff" font-family="sans-serif">{text}{"".join(parts)}</svg>'
    )


def _points(log: Log, key: str) -> Points:
    """(step, value) wherever there is a number. An earlier run's lines may come before."""
    rows = log.evaluations if key.startswith("eval_") else log.steps
    points = [(row["step"], row[key]) for row in rows if isinstance(row.get(key), (int, float))]
    start = max((i for i in range(1, len(points)) if points[i][0] < points[i - 1][0]), default=0)
    return [(float(x), float(y)) for x, y in points[start:] if math.isfinite(y)]


def _range(values: Sequence[float]) -> Tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _frame(low: float, high: float, last_step: float) -> str:
    """Two lines of the scale, with their numbers."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    number = '<text x="{}" y="{}" font-size="11" fill="#555" text-anchor="end">{}</text>'
    lines = "".join(
        f'<line x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}" stroke="#ddd"/>' for y in (_TOP, bottom)
    )
    return (
        lines
        + number.format(_LEFT - 4, _TOP + 4, f"{high:.3g}")
        + number.format(_LEFT - 4, bottom + 4, f"{low:.3g}")
        + number.format(right, bottom + 16, f"step {last_step:g}")
    )
