"""The order of lists of objects, as a linear score over their pairs: fit_order(), sort_by()."""

import numpy as np

FEATURES = (
    "left", "top", "right", "bottom", "area", "long_side", "short_side", "from_middle_x",
    "from_middle_y", "row", "same_name",
)  # fmt: skip
L2, NUM_STEPS = 1e-3, 30


def top_left(one):
    return one["bbox_2d"][1], one["bbox_2d"][0]


def rows(boxes):
    """Number of the row of each box: centres up to half a mean height below the row's first."""
    middles = (boxes[:, 1] + boxes[:, 3]) / 2
    height = (boxes[:, 3] - boxes[:, 1]).mean()
    row, first = np.zeros(len(boxes)), None
    number = -1
    for index in np.argsort(middles, kind="stable"):
        if first is None or middles[index] - first > height / 2:
            number, first = number + 1, middles[index]
        row[index] = number
    return row


def features(objects):
    boxes = np.array([one["bbox_2d"] for one in objects], float).reshape(-1, 4)
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    return np.column_stack(
        [
            boxes,
            width * height / 1000,
            np.maximum(width, height),
            np.minimum(width, height),
            abs(boxes[:, 0] + boxes[:, 2] - 1000) / 2,
            abs(boxes[:, 1] + boxes[:, 3] - 1000) / 2,
            rows(boxes),
        ]
    )


def same_name(objects, previous):
    return np.array([previous is not None and one["desc"] == previous["desc"] for one in objects])


def pairs(answer):
    """For each entry and each later one: features of the first minus those of the second."""
    values, found = features(answer), []
    for i in range(len(answer) - 1):
        same = same_name(answer, answer[i - 1] if i else None).astype(float)
        for j in range(i + 1, len(answer)):
            found.append(np.append(values[i] - values[j], same[i] - same[j]))
    return found


def weights_of(**values):
    return np.array([values.get(name, 0.0) for name in FEATURES])


NAMED = {
    "top to bottom, as `sorted`": weights_of(top=-1000, left=-1),
    "left to right": weights_of(left=-1000, top=-1),
    "rows from the top": weights_of(row=-1e6, left=-1000, top=-1),
    "largest first": weights_of(area=1),
}
NAMED |= {
    "by name, then " + name: weights + weights_of(same_name=1e9) for name, weights in NAMED.items()
}
SIMPLER = 0.01  # a named order may agree with so many pairs less than the learned one


def learn(differences):
    """Weights by logistic regression, without intercept."""
    scale = np.sqrt((differences**2).mean(axis=0))
    scale[scale == 0] = 1
    x, weights = differences / scale, np.zeros(len(FEATURES))
    for _ in range(NUM_STEPS):  # Newton's method
        chance = 1 / (1 + np.exp(x @ weights))
        gradient = -(x.T @ chance) / len(x) + L2 * weights
        curvature = (x.T * (chance * (1 - chance))) @ x / len(x) + L2 * np.eye(len(weights))
        weights -= np.linalg.solve(curvature, gradient)
    return weights / scale


def fit_order(answers):
    """The order that most pairs of the answers follow: a named one, unless a learned one agrees
    clearly better. @return weights by feature, its name, the share of pairs of every order
    """
    differences = np.array([pair for answer in answers for pair in pairs(answer)])
    orders = NAMED | {"learned": learn(differences)}
    shares = {
        name: float(((differences @ weights > 0) + (differences @ weights == 0) / 2).mean())
        for name, weights in orders.items()
    }
    named = max(NAMED, key=shares.get)
    name = named if shares[named] + SIMPLER >= shares["learned"] else "learned"
    return orders[name], name, shares


def sort_by(fitted, objects):
    """Takes the object of the highest score, again and again; ties by top left."""
    objects, ordered, weights = sorted(objects, key=top_left), [], fitted[0]
    rest = list(range(len(objects)))
    values = features(objects) @ weights[:-1] if objects else []
    while rest:
        same = same_name(objects, ordered[-1] if ordered else None) * weights[-1]
        best = max(rest, key=lambda k: values[k] + same[k])
        rest.remove(best)
        ordered.append(objects[best])
    return ordered
