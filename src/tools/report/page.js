// Builds the report from the JSON in #data (src/report/report.cc writes it): page.js, charts.js,
// pictures.js and report.js make one script. Names, labels and paths come from data sets and
// models: they enter the page as text nodes and attribute values only, never as markup.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);

function add(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
const html = (tag, attributes = {}, ...children) =>
  add(document.createElement(tag), attributes, children);
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

const legend = (style, text) =>
  html('span', {class: `key ${style}`}, html('i'), html('span', {class: 'soft'}, text));
const series = index => `series${index % 6}`;

// Tables ------------------------------------------------------------------------------------------

/** The first row is the header; a cell that ends in * is the best of its row. */
function table(rows) {
  const row = (cells, header) =>
    html(
      'tr',
      {},
      ...cells.map((cell, column) => {
        if (header) return html('th', {}, cell);
        const best = column > 0 && cell.endsWith('*');
        return html('td', best ? {class: 'best'} : {}, best ? cell.slice(0, -1) : cell);
      }),
    );
  return html(
    'div',
    {class: 'scroll'},
    html('table', {}, ...rows.map((cells, i) => row(cells, i === 0))),
  );
}

/** Rows of [name, counts …, shares …]; a share of nothing is null. */
function shareTable(rows) {
  const cell = (value, column) =>
    value === null ? '-' : column === 0 ? value : column <= 3 ? String(value) : value.toFixed(3);
  return table([rows[0], ...rows.slice(1).map(row => row.map(cell))]);
}

/** The numbers above the fold: what was, what is, and whether that is better. */
function numbers(items) {
  return html(
    'div',
    {class: 'numbers'},
    ...items.map(({label, before, now, change}) =>
      html(
        'div',
        {class: 'card'},
        html('div', {class: 'soft'}, label),
        html(
          'div',
          {class: 'number'},
          ...(before ? [html('span', {class: 'was'}, `${before} → `)] : []),
          html('b', {class: change > 0 ? 'better' : change < 0 ? 'worse' : ''}, now),
        ),
      ),
    ),
  );
}
