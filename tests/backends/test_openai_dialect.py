"""What an endpoint takes is found out by asking, once, and remembered for the whole process."""

import json

import pytest

from rlver_gym.backends import SamplingConfig
from rlver_gym.backends.openai import Dialect, OpenAIBackend, dialects
from rlver_gym.backends.openai.dialect import arrange
from rlver_gym.errors import BackendError, ContextOverflowFault, RequestFault, ServerFault
from rlver_gym.types import Prompt
from tests.backends.openai_cases import PLAIN, SCHEMA, USER, ask, render
from tests.fake_openai import FakeOpenAI, error


def pick(*taken, refusal=None):
    """A server that takes some formats only; `text` stands for no format."""

    def handler(body, index):
        kind = body.get("response_format", {}).get("type", "text")
        return f"as {kind}" if kind in taken else refusal or error(400, f"response_format {kind} is not supported")

    return handler


@pytest.mark.parametrize(
    ("handler", "first", "second", "rung"),
    [
        (pick("json_schema"), ["json_schema"], ["json_schema"], "json_schema"),
        (pick("json_object"), ["json_schema", "json_object"], ["json_object"], "json_object"),
        (pick("text"), ["json_schema", "json_object", "text"], ["text"], "lines"),
        (pick("json_object", refusal=error(500, "oops")), ["json_schema", "json_object"], ["json_object"],
         "json_object"),
        (pick("text", refusal=error(501, "oops")), ["json_schema", "json_object", "text"], ["text"], "lines"),
        (pick("json_object", refusal=error(422, "x", param="response_format")), ["json_schema", "json_object"],
         ["json_object"], "json_object"),
    ],
)  # fmt: skip
def test_the_ladder_is_found_out_once_and_shared(handler, first, second, rung):
    def kinds(bodies):
        return [body.get("response_format", {}).get("type", "text") for body in bodies]

    with FakeOpenAI(handler) as server:
        generation = ask(OpenAIBackend("m", base_url=server.base_url), USER)
        assert kinds(server.bodies) == first
        assert generation.rung == rung and generation.usage.calls == 1
        backend = OpenAIBackend("m", base_url=server.base_url)
        assert ask(backend, USER).rung == rung
        assert kinds(server.bodies) == first + second
        summary = backend.dialect.summary()
        assert summary["rungs"][rung]["answers"] == 2 and backend.dialect in dialects()
        assert json.loads(json.dumps(summary)) == summary
    style = "labelled lines" if rung == "lines" else "JSON"
    assert style in server.bodies[-1]["messages"][0]["content"]


def test_a_strict_schema_is_sent_as_one():
    loose = Prompt("x y", {}, "t", render, {**SCHEMA, "required": []})
    with FakeOpenAI(lambda body, index: "{}") as server:
        for prompt in (USER, loose):
            ask(OpenAIBackend("m", base_url=server.base_url), prompt)
    sent = [body["response_format"]["json_schema"] for body in server.bodies]
    assert [(s["name"], s["strict"]) for s in sent] == [("answer", True), ("x_y", False)]
    assert sent[0]["schema"] == SCHEMA


def test_a_format_that_has_worked_is_not_given_up_for_a_passing_error():
    with FakeOpenAI(lambda body, index: error(500, "oops") if index == 1 else "{}") as server:
        backend = OpenAIBackend("m", base_url=server.base_url)
        ask(backend, USER)
        with pytest.raises(ServerFault):
            ask(backend, USER)
        assert ask(backend, USER).rung == "json_schema" and len(server.requests) == 3


@pytest.mark.parametrize("answer", [error(401, "who"), error(404, "The model `m` does not exist"), error(429, "slow"),
                                    error(400, "x", code="context_length_exceeded")])  # fmt: skip
def test_what_has_nothing_to_do_with_the_format_is_not_probed(answer):
    with FakeOpenAI(lambda body, index: answer) as server:
        backend = OpenAIBackend("m", base_url=server.base_url)
        with pytest.raises(BackendError):
            ask(backend, USER)
    assert len(server.requests) == 1
    assert not any(rung.refused for rung in backend.dialect.rungs.values())


def test_an_overflow_teaches_nothing_whatever_parameter_it_names():
    overflow = error(400, "maximum context length is 10 tokens; max_tokens=9 is not allowed beside 5")
    with FakeOpenAI(lambda body, index: overflow) as server, pytest.raises(ContextOverflowFault):
        ask(OpenAIBackend("m", base_url=server.base_url), PLAIN, SamplingConfig(max_tokens=9))
    assert len(server.requests) == 1


def test_nothing_is_learned_from_a_server_that_is_down():
    with FakeOpenAI(lambda body, index: error(500, "down")) as server:
        backend = OpenAIBackend("m", base_url=server.base_url)
        with pytest.raises(ServerFault):
            ask(backend, USER)
    assert not any(rung.refused for rung in backend.dialect.rungs.values())


def test_each_further_attempt_starts_a_rung_lower():
    with FakeOpenAI(lambda body, index: "{}") as server:
        backend = OpenAIBackend("m", base_url=server.base_url)
        rungs = [ask(backend, USER, SamplingConfig(attempt=attempt)).rung for attempt in range(4)]
    assert rungs == ["json_schema", "json_object", "lines", "lines"]


def test_a_format_that_is_taken_and_ignored_is_dropped_after_four_reports():
    with FakeOpenAI(lambda body, index: "prose") as server:
        backend = OpenAIBackend("m", base_url=server.base_url)
        for expected in [*["json_schema"] * 4, *["json_object"] * 4, *["lines"] * 5]:
            generation = ask(backend, USER)
            assert generation.rung == expected
            backend.report(generation, usable=False)
    good = Dialect("u", "m")
    for usable in (True, False, False, False):
        good.report("json_schema", usable)
    assert good.ladder(0)[0] == "json_schema", "a quarter is enough"


def test_the_word_json_is_added_where_it_is_missing():
    def silent(name, variables, form):
        return ({"role": "user", "content": "请回答"},)

    with FakeOpenAI(pick("json_object")) as server:
        for renderer in (silent, render):
            ask(OpenAIBackend("m", base_url=server.base_url), Prompt("answer", {}, "t", renderer, SCHEMA))
    _, without, having = server.bodies
    assert without["messages"][-1]["content"] == "请回答\n\nAnswer with one JSON object."
    assert having["messages"] == list(render("", {}, "json"))


@pytest.mark.parametrize(
    ("message", "fields", "gone", "new"),
    [
        ("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
         {"param": "max_tokens", "code": "unsupported_parameter"}, "max_tokens", "max_completion_tokens"),
        ("Unsupported value: 'temperature' does not support 0.7. Only the default (1) value is supported.", {},
         "temperature", None),
        ("[{'loc': ['body', 'seed'], 'msg': 'Extra inputs are not permitted'}]", {}, "seed", None),
        ("`temperature` and `top_p` cannot both be specified for this model.", {}, "top_p", None),
    ],
)  # fmt: skip
def test_a_refused_parameter_is_given_up_once_and_remembered(message, fields, gone, new):
    def handler(body, index):
        return error(400, message, **fields) if gone in body else "ok"

    with FakeOpenAI(handler) as server:
        for _ in range(2):
            backend = OpenAIBackend("m", base_url=server.base_url)
            ask(backend, PLAIN, SamplingConfig(temperature=0.7, max_tokens=9, seed=1))
    assert [gone in body for body in server.bodies] == [True, False, False]
    assert new is None or server.bodies[-1][new] == 9
    assert len(backend.dialect.quirks) == 1
    assert len({"temperature", "top_p", "seed"} - server.bodies[-1].keys()) == (gone != "max_tokens")


def test_a_parameter_that_is_refused_under_every_name_ends_in_a_fault():
    refusal = error(400, "max_tokens is not supported", param="max_tokens")
    with FakeOpenAI(lambda body, index: refusal) as server, pytest.raises(RequestFault):
        ask(OpenAIBackend("m", base_url=server.base_url), PLAIN, SamplingConfig(max_tokens=9))
    assert len(server.requests) == 2


def test_several_quirks_and_a_lower_rung_are_found_in_one_call():
    def handler(body, index):
        if any(message["role"] == "system" for message in body["messages"]):
            return error(400, "System role not supported")
        if "seed" in body:
            return error(422, "seed: extra fields not permitted")
        return pick("text")(body, index)

    with FakeOpenAI(handler) as server:
        assert ask(OpenAIBackend("m", base_url=server.base_url), USER, SamplingConfig(seed=1)).rung == "lines"
        count = len(server.requests)
        ask(OpenAIBackend("m", base_url=server.base_url), USER, SamplingConfig(seed=1))
    assert (count, len(server.requests)) == (5, 6)
    (message,) = server.bodies[-1]["messages"]
    assert message["role"] == "user" and message["content"].endswith("\n\nHi")


S, U, A = "system", "user", "assistant"


@pytest.mark.parametrize(
    ("roles", "alternate", "fold"),
    [
        ([S], [S, U], [U]),
        ([S, S, U], [S, U], [U]),
        ([U, U], [U], [U]),
        ([S, A, U], [S, U, A, U], [U, A, U]),
        ([A, U, S], [U, A, U], [U, A, U]),
        ([S, U, A, S, U, A], [S, U, A, U, A], [U, A, U, A]),
    ],
)
def test_roles_are_arranged_and_no_text_is_lost(roles, alternate, fold):
    messages = [{"role": role, "content": f"text {i}"} for i, role in enumerate(roles)]
    for quirks, expected in (({"alternate"}, alternate), ({"fold_system"}, fold), (set(), roles)):
        arranged = arrange(messages, frozenset(quirks))
        assert [message["role"] for message in arranged] == expected
        joined = "\n".join(message["content"] for message in arranged)
        assert all(f"text {i}" in joined for i in range(len(roles)))
    assert messages[0]["content"] == "text 0", "the caller's messages are not touched"


@pytest.mark.parametrize(
    ("complaint", "quirk"),
    [
        ("Conversation roles must alternate user/assistant/user/assistant/...", "alternate"),
        ("Only one system message is allowed", "alternate"),
        ("This model does not support the 'system' role", "fold_system"),
        ("messages.1: all messages must have non-empty content", "fill_empty"),
    ],
)
def test_complaints_about_messages_are_understood(complaint, quirk):
    with FakeOpenAI(lambda body, index: "ok" if index else error(400, complaint)) as server:
        backend = OpenAIBackend("m", base_url=server.base_url)
        assert ask(backend).text == "ok"
    assert backend.dialect.quirks == {quirk}


def test_an_empty_message_is_filled_only_where_it_must_be():
    empty = [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "b"}]
    assert arrange(empty, frozenset()) == empty
    assert [message["content"] for message in arrange(empty, frozenset({"fill_empty"}))] == ["a", "…", "b"]
