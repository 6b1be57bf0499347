// Fills the sections of report.html.
document.title = `Rematch: ${data.title}`;
document.querySelector('h1').append(data.headline.sentence);
document.getElementById('about').append(data.headline.about);
fill('numbers', numbers(data.headline.numbers));
for (const name of document.querySelectorAll('h2 .name')) name.append(data.last || '');
if (data.scores) fill('scores', html('p', {class: 'soft last'}, data.note), table(data.scores));
if (data.curves.charts.length) fill('curves', ...curves(data.curves));
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
