// Charts: curves of the logs, times, precision over recall, calibration.
const shortNumber = value => {
  const size = Math.abs(value);
  return size >= 1000 || (size > 0 && size < 0.01)
    ? value.toExponential(1)
    : String(Number(value.toPrecision(3)));
};

/** Range of an axis. `fromZero` starts at 0 unless the values are close to each other. */
function range(values, fromZero) {
  let low = Math.min(...values), high = Math.max(...values);
  if (!fromZero) return [low, Math.max(high, low + 1)];
  if (low > 0 && low < 0.5 * high) low = 0;
  if (high - low < 1e-12) {
    low -= Math.abs(low) * 0.1;
    high += high === 0 ? 1 : Math.abs(high) * 0.1;
  }
  return [low, high];
}

/** `unit`: both axes go from 0 to 1, the diagonal is drawn on demand; else x are steps and y takes
    the range of its values, `log`arithmic or not. */
function chart({title, runs, unit = null, log = false}) {
  const width = 340, height = 190, left = 52, right = 8, top = 8, bottom = 22;
  const points = runs.flatMap(run => [...run.lines.flat(), ...run.dots.flat()]);
  const [x0, x1] = unit ? [0, 1] : range(points.map(point => point[0]), false);
  const scale = log ? Math.log : value => value, unscale = log ? Math.exp : value => value;
  const ys = points.map(point => scale(point[1]));
  const [y0, y1] = unit ? [0, 1] : log ? [Math.min(...ys), Math.max(...ys)] : range(ys, true);
  const px = x => (left + ((x - x0) / (x1 - x0)) * (width - left - right)).toFixed(1);
  const py = y =>
    (height - bottom - ((scale(y) - y0) / (y1 - y0)) * (height - top - bottom)).toFixed(1);
  const picture = svg('svg', {
    class: 'curve',
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': title,
  });
  for (const y of [y0, (y0 + y1) / 2, y1].map(unscale)) {
    picture.append(svg('path', {d: `M${left} ${py(y)}H${width - right}`}),
      svg('text', {x: left - 5, y: Number(py(y)) + 4, 'text-anchor': 'end'}, shortNumber(y)));
  }
  picture.append(
    svg('text', {x: left, y: height - 6}, shortNumber(x0)),
    svg(
      'text',
      {x: width - right, y: height - 6, 'text-anchor': 'end'},
      unit ? unit.x : `step ${Math.round(x1)}`,
    ),
  );
  if (unit && unit.diagonal)
    picture.append(svg('path', {class: 'diagonal', d: `M${px(0)} ${py(0)}L${px(1)} ${py(1)}`}));
  const polyline = (line, style) =>
    svg('polyline', {class: style, points: line.map(([x, y]) => `${px(x)},${py(y)}`).join(' ')});
  runs.forEach((run, index) =>
    picture.append(
      svg(
        'g',
        {class: series(index)},
        ...run.lines.map(line => polyline(line, 'steps')),
        ...run.dots.map(line => polyline(line, 'evaluations')),
        ...run.dots.flat().map(([x, y]) => svg('circle', {r: 3.2, cx: px(x), cy: py(y)})),
      ),
    ),
  );
  return html(
    'div',
    {class: 'card'},
    html('b', {}, title),
    ...(log ? [html('span', {class: 'soft'}, ' (log axis)')] : []),
    picture,
  );
}

function curves({names, charts}) {
  const keys = names.flatMap((name, index) => (name === null ? [] : [legend(series(index), name)]));
  return [
    html(
      'p',
      {class: 'soft'},
      'Lines are training steps, dots evaluations; a dashed line joins ' +
        'evaluations over the same set. ',
      ...keys,
    ),
    html('div', {class: 'grid'}, ...charts.map(chart)),
  ];
}

// Scores of objects -------------------------------------------------------------------------------

function precision({ranking, curves}) {
  const runs = curves.map(curve => ({
    lines: [curve.precision.map((y, i) => [i / (curve.precision.length - 1), y])],
    dots: [],
  }));
  const keys = curves.map(({name, truths}, index) =>
    html('div', {}, legend(series(index), `${name} (${truths})`)),
  );
  const note =
    ranking === 'score'
      ? []
      : [
          html(
            'p',
            {},
            'Ranked by the order of the answers: the backend of this evaluation gives no ' +
              'probabilities.',
          ),
        ];
  return [
    ...note,
    html(
      'div',
      {class: 'grid'},
      chart({title: 'precision', runs, unit: {x: 'recall 1'}}),
      html('div', {class: 'card'}, html('b', {}, 'classes (truths)'), ...keys),
    ),
  ];
}

function calibration({error, bins}) {
  const filled = bins.filter(bin => bin.count > 0);
  if (error === null)
    return [html('p', {}, 'Expected calibration error: - (the answers name no object)')];
  const rows = filled.map(bin => [
    bin.score.toFixed(4),
    String(bin.count),
    bin.precision.toFixed(3),
  ]);
  return [
    html('p', {}, 'Expected calibration error: ', html('b', {}, error.toFixed(3))),
    html(
      'div',
      {class: 'grid'},
      chart({
        title: 'share that is right',
        runs: [{lines: [], dots: [filled.map(bin => [bin.score, bin.precision])]}],
        unit: {x: 'score 1', diagonal: true},
      }),
      html('div', {class: 'card'}, table([['mean score', 'objects', 'right'], ...rows])),
    ),
  ];
}
