// Pictures of samples: outlines of truth and answers on the image. Labels that would cover another
// one hide until they are pointed at.

const highestScore = Math.max(
  1e-9,
  ...(data.gallery ? data.gallery.groups : [])
    .flatMap(group => group.samples)
    .flatMap(sample => [...sample.after, ...(sample.before || [])])
    .map(object => object.score || 0),
);
const pictureWidth = 320,
  labelHeight = 13;

/** " 0.42"; nothing for a score of nearly zero. */
const scoreText = score => score < 0.005 ? '' : ` ${score.toFixed(2)}`;

/** Rectangle of an object in the picture, whose coordinates are thousandths of the image's sides,
    and the points of its outline. */
function placed({bbox_2d: box, poly}, height) {
  const [left, top, right, bottom] = box || [];
  const flat = poly || [left, top, right, top, right, bottom, left, bottom];
  const xs = flat.filter((_, i) => i % 2 === 0).map(bin => (bin * pictureWidth) / 1000);
  const ys = flat.filter((_, i) => i % 2 === 1).map(bin => (bin * height) / 1000);
  return {
    left: Math.min(...xs),
    top: Math.min(...ys),
    right: Math.max(...xs),
    bottom: Math.max(...ys),
    points: xs.map((x, i) => `${x.toFixed(1)},${ys[i].toFixed(1)}`).join(' '),
  };
}

const covers = (a, b) =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** Outline and label of an object, with its score where that is a share of right answers. `taken`
    are rectangles of labels that show; one that would
 * cover any of them is crowded. */
function outline(object, kind, calibrated, height, taken) {
  const {desc, score} = object, {points, ...box} = placed(object, height);
  const name = score === undefined || !calibrated ? desc : desc + scoreText(score);
  const width = 7 * name.length, fits = box.left + width < pictureWidth;
  // Labels of the truth are above, those of answers below, so that they can be compared.
  const y = kind === 'truth' ? Math.max(10, box.top - 3) : Math.min(height - 3, box.bottom + 11);
  const left = fits ? Math.max(1, box.left) : pictureWidth - 2 - width;
  const label = {left, right: left + width, top: y - labelHeight + 2, bottom: y + 2};
  const crowded = taken.some(other => covers(label, other));
  if (!crowded) taken.push(label);
  const group = svg(
    'g',
    crowded ? {class: 'crowded'} : {},
    svg('polygon', {
      'stroke-opacity': score === undefined ? 1 : 0.25 + (0.75 * score) / highestScore,
      points,
    }),
    svg('text', fits ? {x: left, y} : {x: pictureWidth - 2, y, 'text-anchor': 'end'}, name),
  );
  return {group, box, score, area: (box.right - box.left) * (box.bottom - box.top)};
}

/** Shows the labels of the smallest truth and answer under the pointer, and no others, while it is
    there. */
function pointing(shot, layers, height) {
  const show = event => {
    const frame = shot.getBoundingClientRect();
    const x = ((event.clientX - frame.left) / frame.width) * pictureWidth,
      y = ((event.clientY - frame.top) / frame.height) * height;
    let found = false;
    for (const objects of layers) {
      const under = objects.filter(
        ({group, box}) =>
          !group.hasAttribute('hidden') && covers(box, {left: x, right: x, top: y, bottom: y}),
      );
      const nearest = under.sort((a, b) => a.area - b.area)[0];
      for (const object of objects) object.group.classList.toggle('near', object === nearest);
      found = found || nearest !== undefined;
    }
    shot.classList.toggle('pointed', found);
  };
  shot.addEventListener('pointermove', show);
  shot.addEventListener('pointerdown', show);
  shot.addEventListener('pointerleave', () => shot.classList.remove('pointed'));
}

/** An image with layers of outlines, whose text has the same size on images of any size. Left of
    the slider are the answers before, right of it those after. */
function figure(sample, answers) {
  const height = pictureWidth * sample.height / sample.width, layers = [], truthLabels = [];
  const layer = (kind, taken) => {
    const objects = sample[kind].map(object =>
      outline(object, kind, sample.calibrated, height, taken),
    );
    layers.push(objects);
    if (kind !== 'truth') answers.push(...objects);
    return svg(
      'svg',
      {class: kind, viewBox: `0 0 ${pictureWidth} ${height}`},
      ...objects.map(({group}) => group),
    );
  };
  const image = html('img', {
    alt: `sample on line ${sample.line}`,
    width: sample.width,
    height: sample.height,
    src: `data:image/jpeg;base64,${sample.image}`,
  });
  const shot = html('div', {class: 'shot'}, image, layer('truth', truthLabels));
  const after = layer('after', [...truthLabels]);
  const whole = html('figure', {class: 'card'}, shot);
  if (sample.before) {
    const before = layer('before', [...truthLabels]),
      edge = html('span', {class: 'edge'});
    const slider = html('input', {
      type: 'range',
      min: 0,
      max: 100,
      value: 0,
      'aria-label': 'after to the right, before to the left',
    });
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
  pointing(shot, layers, height);
  const counts = `${sample.truth.length} true, ${sample.after.length} found`;
  whole.append(
    html(
      'figcaption',
      {},
      `line ${sample.line}: label F1 `,
      html('b', {}, sample.f1.toFixed(2)),
      sample.before ? `, before ${sample.f1_before.toFixed(2)}` : '',
      ` · ${counts}`,
      sample.status === 'complete' ? '' : ` · answer ${sample.status}`,
    ),
  );
  return whole;
}

/** Hides the answers with the lowest scores, in all pictures. The slider moves over the scores in
    order, because they may all be small. */
function scoreFilter(answers, calibrated) {
  const scores = answers
    .flatMap(({score}) => (score === undefined ? [] : [score]))
    .sort((a, b) => a - b);
  const slider = html('input', {
    type: 'range',
    min: 0,
    max: scores.length - 1,
    value: 0,
    'aria-label': 'lowest score',
  });
  const shown = html('b', {}, 'all');
  slider.addEventListener('input', () => {
    const lowest = scores[slider.value],
      kept = scores.filter(score => score >= lowest).length;
    const least =
      calibrated && scoreText(lowest) ? `, with a score of${scoreText(lowest)} or more` : '';
    shown.textContent =
      kept === scores.length
        ? 'all'
        : `the best ${Math.ceil((100 * kept) / scores.length)} % by score${least}`;
    for (const {group, score} of answers)
      group.toggleAttribute('hidden', score !== undefined && score < lowest);
  });
  return html('label', {class: 'filter'}, 'Answers that are drawn: ', shown, slider);
}

function gallery({has_before: hasBefore, groups}) {
  const keys = [
      legend('truth', 'truth (dashed)'),
      ' ',
      legend('after', 'answer, fainter where the score is low'),
    ],
    answers = [];
  if (hasBefore) keys.push(' ', legend('before', 'answer before: move the slider'));
  const pictures = groups.flatMap(({title, samples}) =>
    samples.length === 0
      ? []
      : [
          html('h3', {}, title),
          html('div', {class: 'strip'}, ...samples.map(sample => figure(sample, answers))),
        ],
  );
  const hint = html(
    'span',
    {class: 'soft'},
    'Labels that would cover others show when you point at their box.',
  );
  const scored = answers.some(({score}) => score !== undefined),
    calibrated = groups.some(({samples}) => samples.some(sample => sample.calibrated));
  return [
    html('p', {}, ...keys, hint),
    ...(scored ? [scoreFilter(answers, calibrated)] : []),
    ...pictures,
  ];
}
