"""Chat templates and what is rendered with them. The first ones are written for these tests, in the manner of the families
whose formats they name; the rest are corners of the language."""

import collections

Case = collections.namedtuple("Case", "template variables")

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The \"weather\" of a <city> & more, é", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}}}
TALK = [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Hi <b>, 日本!\n"},
        {"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Bye"}]
CALLS = [{"role": "user", "content": "Weather?"},
         {"role": "assistant", "content": None, "tool_calls": [
             {"id": "call_0001", "function": {"name": "get_weather", "arguments": {"city": "Paris", "days": 2, "exact": True, "at": 1.5}}}]},
         {"role": "tool", "tool_call_id": "call_0001", "content": "{\"sun\": 1}"},
         {"role": "tool", "tool_call_id": "call_0002", "content": "rain"},
         {"role": "assistant", "content": "<think>\nwell\n</think>\n\nSun."}, {"role": "user", "content": "Thanks"}]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

FAMILIES = {
    "llama 2": """\
{% if messages[0]['role'] == 'system' %}{% set start = 1 %}{% set system = '<<SYS>>\\n' ~ messages[0]['content'] | trim ~ '\\n<</SYS>>\\n\\n' %}
{% else %}{% set start = 0 %}{% set system = '' %}{% endif -%}
{% for m in messages[start:] %}
    {%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('user and assistant have to alternate') }}{% endif %}
    {%- if m['role'] == 'user' %}{{ bos_token + '[INST] ' + (system if loop.first else '') + m['content'].strip() + ' [/INST]' }}
    {%- else %}{{ ' ' + m['content'].strip() + ' ' + eos_token }}{% endif %}
{% endfor %}""",
    "llama 3": """\
{{- bos_token }}
{%- if not date is defined %}{% set date = strftime_now('%d %b %Y') %}{% endif %}
{%- set ns = namespace(system='', first=true) %}
{%- for m in messages %}
    {%- if m.role == 'system' %}{% set ns.system = m.content | trim %}{% continue %}{% endif %}
    {%- if ns.first %}{% set ns.first = false %}{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday: ' + date + '\\n' + ns.system + '<|eot_id|>' }}
        {%- for t in tools or [] %}{{- t | tojson(indent=4) + '\\n\\n' }}{% endfor %}
    {%- endif %}
    {%- if 'tool_calls' in m %}
        {%- if m.tool_calls | length != 1 %}{{- raise_exception('one call at a time') }}{% endif %}
        {%- set call = m.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n{"name": "' ~ call.name ~ '", "parameters": ' ~ call.arguments | tojson ~ '}<|eot_id|>' }}
    {%- elif m.role in ['tool', 'ipython'] %}
        {{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' }}
        {{- m.content | tojson if m.content is mapping or m.content is iterable else m.content }}<|eot_id|>
    {%- else %}
        {{- '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}""",
    "mistral": """\
{%- set rest = messages[1:] if messages[0].role == "system" else messages %}
{{- bos_token }}
{%- for m in rest | rejectattr("role", "equalto", "tool") %}
    {%- if m.role == "user" %}
        {%- if tools is not none and m == (rest | selectattr("role", "eq", "user") | list)[-1] %}{{- "[AVAILABLE_TOOLS] [" }}
            {%- for t in tools %}{{- '{"type": "function", "function": {' }}
                {%- for key, value in t.function.items() if key != "return" %}
                    {{- '"' + key + '": ' }}{{- value | tojson if value is not string else '"' + value + '"' }}{{- ", " if not loop.last }}
                {%- endfor %}{{- "}}" }}{{- ", " if not loop.last else "]" }}
            {%- endfor %}{{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {{- "[INST] " ~ m.content ~ "[/INST]" }}
    {%- elif m.tool_calls is defined %}
        {{- "[TOOL_CALLS] " ~ (m.tool_calls | map(attribute="function") | list | tojson) ~ eos_token }}
    {%- else %}{{- " " ~ m.content ~ eos_token }}{% endif %}
{%- endfor %}""",
    "qwen": """\
{%- if tools %}
    {{- '<|im_start|>system\\n' ~ (messages[0].content if messages[0].role == 'system' else 'You help.') ~ '\\n\\n<tools>' }}
    {%- for tool in tools %}{{ "\\n" }}{{ tool | tojson }}{% endfor %}{{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(open=true, last=messages|length - 1) %}
{%- for m in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.open and m.role == "user" and m.content is string and not (m.content.startswith('<r>') and m.content.endswith('</r>')) %}
        {%- set ns.open = false %}{% set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for m in messages %}
    {%- set content = m.content if m.content is string else '' %}
    {%- if m.role == "user" or (m.role == "system" and not loop.first) %}{{- '<|im_start|>' + m.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif m.role == "assistant" %}
        {%- set thought = '' %}
        {%- if '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if loop.index0 > ns.last or loop.last or (not loop.last and thought) %}{{- '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' }}{% endif %}
        {{- content }}
        {%- for call in m.tool_calls %}
            {%- if (loop.first and content) or not loop.first %}{{- '\\n' }}{% endif %}
            {%- if call.function %}{% set call = call.function %}{% endif %}
            {{- '<tool_call>\\n{"name": "' }}{{- call.name }}{{- '", "arguments": ' }}
            {%- if call.arguments is string %}{{- call.arguments }}{%- else %}{{- call.arguments | tojson }}{%- endif %}{{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif m.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{% endif %}
        {{- '\\n<tool_response>\\n' + content + '\\n</tool_response>' }}
        {%- if loop.last or loop.nextitem.role != "tool" %}{{- '<|im_end|>\\n' }}{% endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}""",
    "gemma": """\
{{ bos_token }}{% set prefix = '' %}
{%- if messages[0]['role'] == 'system' -%}
    {%- set prefix = messages[0]['content'] if messages[0]['content'] is string else messages[0]['content'][0]['text'] -%}
    {%- set prefix = prefix + '\\n\\n' -%}{%- set loop_messages = messages[1:] -%}
{%- else -%}{%- set loop_messages = messages -%}{%- endif -%}
{%- for m in loop_messages -%}
    {%- set role = 'model' if m['role'] == 'assistant' else m['role'] -%}
    {{ '<start_of_turn>' + role + '\\n' + (prefix if loop.first else '') }}
    {%- if m['content'] is string -%}{{ m['content'] | trim }}
    {%- elif m['content'] is iterable -%}
        {%- for item in m['content'] -%}{{ '<image>' if item['type'] == 'image' else item['text'] | trim }}{%- endfor -%}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}
""",
    "phi": """\
{% for m in messages %}{% if m['role'] in ('system', 'user') and m['content'] %}{{ '<|' + m['role'] + '|>\\n' + m['content'] + '<|end|>\\n' }}
{% elif m['role'] == 'assistant' %}{% generation %}{{ '<|assistant|>\\n' }}{{ m['content'] or '' }}<|end|>
{% endgeneration %}{% endif %}{% endfor %}
{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}
""",
    "schemas by macro": """\
{%- macro kind(schema, depth=0) -%}
    {%- if schema.type is string and schema.type == 'object' -%}{ {% for name, value in schema.properties | dictsort -%}
        {{ '  ' * depth ~ name ~ ('' if name in (schema.required or []) else '?') ~ ': ' ~ kind(value, depth=depth + 1) ~ ', ' }}
    {%- endfor %}}{%- else -%}{{ schema.type | upper | default('ANY', true) }}{%- endif -%}
{%- endmacro -%}
{% for tool in tools or [] %}{{ tool.function.name }}({{ kind(tool.function.parameters) }}){{ "\\n" }}{% endfor %}
{% set text %}{% for m in messages %}[{{ m.role }}]{% endfor %}{% endset %}{{ text | replace('][', '|') | title }}""",
}

CORNERS = [
    # spaces and newlines
    "a\n  {% if true %}  \n b \n {% endif %}\n c\n", "a {%- if true -%}  \n b  {%- endif -%}\n c", "a\n  {%+ if true %}\n b\n  {%+ endif +%}\n c",
    "  {{ 1 }}  \n  {{- 2 -}}  \n 3", "{# c #}\n a {#- c -#} b\n  {# c\nd #}\n e", "\n\n{% set x = 1 %}\n\n{{ x }}\n\n", "a\r\nb\rc\n{{ 'd\r\ne' }}\r\n",
    "{% raw %}\n {{ x }} {% if %} {% endraw %}\nb", "{%- raw -%}  {# a #}  {%- endraw -%} b", "{{'}}'}} {{ '%}' }} {{ {'a': {'b': 1}}['a']['b'] }}",
    "\u3000{%- if true %}\u2028a{% endif %}", "{", "{}", "}}", "{ {", "", "\n", "{%if true%}a{%endif%}\n{%if 1:%}b{%endif%}",
    # literals
    r"""{{ 'a\n\t\\\'\"\x41\u00e9\U0001f600\101\0z\q\é' }}{{ "it's" 'two' }}""", "{{ 1_000 }} {{ 0x1F }} {{ 0o17 }} {{ 0b101 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 1_0.2_5 }}",
    "{{ 1e16 }} {{ 123456789012345680.0 }} {{ 0.1 + 0.2 }} {{ 1e15 }} {{ 1e-5 }} {{ 0.0001 }} {{ -0.0 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }}",
    "{{ [1, 'a', none, true, 1.0, (), (1,), {'k': [undefined]}] }}", "{{ [\"it's\", 'q\"', 'b\\'\"', '\\n\\x00\\x7f\\u200b\\u00a0é\\\\'] }}", "{{ [] }}{{ {} }}{{ () }}{{ 'a' 'b' }}",
    "{{ {1: 'a', true: 'b', 1.0: 'c', none: 'd', (1, 2): 'e'} }}", "{% set x = 1, 2 %}{{ x }}{% set (a, b), c = (1, 2), 3 %}{{ a }}{{ b }}{{ c }}",
    # operators
    "{{ 1 + 2 * 3 ** 2 // 4 - -5 % 3 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ 7 // -2 }} {{ -7 % 3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1 / 3 }} {{ 4 / 2 }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 == true }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ (1,) == [1] }} {{ 'é' > 'z' }} {{ '\U0001f600' > '\uffff' }}",
    "{{ not 1 == 2 }} {{ 1 in [1] and 2 not in [1] }} {{ 'a' in {'a': 1} }} {{ 'b' in 'abc' }} {{ 1 or x.y }} {{ 0 and x.y }} {{ '' or none }} {{ [] and 1 }}",
    "{{ 1 ~ 2 + 3 ~ 4 }} {{ 'a' ~ none ~ [1] ~ missing }} {{ [1] + [2] }} {{ 'ab' * 2 }} {{ 2 * [1] }} {{ 'a' * -1 }} {{ true + true }}",
    "{{ 1 if true }}{{ 1 if false }}{{ 1 if false else 2 if false else 3 }} {{ (1 if missing else 2) is odd }}", "{{ -1|abs }} {{ -(1)|abs }} {{ +true }} {{ -true }} {{ 2|string ~ 3 }}",
    "{{ 9007199254740993 == 9007199254740992.0 }} {{ 9223372036854775807 < 9.3e18 }} {{ 1 < 1.5 }} {{ -1 > -1.5 }} {{ 0.5 == 1 / 2 }}",
    # members
    "{{ s[0] }}{{ s[-1] }}{{ s[99] }}{{ s[1:3] }}{{ s[::-1] }}{{ s[-3:] }}{{ s[5:1:-2] }}{{ s[:-1:2] }}", "{{ l[0] }} {{ l.0 }} {{ l[-1] }} {{ l[9] }} {{ l[1:] }} {{ l[::2] }} {{ l[:] }} {{ (1, 2, 3)[1:] }}",
    "{{ d.a }} {{ d['a'] }} {{ d.items() }} {{ {'items': 1}['items'] }} {{ d.get('q', 1) }} {{ d.get('q') }} {{ d.keys() | list }} {{ d.values() }} {{ d.q }} {{ d['q'] is defined }} {{ d.q is undefined }}",
    "{{ s.foo }} {{ s.foo is defined }} {{ l.append }} {{ l.append is defined }} {{ s.upper is callable }} {{ s.__class__ }} {{ d.update is defined }} {{ none.x }} {{ 1.5.x }}",
    "{{ '日本語'[1] }} {{ '日本語'[::-1] }} {{ '日本語'|length }} {{ '日本語'.find('語') }} {{ 'a日b'[1:] }} {{ '日本語'[-2:] }}",
    # methods
    "{{ ' a b  c '.split() }} {{ ' a b  c '.split(none, 1) }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,,c'.split(',', 2) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b c '.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a b'.split(maxsplit=0) }}",
    "[{{ ' a\u3000'.strip() }}] [{{ 'xxaxx'.strip('x') }}] [{{ 'xyaxy'.lstrip('yx') }}] [{{ '\n a\n'.rstrip('\n') }}] [{{ 'éaé'.strip('é') }}]",
    "{{ s.startswith('He') }} {{ s.endswith(('x', 'ld')) }} {{ s.startswith('') }} {{ s.replace('l', 'L') }} {{ s.replace('', '-', 3) }} {{ s.replace('o', '', 1) }} {{ s.find('z') }} {{ s.rfind('o') }} {{ s.count('l') }} {{ s.count('') }} {{ s.index('W') }}",
    "{{ s.upper() }} {{ 'ǆ ß ŉ ΑΣ ΑΣΑ Σ'.lower() }} {{ 'ǆ ß ŉ ﬁ ᾳ'.upper() }} {{ 'ǆo ßa ﬁn'.title() }} {{ 'ßA bC'.capitalize() }} {{ \"they're bill's\".title() }} {{ 'a1b c-d'.title() }}",
    "{{ ','.join(['a', 'b']) }} {{ ''.join('abc') }} {{ 'a\nb\r\nc\rd\x0be\u2028f\n'.splitlines() }} {{ 'a\n'.splitlines(true) }} {{ s.removeprefix('He') }} {{ s.removesuffix('ld') }}",
    # filters
    "{{ s|upper|lower|title|capitalize }} {{ 'foo-bar (baz {q'|title }} {{ [1, 'a']|upper }} {{ 5|string|length }} {{ ' a '|trim }} {{ 'xax'|trim('x') }} {{ none|trim }} {{ missing|upper }}|",
    "{{ l|first }} {{ l|last }} {{ []|first }} {{ s|first }} {{ d|first }} {{ d|length }} {{ l|count }} {{ d|list }} {{ s|list }} {{ range(3)|last }} {{ missing|length }} {{ missing|list }}",
    "{{ l|join }} {{ l|join(', ') }} {{ [1, none, 'a']|join('-') }} {{ users|join(',', attribute='name') }} {{ s|join('.') }} {{ d|join }} {{ missing|join }}",
    "{{ missing|default('x') }} {{ ''|default('x') }} {{ ''|default('x', true) }} {{ none|d('x') }} {{ none|d('x', boolean=true) }} {{ missing|d }} {{ d.q.r|default(1) if d.q else 0 }}",
    "{{ d|tojson }} {{ users|tojson(indent=2) }} {{ d|tojson(sort_keys=true) }} {{ d|tojson(separators=(',', ':')) }} {{ 'é\"\\\\<\n\x01\x7f😀'|tojson }} {{ 'é\"\x7f😀'|tojson(true) }} {{ [[], {}, ()]|tojson(indent=1) }} {{ [1.0, 1e22, none, true]|tojson }} {{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }} {{ [1]|tojson(indent='\t') }} {{ [1]|tojson(indent=0) }}",
    "{{ '42'|int }} {{ ' 4_2 '|int }} {{ '4.7'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ 4.7|int }} {{ -4.7|int }} {{ none|int }} {{ true|int }} {{ '1e3'|int }} {{ 'inf'|int }} {{ '-5'|int }} {{ ''|int }}",
    "{{ '4.5'|float }} {{ '1_0.5e-1'|float }} {{ 'x'|float }} {{ 'x'|float(1) }} {{ 3|float }} {{ '.5'|float }} {{ '5.'|float }} {{ ' inf'|float }} {{ '-nan'|float }} {{ 'Infinity'|float }}",
    "{{ d.items()|list }} {{ d|items|list }} {{ missing|items|list }} {{ d|dictsort }} {{ {'b': 1, 'A': 2, 'a': 0}|dictsort }} {{ {'b': 1, 'A': 2}|dictsort(true) }} {{ {'b': 1, 'A': 2}|dictsort(by='value', reverse=true) }}",
    "{{ users|map(attribute='name')|list }} {{ users|map(attribute='x.y', default='?')|list }} {{ ['a', 'b']|map('upper')|join }} {{ [' a ', 'b']|map('trim')|list }} {{ ['ab', 'c']|map('replace', 'a', 'x')|list }} {{ [[1, 2]]|map('join', '-')|list }} {{ none|map('upper')|list }} {{ [[1, 2], [3]]|map('first')|list }} {{ [[1, 2]]|map(attribute=1)|list }}",
    "{{ users|selectattr('age')|map(attribute='name')|list }} {{ users|selectattr('age', 'gt', 1)|list|length }} {{ users|rejectattr('name', 'in', ['Bo'])|map(attribute='name')|join }} {{ users|selectattr('tags.0', 'defined')|map(attribute='name')|list }} {{ users|selectattr('name', '==', 'Al')|first }}",
    "{{ [1, 0, 2]|select|list }} {{ [1, 2, 3]|select('odd')|list }} {{ [1, 2, 3]|reject('divisibleby', 2)|list }} {{ ['a', 1]|select('string')|list }} {% set g = [1, 2]|select %}{{ g|list }}{{ g|list }}{{ 1 if [0]|select else 2 }} {{ none|select|list }}",
    "{{ [1, 2, 1, 'a', 'A']|unique|list }} {{ ['a', 'A']|unique(case_sensitive=true)|list }} {{ users|unique(attribute='age')|map(attribute='name')|list }} {{ l|reverse|list }} {{ 'aé'|reverse }} {{ d|reverse|list }} {{ (l|select|reverse) }}",
    "{{ l|sort }} {{ l|sort(reverse=true) }} {{ ['b', 'A', 'a', 'B']|sort }} {{ ['b', 'A', 'a', 'B']|sort(case_sensitive=true) }} {{ ['b', 'A', 'a', 'B']|sort(true) }} {{ users|sort(attribute='age')|map(attribute='name')|list }} {{ [(2, 'a'), (1, 'b')]|sort }}",
    "{{ l|sum }} {{ users|sum(attribute='age') }} {{ [1.5, 2]|sum(start=1) }} {{ [[1], [2]]|sum(start=[]) }} {{ l|min }} {{ l|max }} {{ ['b', 'A']|min }} {{ users|max(attribute='age') }} {{ []|min }} {{ ['B', 'a']|min(true) }}",
    "{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 5|round }} {{ 2.1|round(method='ceil') }} {{ -2.1|round(0, 'floor') }} {{ 2.345|round(1, 'ceil') }} {{ 1e300|round(5) }} {{ -1.5|abs }} {{ -3|abs }} {{ true|abs }}",
    "{{ 'a\nb\n\nc'|indent }} {{ 'a\nb'|indent(2, true) }} {{ 'a\n\nb'|indent('> ', blank=true) }} {{ ''|indent }} {{ 'a\n'|indent(width=1) }}|", "{{ 'abab'|replace('a', 'x') }} {{ 'abab'|replace('a', 'x', 1) }} {{ 121|replace(1, 3) }} {{ 'ab'|replace('', '-') }}",
    "{{ '<a href=\"x\">&\\''|escape }} {{ '<'|e|e }} {{ '<'|safe ~ '>' }} {{ '<'|e + '>' }} {{ '>' + '<'|safe }} {{ ['<'|e] }} {{ ('<'|e)|upper }} {{ ('<'|e)|length }} {{ ('<'|safe) == '<' }} {{ [1]|tojson|safe + '<' }}",
    # tests
    "{{ 1 is odd }} {{ 2 is even }} {{ 6 is divisibleby 3 }} {{ 6 is divisibleby(4) }} {{ 1 is in [1] }} {{ 'a' is not in 'b' }} {{ none is none }} {{ missing is not none }} {{ 1 is number }} {{ true is number }} {{ true is integer }} {{ 1.0 is float }} {{ s is string }} {{ d is mapping }} {{ l is sequence }} {{ s is sequence }} {{ d is iterable }} {{ 1 is iterable }} {{ missing is iterable }} {{ (l|select) is iterable }} {{ (l|select) is sequence }} {{ range is callable }} {{ s is callable }} {{ true is boolean }} {{ 0 is false }} {{ true is true }} {{ none is sameas none }} {{ 'a' is eq 'a' }} {{ 1 is lt 2 }} {{ 'x'|e is escaped }}",
    # loops
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}|{% else %}none{% endfor %}",
    "{% for x in [] %}a{% else %}none{% endfor %}{% for x in l %}{% continue %}{% else %}all left{% endfor %}{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}no{% endfor %}",
    "{% for x in range(10) if x is odd %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}", "{% set ns = namespace(n=2) %}{% for x in l if x >= ns.n %}{{ x }}{% set ns.n = 3 %}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'aé' %}[{{ c }}]{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{{ x }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for x in l|select %}{{ loop.length }}{{ loop.revindex }}{% endfor %}", "{% for x in missing %}a{% endfor %}{{ x }}",
    # names
    "{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}", "{% if true %}{% set x = 1 %}{% endif %}{{ x }}", "{% for i in [1] %}{{ s }}{% endfor %}{% set s = 2 %}{{ s }}",
    "{% macro f() %}{{ s }}{% endmacro %}{{ f() }}{% set s = 1 %}{{ f() }}", "{% for i in [1, 2] %}{{ z }}{% if true %}{% set z = i %}{% endif %}{{ z }}{% endfor %}", "{% set x %}a{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}",
    "{% for i in [1] %}{% set s = s ~ '!' %}{{ s }}{% endfor %}{{ s }}", "{% set ns = namespace(a=1, b=[]) %}{% for i in l %}{% set ns.a = ns.a + i %}{% set ns.b = ns.b + [i] %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns['a'] }}{{ ns is mapping }}",
    "{% set ns = namespace({'x': 1}, y=2) %}{{ ns.x + ns.y }}{{ dict(a=1) }}{{ dict([(1, 2)], b=3) }}{{ dict({'q': 1}) == {'q': 1} }}", "{% set ns = namespace() %}{% set ns.t %}in{{ s }}{% endset %}{{ ns.t }}{{ ns }}",
    # macros
    "{% macro f(a, b='B', c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(c=3, a=1) }}{{ f() }}{{ f(1, 2, 3)|upper }}", "{% macro down(n) %}{{ n }}{% if n > 0 %}{{ down(n - 1) }}{% endif %}{% endmacro %}{{ down(20) }}",
    "{% macro f() %}\n  {{- ' x ' -}}\n{% endmacro %}[{{ f() }}]{{ f() ~ 1 }}{{ f()|trim|length }}", "{% for i in l %}{% macro g() %}{{ i }}{% endmacro %}{{ g() }}{% endfor %}{{ g }}",
    # the date, ranges
    "{{ strftime_now('%Y-%m-%d %H:%M:%S %y %j %A %a %B %b %p %I %e|%-d %-m %-H %% %F %T') }}", "{{ range(5)|list }} {{ range(2, 5)|list }} {{ range(5, 0, -2)|list }} {{ range(3) }} {{ range(0, 9, 2) }} {{ range(3)[1] }} {{ range(0)|length }} {{ 2 in range(3) }}",
    # what fails
    "{{ missing.x }}", "{{ missing + 1 }}", "{{ 1 + 'a' }}", "{{ raise_exception('no: ' ~ s) }}", "{{ l.append(1) }}", "{{ [] < 1 }}", "{{ 1 / 0 }}", "{{ none|length }}", "{{ s.index('q') }}", "{{ f() }}", "{% for a, b in [1] %}{% endfor %}",
    "{% set d.x = 1 %}", "{{ [1, 'a']|sort }}", "{{ {}|tojson|int + none }}", "{{ missing|tojson }}", "{% for x in 5 %}{% endfor %}", "{{ {[]: 1} }}", "{{ range(1000000) }}", "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "{{ 'a' in 5 }}",
    "{% if %}{% endif %}", "{% for x in l %}", "{{ 1 + }}", "{{ 'a }}", "{{ (1 }}", "{% endif %}", "{# a", "{% raw %} ", "a{% raw %}", "a{#", "{{ 1 2 }}", "{% break %}", "{% set 1 = 2 %}", "{{ a b }}", "{{ 01 }}", "{{ a..b }}", "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{{ x is }}", "{{ 'a'|}}", "{{ '\\x1' }}", "{{ [1, 2 }}", "{% for loop in l %}{% endfor %}", "{{ ! }}", "{{ {1} }}", "{% if true %}{% else %}{% elif %}{% endif %}", "{% set ns = namespace(_a=1) %}{% set x = ns.y.z %}",
]
VARIABLES = {"s": "Hello, World", "l": [3, 1, 2], "d": {"a": 1, "é": [None, {"b": 2.5}]}, "users": [
    {"name": "Al", "age": 3, "tags": ["x"]}, {"name": "Bo", "age": 0, "tags": []}, {"name": "cy", "age": 3, "tags": []}]}

CASES = [Case(template, {**TOKENS, **more}) for template in FAMILIES.values() for more in (
    {"messages": TALK}, {"messages": TALK[1:], "add_generation_prompt": True}, {"messages": CALLS, "tools": [TOOL, TOOL], "enable_thinking": False,
                                                                               "add_generation_prompt": True},
    {"messages": [{"role": "assistant", "content": "out of turn"}], "tools": [TOOL]})]
CASES += [Case(template, VARIABLES) for template in CORNERS]
