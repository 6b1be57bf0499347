"""Writes tests/golden/text_jinja.jsonl: templates, variables and what transformers' Jinja
environment makes of them.

Run from the root of the checkout: .venv/bin/python dev/goldens/text_jinja.py
The templates are our own; they use the constructs that the templates of the Qwen-VL families use.
"""

import json

import jinja2
import transformers
from transformers.utils.chat_template_utils import _compile_jinja_template

OUT = "tests/golden/text_jinja.jsonl"

# A chat layout with image counters, a default system turn and content lists.
COUNTING = """{% set pictures = namespace(count=0) %}{% set films = namespace(count=0) %}
{% for message in messages %}
{% if loop.first and message['role'] != 'system' %}<|im_start|>system
Be helpful.<|im_end|>
{% endif %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}<|im_end|>
{% else %}{% for part in message['content'] %}
{% if part['type'] == 'image' or 'image' in part or 'image_url' in part %}{% set pictures.count = pictures.count + 1 %}
{% if number_pictures %}Picture {{ pictures.count }}: {% endif %}<|vision_start|><|image_pad|><|vision_end|>
{%- elif part['type'] == 'video' or 'video' in part %}{% set films.count = films.count + 1 %}
{% if number_pictures %}Film {{ films.count }}: {% endif %}<|vision_start|><|video_pad|><|vision_end|>
{%- elif 'text' in part %}{{ part['text'] }}{% endif %}{% endfor %}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

# Tools, a macro for content, tool calls, tool results, minus signs everywhere.
TOOLS = """{%- set image_count = namespace(value=0) %}
{%- macro show(content, counted=true) %}
    {%- if content is string %}
        {{- content }}
    {%- elif content is iterable and content is not mapping %}
        {%- for item in content %}
            {%- if item.type == 'image' or 'image' in item %}
                {%- if counted %}{%- set image_count.value = image_count.value + 1 %}{%- endif %}
                {{- '<|vision_start|><|image_pad|><|vision_end|>' }}
            {%- elif 'text' in item %}
                {{- item.text }}
            {%- else %}
                {{- raise_exception('Unknown part: ' ~ item.type) }}
            {%- endif %}
        {%- endfor %}
    {%- elif content is none or content is undefined %}
        {{- '' }}
    {%- else %}
        {{- raise_exception('Odd content') }}
    {%- endif %}
{%- endmacro %}
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- show(messages[0].content) + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + show(messages[0].content, counted=false) + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(searching=true, last_query=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and not(message.content is string and message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last_query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = show(message.content) %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.thought is string %}
            {%- set thought = message.thought %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query and (loop.last or (not loop.last and thought)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""

# Filters on items, block set, loop neighbours, filtered loops.
MIXED = """{# a comment -#}
{% set system_text %}
{% for message in messages if message.role == 'system' and message.content is string %}
  {{ message.content | trim }}
{% endfor %}
{% endset %}
[{{ system_text | trim | replace('e', '3') }}]
{% for message in messages if message.role != 'system' %}
  {% if loop.previtem is defined and loop.previtem.role == message.role %}(again){% endif %}
  {{ loop.index }}/{{ loop.length }} {{ message.role }}: {% if message.content is string %}{{ message.content | trim }}
{% else %}{{ message.content | selectattr('type', 'equalto', 'text') | map(attribute='text') | join('|') }} +{{ message.content | selectattr('type', 'equalto', 'image') | list | length }}
{% endif %}
  {%+ if loop.nextitem is defined %}next {{ loop.nextitem.role }}{% else %}end{% endif +%}

{% endfor %}
{% for key, value in (extra or {}) | items %}{{ key }}={{ value | tojson(indent=2) }};{% endfor %}
"""

IMAGE = {"type": "image"}
CHATS = {
    "text": [{"role": "user", "content": "Hello"}],
    "system": [
        {"role": "system", "content": "  Sys\u00e9 <b>&'\"</b> \n"},
        {"role": "user", "content": "What is \U0001f600?"},
    ],
    "image": [{"role": "user", "content": [IMAGE, {"type": "text", "text": "Describe."}]}],
    "images": [
        {
            "role": "system",
            "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}],
        },
        {
            "role": "user",
            "content": [
                IMAGE,
                {"type": "text", "text": "and"},
                {"type": "image", "image": "file.png"},
                {"type": "video"},
                IMAGE,
            ],
        },
        {"role": "assistant", "content": "{}"},
        {"role": "user", "content": [{"type": "text", "text": "more"}, IMAGE]},
    ],
    "turns": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "<think>\n\nhm\n</think>\n\nb"},
        {"role": "user", "content": "c"},
        {"role": "user", "content": "d\n"},
        {"role": "assistant", "content": "<think>x</think>e", "thought": None},
    ],
    "tools": [
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "function": {
                        "name": "w",
                        "arguments": {"city": "K\u00f6ln", "n": 1.0, "deep": [1, None, True]},
                    }
                },
                {"name": "x", "arguments": "{\"a\": 1}"},
            ],
        },
        {"role": "tool", "content": "sunny"},
        {"role": "tool", "content": [{"type": "text", "text": "20\u00b0"}, IMAGE]},
        {"role": "assistant", "content": "done", "thought": "\nok\n"},
    ],
    "empty": [{"role": "user", "content": ""}, {"role": "assistant", "content": []}],
}
TOOL_LIST = [
    {
        "type": "function",
        "function": {
            "name": "w",
            "description": "tells <the> weather & 'more'\u2028",
            "parameters": {"z": 1, "a": [1.5, 1e20, -0.0, 1e-7, 123456789012]},
        },
    }
]

SMALL_VARS = {
    "s": "  Hello w\u00f6rld\t\n",
    "n": 7,
    "f": 2.5,
    "z": None,
    "t": True,
    "l": [3, 1, 2],
    "d": {"b": 1, "a": [1, "x"], "items_": {}},
    "e": "",
    "el": [],
    "ed": {},
    "w": "alpha,beta,,gamma",
    "rows": [{"k": "a", "v": 1}, {"k": "b"}, {"k": "a", "v": 0}],
    "q": "it's \"q\" \\ \u200b\u00a0\u3042",
}
SMALL = [
    # values and printing
    "{{ n }} {{ f }} {{ z }} {{ t }} {{ missing }} {{ q }} {{ 12345678901234567 }} {{ -3 }} {{ 1 }}",
    "{{ 'a' }}{{ \"x\\ty\\n\\'\\\"\\\\ \\. \" }}{{ '}}' }}{{ \"%}\" }}",
    "{{ true }} {{ True }} {{ none }} {{ None }} {{ false }} {{ False }} {{ (1) }} {{ ((n)) }}",
    "{{ [1, 2,] | tojson }} {{ {'a': 1,} | tojson }} {{ {} | tojson }} {{ [] | tojson }}",
    # arithmetic
    "{{ n + 1 }} {{ n - 10 }} {{ n % 3 }} {{ -n % 3 }} {{ n % -3 }} {{ -n }} {{ true + 1 }} {{ 2 - 1 - 1 }} {{ 1 + 5 % 3 - 4 }} {{ (1 + 5) % 4 }} {{ n ~ (1 + 1) }} {{ 1 - -1 }}",
    "{{ 'a' ~ 1 ~ none ~ missing ~ f }} {{ 'a' + 'b' }} {{ ([1] + [2] + l) | tojson }} {{ 'n=' ~ n + 2 if false else 'n=' ~ n % 2 }}",
    # comparisons and logic
    "{{ 1 == true }} {{ '1' == 1 }} {{ none == missing }} {{ 1 != 2 }} {{ f == 2 }} {{ 'a' == 'a' }} {{ z == none }} {{ l == 'x' }} {{ n == 7 }}",
    "{{ 1 < 2 }} {{ 2 >= 2 }} {{ 1 > 2 or 3 > 2 }} {{ 1 <= f }} {{ f > 2 }} {{ (1 < 2) == true }}",
    "{{ 1 in l }} {{ 5 not in l }} {{ 'ell' in s }} {{ 'a' in d }} {{ 'x' in missing }} {{ not 1 in l }} {{ not true }} {{ 2 is in l }} {{ 2 is in([1, 2]) }} {{ 5 in d }} {{ 'a' in ['a', 1, none] }}",
    "{{ 0 or 'x' }} {{ 1 and 'y' }} {{ '' and 1 }}| {{ none or false }} {{ missing or 'd' }} {{ (1 or 2) and 3 }} {{ not 0 and 1 }} {{ not (0 and 1) }} {{ not not 1 }} {{ 1 if el else 2 }} {{ 1 if d else 2 }}",
    "{{ 'a' if n > 3 else 'b' }} {{ 'a' if n > 30 }} {{ 'a' if false else 'b' if false else 'c' }} {{ ('x' if t else 'y') ~ 'z' }}",
    # items, attributes, slices
    "{{ l[0] }} {{ l[-1] }} {{ l[9] }} {{ d.b }} {{ d['a'][1] }} {{ d.nope }} {{ d['nope'] }} {{ none.x }} {{ n.x }} {{ l[1 - 1] }} {{ l[-9] }} {{ rows[1]['k'] }} {{ rows[-1].k }} {{ l[true] }}",
    "{{ l[::-1] | tojson }} {{ l[1:] | tojson }} {{ l[:-1] | tojson }} {{ l[:] | tojson }} {{ l[5:] | tojson }} {{ l[-2:] | tojson }} {{ l[2:0] | tojson }} {{ l[-9:9] | tojson }} {{ l[none:2] | tojson }} {{ l[1:2] | tojson }} {{ el[::-1] | tojson }}",
    "{% set a = {'k': {'z': 1}} %}{{ a.k.z }}{{ {'a': {'b': 2}}.a.b }}{{ {'a': {'b': 2}}['a']['b'] }}{{ {'a': 1, 'a': 2} | tojson }}{{ [[1, [2]]][0][1][0] }}",
    # filters
    "{{ s | length }} {{ l | length }} {{ d | length }} {{ missing | length }} {{ s | trim }}| {{ 'xxaxx' | trim('x') }} {{ 12 | string }} {{ none | trim }} {{ n | string | length }} {{ f | string }} {{ t | string }} {{ q | length }} {{ missing | trim }}|",
    "{{ l | join }} {{ l | join(', ') }} {{ l | join(d='+') }} {{ missing | join('x') }} {{ [1, none, 'a', f] | join('-') }} {{ d | join(',') }}",
    "{{ missing | default('d') }} {{ e | default('d') }}| {{ e | default('d', true) }} {{ z | default('d', boolean=true) }} {{ missing.x | default('q') if false else 'ok' }} {{ missing | default }}| {{ missing | default(none) }} {{ missing | default([]) | length }}",
    "{{ 'aXbXc' | replace('X', '-') }} {{ 11 | replace('1', '2') }} {{ 'aa' | replace('a', 'aa') }} {{ missing | replace('a', 'b') }}|",
    "{{ l | list | tojson }} {{ d | list | tojson }} {{ missing | list | tojson }}",
    "{{ rows | map(attribute='k') | list | tojson }} {{ rows | map(attribute='k') | join('/') }} {{ none | map(attribute='k') | list | tojson }} {{ missing | map(attribute='x') | list | length }}",
    "{{ rows | selectattr('v') | list | tojson }} {{ rows | selectattr('v', 'defined') | map(attribute='k') | list | tojson }} {{ rows | rejectattr('k', 'equalto', 'a') | list | tojson }} {{ rows | selectattr('k', 'in', ['b']) | list | length }} {{ none | selectattr('k') | list | length }} {{ rows | rejectattr('v') | list | length }}",
    "{{ d | tojson }} {{ q | tojson }} {{ [f, none, true, '\u00e4', '</script>', '&'] | tojson }} {{ d | tojson(indent=2) }} {{ '\u00e4\U0001f600' | tojson(ensure_ascii=false) }} {{ [] | tojson(indent=4) }} {{ {'x': {}, 'y': [1, [2]]} | tojson(indent=1) }} {{ 5 | tojson }} {{ [1] | tojson(indent=none) }} {{ rows | tojson(False, 0) }}",
    "{{ '<x>' | safe }} {{ d | tojson | safe }} {{ ('<' | safe) ~ '<' }} {{ ('a' | safe) == 'a' }} {{ 'a' | safe is string }} {{ ('ab' | safe) | length }}",
    "{{ 'a' ~ 'b' | length }} {{ ('a' ~ 'b') | length }} {{ -l | length if false else 1 }} {{ s | trim | length + 1 }}",
    # tests
    "{{ n is defined }} {{ missing is defined }} {{ missing is undefined }} {{ n is not defined }} {{ d.x is defined }} {{ d.b is defined }} {{ l[9] is defined }} {{ strftime_now is defined }} {{ raise_exception is defined }} {{ namespace is not defined }}",
    "{{ 's' is string }} {{ n is string }} {{ d is mapping }} {{ l is mapping }} {{ l is iterable }} {{ s is iterable }} {{ n is iterable }} {{ d is iterable }} {{ missing is iterable }} {{ l is sequence }} {{ s is sequence }} {{ d is sequence }} {{ n is sequence }} {{ missing is sequence }} {{ z is iterable }}",
    "{{ z is none }} {{ n is none }} {{ missing is none }} {{ n is number }} {{ t is number }} {{ f is number }} {{ s is number }} {{ t is boolean }} {{ n is boolean }} {{ t is true }} {{ n is true }} {{ t is false }} {{ 1 is true }} {{ z is not none }}",
    "{{ 1 is eq 1 }} {{ 1 is equalto(2) }} {{ 'a' is in 'abc' }} {{ n is number and s is string }} {{ n is string or s is string }} {{ 'y' if n is defined else 'n' }} {{ not n is string }} {{ s is defined() }}",
    # methods
    "{{ w.split(',') | tojson }} {{ w.split(',', 1) | tojson }} {{ ''.split(',') | tojson }} {{ 'a'.split('aa') | tojson }} {{ w.split(sep=',', maxsplit=2) | tojson }} {{ 'aaa'.split('aa') | tojson }} {{ w.split(',')[-1] }} {{ 'aXbX'.split('X') | length }}",
    "{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ 'xyaxy'.strip('yx') }}|{{ '\\n\\na\\n'.lstrip('\\n') }}|{{ '\\n\\na\\n'.rstrip('\\n') }}|{{ q.strip('\\'\"') }}|{{ ' \u3000a\u00a0 '.strip() }}|{{ ' \u3000a\u00a0 '.lstrip() }}|{{ ' \u3000a\u00a0 '.rstrip() }}|{{ ''.strip() }}|{{ '  '.lstrip() }}|{{ 'xx'.rstrip('x') }}|{{ 'a'.strip('') }}|{{ ' a '.strip(none) }}|",
    "{{ w.startswith('al') }} {{ w.endswith('gamma') }} {{ ''.startswith('') }} {{ w.startswith('x') }} {{ w.replace(',', ';') }} {{ 'abc'.replace('b', '') }}",
    "{{ d.get('b') }} {{ d.get('x') }} {{ d.get('x', 5) }} {{ d.get('x', {}) | tojson }} {{ ed.get('a') is none }}",
    "{% for k, v in d.items() %}{{ k }}:{{ v | tojson }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for k, v in d | items %}{{ k }}{% endfor %}{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }} {% endfor %}{% for a, b in missing | items %}x{% endfor %}",
    # loops
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop['index'] }};{% endfor %}",
    "{% for x in [] %}a{% endfor %}{% for x in missing %}a{% endfor %}{% for x in l if x > 5 %}a{% endfor %}|{% for i in l if i > 1 %}{{ loop.index }}{{ i }}{{ loop.last }}{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{{ x }}{{ y }} {% endfor %}{{ loop.index }}|{% endfor %}",
    "{% set x = 1 %}{% for i in l %}{{ x }}{% set x = i %}{{ x }} {% endfor %}{{ x }}{% if true %}{% set x = 9 %}{% endif %}{{ x }}",
    "{% set ns = namespace(a=1, b=[]) %}{% for i in l %}{% set ns.a = ns.a + i %}{% set ns.b = ns.b + [i] %}{% endfor %}{{ ns.a }} {{ ns.b | tojson }} {{ ns.c is defined }}{% set ns.c = 'new' %}{{ ns.c }}{{ ns['a'] }}",
    # set, macros
    "{% set t %}  x {{ n }} {% endset %}[{{ t }}]{% set x = 5 %}{% set y %}{% set x = 6 %}{{ x }}{% endset %}{{ x }}{{ y }}",
    "{% macro m(a, b=2, c='x' ~ b) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m() }} {{ m(1, c=7) | length }}{% macro r(x) %}{{ x }}{% if x > 0 %}{{ r(x - 1) }}{% endif %}{% endmacro %}{{ r(3) }}{% macro e() %}{% endmacro %}{{ e() }}|{{ m is defined }}",
    "{% set g = 'outer' %}{% macro m() %}{{ g }}{% set g = 'inner' %}{{ g }}{% endmacro %}{{ m() }}{{ g }}{% set g = 'later' %}{{ m() }}{% for g in l %}{{ m() }}{% endfor %}",
    # white space
    "a\n{% if true %}\nb\n{% endif %}\nc\n",
    "a\n  {% if true %}\n  b\n  {% endif %}  \nc\n\n",
    "a  {%- if true -%}  b  {%- endif -%}  c",
    "a\n  {{ n }}\n  {{- n -}}\n  b",
    "  {# c #}\nx {# d #}\ny\n {#- e -#} z",
    "x\n   {%+ if true %}y{% endif %}\n",
    "{% if true +%}\nx{% endif %}\n\n",
    "\t{% if true %}x{% endif %} \t{% if true %}y{% endif %}\n",
    "a\r\nb\r{% if true %}\r\nc{% endif %}",
    "{% for i in l %}\n  {{ i }}\n{% endfor %}\n",
    "{{ 'a' }}\n{{ 'b' }}\n\n",
    "{%- for i in l -%}\n {{ i }} \n{%- endfor -%}\n end",
    "   {% set a = 1 %}   \n  {{ a }}",
    "{{- '  x  ' -}}   y",
    "\u3000{%- if true %}x{% endif %}\u00a0\n",
    "{ % {{ '{%' }} }} %} {",
    "{#-#}{##} {#+ x +#}\n{# a\nb #}\n  {# c -#}\n\n x",
    "{{ {'a': {'b': 1}}['a'].b}}{{[1][0]-1}}{{ 5-2 }}{{1%2}}{{ {} | length}}",
    "",
    "\n",
    "plain",
    "{% if n == 7 %}seven{% elif n == 8 %}eight{% else %}other{% endif %}{% if n == 8 %}x{% elif n == 7 %}y{% endif %}{% if 0 %}{% endif %}",
]
ERRORS = [
    "{{ missing.x }}",
    "{{ missing[0] }}",
    "{{ missing() }}",
    "{{ missing + 1 }}",
    "{{ 1 + 'a' }}",
    "{{ 1 % 0 }}",
    "{{ none | length }}",
    "{{ 1 < 'a' }}",
    "{{ 1 in 5 }}",
    "{{ none in 'a' }}",
    "{{ none.strip() }}",
    "{% for x in 5 %}{% endfor %}",
    "{% for x in none %}{% endfor %}",
    "{{ raise_exception('no \u00e9') }}",
    "{{ missing | tojson }}",
    "{{ w.split('') }}",
    "{% for a, b in [[1]] %}{% endfor %}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}",
    "{{ [1].append(2) }}",
    "{{ 'a'.nope() }}",
    "{{ n() }}",
    "{{ l | join(1, 2, 3) }}",
    "{{ w.startswith(1) }}",
    "{{ -s }}",
    "{% set n.x = 1 %}",
    "{{ loop.index }}",
    "{{ n | items | list }}",
    "{{ rows | selectattr('v', 'nope') | list }}",
    "{{ 'a' + missing }}",
    "{{ 'a' + none }}",
    "{{ l.get('a') }}",
]


def main():
    rows = []

    def add(name, template, variables):
        row = {"name": name, "template": template, "variables": variables}
        try:
            row["expect"] = _compile_jinja_template(template).render(**variables)
        except (
            jinja2.TemplateError,
            TypeError,
            ValueError,
            ZeroDivisionError,
            OverflowError,
        ) as error:
            row["error"] = f"{type(error).__name__}: {error}"
        rows.append(row)

    for template_name, template in [("counting", COUNTING), ("tools", TOOLS), ("mixed", MIXED)]:
        for chat_name, messages in CHATS.items():
            for generation in [True, False]:
                add(
                    f"{template_name} {chat_name} {generation}",
                    template,
                    {"messages": messages, "add_generation_prompt": generation},
                )
            add(
                f"{template_name} {chat_name} with tools",
                template,
                {
                    "messages": messages,
                    "tools": TOOL_LIST,
                    "documents": None,
                    "number_pictures": True,
                    "add_generation_prompt": True,
                    "extra": {"a": [1], "b": {"c": None}},
                },
            )
    for i, template in enumerate(SMALL):
        add(f"small {i}", template, SMALL_VARS)
        if "error" in rows[-1]:
            print(template, rows[-1]["error"])
    for i, template in enumerate(ERRORS):
        add(f"error {i}", template, SMALL_VARS)
        assert "error" in rows[-1], rows[-1]
    with open(OUT, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    with open(OUT + ".how", "w", encoding="utf-8") as file:
        file.write(
            f".venv/bin/python dev/goldens/text_jinja.py\ntransformers {transformers.__version__}, jinja2 {jinja2.__version__}\n"
        )
    print(len(rows), "rows")


if __name__ == "__main__":
    main()
