"""Objects drawn into an image."""

import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Tuple, Union

from rematch.errors import problem

if TYPE_CHECKING:
    import PIL.Image

_COLORS = ("#e11d48", "#2563eb", "#047857", "#b45309", "#7c3aed", "#0e7490", "#be185d", "#4d7c0f")
_NUM_BINS = 1000
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")

Box = Tuple[float, float, float, float]


def show(
    image: Union[str, "os.PathLike[str]", "PIL.Image.Image"],
    objects: Sequence[Mapping[str, Any]],
    *,
    min_score: float = 0.0,
) -> "PIL.Image.Image":
    """Draws objects into a copy of an image: a colour for each name, the score in two digits. A
    notebook displays the returned picture.

    Needs Pillow.

    Args:
        image: a path or a picture of Pillow.
        objects: predictions or truths: `desc`, one of `bbox_2d` and `poly` (flat or in pairs) in
            thousandths of the image's sides, and maybe `score`.
        min_score: objects with a lower score are left out.

    Example:
        >>> picture = PIL.Image.new("RGB", (320, 240), "white")
        >>> cat = {"desc": "cat", "bbox_2d": [100, 200, 500, 900], "score": 0.81}
        >>> rematch.show(picture, [cat]).size
        (320, 240)
    """
    try:
        from PIL import ImageDraw, ImageFont
    except ImportError:
        raise problem(
            "environment",
            "Pillow is needed to draw",
            "rematch.show",
            "this Python has no module PIL",
            "pip install pillow",
        ) from None
    picture = _opened(image)
    pen = ImageDraw.Draw(picture)
    side = max(picture.size)
    width = max(2, side // 300)
    font = ImageFont.load_default(size=max(11, side // 45))
    colors: Dict[str, str] = {}
    labels: List[Tuple[Box, str, str]] = []
    for i, one in enumerate(objects):
        score = one.get("score")
        if score is not None and score < min_score:
            continue
        name = str(one.get("desc", ""))
        color = colors.setdefault(name, _COLORS[len(colors) % len(_COLORS)])
        points = _points(one, picture.size, f"objects[{i}]")
        pen.line([*points, points[0]], fill=color, width=width, joint="curve")
        text = name if score is None else f"{name} {_score_text(score)}"
        left, top = min(x for x, _ in points), min(y for _, y in points)
        labels.append(
            (
                _place(
                    pen.textbbox((0, 0), text, font=font),
                    left,
                    top,
                    picture.size,
                    [box for box, _, _ in labels],
                ),
                text,
                color,
            )
        )
    for (left, top, right, bottom), text, color in labels:
        pen.rectangle((left, top, right, bottom), fill=color)
        pen.text((left + 2, top), text, fill="white", font=font)
    return picture


def _score_text(score: float) -> str:
    """Two significant digits, at most four decimals."""
    return f"{score:.{2 if score >= 0.0995 else 3 if score >= 0.00995 else 4}f}"


def upright(image: Any) -> Any:
    """A picture turned as its EXIF says, in a mode that PNG keeps as it is, with what is
    transparent and with its 16 bits: the program decides what becomes of them.
    """
    from PIL import ImageOps

    turned = ImageOps.exif_transpose(image)
    if turned.mode in _PNG_MODES:
        return turned
    return turned.convert("RGBA" if _is_transparent(turned) else "RGB")


def _is_transparent(picture: Any) -> bool:
    return picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info


def _on_white(image: Any) -> Any:
    """A picture as the program sees it: RGB, upright, what is transparent on white."""
    from PIL import Image

    picture = upright(image)
    if _is_transparent(picture):
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture)
    return picture.convert("RGB")


def _opened(image: Any) -> Any:
    """The picture as viewers show it, and as `rematch.predict` sees it."""
    from PIL import Image

    if hasattr(image, "convert"):
        return _on_white(image)
    try:
        with Image.open(image) as opened:
            return _on_white(opened)
    except (OSError, AttributeError) as error:
        raise problem(
            "data",
            "this image cannot be opened",
            str(image),
            str(error),
            "give the path of an image, or a PIL.Image",
        ) from None


def _points(one: Mapping[str, Any], size: Tuple[int, int], place: str) -> List[Tuple[float, float]]:
    """The outline in pixels. @throws Error (data) for anything but a box or a polygon of bins"""
    box, poly = one.get("bbox_2d"), one.get("poly")
    bins = list(box if box is not None else poly if poly is not None else [])
    if box is None and all(isinstance(point, (list, tuple)) and len(point) == 2 for point in bins):
        bins = [value for point in bins for value in point]
    is_shape = (len(bins) == 4 if box is not None else len(bins) >= 6 and len(bins) % 2 == 0) and (
        box is None or poly is None
    )
    if not is_shape or not all(
        isinstance(value, (int, float)) and 0 <= value <= _NUM_BINS for value in bins
    ):
        raise problem(
            "data",
            "this object has no valid box or polygon",
            place,
            f"bbox_2d {box}, poly {poly}",
            "give bbox_2d (x1, y1, x2, y2) or poly (x, y of three or more vertices) in "
            "thousandths of the image's sides, 0 to 999",
        )
    if box is not None:
        x1, y1, x2, y2 = bins
        bins = [x1, y1, x2, y1, x2, y2, x1, y2]
    return [
        (x * size[0] / _NUM_BINS, y * size[1] / _NUM_BINS) for x, y in zip(bins[::2], bins[1::2])
    ]


def _place(text_box: Box, left: float, top: float, size: Tuple[int, int], taken: List[Box]) -> Box:
    """A rectangle for a label above the outline's corner, moved down where another label is."""
    width, height = text_box[2] + 4, text_box[3] + 3
    left = max(0.0, min(left, size[0] - width))
    top = max(0.0, top - height)
    for _ in range(len(taken)):
        hit = [
            box
            for box in taken
            if left < box[2] and box[0] < left + width and top < box[3] and box[1] < top + height
        ]
        if not hit or hit[0][3] + height > size[1]:
            break
        top = hit[0][3]
    return left, top, left + width, top + height
