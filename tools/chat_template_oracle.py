"""Renders a chat template as transformers 5.24 does, with nothing but jinja2: the same environment, filters and globals
(transformers.utils.chat_template_utils._cached_compile_jinja_template), and the same treatment of the messages before."""

import datetime
import json

import jinja2
import jinja2.ext
import jinja2.nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment


class GenerationBlocks(jinja2.ext.Extension):
    """{% generation %}: a call block that returns what it contains."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_contents"), [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def _contents(self, context, caller):
        return caller()


class TemplateNamespace(jinja2.utils.Namespace):
    """A namespace that refuses names with an underscore in front."""

    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            TemplateNamespace.check(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name, value):
        TemplateNamespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)


class TemplateDict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)


def compile_template(source):
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlocks, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["dict"] = TemplateDict()
    environment.globals["namespace"] = TemplateNamespace
    return environment.from_string(source)


def prepare_messages(messages):
    """apply_chat_template drops null values and gives reasoning two names."""
    prepared = []
    for message in messages:
        message = {key: value for key, value in message.items() if value is not None}
        names = ("reasoning_content", "thinking", "reasoning")
        reasoning = next((message[name] for name in names if message.get(name) is not None), None)
        if reasoning is not None:
            message = {"thinking": reasoning, **message, "reasoning_content": reasoning}
        prepared.append(message)
    return prepared


def render(template, chat):
    """`template` from compile_template, `chat` an input as tests/oracles/render_templates.cpp reads it."""
    variables = {**chat.get("special_tokens", {}), **chat.get("variables", {})}
    if "now" in chat:
        now = datetime.datetime(*chat["now"])
        variables["strftime_now"] = now.strftime
    return template.render(
        messages=prepare_messages(chat["messages"]),
        tools=chat.get("tools"),
        documents=chat.get("documents"),
        add_generation_prompt=chat.get("add_generation_prompt", True),
        **variables,
    )


def render_or_raise(source, chat):
    """(text, None) or (None, what was raised)."""
    try:
        return render(compile_template(source), chat), None
    except Exception as error:  # whatever Python raises inside a template counts
        return None, f"{type(error).__name__}: {error}"
