"""Random small templates, most of which render."""

import random

TEXTS = ["", "a", "Ab c", " x ", "<|im|>", "q'\"", "é\n", "日本 語", "b,a,,c", "ΣΑΣ ß", "12", "-3.5", "a<b>&'\"", "\t \r\n", "x.y",
         "ǆ ŉ", "\u2028z\u0085", "\U0001f600!"]
VARIABLES = {
    "s": "Hello, World", "t": " pad\n", "u": "", "i": 3, "z": 0, "j": -7, "f": 2.5, "g": -0.1, "b": True, "n": None,
    "l": [3, 1, 2], "m": ["b", "A", "a", ""], "e": [], "d": {"a": 1, "b": [1, {"c": None}], "items": "it", "Z": "z"}, "o": {},
    "messages": [{"role": "system", "content": "Be <good>"}, {"role": "user", "content": "Hi 'you'"},
                 {"role": "assistant", "content": None, "calls": [{"name": "f", "args": {"x": 1.0, "y": [True, None]}}]},
                 {"role": "user", "content": [{"type": "text", "text": "é"}]}],
}
NAMES = list(VARIABLES) + ["missing", "x", "y", "k", "v", "tools", "loop"]
TESTS = ["defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number", "string", "mapping", "sequence",
         "iterable", "callable", "odd", "even", "divisibleby(3)", "divisibleby 2", "in [1, 'a']", "equalto('a')", "eq 3", "ne 3",
         "lt 3", "ge('b')"]
FILTERS = ["trim", "length", "count", "upper", "lower", "capitalize", "title", "first", "last", "join", "join(', ')", "join(s)",
           "default('d')", "default('d', true)", "d(l)", "tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)",
           "tojson(separators=(',', ':'))", "tojson(sort_keys=true)", "string", "int", "int(7)", "float", "list", "items",
           "items|list", "dictsort", "dictsort(false, 'value')", "dictsort(reverse=true)", "map('upper')", "map('upper')|list",
           "map(attribute='role')|list", "map(attribute='role', default='none')|join('-')", "map('length')|list",
           "selectattr('role', 'equalto', 'user')|list", "selectattr('content')|list|length", "rejectattr('role', 'in', ['user'])|list",
           "rejectattr('calls', 'defined')|map(attribute='role')|list", "select|list", "select('string')|list", "reject('none')|list",
           "select('gt', 1)|list", "unique|list", "unique(true)|join", "reverse", "reverse|list", "replace('a', 'b')",
           "replace(' ', '', 1)", "replace('', '.')", "safe", "escape", "e", "indent", "indent(2, true)", "indent('> ', blank=true)",
           "round", "round(1)", "round(1, 'floor')", "round(method='ceil')", "abs", "sum", "min", "max", "sort", "sort|list",
           "sort(reverse=true)", "sort(attribute='role')|map(attribute='role')|list", "sum(start=10)", "trim('<a ')"]
METHODS = ["strip()", "lstrip()", "rstrip('x \\n')", "split()", "split(',')", "split('a', 1)", "split(none, 1)", "rsplit(' ', 1)",
           "rsplit(none, 1)", "rsplit(',')", "startswith('H')", "startswith(('a', 'H'))", "endswith('d')", "upper()", "lower()",
           "title()", "capitalize()", "replace('l', 'L', 1)", "replace('o', '')", "find('o')", "rfind('o')", "index('o')", "count('l')",
           "join(m)", "join(['x', 'y'])", "splitlines()", "splitlines(true)", "removeprefix('He')", "removesuffix('d')", "items()",
           "keys()", "values()", "get('a')", "get('q', 5)", "items()|list", "index(1)", "count(1)", "append(1)", "update(d)"]
ATTRIBUTES = ["a", "b", "role", "content", "items", "keys", "0", "missing", "calls", "Z", "index"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.loops = 0

    def pick(self, options):
        return self.random.choice(options)

    def text(self):
        text = self.pick(TEXTS)
        quote = self.pick("'\"")
        escaped = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
        if self.random.random() < 0.3:
            escaped = escaped.replace("\n", "\\n").replace("é", "\\u00e9").replace("\t", "\\x09")
        return quote + escaped + quote

    def atom(self):
        kind = self.random.random()
        if kind < 0.5:
            return self.pick(NAMES if not self.loops else NAMES + ["x", "loop.index", "loop.first", "loop.last", "loop.length"])
        if kind < 0.7:
            return self.text()
        if kind < 0.85:
            return self.pick(["0", "1", "2", "10", "1.5", "0.1", "1e3", "1_000", "true", "false", "none", "True", "None", "[]", "{}", "()"])
        return self.pick(["messages", "messages[0]", "messages[-1].role", "messages[2].calls[0].args", "d.b[1]", "s[1]", "ns.a"])

    def arguments(self, depth, count):
        return ", ".join(self.expression(depth - 1) for _ in range(count))

    def expression(self, depth):
        if depth <= 0 or self.random.random() < 0.15:
            return self.atom()
        inner = lambda: self.expression(depth - 1)
        kind = self.random.randrange(19)
        if kind < 4:
            return f"{inner()}|{self.pick(FILTERS)}"
        if kind < 6:
            return f"{self.atom()}.{self.pick(METHODS)}"
        if kind == 6:
            return f"({inner()}).{self.pick(METHODS)}"
        if kind == 7:
            return f"{inner()} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if kind == 8:
            return f"({inner()} {self.pick(['+', '-', '*', '/', '//', '%', '~', '~', '+'])} {inner()})"
        if kind == 9:
            return f"{inner()} {self.pick(['~', '+'])} {inner()}"
        if kind == 10:
            return f"({inner()} {self.pick(['==', '!=', '<', '>', '<=', '>=', 'in', 'not in'])} {inner()})"
        if kind == 11:
            return f"({self.atom()} {self.pick(['<', '==', '>='])} {self.atom()} {self.pick(['<', '!=', 'in'])} {self.atom()})"
        if kind == 12:
            return f"({inner()} {self.pick(['and', 'or'])} {inner()})"
        if kind == 13:
            return f"({self.pick(['not', '-', '+', 'not not'])} {inner()})"
        if kind == 14:
            return f"({inner()} if {inner()} else {inner()})" if self.random.random() < 0.8 else f"({inner()} if {inner()})"
        if kind == 15:
            bounds = [self.pick(["", "0", "1", "-1", "2", "-3", "100", "i"]) for _ in range(3)]
            bounds[2] = self.pick(["", "", "1", "2", "-1", "-2"])
            return f"{self.pick(['s', 't', 'l', 'm', 'messages', self.text()])}[{':'.join(bounds[:self.random.randint(2, 3)])}]"
        if kind == 16:
            return f"{self.atom()}[{self.pick(['0', '-1', '5', repr('a'), repr('role'), 'i', 'none', repr('items')])}]"
        if kind == 17:
            return f"{self.atom()}.{self.pick(ATTRIBUTES)}"
        return self.pick([f"[{self.arguments(depth, 2)}]", f"({self.arguments(depth, 2)})", f"({inner()},)",
                          "{" + f"{self.text()}: {inner()}, 'k': {inner()}" + "}", f"range({self.pick(['3', '1, 4', '5, 0, -2', 'i'])})",
                          f"dict(a={inner()})", f"macro({inner()})", f"macro({inner()}, b={inner()})", "macro()"])

    def open(self):
        return "{%" + self.pick(["", "", "", "-", "+"]) + " "

    def close(self):
        return " " + self.pick(["", "", "", "-", "+"]) + "%}"

    def tag(self, inside):
        return self.open() + inside + self.close()

    def data(self):
        return self.pick(["", " ", "\n", "\n  ", "  \n", "text", " a b ", "\n\n", "}", "{", "\t", "end\n", "<|x|>\n", "# {", "\r\n", "\u3000"])

    def block(self, depth):
        return "".join(self.data() + self.statement(depth) for _ in range(self.random.randint(1, 3))) + self.data()

    def loop(self, depth):
        over = self.pick(["l", "m", "messages", "range(3)", "d", "s", "e", "missing", "d.items()", "m|unique", self.expression(1)])
        target = self.pick(["x", "x", "x", "y", "x, y"]) if over != "d.items()" else "k, v"
        condition = self.pick(["", "", "", " if x", " if x is string", " if loop.first"])
        self.loops += 1
        body = self.block(depth - 1)
        if self.random.random() < 0.3:
            body += self.tag(f"if {self.pick(['loop.index == 2', 'loop.last', 'x', 'loop.nextitem is defined'])}") + \
                self.tag(self.pick(["break", "continue"])) + self.tag("endif") + self.data()
        self.loops -= 1
        otherwise = self.tag("else") + self.block(depth - 1) if self.random.random() < 0.3 else ""
        return self.tag(f"for {target} in {over}{condition}") + body + otherwise + self.tag("endfor")

    def statement(self, depth):
        kind = self.random.randrange(16)
        if depth <= 0 or kind < 6:
            sign = self.pick(["", "", "-"])
            return "{{" + sign + " " + self.expression(self.random.randint(0, 3)) + " " + self.pick(["", "", "-"]) + "}}"
        if kind < 8:
            otherwise = self.pick(["", self.tag("else") + self.data() + "2", self.tag("elif " + self.expression(1)) + self.block(0)])
            return self.tag("if " + self.expression(2)) + self.block(depth - 1) + otherwise + self.tag("endif")
        if kind < 11:
            return self.loop(depth)
        if kind < 13:
            return self.tag(f"set {self.pick(['x', 'y', 's', 'l', 'ns.a', 'ns.b', 'x, y', 'n'])} = {self.expression(2)}")
        if kind == 13:
            return self.tag(f"set {self.pick(['x', 'y', 'ns.a'])}") + self.block(depth - 1) + self.tag("endset")
        if kind == 14:
            return self.pick(["{# c #}", "{#- c -#}", "{#+ c +#}", self.tag("raw") + "{{ x }} {% raw" + self.tag("endraw"),
                              self.tag("generation") + self.block(depth - 1) + self.tag("endgeneration")])
        return self.tag(f"macro macro(a=1, b={self.expression(1)})") + self.block(depth - 1) + "{{ a }}{{ b }}" + self.tag("endmacro")

    def template(self):
        start = self.pick(["", "{% set ns = namespace(a=1) %}", "{% macro macro(a, b=2) %}<{{ a }},{{ b }}>{% endmacro %}"])
        return start + self.block(self.random.randint(1, 3))


def make(count, seed, renders):
    """(template, variables) each; of those that do not render, as `renders` says, one in ten stays."""
    maker, made = Maker(seed), []
    while len(made) < count:
        template = maker.template()
        if renders(template, VARIABLES) or maker.random.random() < 0.1:
            made.append((template, VARIABLES))
    return made
