// Builds the report from the JSON in #data (src/report/report.cc writes it). Names, labels and paths come from data sets and models: they
// enter the page as text nodes and attribute values only, never as markup.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);

function add(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
const html = (tag, attributes = {}, ...children) => add(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  add(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

/** Fills a section and shows it. A section without content stays hidden. */
function fill(id, ...nodes) {
  if (nodes.length === 0) return;
  const section = document.getElementById(id);
  const last = section.querySelector('.last');
  for (const node of nodes) section.insertBefore(node, last);
  section.hidden = false;
}

const legend = (style, text) => html('span', {class: `key ${style}`}, html('i'), html('span', {class: 'soft'}, text));
const series = index => `series${index % 6}`;

// Tables -------------------------------------------------------------------------------------------------------------------------------

/** The first row is the header; a cell that ends in * is the best of its row. */
function table(rows) {
  const row = (cells, header) => html('tr', {}, ...cells.map((cell, column) => {
    if (header) return html('th', {}, cell);
    const best = column > 0 && cell.endsWith('*');
    return html('td', best ? {class: 'best'} : {}, best ? cell.slice(0, -1) : cell);
  }));
  return html('div', {class: 'scroll'}, html('table', {}, ...rows.map((cells, i) => row(cells, i === 0))));
}

/** Rows of [name, counts …, shares …]; a share of nothing is null. */
function shareTable(rows) {
  const cell = (value, column) =>
    value === null ? '-' : column === 0 ? value : column <= 3 ? String(value) : value.toFixed(3);
  return table([rows[0], ...rows.slice(1).map(row => row.map(cell))]);
}

function facts(run) {
  const items = run.facts.flatMap(([name, value]) => [html('dt', {}, name), html('dd', {}, value)]);
  return html('div', {class: 'card'}, html('b', {}, run.name), html('dl', {}, ...items));
}

function health(items) {
  const rows = items.map(item => html('li', item.advice ? {class: 'bad'} : {}, `${item.name}: `, html('b', {}, item.value),
    ...(item.advice ? [html('span', {class: 'advice'}, item.advice)] : [])));
  return html('div', {class: 'card'}, html('ul', {class: 'health'}, ...rows));
}

// Curves -------------------------------------------------------------------------------------------------------------------------------

const shortNumber = value => {
  const size = Math.abs(value);
  return size >= 1000 || (size > 0 && size < 0.01) ? value.toExponential(1) : String(Number(value.toPrecision(3)));
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

/** `unit`: both axes go from 0 to 1, the diagonal is drawn on demand; else x are steps and y takes the range of its values. */
function chart({title, runs, unit = null}) {
  const width = 340, height = 190, left = 52, right = 8, top = 8, bottom = 22;
  const points = runs.flatMap(run => [...run.lines.flat(), ...run.dots]);
  const [x0, x1] = unit ? [0, 1] : range(points.map(point => point[0]), false);
  const [y0, y1] = unit ? [0, 1] : range(points.map(point => point[1]), true);
  const px = x => (left + (x - x0) / (x1 - x0) * (width - left - right)).toFixed(1);
  const py = y => (height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom)).toFixed(1);
  const picture = svg('svg', {class: 'curve', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': title});
  for (const y of [y0, (y0 + y1) / 2, y1]) {
    picture.append(svg('path', {d: `M${left} ${py(y)}H${width - right}`}),
      svg('text', {x: left - 5, y: Number(py(y)) + 4, 'text-anchor': 'end'}, shortNumber(y)));
  }
  picture.append(svg('text', {x: left, y: height - 6}, shortNumber(x0)),
    svg('text', {x: width - right, y: height - 6, 'text-anchor': 'end'}, unit ? unit.x : `step ${Math.round(x1)}`));
  if (unit && unit.diagonal) picture.append(svg('path', {class: 'diagonal', d: `M${px(0)} ${py(0)}L${px(1)} ${py(1)}`}));
  runs.forEach((run, index) => picture.append(svg('g', {class: series(index)},
    ...run.lines.map(line => svg('polyline', {points: line.map(([x, y]) => `${px(x)},${py(y)}`).join(' ')})),
    ...run.dots.map(([x, y]) => svg('circle', {r: 3.2, cx: px(x), cy: py(y)})))));
  return html('div', {class: 'card'}, html('b', {}, title), picture);
}

function curves({names, charts}) {
  const keys = names.flatMap((name, index) => name === null ? [] : [legend(series(index), name)]);
  return [html('p', {class: 'soft'}, 'Lines are training steps, dots evaluations. ', ...keys),
    html('div', {class: 'grid'}, ...charts.map(chart))];
}

function timeSplit({name, step_s: seconds, parts}) {
  const bar = html('div', {class: 'split'}), keys = html('span');
  parts.forEach(([part, percent], index) => {
    if (percent < 0.05) return;
    const style = part === 'other' ? 'rest' : series(index), text = `${part} ${percent.toFixed(1)} %`;
    const piece = html('span', {class: style, title: text});
    piece.style.width = `${percent}%`;
    bar.append(piece);
    keys.append(legend(style, text), ' ');
  });
  return html('div', {class: 'card'}, html('b', {}, name), `: ${Number(seconds.toPrecision(3))} s a step`, bar, keys);
}

// Scores of objects --------------------------------------------------------------------------------------------------------------------

function precision({ranking, curves}) {
  const runs = curves.map(curve => ({lines: [curve.precision.map((y, i) => [i / (curve.precision.length - 1), y])], dots: []}));
  const keys = curves.map(({name, truths}, index) => html('div', {}, legend(series(index), `${name} (${truths})`)));
  const note = ranking === 'score' ? [] :
    [html('p', {}, 'Ranked by the order of the answers: the backend of this evaluation gives no probabilities.')];
  return [...note, html('div', {class: 'grid'}, chart({title: 'precision', runs, unit: {x: 'recall 1'}}),
    html('div', {class: 'card'}, html('b', {}, 'classes (truths)'), ...keys))];
}

function calibration({error, bins}) {
  const filled = bins.filter(bin => bin.count > 0).map(bin => [bin.score, bin.precision]);
  const rows = bins.map((bin, i) => [`${(i / bins.length).toFixed(1)} – ${((i + 1) / bins.length).toFixed(1)}`, String(bin.count),
    ...[bin.score, bin.precision].map(value => bin.count > 0 ? value.toFixed(3) : '-')]);
  return [html('p', {}, 'Expected calibration error: ', html('b', {}, error.toFixed(3))), html('div', {class: 'grid'},
    chart({title: 'share that is right', runs: [{lines: [filled], dots: filled}], unit: {x: 'score 1', diagonal: true}}),
    html('div', {class: 'card'}, table([['score', 'objects', 'mean score', 'right'], ...rows])))];
}

// Pictures -----------------------------------------------------------------------------------------------------------------------------

const highestScore = Math.max(1e-9, ...(data.gallery ? data.gallery.groups : []).flatMap(group => group.samples).flatMap(
  sample => [...sample.after, ...(sample.before || [])]).map(object => object.score || 0));

/** Outline and label of an object, whose coordinates are thousandths of the image's sides. */
function outline({desc, bbox_2d: box, poly, score}, kind, width, height) {
  const name = score === undefined ? desc : `${desc} ${score.toFixed(2)}`;
  const [left, top, right, bottom] = box || [];
  const flat = poly || [left, top, right, top, right, bottom, left, bottom];
  const xs = [], ys = [];
  flat.forEach((bin, i) => i % 2 === 0 ? xs.push(bin * width / 1000) : ys.push(bin * height / 1000));
  const x = Math.min(...xs), fits = x + 7 * name.length < width;
  // Labels of the truth are above, those of answers below, so that they can be compared.
  const y = kind === 'truth' ? Math.max(10, Math.min(...ys) - 3) : Math.min(height - 3, Math.max(...ys) + 11);
  return [svg('polygon', {'stroke-opacity': score === undefined ? 1 : 0.25 + 0.75 * score / highestScore, points: xs.map((value, i) => `${value.toFixed(1)},${ys[i].toFixed(1)}`).join(' ')}),
    svg('text', fits ? {x: Math.max(1, x), y} : {x: width - 2, y, 'text-anchor': 'end'}, name)];
}

/** An image with layers of outlines, whose text has the same size on images of any size. Left of the slider are the answers before, right of it those after. */
function figure(sample) {
  const width = 320, height = width * sample.height / sample.width;
  const layer = kind => svg('svg', {class: kind, viewBox: `0 0 ${width} ${height}`},
    ...sample[kind].flatMap(object => outline(object, kind, width, height)));
  const image = html('img', {alt: `sample on line ${sample.line}`, width: sample.width, height: sample.height,
    src: `data:image/jpeg;base64,${sample.image}`});
  const shot = html('div', {class: 'shot'}, image, layer('truth'));
  const after = layer('after');
  const whole = html('figure', {class: 'card'}, shot);
  if (sample.before) {
    const before = layer('before'), edge = html('span', {class: 'edge'});
    const slider = html('input', {type: 'range', min: 0, max: 100, value: 0, 'aria-label': 'after to the right, before to the left'});
    const move = () => {
      before.style.clipPath = `inset(0 ${100 - slider.value}% 0 0)`;
      after.style.clipPath = `inset(0 0 0 ${slider.value}%)`;
      edge.style.left = `${slider.value}%`;
      edge.hidden = slider.value <= 0 || slider.value >= 100;
    };
    slider.addEventListener('input', move);
    move();
    shot.append(before, after, edge);
    whole.append(slider);
  } else {
    shot.append(after);
  }
  const counts = `${sample.truth.length} true, ${sample.after.length} found`;
  whole.append(html('figcaption', {}, `line ${sample.line}: label F1 `, html('b', {}, sample.f1.toFixed(2)),
    sample.before ? `, before ${sample.f1_before.toFixed(2)}` : '', ` · ${counts}`,
    sample.status === 'complete' ? '' : ` · answer ${sample.status}`));
  return whole;
}

function gallery({has_before: hasBefore, groups}) {
  const keys = [legend('truth', 'truth (dashed)'), ' ', legend('after', 'answer, fainter where the score is low')];
  if (hasBefore) keys.push(' ', legend('before', 'answer before: move the slider'));
  return [html('p', {}, ...keys), ...groups.flatMap(({title, samples}) => samples.length === 0 ? [] :
    [html('h3', {}, title), html('div', {class: 'grid'}, ...samples.map(figure))])];
}

// The page -----------------------------------------------------------------------------------------------------------------------------

document.title = `Rematch: ${data.title}`;
document.querySelector('h1').append(data.title);
for (const name of document.querySelectorAll('h2 .name')) name.append(data.last || '');
if (data.runs.length) fill('facts', html('div', {class: 'grid'}, ...data.runs.map(facts)));
if (data.scores) fill('scores', table(data.scores));
if (data.health.length) fill('health', health(data.health));
if (data.curves.charts.length) fill('curves', ...curves(data.curves));
if (data.times.length) fill('times', html('div', {class: 'stack'}, ...data.times.map(timeSplit)));
if (data.classes.length) fill('classes', shareTable(data.classes));
if (data.confidence) {
  if (data.confidence.curves.length) fill('precision', ...precision(data.confidence));
  if (data.confidence.calibration) fill('calibration', ...calibration(data.confidence.calibration));
  if (data.confidence.confusion.length) fill('confusion', table(data.confidence.confusion));
}
if (data.counts.length) fill('counts', shareTable(data.counts));
if (data.gallery) fill('gallery', ...gallery(data.gallery));
document.getElementById('no-gallery').hidden = !data.last || Boolean(data.gallery);
if (data.settings.length) {
  fill('settings', html('div', {class: 'stack'}, ...data.settings.map(({name, text}) =>
    html('details', {class: 'card'}, html('summary', {}, name), html('pre', {}, text)))));
}
