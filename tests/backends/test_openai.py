"""The backend behind an OpenAI-compatible endpoint: what it sends, what it makes of every answer."""

import json
import pickle
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from rlver_gym.backends import SamplingConfig, make_backend, network
from rlver_gym.backends.limits import Retrying
from rlver_gym.backends.openai import OpenAIBackend
from rlver_gym.backends.openai.client import retry_after
from rlver_gym.backends.openai.transport import Endpoint
from rlver_gym.errors import (
    BackendError,
    ConnectionFault,
    ContextOverflowFault,
    EmptyAnswerFault,
    NetworkDisabledError,
    RateLimitFault,
    RefusalFault,
    RequestFault,
    ServerFault,
    SetupError,
    TimeoutFault,
)
from rlver_gym.types import Prompt, Usage
from tests.backends.openai_cases import MARKER, PLAIN, THINK, USER, answer_of, ask
from tests.fake_openai import FakeOpenAI, Response, completion, drop, error, hang


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_call_sends_everything_and_reads_everything():
    with FakeOpenAI(lambda body, index: completion("Hello", finish_reason="length", model="m-2")) as server:
        sampling = SamplingConfig(temperature=0.3, top_p=0.9, max_tokens=50, seed=2**62 + 5)
        generation = ask(OpenAIBackend("m", base_url=server.base_url, api_key=MARKER), PLAIN, sampling)
    assert (generation.text, generation.finish_reason, generation.model) == ("Hello", "length", "m-2")
    assert generation.usage == Usage(calls=1, prompt_tokens=11, completion_tokens=7, cached_tokens=5)
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {MARKER}"
    assert request.body == {
        "model": "m",
        "messages": list(PLAIN.messages),
        "temperature": 0.3,
        "top_p": 0.9,
        "max_tokens": 50,
        "seed": 5,
    }


def test_text_that_no_wire_carries_is_mended():
    prompt = Prompt("policy_direct", {}, "t", lambda *_: ({"role": "user", "content": "a\ud800b 你好"},))
    with FakeOpenAI(lambda body, index: "ok") as server:
        ask(OpenAIBackend("m", base_url=server.base_url), prompt)
    assert server.bodies[0]["messages"][0]["content"] == "a\ufffdb 你好"


@pytest.mark.parametrize("reported", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": "many"}, "none"])
def test_usage_that_is_not_reported_is_unknown(reported):
    unknown = Usage(calls=1, prompt_tokens=None, completion_tokens=None, cached_tokens=None)
    assert answer_of(completion("x", usage=reported)).usage == unknown


def test_construction_reads_nothing_and_calls_nothing(monkeypatch):
    backend = make_backend("openai:some/model:tag")
    assert isinstance(backend, Retrying) and backend.name == "openai:some/model:tag" and not backend.deterministic
    with FakeOpenAI(lambda body, index: "late") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", f"{MARKER}\n")
        assert ask(backend).text == "late"
    assert server.requests[0].headers["authorization"] == f"Bearer {MARKER}"


def test_importing_the_package_imports_no_openai_and_a_missing_one_is_named():
    code = (
        "import sys, rlver_gym, rlver_gym.backends as b; assert 'openai' not in sys.modules\n"
        "sys.modules['openai'] = None\n"
        "try: b.make_backend('openai:m')\n"
        "except b.registry.SetupError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'openai>=2,<4'" in done.stdout


# Address and key


@pytest.mark.parametrize("form", ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1/chat/completions/"])
def test_every_form_of_a_base_url_reaches_v1(form):
    with FakeOpenAI(lambda body, index: "ok") as server:
        ask(OpenAIBackend("forms", base_url=server.root + form))
    assert server.requests[0].path == "/v1/chat/completions"


def test_other_paths_and_a_query_are_kept():
    with FakeOpenAI(lambda body, index: "ok") as server:
        ask(OpenAIBackend("m", base_url=f"{server.root}/compatible-mode/v1/?api-version=7"))
    assert server.requests[0].path == "/compatible-mode/v1/chat/completions?api-version=7"


@pytest.mark.parametrize("wrong", ["localhost:8000", "ftp://h/v1", "http://", "http://h:port/v1", "http://me:pw@h/v1"])
def test_a_wrong_base_url_is_an_error_at_construction(wrong):
    with pytest.raises(SetupError, match="base URL") as caught:
        OpenAIBackend("m", base_url=wrong)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "loopback", "local"),
    [
        ("localhost", True, True), ("127.0.0.2", True, True), ("[::1]", True, True), ("0.0.0.0", True, True),
        ("10.1.2.3", False, True), ("192.168.0.9", False, True), ("gpu01", False, True), ("a.internal", False, True),
        ("[::ffff:8.8.8.8]", False, False), ("8.8.8.8", False, False), ("api.openai.com", False, False),
        ("localhost.example.com", False, False),
    ],
)  # fmt: skip
def test_which_hosts_are_near(host, loopback, local):
    endpoint = Endpoint.parse(f"https://{host}:8000/v1")
    assert (endpoint.is_loopback, endpoint.is_local) == (loopback, local)
    assert endpoint.url == f"https://{host}:8000/v1"


def test_a_missing_key_is_a_clear_mistake_only_for_the_default_endpoint():
    with pytest.raises(SetupError, match="set OPENAI_API_KEY"), network.disabled():
        ask(OpenAIBackend("m", base_url="https://api.openai.com"))
    with FakeOpenAI(lambda body, index: "ok") as server:
        ask(OpenAIBackend("m", base_url=server.base_url))
    assert server.requests[0].headers["authorization"].startswith("Bearer no-key")


@pytest.mark.parametrize("key", ["sk-пароль", "two words"])
def test_a_key_that_no_header_carries_is_named_and_not_shown(key):
    with pytest.raises(SetupError, match="OPENAI_API_KEY") as caught:
        ask(OpenAIBackend("m", base_url="http://127.0.0.1:9", api_key=key))
    pieces = [key[start : start + 3] for start in range(len(key) - 2)]
    assert len(pieces) > 5 and not [piece for piece in pieces if piece in str(caught.value)]


def test_no_network_means_loopback_only():
    with FakeOpenAI(lambda body, index: "ok") as server, network.disabled():
        assert ask(OpenAIBackend("m", base_url=server.base_url)).text == "ok"
        for url in ("http://10.0.0.1:1/v1", "https://api.openai.com"):
            with pytest.raises(NetworkDisabledError, match="switched off"):
                ask(OpenAIBackend("m", base_url=url, api_key="k"))


def test_a_proxy_is_asked_for_remote_hosts_and_never_for_near_ones(monkeypatch):
    with FakeOpenAI(lambda body, index: "from the proxy") as proxy, FakeOpenAI(lambda body, index: "ok") as server:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.root)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert ask(OpenAIBackend("m", base_url=server.base_url)).text == "ok" and not proxy.requests
        monkeypatch.setattr(network, "allowed", True)
        assert ask(OpenAIBackend("m", base_url="http://example.invalid/v1", api_key="k")).text == "from the proxy"


def test_a_redirect_is_not_followed():
    with FakeOpenAI(lambda body, index: "ok") as there:
        answer = Response(307, {"location": f"{there.base_url}/chat/completions?key=s"})
        with pytest.raises(RequestFault, match=r"redirected to .*completions: use that"):
            answer_of(answer)
        assert not there.requests


# Faults


@pytest.mark.parametrize(
    ("answer", "fault", "says"),
    [
        (error(429, "slow down", headers={"retry-after": "2"}), RateLimitFault, "slow down"),
        (error(429, "exceeded your current quota", code="insufficient_quota"), RequestFault, "used up"),
        (error(500, "boom"), ServerFault, "HTTP 500: .*boom"),
        (error(503, "busy"), ServerFault, "503"),
        (error(400, "bad thing"), RequestFault, "bad thing"),
        (error(401, "who?"), RequestFault, "OPENAI_API_KEY"),
        (error(404, "no such model"), RequestFault, "/v1/chat/completions: HTTP 404"),
        (Response(502, body="<html>proxy</html>"), ServerFault, "proxy"),
        (error(400, "x", code="context_length_exceeded"), ContextOverflowFault, "m"),
        (error(400, "This model's maximum context length is 4096 tokens"), ContextOverflowFault, "4096"),
        (error(400, "the request exceeds the available context size"), ContextOverflowFault, "size"),
        (error(400, "Requested tokens (5000) exceed context window of 2048"), ContextOverflowFault, "2048"),
        (error(400, "prompt is too long: 210000 tokens"), ContextOverflowFault, "long"),
        (error(400, "Range of input length should be [1, 6000]"), ContextOverflowFault, "6000"),
        (error(422, "`inputs` tokens + `max_new_tokens` must be <= 4096"), ContextOverflowFault, "4096"),
        (error(500, "The input is longer than the model's context length"), ContextOverflowFault, "long"),
        (error(400, "max_tokens is too large: 9. This model supports at most 5"), RequestFault, "at most 5"),
        (error(400, "filtered", code="content_filter"), RefusalFault, "filter"),
        (error(400, "Output data may contain inappropriate content."), RefusalFault, "inappropriate"),
        (completion("", finish_reason="content_filter"), RefusalFault, "content filter"),
        (completion(None, refusal="I will not."), RefusalFault, "I will not"),
        (completion(None), EmptyAnswerFault, "message holds role, content"),
        ({"choices": None, "id": "1"}, EmptyAnswerFault, "received choices, id"),
        ({"choices": []}, EmptyAnswerFault, "received choices"),
        ({"choices": [{}]}, EmptyAnswerFault, "without choices"),
        ({"error": {"message": "upstream died"}}, EmptyAnswerFault, "received error .upstream died"),
        ({}, EmptyAnswerFault, "no key at all"),
        (Response(body="<html>hi</html>"), EmptyAnswerFault, "not a JSON object"),
        (Response(headers={"content-type": "application/json"}, body="{oops"), EmptyAnswerFault, "not JSON"),
        (drop(), ConnectionFault, "is the server running"),
    ],
)
def test_every_failure_is_its_fault_and_names_model_and_address(answer, fault, says):
    with pytest.raises(BackendError, match=says) as caught:
        answer_of(answer)
    assert type(caught.value) is fault
    assert "model 'm' at http://127.0.0.1:" in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_json_under_another_content_type_is_read():
    assert answer_of(Response(body=json.dumps(completion("fine")))).text == "fine"


def test_nobody_listening_is_a_connection_fault():
    with pytest.raises(ConnectionFault):
        ask(OpenAIBackend("m", base_url="http://127.0.0.1:9/v1"))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("2", 2.0), ("0.5", 0.5), ("Mon, 01 Jan 2024 00:00:30 GMT", 30.0), ("Sun, 31 Dec 2023 00:00:00 GMT", 0.0),
        ("abc", None), ("", None), ("-5", None), ("nan", None), ("inf", None), (None, None),
    ],
)  # fmt: skip
def test_retry_after_is_read_in_every_form(header, seconds):
    assert retry_after(header, datetime(2024, 1, 1, tzinfo=UTC)) == seconds


def test_retries_are_bounded_and_wait_as_long_as_the_server_asks():
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    with FakeOpenAI(lambda body, index: error(429, "later", headers={"retry-after": "3"})) as server:
        with pytest.raises(RateLimitFault) as caught:
            ask(Retrying(OpenAIBackend("m", base_url=server.base_url), attempts=3, sleep=sleep))
        assert len(server.requests) == 3 and caught.value.attempts == 3
    assert len(waits) == 2 and all(wait >= 3 for wait in waits)
    with FakeOpenAI(lambda body, index: error(400, "no")) as server, pytest.raises(RequestFault):
        ask(Retrying(OpenAIBackend("m", base_url=server.base_url), sleep=sleep))
    assert len(server.requests) == 1 and len(waits) == 2


@pytest.mark.parametrize("slow", [hang(), Response(body=completion("x" * 500), trickle=0.1)], ids=["hang", "trickle"])
def test_the_deadline_of_a_call_is_wall_clock(slow):
    start = time.monotonic()
    with pytest.raises(TimeoutFault, match=r"within 0\.5 s"):
        answer_of(slow, timeout=0.5)
    assert time.monotonic() - start < 3
    assert answer_of(Response(body=completion("x"), delay=0.2), timeout=5).text == "x"


# Thoughts


@pytest.mark.parametrize(
    ("answer", "text", "reasoning"),
    [
        (completion("said", reasoning_content="hm"), "said", "hm"),
        (completion("said", reasoning="hm"), "said", "hm"),
        (completion("<think>hm</think>said"), "said", "hm"),
        (completion("hm</think>said", reasoning="and"), "said", "and\nhm"),
        (completion('{"message": "</think>"}'), '{"message": "</think>"}', ""),
        (completion(None, reasoning_content='{"message": "hi"}'), '{"message": "hi"}', ""),
    ],
)
def test_thoughts_are_kept_out_of_the_users_words(answer, text, reasoning):
    generation = answer_of(answer, USER)
    assert (generation.text, generation.reasoning) == (text, reasoning)


def test_content_in_parts_is_joined():
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert answer_of(completion(parts), USER).text == "ab"


@pytest.mark.parametrize("text", ["", "  ", "<think>only thoughts", None])
def test_a_user_without_words_is_a_fault(text):
    with pytest.raises(EmptyAnswerFault, match="allow more"):
        answer_of(completion(text, finish_reason="length", reasoning="I think so"), USER)


@pytest.mark.parametrize(
    ("prompt", "answer", "text"),
    [
        (PLAIN, completion("<think>a</think>b"), "<think>a</think>b"),
        (PLAIN, completion("b", reasoning="a"), "b"),
        (PLAIN, completion(""), ""),
        (PLAIN, completion(None, reasoning="a", finish_reason="length"), ""),
        (THINK, completion("b", reasoning_content="a"), "<think>a</think>b"),
        (THINK, completion("<think>a</think>b"), "<think>a</think>b"),
        (THINK, completion("b"), "b"),
        (THINK, completion(None, reasoning="a", finish_reason="length"), "<think>a"),
    ],
)
def test_the_policys_text_is_its_own(prompt, answer, text):
    assert answer_of(answer, prompt).text == text


@pytest.mark.parametrize("model", ["", "  "])
def test_no_model_is_a_mistake_with_an_example(model):
    for make in (lambda: make_backend(f"openai:{model}"), lambda: OpenAIBackend(model)):
        with pytest.raises(SetupError, match="for example"):
            make()
    with pytest.raises(SetupError, match="timeout=0"):
        OpenAIBackend("m", timeout=0)
